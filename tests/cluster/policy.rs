//! What annotations ask for, and what becomes of those that can't be understood.

use crate::stage::{ROLLED, Stage, VALUE, reader, wait_held, wait_metric};
use crate::support::objects::Namespace;
use crate::support::wait::eventually;
use crate::support::workload::Workload;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;

const ROLLOUT: &str = "uptake.dev/rollout";

/// Sets an annotation of a namespace, or takes it away.
async fn annotate_namespace(stage: &Stage, namespace: &str, name: &str, value: Option<&str>) {
    let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(stage.ns.client.clone());
    let patch = json!({ "metadata": { "annotations": { name: value } } });
    api.patch(namespace, &PatchParams::default(), &Patch::Merge(patch)).await.unwrap();
}

async fn annotate_secret(stage: &Stage, secret: &str, value: Option<&str>) {
    let patch = json!({ "metadata": { "annotations": { ROLLOUT: value } } });
    stage.ns.merge_secret(secret, &patch, "test").await.unwrap();
}

async fn annotate(stage: &Stage, workload: &Workload, value: Option<&str>) {
    stage.ns.merge(workload, &json!({ "metadata": { "annotations": { ROLLOUT: value } } })).await;
}

/// Case 11.
#[tokio::test]
async fn annotations_that_cannot_be_understood_concern_nobody_else() {
    let long = "x".repeat(200 << 10);
    let names = ["rollout", "settle", "secrets", "ignore-secrets", "reloads", "reason"];
    let mut stage = Stage::set("demo").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    let evil = Namespace::create(stage.cluster, "evil").await;
    evil.set_secret("db", &[("password", "one")]).await;
    stage.install.namespaces.push(evil.name.clone());
    let mut bad = Vec::new();
    for (number, text) in ["[", &long, "TRUE ", "-1s"].into_iter().enumerate() {
        for name in names {
            let workload =
                reader(&format!("{name}-{number}")).annotation(&format!("uptake.dev/{name}"), text);
            evil.create_workload(&workload).await;
            bad.push((workload, name));
        }
    }
    // It runs on words for people, whatever they are.
    let is_bad = |name: &str| name != "reason";
    for (workload, _) in &bad {
        evil.wait_rolled_out_within(ROLLED, workload).await;
    }
    let operator = stage.operator().await;
    let before = stage.trace(web).await;
    for ns in [&stage.ns, &evil] {
        ns.set_secret("db", &[("password", "two")]).await;
    }
    stage.wait_rolled_once(web, &before, "two").await;
    for (workload, name) in bad.iter().filter(|(_, name)| is_bad(name)) {
        let told = evil.wait_event(ROLLED, "InvalidAnnotation", &workload.name).await;
        assert_eq!(told.type_.as_deref(), Some("Warning"));
        let note = told.note.unwrap();
        assert!(note.contains(&format!("uptake.dev/{name}")), "{note}");
        assert!(note.len() <= 1024);
        evil.wait_event(ROLLED, "WouldRoll", &workload.name).await;
    }
    stage.witness().await;
    for (workload, name) in &bad {
        let revisions = if is_bad(name) { 1 } else { 2 };
        eventually(ROLLED, || async {
            let is = evil.revisions(workload).await;
            (is == revisions).then_some(()).ok_or_else(|| format!("{} has {is} revisions", workload.name))
        })
        .await;
    }
    assert!(!operator.log().contains(&"x".repeat(300)), "the log repeats what is long");
}

/// A typo doesn't roll either, and each copy of a Secret is told of.
#[tokio::test]
async fn a_secrets_annotation_that_cannot_be_understood_counts_as_report() {
    let mut stage = Stage::set("typo").await;
    let copy = Namespace::create(stage.cluster, "copy").await;
    copy.set_secret("db", &[("password", "one")]).await;
    stage.install.namespaces.push(copy.name.clone());
    let web = &reader("web");
    stage.run(&[web]).await;
    copy.run(web).await;
    let bad = json!({ "metadata": { "annotations": { ROLLOUT: "Off " } } });
    stage.ns.merge_secret("db", &bad, "test").await.unwrap();
    let _operator = stage.operator().await;
    // One is there from the beginning, the other comes while it is watched.
    copy.merge_secret("db", &bad, "test").await.unwrap();
    for ns in [&stage.ns, &copy] {
        let told = ns.wait_event(ROLLED, "InvalidAnnotation", "db").await;
        assert!(told.note.unwrap().contains(ROLLOUT));
        ns.set_secret("db", &[("password", "two")]).await;
        ns.wait_event(ROLLED, "WouldRoll", "web").await;
    }
    stage.witness().await;
    for ns in [&stage.ns, &copy] {
        assert_eq!(ns.revisions(web).await, 1);
    }
    annotate_secret(&stage, "db", None).await;
    stage.wait_values(web, VALUE, "two").await;
    assert_eq!(copy.revisions(web).await, 1);
}

/// Settling long enough for a second thought.
const SECOND: Duration = Duration::from_secs(1);

#[tokio::test]
async fn a_pause_stops_all_stamping_within_a_second() {
    let mut stage = Stage::set("paused").await;
    stage.install = stage.install.settle(SECOND);
    let others = [&reader("web"), &reader("api")];
    stage.run(&others).await;
    let operator = stage.operator().await;
    let mut before = Vec::new();
    for workload in others {
        before.push(stage.trace(workload).await);
    }
    let own = stage.install.own_namespace.clone();
    stage.rotate("two").await;
    annotate_namespace(&stage, &own, "uptake.dev/paused", Some("true")).await;
    wait_held(&operator, "operator_paused", 2.0).await;
    stage.rotate("three").await;
    wait_held(&operator, "settling", 2.0).await;
    wait_held(&operator, "operator_paused", 2.0).await;
    let held = stage.ns.wait_event(ROLLED, "RolloutHeld", "db").await.note.unwrap();
    assert!(held.contains("operator_paused: Deployment/api, Deployment/web"), "{held}");
    for (workload, before) in others.into_iter().zip(&before) {
        assert_eq!(stage.trace(workload).await, *before, "{}", workload.name);
    }
    // A restart forgets no pause.
    operator.kill9();
    let operator = stage.operator().await;
    wait_held(&operator, "operator_paused", 2.0).await;
    for (workload, before) in others.into_iter().zip(&before) {
        assert_eq!(stage.trace(workload).await, *before, "{}", workload.name);
    }
    annotate_namespace(&stage, &own, "uptake.dev/paused", None).await;
    for (workload, before) in others.into_iter().zip(&before) {
        stage.wait_rolled_once(workload, before, "three").await;
    }
    wait_held(&operator, "operator_paused", 0.0).await;
}

/// Reported, once, and not rolled; not even by a later change.
async fn is_reported(stage: &Stage, workload: &Workload) {
    stage.ns.wait_event(ROLLED, "WouldRoll", &workload.name).await;
    assert_eq!(stage.ns.revisions(workload).await, 1, "{}", workload.name);
}

#[tokio::test]
async fn a_workload_is_left_alone_or_reported_as_it_asks() {
    let stage = Stage::set("asks").await;
    let [off, report, web] = [
        &reader("off").annotation(ROLLOUT, "off"),
        &reader("report").annotation(ROLLOUT, "report"),
        &reader("web"),
    ];
    stage.run(&[off, report, web]).await;
    let operator = stage.operator().await;
    stage.rotate("two").await;
    is_reported(&stage, report).await;
    stage.wait_values(web, VALUE, "two").await;
    let labels = [("namespace", &*stage.ns.name), ("name", "report")];
    wait_metric(&operator, "uptake_stale_pods", &labels, 1.0).await;
    stage.witness().await;
    for workload in [off, report] {
        assert_eq!(stage.ns.revisions(workload).await, 1, "{}", workload.name);
    }
    assert_eq!(stage.outcomes("WouldRoll", report).await, 1);
    assert_eq!(stage.outcomes("WouldRoll", off).await, 0);
    // Their pods are as stale as before when it asks no more.
    for workload in [off, report] {
        annotate(&stage, workload, None).await;
        stage.wait_values(workload, VALUE, "two").await;
        stage.wait_outcomes("RolloutCompleted", workload, 1).await;
    }
    wait_metric(&operator, "uptake_stale_pods", &labels, 0.0).await;
}

#[tokio::test]
async fn a_secret_holds_its_consumers_back_and_no_others() {
    for (value, reports) in [("off", 0), ("report", 1)] {
        let stage = Stage::set(&format!("secret-{value}")).await;
        // A Secret's owner knows that it must not roll anything, whatever the workload's owner says.
        let [web, auto] = [&reader("web"), &reader("auto").annotation(ROLLOUT, "auto")];
        stage.run(&[web, auto]).await;
        annotate_secret(&stage, "db", Some(value)).await;
        let _operator = stage.operator().await;
        stage.rotate("two").await;
        if reports > 0 {
            is_reported(&stage, web).await;
        }
        stage.witness().await;
        for workload in [web, auto] {
            assert_eq!(stage.ns.revisions(workload).await, 1, "{value}: {}", workload.name);
            stage.wait_outcomes("WouldRoll", workload, reports).await;
        }
        annotate_secret(&stage, "db", None).await;
        for workload in [web, auto] {
            stage.wait_values(workload, VALUE, "two").await;
        }
    }
}

#[tokio::test]
async fn a_namespace_speaks_for_those_that_say_nothing() {
    for (value, reports) in [("off", 0), ("report", 1)] {
        let mut stage = Stage::set(&format!("namespace-{value}")).await;
        let spoken: &Value = &json!({ "metadata": { "annotations": { ROLLOUT: "auto" } } });
        let [web, auto] = [&reader("web"), &reader("auto")];
        stage.run(&[web, auto]).await;
        let witness = Workload::deployment("witness");
        for workload in [auto, &witness] {
            stage.ns.merge(workload, spoken).await;
        }
        let name = stage.ns.name.clone();
        annotate_namespace(&stage, &name, ROLLOUT, Some(value)).await;
        stage.install = stage.install.arg("--default-rollout").arg("auto");
        let _operator = stage.operator().await;
        stage.rotate("two").await;
        stage.wait_values(auto, VALUE, "two").await;
        stage.witness().await;
        stage.wait_outcomes("WouldRoll", web, reports).await;
        assert_eq!(stage.ns.revisions(web).await, 1, "{value}");
        annotate_namespace(&stage, &name, ROLLOUT, None).await;
        stage.wait_values(web, VALUE, "two").await;
    }
}
