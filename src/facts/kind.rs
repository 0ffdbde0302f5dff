//! The kinds of workload that can be rolled.

use std::{fmt, sync::Arc};

/// A kind with a pod template whose change makes its controller replace the pods.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `apps/v1` Deployment.
    Deployment,
    /// `apps/v1` StatefulSet.
    StatefulSet,
    /// `apps/v1` DaemonSet.
    DaemonSet,
    /// A kind named by `--workload`.
    Custom(Arc<CustomKind>),
}

/// A custom kind with a pod template.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CustomKind {
    /// Its API group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// Its kind, in the singular as manifests write it.
    pub kind: String,
    /// Where the pod template lies, a field name a step.
    pub template: Vec<String>,
}

/// A custom kind that many clusters have: its short name is enough to name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownKind {
    /// The short name.
    pub name: &'static str,
    /// The API group.
    pub group: &'static str,
    /// The version.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// Where the pod template lies, with dots between.
    pub template: &'static str,
}

/// The custom kinds that are known by name.
pub const KNOWN_KINDS: [KnownKind; 5] = [
    known("Rollout", "argoproj.io", "v1alpha1", "Rollout"),
    known("CloneSet", "apps.kruise.io", "v1alpha1", "CloneSet"),
    known("AdvancedStatefulSet", "apps.kruise.io", "v1beta1", "StatefulSet"),
    known("DeploymentConfig", "apps.openshift.io", "v1", "DeploymentConfig"),
    known("KnativeService", KNATIVE, "v1", "Service"),
];

/// The group of Knative's Services, and of what stands between them and their Deployments.
pub const KNATIVE: &str = "serving.knative.dev";

const fn known(
    name: &'static str,
    group: &'static str,
    version: &'static str,
    kind: &'static str,
) -> KnownKind {
    KnownKind { name, group, version, kind, template: "spec.template" }
}

impl Kind {
    /// The kinds that every cluster has.
    pub const BUILTIN: [Self; 3] = [Self::Deployment, Self::StatefulSet, Self::DaemonSet];

    /// The API group.
    #[must_use]
    pub fn group(&self) -> &str {
        match self {
            Self::Deployment | Self::StatefulSet | Self::DaemonSet => "apps",
            Self::Custom(custom) => &custom.group,
        }
    }

    /// The API version, without the group.
    #[must_use]
    pub fn version(&self) -> &str {
        match self {
            Self::Deployment | Self::StatefulSet | Self::DaemonSet => "v1",
            Self::Custom(custom) => &custom.version,
        }
    }

    /// The kind as manifests, logs, metrics and Events write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Deployment => "Deployment",
            Self::StatefulSet => "StatefulSet",
            Self::DaemonSet => "DaemonSet",
            Self::Custom(custom) => &custom.kind,
        }
    }

    /// The resource name in URLs and RBAC rules; of a custom kind only the API server knows it.
    #[must_use]
    pub const fn plural(&self) -> Option<&'static str> {
        match self {
            Self::Deployment => Some("deployments"),
            Self::StatefulSet => Some("statefulsets"),
            Self::DaemonSet => Some("daemonsets"),
            Self::Custom(_) => None,
        }
    }

    /// `GROUP/VERSION`, or the version alone for the core group.
    #[must_use]
    pub fn api_version(&self) -> String {
        match self.group() {
            "" => self.version().to_owned(),
            group => format!("{group}/{}", self.version()),
        }
    }

    /// Where the pod template lies, a field name a step.
    #[must_use]
    pub fn template_path(&self) -> Vec<&str> {
        match self {
            Self::Deployment | Self::StatefulSet | Self::DaemonSet => vec!["spec", "template"],
            Self::Custom(custom) => custom.template.iter().map(String::as_str).collect(),
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
