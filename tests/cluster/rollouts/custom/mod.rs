//! A custom kind with a pod template, from before it is there until it is gone.

pub mod controller;

use super::note;
use crate::stage::{ROLLED, Stage, VALUE, kubectl, reader, wait_metric};
use crate::support::http;
use crate::support::objects::Namespace;
use crate::support::operator::Operator;
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use controller::{Controller, resource};
use k8s_openapi::api::events::v1::Event;
use kube::Api;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use std::time::Duration;

pub const CRD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/crds/rollout.yaml");

/// An absent kind is looked for every 30 s at the longest.
const NOTICED: Duration = Duration::from_secs(120);

const SYNCED: &str = "uptake_watch_synced";
const OF_KIND: [(&str, &str); 1] = [("kind", "Rollout")];

fn rollouts(stage: &Stage) -> Api<DynamicObject> {
    Api::namespaced_with(stage.ns.client.clone(), &stage.ns.name, &resource())
}

/// The manifest of a Deployment, as a Rollout.
pub fn rollout(workload: &Workload) -> Value {
    let mut manifest = workload.manifest().clone();
    manifest["apiVersion"] = json!("argoproj.io/v1alpha1");
    manifest["kind"] = json!("Rollout");
    manifest
}

async fn create(stage: &Stage, manifest: &Value) {
    create_in(&stage.ns, manifest).await;
}

pub async fn create_in(ns: &Namespace<'_>, manifest: &Value) {
    let api = Api::namespaced_with(ns.client.clone(), &ns.name, &resource());
    let parameters = PostParams::default();
    let object: DynamicObject = serde_json::from_value(manifest.clone()).unwrap();
    // A CRD that is established may still not be served by the next request.
    eventually(ROLLED, || api.create(&parameters, &object)).await;
}

/// Until the controller is done and all pods hold the value.
async fn wait_values(stage: &Stage, workload: &Workload, value: &str) {
    let replicas = workload.manifest()["spec"]["replicas"].as_u64().unwrap_or(1);
    eventually(ROLLED, || async {
        let values = stage.ns.values_in_pods(workload, VALUE).await;
        let all = values.len() as u64 == replicas && values.iter().all(|held| held == value);
        all.then_some(()).ok_or_else(|| format!("pods of {} hold {values:?}", workload.name))
    })
    .await;
}

async fn wait_log(operator: &Operator, words: &[&str], times: usize) {
    let said = || operator.log().lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    eventually(NOTICED, || async {
        (said() >= times).then_some(()).ok_or_else(|| format!("{words:?} is said {} times", said()))
    })
    .await;
}

/// Until it is unready for the kind's sake alone.
async fn wait_unready(operator: &Operator) {
    eventually(NOTICED, || async {
        let (status, text) =
            http::get(operator.address(), "/readyz").await.map_err(|error| error.to_string())?;
        let only = !status.is_success() && text.lines().all(|line| line.starts_with("Rollout: "));
        only.then_some(()).ok_or(format!("{status}: {text}"))
    })
    .await;
}

async fn told_in_own_namespace(stage: &Stage, words: &str) {
    let events: Api<Event> = Api::namespaced(stage.ns.client.clone(), &stage.install.own_namespace);
    eventually(ROLLED, || async {
        let all = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let told = all
            .iter()
            .any(|event| event.reason.as_deref() == Some("InventoryUnknown") && note(event).contains(words));
        told.then_some(()).ok_or("nobody was told".to_owned())
    })
    .await;
}

#[tokio::test]
async fn a_custom_kind_is_waited_for_rolled_and_forgotten() {
    let mut stage = Stage::set("custom").await;
    stage.install = stage.install.arg("--workload=Rollout");
    let rights = json!([
        { "apiGroups": ["argoproj.io"], "resources": ["rollouts"], "verbs": ["get", "list", "watch", "patch"] },
    ]);
    let user = &stage.install.user;
    stage.cluster.grant_in(&stage.ns.name, user, rights).await;
    let mut audit = stage.cluster.audit_from_now();
    let _controller = Controller::start(stage.cluster, &stage.ns.name);
    let plain = &reader("plain");
    stage.run(&[plain]).await;

    // Absent: a message, and the rest goes on.
    let operator = Operator::start(stage.cluster, &stage.install);
    wait_log(&operator, &["Kind is waited for", "Rollout"], 1).await;
    wait_unready(&operator).await;
    told_in_own_namespace(&stage, "Rollout is waited for").await;
    stage.rotate("two").await;
    stage.wait_values(plain, VALUE, "two").await;

    // Added: no restart.
    kubectl(&stage.ns, stage.cluster, &["apply", "-f", CRD], "");
    let web = &Workload::deployment("web").replicas(2).consumes(Via::env("db", "password"));
    create(&stage, &rollout(web)).await;
    let ours = |name: &str, spec: Value| json!({ "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "metadata": { "name": name }, "spec": spec });
    let deployment = json!({ "apiVersion": "apps/v1", "kind": "Deployment", "name": "plain" });
    create(&stage, &ours("missing", json!({}))).await;
    create(&stage, &ours("empty", json!({ "template": {} }))).await;
    create(&stage, &ours("refers", json!({ "workloadRef": deployment }))).await;
    operator.wait_ready(NOTICED).await;
    wait_metric(&operator, SYNCED, &OF_KIND, 1.0).await;
    for (name, words) in [
        ("name=\"missing\"", "no pod template at spec.template"),
        ("name=\"empty\"", "the pod template at spec.template has no containers"),
        ("name=\"refers\"", "its pod template is another object's"),
    ] {
        wait_log(&operator, &["Object is left out", name, words], 1).await;
    }
    wait_values(&stage, web, "two").await;
    stage.rotate("three").await;
    wait_values(&stage, web, "three").await;
    let completed = stage.ns.wait_event(ROLLED, "RolloutCompleted", "web").await;
    let about = completed.regarding.as_ref().unwrap();
    assert_eq!(about.api_version.as_deref(), Some("argoproj.io/v1alpha1"));
    assert_eq!(about.kind.as_deref(), Some("Rollout"));
    wait_metric(&operator, "uptake_rollouts_total", &[("kind", "Rollout"), ("outcome", "completed")], 1.0)
        .await;
    let stamps = audit.read_of(user).into_iter().filter(|entry| entry.changed("rollouts"));
    assert_eq!(stamps.map(|entry| entry.name).collect::<Vec<_>>(), ["web"]);

    // Its status is read by the conventions: a person paused it.
    let pause = Patch::Merge(json!({ "spec": { "paused": true } }));
    rollouts(&stage).patch("web", &PatchParams::default(), &pause).await.unwrap();
    stage.rotate("four").await;
    let blocked = stage.ns.wait_event(ROLLED, "RolloutBlocked", "web").await;
    assert!(
        note(&blocked).contains("paused") && note(&blocked).contains("2 pods are still stale"),
        "{}",
        note(&blocked)
    );
    stage.wait_values(plain, VALUE, "four").await;

    // Removed: a message, its workloads are forgotten, and the rest goes on.
    kubectl(&stage.ns, stage.cluster, &["delete", "-f", CRD], "");
    wait_log(&operator, &["Kind is waited for", "Rollout"], 2).await;
    wait_unready(&operator).await;
    wait_metric(&operator, SYNCED, &OF_KIND, 0.0).await;
    wait_metric(&operator, "uptake_stale_pods", &OF_KIND, 0.0).await;
    stage.rotate("five").await;
    stage.wait_values(plain, VALUE, "five").await;
}
