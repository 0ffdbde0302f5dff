//! Changes that come faster than pods start.

use super::onlooker::Onlooker;
use super::{note, wait_stamped};
use crate::stage::{ROLLED, Stage, VALUE, reader, wait_metric};
use std::time::Duration;
use tokio::time::{Instant, interval};

/// How long the Secret is changed. `make soak` does it for longer.
const STORM: Duration = Duration::from_secs(12);

const BETWEEN_CHANGES: Duration = Duration::from_millis(200);

/// More than a Deployment can be rolled within the storm, one rollout after the other.
const HANDFUL: usize = 6;

/// Case 2.
#[tokio::test]
async fn a_secret_that_changes_all_the_time_is_rolled_a_handful_of_times() {
    let mut stage = Stage::set("storm").await;
    // The shortest patience: the longer one of the defaults would make one rollout of it all.
    stage.install = stage.install.arg("--settle-max=1s");
    let web = &reader("web").template_annotation("test.uptake.dev/ready-after", "3s");
    stage.run(&[web]).await;
    let onlooker = Onlooker::start(stage.cluster, Some(&stage.ns.name)).await;
    let _operator = stage.operator().await;

    let (end, mut ticks, mut turn) = (Instant::now() + STORM, interval(BETWEEN_CHANGES), 0);
    while Instant::now() < end {
        ticks.tick().await;
        turn += 1;
        stage.rotate(&turn.to_string()).await;
    }
    stage.wait_values(web, VALUE, &turn.to_string()).await;
    let told = stage.ns.wait_event(ROLLED, "ChangesTooFast", "web").await;
    assert!(note(&told).contains("faster"), "{}", note(&told));
    stage.witness().await;

    let seen = onlooker.seen();
    let stamps = &seen.stamps[&(stage.ns.name.clone(), web.name.clone())];
    assert!((2..=HANDFUL).contains(&stamps.len()), "{stamps:?}");
    assert!(seen.overlapped.is_empty(), "{:?}", seen.overlapped);
    assert_eq!(stage.ns.revisions(web).await, stamps.len() + 1);
}

/// Case 33.
#[tokio::test]
async fn a_change_right_after_the_stamp_is_a_second_rollout_at_most() {
    let mut stage = Stage::set("right-after").await;
    stage.install = stage.install.arg("--max-concurrent-rollouts=1");
    let web = &reader("web").template_annotation("test.uptake.dev/ready-after", "2s");
    stage.run(&[web]).await;
    let operator = stage.operator().await;
    stage.rotate("two").await;
    wait_stamped(&stage, web).await;
    tokio::time::sleep(Duration::from_millis(600)).await;
    stage.rotate("three").await;
    stage.wait_values(web, VALUE, "three").await;
    // It needs the only slot there is.
    stage.witness().await;
    wait_metric(&operator, "uptake_rollouts_in_flight", &[], 0.0).await;
    let revisions = stage.ns.revisions(web).await;
    assert!((2..=3).contains(&revisions), "{revisions} revisions");
    let started = stage.outcomes("RolloutStarted", web).await;
    assert_eq!(started, revisions - 1);
    stage.wait_outcomes("RolloutCompleted", web, started).await;
}
