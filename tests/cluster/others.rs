//! What others do to workloads, and workloads that are others'.

use crate::stage::{DEFAULT_SETTLE, ROLLED, Stage, VALUE, create, objects, reader};
use crate::support::cluster::audit::Entry;
use crate::support::workload::{Via, Workload};
use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

/// The pod of a manifest that reads `db.password`, with these labels.
fn pod_template(labels: &Value) -> Value {
    let env =
        json!([{ "name": "PASSWORD", "valueFrom": { "secretKeyRef": { "name": "db", "key": "password" } } }]);
    json!({
        "metadata": { "labels": labels },
        "spec": {
            "terminationGracePeriodSeconds": 0,
            "restartPolicy": "Always",
            "containers": [{ "name": "app", "image": "app:1", "env": env }],
        },
    })
}

fn job_spec() -> Value {
    let mut template = pod_template(&json!({ "of": "job" }));
    template["spec"]["restartPolicy"] = json!("Never");
    json!({ "template": template })
}

/// Case 17.
#[tokio::test]
async fn jobs_and_cron_jobs_are_left_alone() {
    let stage = Stage::set("jobs").await;
    let web = &reader("web");
    for (name, suspend) in [("yearly", false), ("suspended", true)] {
        let spec =
            json!({ "schedule": "0 0 1 1 *", "suspend": suspend, "jobTemplate": { "spec": job_spec() } });
        let cron = json!({ "apiVersion": "batch/v1", "kind": "CronJob", "metadata": { "name": name }, "spec": spec });
        create(&stage.ns, &cron).await;
    }
    let job = json!({ "apiVersion": "batch/v1", "kind": "Job", "metadata": { "name": "running" }, "spec": job_spec() });
    create(&stage.ns, &job).await;
    stage.run(&[web]).await;
    let _operator = stage.operator().await;
    let mut audit = stage.cluster.audit_from_now();
    let before =
        (objects(&stage.ns, "batch/v1", "Job").await, objects(&stage.ns, "batch/v1", "CronJob").await);
    stage.rotate("two").await;
    stage.wait_values(web, VALUE, "two").await;
    stage.witness().await;
    let after =
        (objects(&stage.ns, "batch/v1", "Job").await, objects(&stage.ns, "batch/v1", "CronJob").await);
    assert_eq!(after, before);
    let writes = audit.read_of(&stage.install.user).into_iter().filter(Entry::is_write);
    assert_eq!(writes.filter(|entry| entry.group == "batch").count(), 0);
}

/// Case 21.
#[tokio::test]
async fn a_workload_made_edited_or_scaled_after_the_change_rolls_no_second_time() {
    let stage = Stage::set("after").await;
    let (asleep, edited) = (&reader("asleep").replicas(0), &Workload::deployment("edited"));
    let with_reference = reader("edited");
    let reference = with_reference.manifest().clone();
    stage.run(&[asleep, edited]).await;
    let _operator = stage.operator().await;
    stage.rotate("two").await;
    stage.witness().await;
    let made = &reader("made");
    stage.run(&[made]).await;
    stage.ns.merge(edited, &reference).await;
    stage.ns.scale(asleep, 3).await;
    for workload in [made, edited, asleep] {
        stage.wait_values(workload, VALUE, "two").await;
    }
    stage.witness().await;
    for (workload, revisions) in [(made, 1), (edited, 2), (asleep, 1)] {
        assert_eq!(stage.ns.revisions(workload).await, revisions, "{}", workload.name);
        assert_eq!(stage.outcomes("RolloutStarted", workload).await, 0, "{}", workload.name);
    }
    // And they are consumers like any other.
    stage.rotate("three").await;
    for (workload, revisions) in [(made, 2), (edited, 3), (asleep, 2)] {
        stage.wait_values(workload, VALUE, "three").await;
        assert_eq!(stage.ns.revisions(workload).await, revisions, "{}", workload.name);
    }
}

/// Case 22.
#[tokio::test]
async fn a_humans_restart_right_after_the_change_is_enough() {
    let mut stage = Stage::set("human").await;
    stage.install = stage.install.settle(DEFAULT_SETTLE);
    let web = &reader("web").replicas(2);
    stage.run(&[web]).await;
    let _operator = stage.operator().await;
    stage.rotate("two").await;
    let mut kubectl = stage.cluster.kubectl(&stage.cluster.admin());
    let restart =
        kubectl.args(["rollout", "restart", "deployment/web", "-n", &stage.ns.name]).output().unwrap();
    assert!(restart.status.success(), "{restart:?}");
    stage.wait_values(web, VALUE, "two").await;
    stage.witness().await;
    assert_eq!(stage.ns.revisions(web).await, 2);
    assert_eq!(stage.outcomes("RolloutStarted", web).await, 0);
}

/// Case 36.
#[tokio::test]
async fn an_evicted_pod_holds_no_rollout_open() {
    let stage = Stage::set("evicted").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    let _operator = stage.operator().await;
    let evicted = stage.ns.pods(web).await.remove(0).name_any();
    let status = json!({ "status": { "phase": "Failed", "reason": "Evicted" } });
    let parameters = PatchParams::default();
    stage.ns.api::<Pod>().patch_status(&evicted, &parameters, &Patch::Merge(&status)).await.unwrap();
    crate::support::wait::eventually(ROLLED, || async {
        let pods = stage.ns.pods(web).await;
        (pods.len() == 2).then_some(()).ok_or_else(|| format!("{} pods", pods.len()))
    })
    .await;
    stage.ns.wait_rolled_out_within(ROLLED, web).await;
    stage.rotate("two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    assert_eq!(stage.ns.revisions(web).await, 2);
    let pods = stage.ns.pods(web).await;
    assert!(pods.iter().any(|pod| pod.name_any() == evicted), "it isn't listed any more");
}

#[tokio::test]
async fn labels_make_no_pod_a_workloads() {
    let stage = Stage::set("labels").await;
    let web = &reader("web");
    // Of the same labels: another kind's pods, a bare ReplicaSet's and a bare pod.
    let twin = &Workload::stateful_set("twin")
        .set("/spec/selector/matchLabels", json!({ "app": "web", "twin": "yes" }))
        .set("/spec/template/metadata/labels", json!({ "app": "web", "twin": "yes" }))
        .consumes(Via::env("other", "password"));
    stage.ns.set_secret("other", &[("password", "one")]).await;
    let labels = json!({ "app": "web", "bare": "yes" });
    let bare = json!({
        "apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": { "name": "web-bare" },
        "spec": { "replicas": 1, "selector": { "matchLabels": labels }, "template": pod_template(&labels) },
    });
    let mut pod = pod_template(&json!({ "app": "web", "bare": "pod" }));
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!("web-pod");
    create(&stage.ns, &bare).await;
    create(&stage.ns, &pod).await;
    stage.run(&[web, twin]).await;
    let _operator = stage.operator().await;
    let before = objects(&stage.ns, "apps/v1", "ReplicaSet").await;
    stage.rotate("two").await;
    // Though stale pods with its labels are left.
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    stage.witness().await;
    let after = objects(&stage.ns, "apps/v1", "ReplicaSet").await;
    let spec = |all: &[(String, Value)]| all.iter().find(|(name, _)| name == "web-bare").cloned();
    assert_eq!(spec(&after), spec(&before));
    let own = after.iter().filter(|(name, _)| name.starts_with("web-") && name != "web-bare");
    assert_eq!(own.count(), 2);
    assert_eq!(stage.outcomes("RolloutStarted", twin).await, 0);
    // The other way round: fresh pods of the same labels make none of them fresh.
    stage.ns.set_secret("other", &[("password", "two")]).await;
    stage.wait_outcomes("RolloutCompleted", twin, 1).await;
    assert_eq!(stage.outcomes("RolloutStarted", web).await, 1);
}

/// As an autoscaler does it.
#[tokio::test]
async fn scaling_makes_no_rollout_and_breaks_none() {
    let stage = Stage::set("scaled").await;
    let web = &reader("web").replicas(2).template_annotation("test.uptake.dev/ready-after", "1s");
    stage.run(&[web]).await;
    let _operator = stage.operator().await;
    stage.rotate("two").await;
    stage.ns.wait_event(ROLLED, "RolloutStarted", "web").await;
    stage.ns.scale(web, 4).await;
    stage.wait_values(web, VALUE, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    for replicas in [1, 3, 0, 2] {
        stage.ns.scale(web, replicas).await;
        stage.ns.wait_rolled_out_within(ROLLED, web).await;
    }
    stage.witness().await;
    assert_eq!(stage.ns.revisions(web).await, 2);
    assert_eq!(stage.outcomes("RolloutStarted", web).await, 1);
}
