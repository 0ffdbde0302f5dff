//! Rollouts that can't finish, among others that can.

use super::{STUCK, stamp, wait_stale, wait_told};
use crate::stage::{Stage, VALUE, kubectl, reader, wait_metric};
use crate::support::objects::unique;
use crate::support::wait::eventually;
use crate::support::workload::Workload;
use k8s_openapi::api::core::v1::ResourceQuota;
use k8s_openapi::api::scheduling::v1::PriorityClass;
use kube::Api;
use kube::api::{DeleteParams, PostParams};
use serde_json::json;

/// Pods of this class: so many and no more.
async fn set_quota(stage: &Stage, class: &str, pods: u32) {
    let client = stage.cluster.admin_client().await;
    let classes: Api<PriorityClass> = Api::all(client);
    let made = json!({ "metadata": { "name": class }, "value": 0 });
    classes.create(&PostParams::default(), &serde_json::from_value(made).unwrap()).await.unwrap();
    let scope = json!([{ "scopeName": "PriorityClass", "operator": "In", "values": [class] }]);
    let quota = json!({
        "metadata": { "name": "tight" },
        "spec": { "hard": { "pods": pods.to_string() }, "scopeSelector": { "matchExpressions": scope } },
    });
    let quotas = &stage.ns.api::<ResourceQuota>();
    quotas.create(&PostParams::default(), &serde_json::from_value(quota).unwrap()).await.unwrap();
    eventually(STUCK, || async {
        let quota = quotas.get("tight").await.map_err(|error| error.to_string())?;
        quota.status.and_then(|status| status.used).map(|_| ()).ok_or("nobody counts yet".to_owned())
    })
    .await;
}

/// Its old pod stays until the new one is ready, and no two of them fit on a node.
fn without_room(name: &str) -> Workload {
    let apart = json!([{
        "labelSelector": { "matchLabels": { "app": name } },
        "topologyKey": "kubernetes.io/hostname",
    }]);
    reader(name)
        .replicas(2)
        .set("/spec/strategy", json!({ "rollingUpdate": { "maxUnavailable": 0, "maxSurge": 1 } }))
        .set(
            "/spec/template/spec/affinity",
            json!({ "podAntiAffinity": { "requiredDuringSchedulingIgnoredDuringExecution": apart } }),
        )
        .set("/spec/progressDeadlineSeconds", json!(10))
}

/// Case 6.
#[tokio::test]
async fn those_that_cannot_finish_are_reported_and_hold_up_nobody() {
    let stage = Stage::set("stuck").await;
    let class = unique("tight");
    set_quota(&stage, &class, 1).await;
    let quota = reader("quota").set("/spec/template/spec/priorityClassName", json!(class));
    let (paused, roomless) = (reader("paused"), without_room("roomless"));
    let fine: Vec<Workload> = (0..17).map(|number| reader(&format!("fine-{number}"))).collect();
    let all: Vec<&Workload> = fine.iter().chain([&quota, &paused, &roomless]).collect();
    stage.run(&all).await;
    stage.ns.merge(&paused, &json!({ "spec": { "paused": true } })).await;
    let operator = stage.operator().await;
    stage.rotate("two").await;

    for workload in &fine {
        stage.wait_values(workload, VALUE, "two").await;
        stage.wait_outcomes("RolloutCompleted", workload, 1).await;
    }
    let stuck = [
        (&paused, "RolloutBlocked", "is paused", 1.0),
        (&roomless, "RolloutFailed", "progress deadline", 2.0),
        (&quota, "RolloutBlocked", "quota", 1.0),
    ];
    for (workload, reason, words, pods) in stuck {
        wait_told(&stage, reason, workload, words).await;
        stage.wait_outcomes(reason, workload, 1).await;
        wait_stale(&operator, &stage, workload, pods).await;
    }
    for (outcome, count) in [("completed", 17.0), ("blocked", 2.0), ("failed", 1.0)] {
        wait_metric(&operator, "uptake_rollouts_total", &[("outcome", outcome)], count).await;
    }
    wait_metric(&operator, "uptake_rollouts_in_flight", &[], 0.0).await;
    // None of that says anything of the value.
    assert_eq!(stage.ns.events_with("BreakerOpen").await.len(), 0);
    let classes: Api<PriorityClass> = Api::all(stage.cluster.admin_client().await);
    classes.delete(&class, &DeleteParams::default()).await.unwrap();
}

/// Case 20.
#[tokio::test]
async fn a_failed_rollout_that_a_person_undoes_is_not_rolled_again() {
    let stage = Stage::set("undone").await;
    let web = &reader("web")
        .template_annotation("test.uptake.dev/ready-if", "db/password=one")
        .set("/spec/progressDeadlineSeconds", json!(3));
    stage.run(&[web]).await;
    let operator = stage.operator().await;
    stage.rotate("two").await;
    wait_told(&stage, "RolloutFailed", web, "1 pod is still stale").await;
    kubectl(&stage.ns, stage.cluster, &["rollout", "undo", "deployment/web"], "");
    stage.ns.wait_rolled_out_within(STUCK, web).await;
    let undone = stage.trace(web).await;
    stage.witness().await;
    // Not by a restart either, which knows only what the ledger says.
    drop(operator);
    let operator = stage.operator().await;
    stage.witness().await;
    assert_eq!(stage.trace(web).await, undone);
    assert!(stamp(&stage, web).await.is_null());
    assert_eq!(stage.ns.values_in_pods(web, VALUE).await, ["one"]);
    for (reason, count) in [("RolloutStarted", 1), ("RolloutFailed", 1), ("RolloutCompleted", 0)] {
        assert_eq!(stage.outcomes(reason, web).await, count, "{reason}");
    }
    wait_stale(&operator, &stage, web, 1.0).await;
    let log = operator.log();
    let why = log.lines().find(|line| line.contains("/web") && line.contains("attempted"));
    assert!(why.is_some(), "{log}");
    // The next version is another matter.
    stage
        .ns
        .merge(
            web,
            &json!({ "spec": { "template": { "metadata": { "annotations": {
        "test.uptake.dev/ready-if": "db/password=three",
    } } } } }),
        )
        .await;
    stage.rotate("three").await;
    stage.wait_values(web, VALUE, "three").await;
}
