//! A kind that may not or can't be listed.

use crate::stage::{ROLLED, Stage, VALUE, reader, wait_held};
use crate::support::http;
use crate::support::operator::Operator;
use crate::support::proxy::{Asked, Fault, Proxy};
use crate::support::rules;
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use serde_json::{Value, json};

/// As ours, but without a look at `StatefulSets`: neither a list nor a watch, which may stream a list.
fn blind_to_stateful_sets() -> Value {
    let mut rules = rules::cluster_wide();
    for rule in rules.as_array_mut().unwrap() {
        let resources = rule["resources"].as_array_mut().unwrap();
        resources.retain(|resource| resource != "statefulsets");
    }
    let patch = json!({ "apiGroups": ["apps"], "resources": ["statefulsets"], "verbs": ["get", "patch"] });
    rules.as_array_mut().unwrap().push(patch);
    rules
}

async fn wait_unready(operator: &Operator, words: &[&str]) {
    eventually(ROLLED, || async {
        let (status, text) =
            http::get(operator.address(), "/readyz").await.map_err(|error| error.to_string())?;
        let says_so = !status.is_success() && words.iter().all(|word| text.contains(word));
        says_so.then_some(()).ok_or_else(|| format!("{status}: {text}"))
    })
    .await;
}

fn database() -> Workload {
    Workload::stateful_set("database").consumes(Via::env("db", "password"))
}

/// Case 12.
#[tokio::test]
async fn a_kind_that_may_not_be_listed_stops_no_other_and_comes_back_by_itself() {
    let mut stage = Stage::set("denied").await;
    let (web, database) = (&reader("web"), &database());
    stage.run(&[web, database]).await;
    stage.install.user = stage.cluster.user();
    stage.cluster.grant(&stage.install.user, blind_to_stateful_sets()).await;
    stage
        .cluster
        .grant_in(&stage.install.own_namespace, &stage.install.user, rules::own(&stage.install.own_namespace))
        .await;
    stage.install = stage.install.clone().log_level("info");
    let mut audit = stage.cluster.audit_from_now();
    let operator = Operator::start(stage.cluster, &stage.install);
    wait_unready(&operator, &["StatefulSet", "forbidden"]).await;
    let before = [stage.trace(web).await, stage.trace(database).await];
    // When Deployments are in, changes are seen: not before, and nobody says so but the metric.
    crate::stage::wait_metric(&operator, "uptake_watch_synced", &[("kind", "Deployment")], 1.0).await;
    crate::stage::wait_metric(&operator, "uptake_watch_synced", &[("kind", "Secret")], 1.0).await;
    stage.rotate("two").await;
    stage.wait_rolled_once(web, &before[0], "two").await;
    stage.witness().await;
    assert_eq!(stage.trace(database).await, before[1]);
    for _ in 0..3 {
        audit.wait(ROLLED, |entry| entry.resource == "statefulsets" && entry.code == 403).await;
    }
    let told =
        |operator: &Operator| operator.log().lines().filter(|line| line.contains("StatefulSet")).count();
    assert!(told(&operator) <= 3, "{}", operator.log());
    let faults = stage_faults(&stage).await;
    assert_eq!(faults, 1, "one Event says so");
    stage.cluster.grant(&stage.install.user, rules::cluster_wide()).await;
    operator.wait_ready(ROLLED).await;
    stage.wait_values(database, VALUE, "two").await;
    assert_eq!(stage.ns.revisions(database).await, before[1].revisions + 1);
    wait_held(&operator, "inventory_unknown", 0.0).await;
}

/// How many Events `InventoryUnknown` name `StatefulSets`: they are about Uptake's own namespace, in `default`.
async fn stage_faults(stage: &Stage) -> usize {
    use k8s_openapi::api::events::v1::Event;
    let api: kube::Api<Event> = kube::Api::all(stage.ns.client.clone());
    let events = api.list(&kube::api::ListParams::default()).await.unwrap();
    let is_meant = |event: &&Event| {
        event.reason.as_deref() == Some("InventoryUnknown")
            && event.regarding.as_ref().and_then(|object| object.name.as_deref())
                == Some(&stage.install.own_namespace)
    };
    events.iter().filter(is_meant).count()
}

/// Case 12, its gateway timeout.
#[tokio::test]
async fn a_kind_whose_first_list_times_out_is_listed_again() {
    let mut stage = Stage::set("timeout").await;
    let (web, database) = (&reader("web"), &database());
    stage.run(&[web, database]).await;
    let proxy = Proxy::start(stage.cluster).await;
    stage.install = stage.install.via(&proxy);
    let lists = |asked: &Asked| asked.path.ends_with("/statefulsets");
    let rule = proxy.on(lists, Fault::Answer { status: 504, retry_after: None });
    let operator = Operator::start(stage.cluster, &stage.install);
    wait_unready(&operator, &["StatefulSet"]).await;
    crate::stage::wait_metric(&operator, "uptake_watch_synced", &[("kind", "Deployment")], 1.0).await;
    crate::stage::wait_metric(&operator, "uptake_watch_synced", &[("kind", "Secret")], 1.0).await;
    let before = [stage.trace(web).await, stage.trace(database).await];
    stage.rotate("two").await;
    stage.wait_rolled_once(web, &before[0], "two").await;
    assert_eq!(stage.trace(database).await, before[1]);
    assert!(rule.hits() > 0);
    rule.remove();
    operator.wait_ready(ROLLED).await;
    stage.wait_values(database, VALUE, "two").await;
    assert_eq!(stage.ns.revisions(database).await, before[1].revisions + 1);
}
