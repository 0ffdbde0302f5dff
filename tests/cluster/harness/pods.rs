//! Pods start and become ready as a kubelet would have it.

use crate::support::cluster::Cluster;
use crate::support::objects::{Namespace, SOON};
use crate::support::wait::{eventually, never};
use crate::support::workload::{Via, Workload};
use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use serde_json::json;
use std::time::Duration;

/// Long enough for a pod that could become ready to have become so: it takes 50 ms.
const MEANWHILE: Duration = Duration::from_secs(1);

fn containers(pod: &Pod) -> &[ContainerStatus] {
    pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default()
}

fn is_ready(pod: &Pod) -> bool {
    !containers(pod).is_empty() && containers(pod).iter().all(|container| container.ready)
}

/// Why the first container of any pod of the workload waits.
async fn waiting_reason(ns: &Namespace<'_>, workload: &Workload) -> Result<(String, String), String> {
    let pods = ns.pods(workload).await;
    let waiting =
        pods.iter().flat_map(containers).find_map(|container| container.state.as_ref()?.waiting.clone());
    let waiting = waiting.ok_or_else(|| format!("{} pods, none waits", pods.len()))?;
    Ok((waiting.reason.unwrap_or_default(), waiting.message.unwrap_or_default()))
}

async fn any_ready(ns: &Namespace<'_>, workload: &Workload) -> Option<Pod> {
    ns.pods(workload).await.into_iter().find(is_ready)
}

#[tokio::test]
async fn pods_of_every_kind_run_and_become_ready() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "kinds").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let every_way = |workload: Workload| {
        [
            Via::env("db", "password"),
            Via::optional_env("absent", "key"),
            Via::env_from("db"),
            Via::volume("db"),
            Via::items("db", &["password"]),
            Via::sub_path("db", "password"),
            Via::projected("db"),
            Via::init_env("db", "password"),
        ]
        .into_iter()
        .fold(workload, Workload::consumes)
    };
    for workload in [
        every_way(Workload::deployment("deployment").replicas(2)),
        every_way(Workload::stateful_set("stateful").replicas(2)),
        every_way(Workload::daemon_set("daemon")),
    ] {
        ns.run(&workload).await;
        assert_eq!(ns.revisions(&workload).await, 1);
        assert_eq!(ns.values_in_pods(&workload, "db/password").await, ["one", "one"]);
        for pod in ns.pods(&workload).await {
            let started = containers(&pod)[0].state.as_ref().unwrap().running.as_ref().unwrap();
            assert!(started.started_at.is_some(), "{pod:?}");
        }
    }
}

#[tokio::test]
async fn a_restart_replaces_pods_which_then_hold_the_new_value() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "restart").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let web = Workload::deployment("web").replicas(3).consumes(Via::env("db", "password"));
    ns.run(&web).await;
    ns.set_secret("db", &[("password", "two")]).await;
    assert_eq!(ns.values_in_pods(&web, "db/password").await, ["one"; 3], "a value is bound at the start");
    ns.merge(&web, &json!({ "spec": { "template": { "metadata": { "annotations": { "again": "1" } } } } }))
        .await;
    ns.wait_rolled_out(&web).await;
    assert_eq!(ns.revisions(&web).await, 2);
    eventually(SOON, || async {
        let values = ns.values_in_pods(&web, "db/password").await;
        if values == ["two"; 3] { Ok(()) } else { Err(format!("{values:?}")) }
    })
    .await;
}

#[tokio::test]
async fn a_pod_waits_for_its_missing_key() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "held").await;
    ns.set_secret("db", &[("user", "me")]).await;
    let web = &Workload::deployment("web").consumes(Via::env("db", "password"));
    ns.create_workload(web).await;
    let (reason, message) = eventually(SOON, || waiting_reason(ns, web)).await;
    assert_eq!(reason, "CreateContainerConfigError");
    assert_eq!(message, format!("couldn't find key password in Secret {}/db", ns.name));
    never(MEANWHILE, || any_ready(ns, web)).await;
    ns.set_secret("db", &[("password", "one")]).await;
    ns.wait_rolled_out(web).await;
}

#[tokio::test]
async fn a_pod_waits_for_its_missing_volume() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "unmounted").await;
    let web = &Workload::stateful_set("web").consumes(Via::volume("tls"));
    ns.create_workload(web).await;
    let (reason, _) = eventually(SOON, || waiting_reason(ns, web)).await;
    assert_eq!(reason, "ContainerCreating");
    ns.set_secret("tls", &[("key", "one")]).await;
    ns.wait_rolled_out(web).await;
}

#[tokio::test]
async fn a_pod_that_is_told_so_never_becomes_ready() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "unready").await;
    let web = &Workload::deployment("web").template_annotation("test.uptake.dev/never-ready", "true");
    ns.create_workload(web).await;
    eventually(SOON, || async {
        let pods = ns.pods(web).await;
        let runs = pods.iter().flat_map(containers).any(|container| container.started == Some(true));
        runs.then_some(()).ok_or("no container has started")
    })
    .await;
    never(MEANWHILE, || any_ready(ns, web)).await;
}

#[tokio::test]
async fn a_pod_becomes_ready_only_with_the_right_value() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "value").await;
    ns.set_secret("db", &[("password", "bad")]).await;
    let web = &Workload::deployment("web")
        .consumes(Via::env("db", "password"))
        .template_annotation("test.uptake.dev/ready-if", "db/password=good");
    let crashing = &Workload::deployment("crashing")
        .consumes(Via::env("db", "password"))
        .template_annotation("test.uptake.dev/crash-unless", "db/password=good");
    ns.create_workload(web).await;
    ns.create_workload(crashing).await;
    let (reason, _) = eventually(SOON, || waiting_reason(ns, crashing)).await;
    assert_eq!(reason, "CrashLoopBackOff");
    never(MEANWHILE, || any_ready(ns, web)).await;
    ns.set_secret("db", &[("password", "good")]).await;
    let again = json!({ "spec": { "template": { "metadata": { "annotations": { "again": "1" } } } } });
    for workload in [web, crashing] {
        ns.merge(workload, &again).await;
        ns.wait_rolled_out(workload).await;
    }
}

#[tokio::test]
async fn a_pod_takes_its_time_to_become_ready() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "slow").await;
    let web = &Workload::deployment("web").template_annotation("test.uptake.dev/ready-after", "2s");
    let began = std::time::Instant::now();
    ns.run(web).await;
    assert!(began.elapsed() >= Duration::from_secs(2), "{:?}", began.elapsed());
}

#[tokio::test]
async fn an_unschedulable_pod_stays_pending() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "nowhere").await;
    let web = &Workload::deployment("web").unschedulable();
    ns.create_workload(web).await;
    eventually(SOON, || async {
        let pods = ns.pods(web).await;
        let conditions = pods.iter().filter_map(|pod| pod.status.as_ref()?.conditions.clone()).flatten();
        let mut reasons = conditions.filter_map(|condition| condition.reason);
        reasons.find(|reason| reason == "Unschedulable").ok_or("not said to be unschedulable")
    })
    .await;
}
