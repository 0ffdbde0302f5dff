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
    /// Its resource name, in the plural as URLs write it.
    pub plural: String,
    /// Where the pod template lies, a field name a step.
    pub template: Vec<String>,
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

    /// The resource name in URLs and RBAC rules.
    #[must_use]
    pub fn plural(&self) -> &str {
        match self {
            Self::Deployment => "deployments",
            Self::StatefulSet => "statefulsets",
            Self::DaemonSet => "daemonsets",
            Self::Custom(custom) => &custom.plural,
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
