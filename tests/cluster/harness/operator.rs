//! The operator's process does what a test tells it; a script stands in for the operator.

use crate::support::cluster::Cluster;
use crate::support::objects::SOON;
use crate::support::operator::{Install, Operator, Sample};
use crate::support::wait::eventually;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;

/// Says its arguments, then counts until it is told to end.
const STAND_IN: &str = r#"#!/bin/sh
echo "$@"
trap 'echo ending; exit 7' TERM
while :; do echo tick; sleep 0.05; done
"#;

async fn start(cluster: &Cluster) -> Operator {
    let mut install = Install::for_namespaces(cluster, &["one", "two"]).await.arg("--canary");
    install.program = cluster.folder().join(&install.own_namespace);
    std::fs::write(&install.program, STAND_IN).unwrap();
    std::fs::set_permissions(&install.program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let operator = Operator::start(cluster, &install);
    wait_tick(&operator).await;
    operator
}

fn ticks(operator: &Operator) -> usize {
    operator.log().matches("tick").count()
}

async fn wait_tick(operator: &Operator) {
    let before = ticks(operator);
    eventually(SOON, || async { (ticks(operator) > before).then_some(()).ok_or_else(|| operator.log()) })
        .await;
}

#[tokio::test]
async fn it_is_started_with_its_arguments_and_ends_on_sigterm() {
    let operator = start(Cluster::shared().await).await;
    let log = operator.log();
    let said = log.lines().next().unwrap();
    assert!(said.starts_with("controller --own-namespace uptake-system-"), "{said}");
    assert!(said.contains(operator.address()), "{said}");
    assert!(
        said.ends_with("--settle 200ms --log-level debug --namespace one --namespace two --canary"),
        "{said}"
    );
    operator.sigterm();
    assert_eq!(operator.wait_exit(SOON).await.code(), Some(7));
}

#[tokio::test]
async fn it_stands_still_goes_on_and_is_killed() {
    let operator = start(Cluster::shared().await).await;
    operator.sigstop();
    let state = || std::fs::read_to_string(format!("/proc/{}/stat", operator.id())).unwrap();
    eventually(SOON, || async { state().contains(") T ").then_some(()).ok_or_else(state) }).await;
    operator.sigcont();
    wait_tick(&operator).await;
    operator.kill9();
    assert_eq!(operator.exited().unwrap().signal(), Some(9));
}

#[test]
fn samples_are_read_from_the_metrics_text() {
    let sample = Sample::parse(r#"uptake_rollouts_total{a="x, \"y\"}",outcome="Completed"} 3"#).unwrap();
    assert_eq!(sample.name, "uptake_rollouts_total");
    assert_eq!(sample.labels["a"], r#"x, "y"}"#);
    assert_eq!(sample.labels["outcome"], "Completed");
    assert!((sample.value - 3.0).abs() < f64::EPSILON);
    assert_eq!(Sample::parse("up 1").unwrap().labels.len(), 0);
    assert_eq!(Sample::parse("# HELP up whether it is up"), None);
}
