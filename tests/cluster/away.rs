//! What happens while the operator is away, and across its restarts.

use crate::stage::{DEFAULT_SETTLE, ROLLED, Stage, VALUE, reader};
use crate::support::operator::Operator;
use crate::support::proxy::{Asked, Fault, Proxy, write_of};
use crate::support::wait::eventually;
use crate::support::workload::Workload;
use serde_json::json;
use std::time::Duration;

/// A process that is asked to end has better things to do than to wait for its patience.
const SECONDS: Duration = Duration::from_secs(10);

/// How the process ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Asked,
    Killed,
}

async fn end(operator: &Operator, how: End) {
    match how {
        End::Asked => {
            operator.sigterm();
            let status = operator.wait_exit(SECONDS).await;
            assert_eq!(status.code(), Some(0), "{}", operator.log());
        }
        End::Killed => operator.kill9(),
    }
}

/// Starts the operator and proves that its start rolls nothing.
async fn start_rolls_nothing(stage: &Stage, workloads: &[&Workload]) -> Operator {
    let mut before = Vec::new();
    for workload in workloads {
        before.push(stage.trace(workload).await);
    }
    let operator = stage.operator().await;
    stage.witness().await;
    for (workload, before) in workloads.iter().zip(before) {
        assert_eq!(stage.trace(workload).await, before, "{}", workload.name);
    }
    operator
}

async fn a_change_is_rolled_by_the_next_start(prefix: &str, how: End) {
    let mut stage = Stage::set(prefix).await;
    stage.install = stage.install.settle(DEFAULT_SETTLE);
    let web = &reader("web");
    stage.run(&[web]).await;
    let operator = start_rolls_nothing(&stage, &[web]).await;
    end(&operator, how).await;
    let before = stage.trace(web).await;
    stage.rotate("two").await;
    let operator = stage.operator().await;
    stage.wait_rolled_once(web, &before, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    end(&operator, how).await;
    start_rolls_nothing(&stage, &[web]).await;
    assert_eq!(stage.outcomes("RolloutCompleted", web).await, 1);
}

/// Case 1.
#[tokio::test]
async fn a_change_while_it_was_stopped_is_rolled_once() {
    a_change_is_rolled_by_the_next_start("stopped", End::Asked).await;
}

/// Case 1.
#[tokio::test]
async fn a_change_while_it_was_dead_is_rolled_once() {
    a_change_is_rolled_by_the_next_start("dead", End::Killed).await;
}

/// Case 9.
#[tokio::test]
async fn restarts_roll_none_of_fifty_consumers() {
    let stage = Stage::set("fifty").await;
    let consumers: Vec<_> = (0..50).map(|number| reader(&format!("web-{number}"))).collect();
    let consumers: Vec<_> = consumers.iter().collect();
    stage.run(&consumers).await;
    for _ in 0..3 {
        start_rolls_nothing(&stage, &consumers).await.kill9();
    }
}

/// Case 10.
#[tokio::test]
async fn the_same_data_written_while_it_was_away_rolls_nothing_and_new_data_once() {
    let stage = Stage::set("same").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    start_rolls_nothing(&stage, &[web]).await.kill9();
    let touched =
        json!({ "metadata": { "annotations": { "touched": "yes" } }, "stringData": { "password": "one" } });
    stage.ns.merge_secret("db", &touched, "another").await.unwrap();
    start_rolls_nothing(&stage, &[web]).await.kill9();
    let before = stage.trace(web).await;
    stage.rotate("two").await;
    let _operator = stage.operator().await;
    stage.wait_rolled_once(web, &before, "two").await;
}

#[tokio::test]
async fn a_value_that_came_back_while_it_was_away_rolls_nothing() {
    let stage = Stage::set("back").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    // Pods born while nobody watched, or shortly before, might hold what stood in between.
    stage.wait_aged(web).await;
    start_rolls_nothing(&stage, &[web]).await.kill9();
    stage.rotate("two").await;
    stage.rotate("one").await;
    start_rolls_nothing(&stage, &[web]).await;
    assert_eq!(stage.ns.values_in_pods(web, VALUE).await, ["one"]);
}

/// A change is made, and the process ends when a request of that kind is on its way.
async fn a_change_survives(
    prefix: &str,
    how: End,
    moment: impl Fn(&Asked) -> bool + Send + Sync + 'static,
    fault: Fault,
) {
    let mut stage = Stage::set(prefix).await;
    let proxy = Proxy::start(stage.cluster).await;
    stage.install = stage.install.via(&proxy);
    let web = &reader("web");
    stage.run(&[web]).await;
    let operator = start_rolls_nothing(&stage, &[web]).await;
    let before = stage.trace(web).await;
    let rule = proxy.on(moment, fault);
    stage.rotate("two").await;
    eventually(ROLLED, || async { (rule.hits() > 0).then_some(()).ok_or("the moment hasn't come") }).await;
    end(&operator, how).await;
    proxy.clear();
    let operator = stage.operator().await;
    stage.wait_rolled_once(web, &before, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    operator.kill9();
    start_rolls_nothing(&stage, &[web]).await;
}

const MOMENTS: [(&str, End); 2] = [("asked", End::Asked), ("killed", End::Killed)];

#[tokio::test]
async fn a_change_that_still_settles_at_the_end_is_rolled_by_the_next_start() {
    for (name, how) in MOMENTS {
        let mut stage = Stage::set(&format!("settling-{name}")).await;
        stage.install = stage.install.settle(DEFAULT_SETTLE);
        let web = &reader("web");
        stage.run(&[web]).await;
        let operator = start_rolls_nothing(&stage, &[web]).await;
        let before = stage.trace(web).await;
        stage.rotate("two").await;
        end(&operator, how).await;
        assert_eq!(stage.trace(web).await, before, "it had settled already");
        let _operator = stage.operator().await;
        stage.wait_rolled_once(web, &before, "two").await;
        stage.wait_outcomes("RolloutCompleted", web, 1).await;
    }
}

#[tokio::test]
async fn an_end_during_the_ledger_write_loses_nothing() {
    for (name, how) in MOMENTS {
        let lost = |asked: &Asked| write_of("secrets")(asked);
        a_change_survives(&format!("ledger-{name}"), how, lost, Fault::LoseAnswer).await;
    }
}

#[tokio::test]
async fn an_end_between_ledger_and_stamp_loses_nothing() {
    for (name, how) in MOMENTS {
        a_change_survives(&format!("intent-{name}"), how, write_of("deployments"), Fault::Refuse).await;
    }
}

#[tokio::test]
async fn an_end_between_stamp_and_its_acknowledgement_rolls_no_second_time() {
    for (name, how) in MOMENTS {
        a_change_survives(&format!("stamp-{name}"), how, write_of("deployments"), Fault::LoseAnswer).await;
    }
}

#[tokio::test]
async fn an_end_before_the_first_event_loses_no_event() {
    for (name, how) in MOMENTS {
        a_change_survives(&format!("event-{name}"), how, write_of("events"), Fault::Refuse).await;
    }
}

#[tokio::test]
async fn a_rollout_that_ended_while_it_was_away_is_recorded_once() {
    let stage = Stage::set("ended").await;
    let web = &reader("web").template_annotation("test.uptake.dev/ready-after", "4s");
    stage.run(&[web]).await;
    let operator = start_rolls_nothing(&stage, &[web]).await;
    let before = stage.trace(web).await;
    stage.rotate("two").await;
    stage.ns.wait_event(ROLLED, "RolloutStarted", "web").await;
    assert_eq!(stage.outcomes("RolloutCompleted", web).await, 0);
    operator.kill9();
    stage.wait_rolled_once(web, &before, "two").await;
    let operator = stage.operator().await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    operator.kill9();
    start_rolls_nothing(&stage, &[web]).await;
    assert_eq!(stage.outcomes("RolloutCompleted", web).await, 1);
}
