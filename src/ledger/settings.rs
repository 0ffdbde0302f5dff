//! The settings that an operator works under, for those who read its ledger: what it would do with a consumer isn't seen from
//! its histories.

use serde::{Deserialize, Serialize};

use crate::facts::{Kind, Name, Namespace, is_covered};

/// As flags, in the flags' own words.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// `--default-rollout`.
    pub default_rollout: Name,
    /// `--roll-volumes`.
    pub roll_volumes: bool,
    /// `--workload`, each as `GROUP/VERSION/KIND=PATH`.
    #[serde(default)]
    pub workloads: Vec<Name>,
    /// `--namespace`; none means all.
    #[serde(default)]
    pub namespaces: Vec<Namespace>,
    /// `--ignore-namespace`.
    #[serde(default)]
    pub ignore_namespaces: Vec<Namespace>,
}

impl Settings {
    /// Custom kinds in the words of `--workload`.
    #[must_use]
    pub fn workloads_of(kinds: &[Kind]) -> Vec<Name> {
        let custom = kinds.iter().filter_map(|kind| match kind {
            Kind::Custom(custom) => Some(custom),
            Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet => None,
        });
        let word = |group: &str, version: &str, kind: &str, template: &[String]| {
            format!("{group}/{version}/{kind}={}", template.join(".")).into()
        };
        custom.map(|custom| word(&custom.group, &custom.version, &custom.kind, &custom.template)).collect()
    }

    /// Whether the operator looks at that namespace at all.
    #[must_use]
    pub fn watches(&self, namespace: &Namespace) -> bool {
        is_covered(namespace, &self.namespaces, &self.ignore_namespaces)
    }
}
