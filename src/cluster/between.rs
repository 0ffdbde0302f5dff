//! What may stand between a pod and the workload that controls it.

use super::path;
use crate::facts::{KNATIVE, Kind};

/// A kind whose objects stand there: their owners are looked up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Between {
    /// The kind.
    pub kind: &'static str,
    /// `/apis/GROUP/VERSION`.
    pub group_version: String,
    /// The resource's name.
    pub plural: &'static str,
}

/// ReplicaSets; an OpenShift `DeploymentConfig` has ReplicationControllers, and between a Knative Service and its
/// ReplicaSets stand three objects more.
#[must_use]
pub fn between(kinds: &[Kind]) -> Vec<Between> {
    let of = |group: &str| kinds.iter().any(|kind| kind.group() == group);
    let one = |kind, group_version, plural| Between { kind, group_version, plural };
    let mut between = vec![one("ReplicaSet", path::group("apps", "v1"), "replicasets")];
    if of("apps.openshift.io") {
        between.push(one("ReplicationController", "/api/v1".to_owned(), "replicationcontrollers"));
    }
    if of(KNATIVE) {
        let knative = || path::group(KNATIVE, "v1");
        between.push(one("Deployment", path::group("apps", "v1"), "deployments"));
        between.push(one("Revision", knative(), "revisions"));
        between.push(one("Configuration", knative(), "configurations"));
    }
    between
}
