//! What happened can be read: the audit log and Events.

use crate::support::cluster::Cluster;
use crate::support::cluster::audit::Entry;
use crate::support::objects::{Namespace, SOON};
use crate::support::workload::{Via, Workload};
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

#[tokio::test]
async fn the_audit_log_shows_a_patch_with_its_body_but_no_secret() {
    let cluster = Cluster::shared().await;
    let ns = Namespace::create(cluster, "audit").await;
    ns.set_secret("db", &[("password", "s3cret-value")]).await;
    let web = Workload::deployment("web").consumes(Via::env("db", "password"));
    ns.run(&web).await;
    let user = cluster.user();
    let mut audit = cluster.audit_from_now();
    let deployments: Api<Deployment> = Api::namespaced(cluster.client(&user).await, &ns.name);
    let patch = json!({ "spec": { "template": { "metadata": { "annotations": { "a": "b" } } } } });
    let patch = Patch::Merge(&patch);
    let refused = deployments.patch("web", &PatchParams::default(), &patch).await.unwrap_err();
    assert!(refused.to_string().contains("forbidden"), "{refused}");
    let rules = json!([
        { "apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["patch"] },
        { "apiGroups": [""], "resources": ["secrets"], "verbs": ["patch"] },
    ]);
    cluster.grant_in(&ns.name, &user, rules).await;
    deployments.patch("web", &PatchParams::default(), &patch).await.unwrap();
    let secrets: Api<Secret> = Api::namespaced(cluster.client(&user).await, &ns.name);
    let changed = json!({ "stringData": { "password": "s3cret-value-2" } });
    secrets.patch("db", &PatchParams::default(), &Patch::Merge(changed)).await.unwrap();

    let entries = audit.read_of(&user);
    let told: Vec<_> =
        entries.iter().map(|entry| (&*entry.verb, &*entry.resource, &*entry.name, entry.code)).collect();
    let expected = [
        ("patch", "deployments", "web", 403),
        ("patch", "deployments", "web", 200),
        ("patch", "secrets", "db", 200),
    ];
    assert_eq!(told, expected);
    assert!(entries[1].changed("deployments"));
    let sent = entries[1].request.as_ref().unwrap();
    assert_eq!(sent["spec"]["template"]["metadata"]["annotations"]["a"], "b");
    let log = std::fs::read_to_string(cluster.folder().join("audit.log")).unwrap();
    assert!(!log.contains("s3cret-value"), "a Secret's value is in the audit log");
    assert!(audit.read_of(&user).is_empty(), "nothing is told twice");
}

#[tokio::test]
async fn what_happened_is_found_in_events_and_in_the_audit_log() {
    let cluster = Cluster::shared().await;
    let ns = Namespace::create(cluster, "events").await;
    let web = Workload::deployment("web");
    ns.run(&web).await;
    ns.wait_event(SOON, "ScalingReplicaSet", "web").await;
    let is_meant = |entry: &Entry| entry.namespace == ns.name && entry.changed("deployments");
    let made = cluster.audit().wait(SOON, is_meant).await;
    assert_eq!((&*made.user, &*made.verb), ("admin", "create"));
}
