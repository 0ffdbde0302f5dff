//! What befalls the store, and what strains it.

use crate::stage::{ROLLED, Stage, StageIn, VALUE, kubectl, reader};
use crate::support::cluster::{Cluster, Options};
use crate::support::objects::{Namespace, unique};
use crate::support::operator::Operator;
use crate::support::proxy::{Fault, Proxy, watch_of};
use crate::support::wait::eventually;
use crate::support::webhook::{Verdict, Webhook};
use crate::support::workload::{Via, Workload};
use serde_json::{Map, Value, json};
use std::time::Duration;

/// More than all that a handful of changes and a few new watches take; a storm has thousands.
const NO_STORM: usize = 600;

/// Case 28.
#[tokio::test]
async fn compaction_and_a_restart_of_the_api_server_lose_nothing() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let mut stage = StageIn::set_in(&cluster, "compacted").await;
    let proxy = Proxy::start(&cluster).await;
    stage.install = stage.install.via(&proxy);
    let web = &reader("web");
    stage.run(&[web]).await;
    let operator = Operator::start(&cluster, &stage.install);
    operator.wait_ready(ROLLED).await;
    let asked = proxy.requests();

    // In the middle of a rollout.
    let before = stage.trace(web).await;
    stage.rotate("two").await;
    cluster.compact_etcd().await.unwrap();
    cluster.stop_api_server();
    cluster.start_api_server().await.unwrap();
    stage.wait_rolled_once(web, &before, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;

    // Changes that no watch delivers, and whose versions are gone when it asks for them.
    let down = proxy.on(watch_of("secrets"), Fault::Refuse);
    proxy.cut_open_answers();
    eventually(ROLLED, || async { (down.hits() > 0).then_some(()).ok_or("the watch still stands") }).await;
    let before = stage.trace(web).await;
    for value in ["between", "three"] {
        stage.rotate(value).await;
    }
    cluster.compact_etcd().await.unwrap();
    cluster.stop_api_server();
    cluster.start_api_server().await.unwrap();
    let busy = [429, 500].map(|status| {
        proxy
            .on(|asked| asked.path.contains("/secrets"), Fault::Answer { status, retry_after: None })
            .times(2)
    });
    down.remove();
    stage.wait_rolled_once(web, &before, "three").await;
    stage.wait_outcomes("RolloutCompleted", web, 2).await;
    assert!(busy.iter().all(|rule| rule.hits() > 0));
    stage.witness().await;
    operator.wait_ready(ROLLED).await;
    assert_eq!(stage.ns.revisions(web).await, 3);
    let asked = proxy.requests() - asked;
    assert!(asked < NO_STORM, "{asked} requests");
}

/// Case 29.
#[tokio::test]
async fn a_store_put_back_to_an_earlier_state_rolls_nothing_and_the_next_change_does() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let stage = StageIn::set_in(&cluster, "restored").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    let operator = Operator::start(&cluster, &stage.install);
    operator.wait_ready(ROLLED).await;
    let first = stage.trace(web).await;
    let backup = cluster.back_up().await.unwrap();
    stage.rotate("two").await;
    stage.wait_rolled_once(web, &first, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    cluster.restore(&backup).await.unwrap();
    eventually(ROLLED, || async {
        let trace = stage.trace(web).await;
        (trace == first).then_some(()).ok_or("it isn't restored")
    })
    .await;
    operator.wait_ready(ROLLED).await;
    stage.witness().await;
    stage.ns.wait_rolled_out_within(ROLLED, web).await;
    assert_eq!(stage.trace(web).await, first, "nothing changed for it");
    // The value that stood there before the restore is as new as any.
    for (turn, value) in [(1, "two"), (2, "three")] {
        let before = stage.trace(web).await;
        stage.rotate(value).await;
        stage.wait_rolled_once(web, &before, value).await;
        stage.wait_outcomes("RolloutCompleted", web, turn).await;
    }
    // And the same process goes on.
    assert!(operator.exited().is_none());
}

/// Lets the store grow; up to where.
async fn write_something(ns: &Namespace<'_>) -> u64 {
    let secret = ns.set_secret("unrelated", &[("turn", &unique("turn"))]).await;
    secret.metadata.resource_version.and_then(|version| version.parse().ok()).expect("a version")
}

/// Case 29, and the restored store has grown beyond all that was seen of it when the operator asks again: no version
/// tells it. Meanwhile the value came back that it knows from before.
#[tokio::test]
async fn a_restored_store_that_outgrew_what_was_seen_is_noticed() {
    let cluster = Cluster::start(Options::default()).await.unwrap();
    let mut stage = StageIn::set_in(&cluster, "outgrown").await;
    let proxy = Proxy::start(&cluster).await;
    stage.install = stage.install.via(&proxy);
    let web = &reader("web");
    stage.run(&[web]).await;
    let operator = Operator::start(&cluster, &stage.install);
    operator.wait_ready(ROLLED).await;
    let first = stage.trace(web).await;
    let backup = cluster.back_up().await.unwrap();
    stage.rotate("two").await;
    stage.wait_rolled_once(web, &first, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;

    let down = proxy.on(|_| true, Fault::Refuse);
    proxy.cut_open_answers();
    let seen = write_something(&stage.ns).await;
    cluster.restore(&backup).await.unwrap();
    eventually(ROLLED, || async {
        let trace = stage.trace(web).await;
        (trace == first).then_some(()).ok_or("it isn't restored")
    })
    .await;
    stage.rotate("two").await;
    while write_something(&stage.ns).await <= seen {}
    down.remove();
    stage.wait_rolled_once(web, &first, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    stage.witness().await;
    assert!(operator.exited().is_none());
}

/// How long admission thinks.
const THOUGHT: Duration = Duration::from_secs(4);

/// Asks it until it is in force.
async fn wait_in_force(ns: &Namespace<'_>, webhook: &Webhook) {
    eventually(ROLLED, || async {
        let asked = webhook.asked();
        ns.set_secret("unrelated", &[("turn", &asked.to_string())]).await;
        (webhook.asked() > asked).then_some(()).ok_or("nobody asks the webhook")
    })
    .await;
}

/// Changes the Secret, and a pod is born while admission still thinks: it holds the old value, though the change's
/// time is older than the pod.
async fn pod_born_during_admission(stage: &Stage, web: &Workload) {
    let webhook = Webhook::start(stage.cluster, &stage.ns, "secrets", Verdict::allow_after(THOUGHT)).await;
    wait_in_force(&stage.ns, &webhook).await;
    let asked = webhook.asked();
    let change = stage.rotate("two");
    let birth = async {
        eventually(ROLLED, || async { (webhook.asked() > asked).then_some(()).ok_or("not asked") }).await;
        // The change has its time now; births have whole seconds.
        stage.ns.scale(web, 2).await;
        stage.ns.wait_rolled_out_within(ROLLED, web).await;
        assert_eq!(stage.ns.values_in_pods(web, VALUE).await, ["one"; 2], "it was born too late");
    };
    tokio::join!(change, birth);
    webhook.remove().await;
}

/// Case 32.
#[tokio::test]
async fn a_pod_born_while_admission_thinks_about_the_change_is_stale() {
    let stage = Stage::set("thinks").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    // Only the pod that is born meanwhile is there to be stale.
    stage.ns.scale(web, 0).await;
    stage.ns.wait_rolled_out_within(ROLLED, web).await;
    let _operator = stage.operator().await;
    pod_born_during_admission(&stage, web).await;
    stage.wait_values(web, VALUE, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    assert_eq!(stage.ns.revisions(web).await, 2);
}

/// Case 32, and nobody watches meanwhile.
#[tokio::test]
async fn a_pod_born_while_admission_thinks_and_nobody_watches_is_stale() {
    let stage = Stage::set("thinks-away").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    stage.ns.scale(web, 0).await;
    stage.ns.wait_rolled_out_within(ROLLED, web).await;
    let operator = stage.operator().await;
    stage.witness().await;
    operator.sigterm();
    operator.wait_exit(ROLLED).await;
    pod_born_during_admission(&stage, web).await;
    let _operator = stage.operator().await;
    stage.wait_values(web, VALUE, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    assert_eq!(stage.ns.revisions(web).await, 2);
}

/// As many as the API server takes, without the managers' account of them, which would not fit.
const MANY_KEYS: usize = 100_000;
const MANY_REFERENCES: usize = 5_000;

/// Case 38.
#[tokio::test]
async fn a_namespace_with_far_too_much_is_reported_and_no_other_notices() {
    let mut stage = Stage::set("modest").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    let greedy = Namespace::create(stage.cluster, "greedy").await;
    stage.install.namespaces.push(greedy.name.clone());
    let keys: Map<String, Value> = (0..MANY_KEYS).map(|number| (format!("{number:x}"), json!(""))).collect();
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": { "name": "db", "managedFields": [{}] }, "data": keys,
    });
    kubectl(&greedy, stage.cluster, &["create", "-f", "-"], &secret.to_string());
    greedy.set_secret("small", &[("0", "one")]).await;
    let whole = &Workload::deployment("whole").consumes(Via::env_from("db"));
    let env: Vec<Value> = (0..MANY_REFERENCES)
        .map(|number| {
            let from = json!({ "name": "small", "key": format!("{number:x}"), "optional": true });
            json!({ "name": format!("V{number}"), "valueFrom": { "secretKeyRef": from } })
        })
        .collect();
    let many = &Workload::deployment("many").set("/spec/template/spec/containers/0/env", json!(env));
    for workload in [whole, many] {
        greedy.create_workload(workload).await;
    }
    for workload in [whole, many] {
        // The API server and the node agent take their time for so much.
        greedy.wait_rolled_out_within(3 * ROLLED, workload).await;
    }
    let operator = stage.operator().await;
    let before = stage.trace(web).await;
    greedy.set_secret("small", &[("0", "two")]).await;
    let change = json!({ "data": { "0": "eA==" } }).to_string();
    kubectl(&greedy, stage.cluster, &["patch", "secret", "db", "--type=merge", "-p", &change], "");
    stage.rotate("two").await;
    stage.wait_rolled_once(web, &before, "two").await;
    let told = greedy.wait_event(ROLLED, "InvalidAnnotation", "many").await;
    assert_eq!(told.type_.as_deref(), Some("Warning"));
    assert!(told.note.unwrap().contains("references"));
    greedy.wait_event(ROLLED, "WouldRoll", "many").await;
    assert_eq!(greedy.revisions(many).await, 1);
    eventually(ROLLED, || async {
        let revisions = greedy.revisions(whole).await;
        (revisions == 2).then_some(()).ok_or_else(|| format!("{revisions} revisions"))
    })
    .await;
    stage.witness().await;
    operator.wait_ready(ROLLED).await;
}
