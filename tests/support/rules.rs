//! What the operator may do in tests: exactly what the chart gives it, read from the plain manifests made from it.

use serde_json::Value;
use std::path::Path;

/// The namespaces of the plain manifests.
const OWN: &str = "uptake-system";
const WATCHED: &str = "shop";

/// In the whole cluster.
pub fn cluster_wide() -> Value {
    of("config/overlays/cluster-wide/rbac-cluster.yaml", "ClusterRole")
}

/// In the whole cluster, with a custom kind: Argo's Rollouts.
pub fn cluster_wide_with_rollouts() -> Value {
    of("config/overlays/custom-kinds/rbac-cluster.yaml", "ClusterRole")
}

/// In a watched namespace, where there is no ClusterRole.
pub fn watched(namespace: &str) -> Value {
    renamed(of("config/overlays/namespaced/rbac-namespaces.yaml", "Role"), WATCHED, namespace)
}

/// In its own namespace, beside the ClusterRole.
pub fn own(namespace: &str) -> Value {
    renamed(of("config/base/rbac-own.yaml", "Role"), OWN, namespace)
}

/// In its own namespace, where there is no ClusterRole.
pub fn own_without_cluster_role(namespace: &str) -> Value {
    renamed(of("config/overlays/namespaced/rbac-own.yaml", "Role"), OWN, namespace)
}

fn renamed(mut rules: Value, from: &str, to: &str) -> Value {
    let names =
        rules.as_array_mut().into_iter().flatten().filter_map(|rule| rule["resourceNames"].as_array_mut());
    for name in names.flatten().filter(|name| **name == from) {
        *name = to.into();
    }
    rules
}

fn of(file: &str, kind: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    let documents: Vec<Value> = serde_saphyr::from_multiple(&text).expect("it is YAML");
    let role = documents.into_iter().find(|document| document["kind"] == kind);
    role.unwrap_or_else(|| panic!("{file} has no {kind}"))["rules"].take()
}
