//! Very many rollouts at a time.

use super::onlooker::Onlooker;
use crate::stage::{ROLLED, Stage, StageIn, VALUE, reader};
use crate::support::cluster::{Cluster, Options};
use crate::support::objects::Namespace;
use crate::support::operator::{Install, Operator};
use crate::support::wait::eventually;
use crate::support::workload::Workload;
use futures::StreamExt;
use futures::stream;
use serde_json::json;
use std::time::{Duration, Instant};

/// For all of them together, however busy the machine is.
const ALL: Duration = Duration::from_secs(600);

/// Requests of a test at a time.
const AT_ONCE: usize = 16;

/// Namespaces with a copy of the Secret. As many as a machine likes: a pod, a rollout and two Secrets each.
const COPIES: usize = 60;

/// Case 7.
#[tokio::test]
async fn a_secret_copied_into_many_namespaces_is_rolled_in_all_of_them_within_the_limit() {
    const LIMIT: usize = 8;
    // Whoever watches the whole cluster rolls everybody's workloads.
    let cluster = &Cluster::start(Options::default()).await.unwrap();
    let web = &reader("web");
    let namespaces: Vec<Namespace<'_>> = stream::iter(0..COPIES)
        .map(|_| async move {
            let ns = Namespace::create(cluster, "copy").await;
            ns.set_secret("db", &[("password", "one")]).await;
            ns.create_workload(web).await;
            ns
        })
        .buffer_unordered(AT_ONCE)
        .collect()
        .await;
    for ns in &namespaces {
        ns.wait_rolled_out_within(ALL, web).await;
    }
    let install = Install::for_cluster(cluster).await.arg(&format!("--max-concurrent-rollouts={LIMIT}"));
    let onlooker = Onlooker::start(cluster, None).await;
    let operator = Operator::start(cluster, &install);
    operator.wait_ready(ROLLED).await;

    let began = Instant::now();
    let change = |ns| async move { Namespace::set_secret(ns, "db", &[("password", "two")]).await };
    stream::iter(&namespaces).map(change).buffer_unordered(AT_ONCE).count().await;
    wait_done(&onlooker, COPIES).await;
    println!("{COPIES} namespaces, limit {LIMIT}: {:.1} s", began.elapsed().as_secs_f32());
    let seen = onlooker.seen();
    assert!(seen.most_unfinished <= LIMIT, "{} at a time", seen.most_unfinished);
    for ns in &namespaces {
        assert_eq!(seen.stamps[&(ns.name.clone(), web.name.clone())].len(), 1, "{}", ns.name);
        assert_eq!(ns.values_in_pods(web, VALUE).await, ["two"]);
    }
}

async fn wait_done(onlooker: &Onlooker, count: usize) {
    eventually(ALL, || async {
        let done = onlooker.seen().done();
        (done == count).then_some(()).ok_or_else(|| format!("{done} of {count} are done"))
    })
    .await;
}

/// As many as the design speaks of.
#[tokio::test]
async fn three_hundred_consumers_are_rolled_ten_at_a_time() {
    const CONSUMERS: usize = 300;
    const LIMIT: usize = 10;
    let mut stage = Stage::set("crowd").await;
    stage.install = stage.install.arg(&format!("--max-concurrent-rollouts={LIMIT}"));
    let consumers: Vec<Workload> = (0..CONSUMERS).map(|number| reader(&format!("web-{number}"))).collect();
    run_all(&stage, &consumers).await;
    let onlooker = Onlooker::start(stage.cluster, Some(&stage.ns.name)).await;
    let operator = stage.operator().await;

    let began = Instant::now();
    stage.rotate("two").await;
    wait_done(&onlooker, CONSUMERS).await;
    println!("{CONSUMERS} consumers, limit {LIMIT}: {:.1} s", began.elapsed().as_secs_f32());
    let seen = onlooker.seen();
    assert!(seen.most_unfinished <= LIMIT, "{} at a time", seen.most_unfinished);
    assert!(seen.stamps.values().all(|stamps| stamps.len() == 1));
    // One summary, and nothing of each.
    let summary = stage.ns.wait_event(ROLLED, "ConsumersRolled", "db").await;
    let words = format!("{CONSUMERS} consumers rolled, {CONSUMERS} completed");
    assert!(super::note(&summary).contains(&words), "{}", super::note(&summary));
    let completed = operator.metric("uptake_rollouts_total", &[("outcome", "completed")]).await;
    assert!((completed - f64::from(u32::try_from(CONSUMERS).unwrap())).abs() < 0.5, "{completed}");
    for reason in ["RolloutStarted", "RolloutCompleted", "RolloutFailed"] {
        assert_eq!(stage.ns.events_with(reason).await.len(), 0, "{reason}");
    }
}

async fn run_all(stage: &StageIn<'_>, workloads: &[Workload]) {
    let create = |workload| stage.ns.create_workload(workload);
    stream::iter(workloads).map(create).buffer_unordered(AT_ONCE).count().await;
    for workload in workloads {
        stage.ns.wait_rolled_out_within(ALL, workload).await;
    }
}

/// Case 37.
#[tokio::test]
async fn a_namespace_full_of_rollouts_that_never_end_stops_no_other() {
    // As many as may run at a time when nobody says otherwise.
    const ENDLESS: usize = 20;
    let stage = Stage::set("endless").await;
    let other = &Namespace::create(stage.cluster, "beside-endless").await;
    other.set_secret("db", &[("password", "one")]).await;
    let mut install = stage.install.clone();
    install.namespaces.push(other.name.clone());
    let endless: Vec<Workload> = (0..ENDLESS)
        .map(|number| {
            reader(&format!("web-{number}"))
                .template_annotation("test.uptake.dev/ready-if", "db/password=one")
                .set("/spec/progressDeadlineSeconds", json!(i32::MAX))
        })
        .collect();
    run_all(&stage, &endless).await;
    let web = &reader("web");
    other.run(web).await;
    let operator = Operator::start(stage.cluster, &install);
    operator.wait_ready(ROLLED).await;
    let onlooker = Onlooker::start(stage.cluster, Some(&stage.ns.name)).await;
    stage.rotate("two").await;
    // All that it gets alone.
    eventually(ROLLED, || async {
        let free = operator.metric("uptake_held_workloads", &[("reason", "no_free_slot")]).await;
        let stamped = onlooker.seen().stamps.len();
        let all = free > 0.5 && stamped >= 15;
        all.then_some(()).ok_or(format!("{stamped} are stamped, {free} wait"))
    })
    .await;
    let began = Instant::now();
    other.set_secret("db", &[("password", "two")]).await;
    other.wait_event(ROLLED, "RolloutCompleted", "web").await;
    println!("beside {ENDLESS} endless rollouts: {:.1} s", began.elapsed().as_secs_f32());
    assert_eq!(other.values_in_pods(web, VALUE).await, ["two"]);
    // Nobody waited until the endless ones counted as stalled: those that wait for a slot still do.
    let waiting = operator.metric("uptake_held_workloads", &[("reason", "no_free_slot")]).await;
    assert!(waiting > 0.5);
}
