//! What people and controllers do with a rollout.

use super::{STUCK, note, wait_stale, wait_stamped, wait_told};
use crate::stage::{ROLLED, Stage, VALUE, reader, wait_metric};
use crate::support::wait::eventually;
use crate::support::workload::{Kind, Via, Workload};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::DeleteParams;
use serde_json::json;

/// Never ready with another value than the first.
fn only_with_the_first_value(workload: Workload) -> Workload {
    workload.template_annotation("test.uptake.dev/ready-if", "db/password=one")
}

/// Those that somebody has to act on: the pods that are still stale are counted.
async fn held_by_their_strategy(stage: &Stage) -> Vec<(Workload, &'static str, f64)> {
    let set = |name: &str| Workload::stateful_set(name).consumes(Via::env("db", "password"));
    let on_delete = json!({ "type": "OnDelete" });
    let partition = json!({ "type": "RollingUpdate", "rollingUpdate": { "partition": 2 } });
    let daemon = Workload::daemon_set("daemon-on-delete").consumes(Via::env("db", "password"));
    let nodes = 2.0;
    let all = vec![
        (set("on-delete").replicas(2).set("/spec/updateStrategy", on_delete.clone()), "OnDelete", 2.0),
        (set("partition").replicas(3).set("/spec/updateStrategy", partition), "partition 2", 2.0),
        (daemon.set("/spec/updateStrategy", on_delete), "OnDelete", nodes),
        (reader("paused"), "paused", 1.0),
    ];
    let workloads: Vec<&Workload> = all.iter().map(|(workload, ..)| workload).collect();
    stage.run(&workloads).await;
    stage.ns.merge(&all[3].0, &json!({ "spec": { "paused": true } })).await;
    all
}

async fn delete_pods(stage: &Stage, workload: &Workload) {
    for pod in stage.ns.pods(workload).await {
        stage.ns.api::<Pod>().delete(&pod.name_any(), &DeleteParams::default()).await.unwrap();
    }
}

/// Case 18, those that don't go on by themselves.
#[tokio::test]
async fn a_rollout_that_people_must_go_on_with_is_blocked_until_they_do() {
    let stage = Stage::set("blocked").await;
    let blocked = held_by_their_strategy(&stage).await;
    let operator = stage.operator().await;
    stage.rotate("two").await;
    for (workload, words, pods) in &blocked {
        wait_told(&stage, "RolloutBlocked", workload, words).await;
        wait_stale(&operator, &stage, workload, *pods).await;
    }
    // They are done late, when somebody acts.
    let by_hand = [Kind::StatefulSet, Kind::DaemonSet];
    for (workload, words, _) in &blocked {
        match *words {
            "OnDelete" => {
                assert!(by_hand.contains(&workload.kind));
                delete_pods(&stage, workload).await;
            }
            "paused" => {
                stage.ns.merge(workload, &json!({ "spec": { "paused": false } })).await;
            }
            _ => {
                let none = json!({ "spec": { "updateStrategy": { "rollingUpdate": { "partition": 0 } } } });
                stage.ns.merge(workload, &none).await;
            }
        }
    }
    for (workload, ..) in &blocked {
        stage.wait_values(workload, VALUE, "two").await;
        wait_told(&stage, "RolloutCompleted", workload, "late").await;
        stage.wait_outcomes("RolloutBlocked", workload, 1).await;
        stage.wait_outcomes("RolloutCompleted", workload, 1).await;
        wait_stale(&operator, &stage, workload, 0.0).await;
    }
}

/// Case 18, those that come to another end.
#[tokio::test]
async fn a_rollout_in_whose_middle_something_happens_has_the_end_that_fits() {
    let mut stage = Stage::set("middle").await;
    stage.install = stage.install.arg("--rollout-timeout=30s");
    stage.ns.set_secret("wrong", &[("password", "one")]).await;
    let endless = &Workload::deployment("endless")
        .consumes(Via::env("wrong", "password"))
        .template_annotation("test.uptake.dev/ready-if", "wrong/password=one");
    let gone = &only_with_the_first_value(reader("gone"));
    let released = &only_with_the_first_value(reader("released"));
    let scaled = &reader("scaled").replicas(2).template_annotation("test.uptake.dev/ready-after", "2s");
    stage.run(&[endless, gone, released, scaled]).await;
    let operator = stage.operator().await;
    stage.ns.set_secret("wrong", &[("password", "two")]).await;
    stage.rotate("two").await;

    wait_stamped(&stage, scaled).await;
    stage.ns.scale(scaled, 4).await;
    wait_stamped(&stage, gone).await;
    stage.ns.delete(gone).await;
    wait_stamped(&stage, released).await;
    let release = json!({ "spec": { "template": {
        "metadata": { "annotations": { "test.uptake.dev/ready-if": null } },
        "spec": { "containers": [{ "name": "app", "image": "app:2", "env": field_env(&stage, released).await }] },
    } } });
    stage.ns.merge(released, &release).await;

    let superseded = stage.ns.wait_event(ROLLED, "RolloutSuperseded", "released").await;
    assert!(note(&superseded).contains("template"), "{}", note(&superseded));
    stage.wait_values(released, VALUE, "two").await;
    let gone = [("kind", "Deployment"), ("outcome", "gone")];
    wait_metric(&operator, "uptake_rollouts_total", &gone, 1.0).await;
    stage.wait_values(scaled, VALUE, "two").await;
    stage.wait_outcomes("RolloutCompleted", scaled, 1).await;
    // Its controller would wait for ten minutes.
    wait_told(&stage, "RolloutFailed", endless, "no progress").await;
    eventually(STUCK, || async {
        let running = operator.metric("uptake_rollouts_in_flight", &[]).await;
        (running < 0.5).then_some(()).ok_or(format!("{running} rollouts run"))
    })
    .await;
    // The person's release was enough, and is nobody's to repeat.
    stage.witness().await;
    assert_eq!(stage.ns.revisions(released).await, 3);
}

/// Case 18, and nobody watches.
#[tokio::test]
async fn a_workload_that_is_deleted_while_it_was_away_is_recorded_as_gone_once() {
    let stage = Stage::set("gone-away").await;
    let web = &only_with_the_first_value(reader("web"));
    stage.run(&[web]).await;
    let operator = stage.operator().await;
    stage.rotate("two").await;
    stage.ns.wait_event(ROLLED, "RolloutStarted", "web").await;
    stage.witness().await;
    operator.kill9();
    stage.ns.delete(web).await;
    let gone = [("kind", "Deployment"), ("outcome", "gone")];
    let operator = stage.operator().await;
    wait_metric(&operator, "uptake_rollouts_total", &gone, 1.0).await;
    stage.witness().await;
    operator.kill9();
    let operator = stage.operator().await;
    stage.witness().await;
    wait_metric(&operator, "uptake_rollouts_total", &gone, 0.0).await;
}

async fn field_env(stage: &Stage, workload: &Workload) -> serde_json::Value {
    super::field(stage, workload, "/spec/template/spec/containers/0/env").await
}
