//! An API server that is busy, slow, or forgets to answer.

use crate::stage::{ROLLED, Stage, VALUE, reader};
use crate::support::operator::Operator;
use crate::support::proxy::{Asked, Fault, Proxy, Rule, everything, list_of, watch_of, write_of};
use crate::support::wait::eventually;
use crate::support::workload::Workload;
use kube::Api;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::json;
use std::time::Duration;

/// So often a second a busy Deployment changes [ran].
const BUSY: Duration = Duration::from_millis(33);

/// A stage behind a proxy, its Deployment running.
async fn behind_proxy(prefix: &str) -> (Stage, Proxy, Workload) {
    let mut stage = Stage::set(prefix).await;
    let proxy = Proxy::start(stage.cluster).await;
    stage.install = stage.install.via(&proxy);
    let web = reader("web");
    stage.run(&[&web]).await;
    (stage, proxy, web)
}

/// However it went on the way: one new revision, completed once.
async fn rolled_once(stage: &Stage, operator: &Operator, web: &Workload, value: &str) {
    stage.wait_values(web, VALUE, value).await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    stage.witness().await;
    assert_eq!(stage.ns.revisions(web).await, 2);
    // An Event that can't be written is written later.
    for reason in ["RolloutStarted", "RolloutCompleted"] {
        stage.wait_outcomes(reason, web, 1).await;
    }
    for reason in ["RolloutFailed", "RolloutRefused", "RolloutBlocked", "RolloutSuperseded"] {
        assert_eq!(stage.outcomes(reason, web).await, 0, "{reason}");
    }
    // The witness's and its own.
    let completed = operator.metric("uptake_rollouts_total", &[("outcome", "completed")]).await;
    assert!((completed - 2.0).abs() < f64::EPSILON, "{completed} rollouts completed");
}

/// Faults from before the change on.
async fn a_change_gets_through(prefix: &str, misbehave: impl FnOnce(&Proxy) -> Vec<Rule>) {
    let (stage, proxy, web) = behind_proxy(prefix).await;
    let operator = stage.operator().await;
    let rules = misbehave(&proxy);
    stage.rotate("two").await;
    rolled_once(&stage, &operator, &web, "two").await;
    for (number, rule) in rules.iter().enumerate() {
        assert!(rule.hits() > 0, "fault {number} never happened");
    }
}

fn answers(status: u16) -> Fault {
    Fault::Answer { status, retry_after: (status == 429).then_some(1) }
}

/// All of them, one after the other, at the first requests of a kind.
fn each_status(proxy: &Proxy, matches: impl Fn(&Asked) -> bool + Clone + Send + Sync + 'static) -> Vec<Rule> {
    [429, 500, 504].map(|status| proxy.on(matches.clone(), answers(status)).times(1)).into()
}

#[tokio::test]
async fn a_change_gets_through_though_lists_of_pods_fail() {
    a_change_gets_through("lists", |proxy| each_status(proxy, list_of("pods"))).await;
}

#[tokio::test]
async fn a_change_gets_through_though_stamps_fail() {
    a_change_gets_through("stamps", |proxy| each_status(proxy, write_of("deployments"))).await;
}

#[tokio::test]
async fn a_change_gets_through_though_ledger_writes_fail() {
    a_change_gets_through("ledgers", |proxy| each_status(proxy, write_of("secrets"))).await;
}

#[tokio::test]
async fn a_change_gets_through_though_events_fail() {
    a_change_gets_through("events", |proxy| each_status(proxy, write_of("events"))).await;
}

#[tokio::test]
async fn a_start_gets_through_though_every_first_request_fails() {
    let (stage, proxy, web) = behind_proxy("start").await;
    let mut rules = Vec::new();
    for resource in ["namespaces", "deployments", "statefulsets", "daemonsets", "pods"] {
        // Where namespaces are listed to be watched, they are watched one by one.
        let one_by_one = format!("/watch/{resource}/");
        rules.extend(each_status(&proxy, move |asked: &Asked| {
            asked.path.ends_with(&format!("/{resource}")) || asked.path.contains(&one_by_one)
        }));
    }
    let operator = stage.operator().await;
    stage.rotate("two").await;
    rolled_once(&stage, &operator, &web, "two").await;
    assert!(rules.iter().all(|rule| rule.hits() > 0));
}

#[tokio::test]
async fn a_lost_answer_to_the_stamp_rolls_no_second_time() {
    a_change_gets_through("lost-stamp", |proxy| {
        vec![proxy.on(write_of("deployments"), Fault::LoseAnswer).times(1)]
    })
    .await;
}

#[tokio::test]
async fn lost_answers_to_ledger_writes_do_no_harm() {
    a_change_gets_through("lost-ledger", |proxy| {
        vec![proxy.on(write_of("secrets"), Fault::LoseAnswer).times(3)]
    })
    .await;
}

#[tokio::test]
async fn a_lost_answer_to_an_event_tells_it_no_second_time() {
    a_change_gets_through("lost-event", |proxy| {
        vec![proxy.on(write_of("events"), Fault::LoseAnswer).times(2)]
    })
    .await;
}

#[tokio::test]
async fn a_slow_api_server_is_waited_for() {
    a_change_gets_through("slow", |proxy| {
        vec![proxy.on(everything(), Fault::Delay(Duration::from_millis(700)))]
    })
    .await;
}

/// No new watch gets through until the changes are made.
#[tokio::test]
async fn changes_during_a_cut_watch_arrive() {
    let (stage, proxy, web) = behind_proxy("cut").await;
    let operator = stage.operator().await;
    let down = proxy.on(watch_of("secrets"), Fault::Refuse);
    proxy.cut_open_answers();
    eventually(ROLLED, || async { (down.hits() > 0).then_some(()).ok_or("the watch still stands") }).await;
    stage.rotate("between").await;
    stage.rotate("two").await;
    down.remove();
    rolled_once(&stage, &operator, &web, "two").await;
}

#[tokio::test]
async fn watches_that_are_cut_again_and_again_miss_nothing() {
    let (stage, proxy, web) = behind_proxy("flapping").await;
    let operator = stage.operator().await;
    let rules = [watch_of("secrets"), watch_of("secrets")];
    let rules = rules.map(|matches| proxy.on(matches, Fault::CutAfter(300)).times(2));
    proxy.cut_open_answers();
    stage.rotate("two").await;
    rolled_once(&stage, &operator, &web, "two").await;
    assert!(rules[0].hits() > 0);
}

/// Label or status, as a busy controller and its users do.
async fn keep_busy(api: Api<DynamicObject>, name: String) {
    let parameters = PatchParams::default();
    let mut tick = tokio::time::interval(BUSY);
    for turn in 0_u64.. {
        tick.tick().await;
        let label = json!({ "metadata": { "labels": { "turn": turn.to_string() } } });
        let condition =
            json!({ "type": "Busy", "status": "True", "reason": "Storm", "message": turn.to_string() });
        let status = json!({ "status": { "conditions": [condition] } });
        let _ = match turn % 2 {
            0 => api.patch(&name, &parameters, &Patch::Merge(label)).await,
            _ => api.patch_status(&name, &parameters, &Patch::Strategic(status)).await,
        };
    }
}

/// Many a read of it is old by the time that the write arrives.
#[tokio::test]
async fn a_busy_deployment_is_stamped_once() {
    let stage = Stage::set("busy").await;
    let web = reader("web");
    stage.run(&[&web]).await;
    let operator = stage.operator().await;
    let storm = tokio::spawn(keep_busy(stage.ns.workloads(web.kind), web.name.clone()));
    stage.rotate("two").await;
    stage.wait_outcomes("RolloutCompleted", &web, 1).await;
    storm.abort();
    rolled_once(&stage, &operator, &web, "two").await;
}
