//! What people do in the middle of it, and changes that come together.

use crate::stage::{DEFAULT_SETTLE, ROLLED, Stage, VALUE, kubectl, reader, wait_held};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

const STAMP: &str = "uptake.dev/secret-version";

/// Until so many live pods have that image.
async fn wait_images(stage: &Stage, web: &Workload, image: &str, count: usize) {
    let is_meant = |pod: &&Pod| {
        let images = pod.spec.iter().flat_map(|spec| &spec.containers).map(|container| &container.image);
        pod.metadata.deletion_timestamp.is_none() && images.flatten().any(|is| is == image)
    };
    eventually(ROLLED, || async {
        let pods = stage.ns.pods(web).await;
        let are = pods.iter().filter(is_meant).count();
        (are == count).then_some(()).ok_or_else(|| format!("{are} pods have the image {image}"))
    })
    .await;
}

/// Case 31.
#[tokio::test]
async fn pods_that_outlive_a_bad_release_and_a_change_are_stale() {
    let stage = Stage::set("release").await;
    let web = &reader("web").replicas(2);
    stage.run(&[web]).await;
    let operator = stage.operator().await;
    let nowhere = json!({ "kubernetes.io/hostname": "nowhere" });
    let bad = json!({ "spec": { "template": { "spec": {
        "nodeSelector": nowhere, "containers": [{ "name": "app", "image": "app:bad",
            "env": web.manifest()["spec"]["template"]["spec"]["containers"][0]["env"] }],
    } } } });
    stage.ns.merge(web, &bad).await;
    wait_images(&stage, web, "app:bad", 1).await;
    stage.rotate("two").await;
    wait_held(&operator, "rollout_running", 1.0).await;
    stage.witness().await;
    assert_eq!(stage.outcomes("RolloutStarted", web).await, 0, "somebody's rollout is running");
    kubectl(&stage.ns, stage.cluster, &["rollout", "undo", "deployment/web"], "");
    stage.wait_values(web, VALUE, "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    wait_images(&stage, web, "app:1", 2).await;
    assert_eq!(stage.ns.revisions(web).await, 3);
}

/// Case 34.
#[tokio::test]
async fn old_pods_that_a_human_brings_back_from_a_half_done_rollout_are_found() {
    let stage = Stage::set("half").await;
    let web = &reader("web")
        .replicas(3)
        .set("/spec/strategy", json!({ "rollingUpdate": { "maxSurge": 0, "maxUnavailable": 1 } }))
        .template_annotation("test.uptake.dev/ready-after", "3s");
    stage.run(&[web]).await;
    let _operator = stage.operator().await;
    stage.rotate("two").await;
    stage.ns.wait_event(ROLLED, "RolloutStarted", "web").await;
    kubectl(&stage.ns, stage.cluster, &["set", "image", "deployment/web", "app=app:bad"], "");
    wait_images(&stage, web, "app:bad", 1).await;
    kubectl(&stage.ns, stage.cluster, &["rollout", "undo", "deployment/web", "--to-revision=1"], "");
    eventually(ROLLED, || async {
        let template = stage.ns.get(web).await["spec"]["template"].clone();
        let is_bad = template["spec"]["containers"][0]["image"] == "app:bad";
        (!is_bad).then_some(()).ok_or("it isn't undone")
    })
    .await;
    stage.wait_values(web, VALUE, "two").await;
    wait_images(&stage, web, "app:1", 3).await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    assert_eq!(stage.ns.values_in_pods(web, VALUE).await, ["two"; 3]);
}

/// Case 19.
#[tokio::test]
async fn a_release_that_changes_secret_and_workload_together_rolls_once() {
    let mut stage = Stage::set("helm").await;
    stage.install = stage.install.settle(DEFAULT_SETTLE);
    let release = |checksum: &str| {
        reader("web").replicas(2).template_annotation("checksum/secret", checksum).manifest().clone()
    };
    let web = &reader("web").replicas(2).template_annotation("checksum/secret", "1");
    stage.run(&[web]).await;
    let _operator = stage.operator().await;
    for (turn, value) in [(2, "two"), (3, "three")] {
        stage.rotate(value).await;
        stage.ns.merge(web, &release(value)).await;
        stage.wait_values(web, VALUE, value).await;
        stage.witness().await;
        assert_eq!(stage.ns.revisions(web).await, turn);
        assert_eq!(stage.outcomes("RolloutStarted", web).await, 0);
    }
}

/// A reader of two Secrets.
async fn reader_of_two(stage: &Stage) -> Workload {
    stage.ns.set_secret("api", &[("token", "one")]).await;
    let web = reader("web").consumes(Via::env("api", "token"));
    stage.run(&[&web]).await;
    web
}

/// One rollout carried both.
async fn both_rolled_once(stage: &Stage, web: &Workload) {
    stage.wait_values(web, VALUE, "two").await;
    stage.wait_values(web, "api/token", "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    stage.witness().await;
    assert_eq!(stage.ns.revisions(web).await, 2);
    assert_eq!(stage.outcomes("RolloutStarted", web).await, 1);
    let object = stage.ns.get(web).await;
    let stamp = object["spec"]["template"]["metadata"]["annotations"][STAMP].as_str().unwrap();
    let names: Vec<_> = stamp.split(' ').filter_map(|part| part.split('@').next()).collect();
    assert_eq!(names, ["api", "db"], "{stamp}");
    assert!(object["spec"]["paused"].is_null());
}

/// Case 8.
#[tokio::test]
async fn two_secrets_that_change_shortly_after_each_other_are_one_rollout() {
    let mut stage = Stage::set("two").await;
    stage.install = stage.install.settle(DEFAULT_SETTLE);
    let web = &reader_of_two(&stage).await;
    let operator = stage.operator().await;
    stage.rotate("two").await;
    wait_held(&operator, "settling", 1.0).await;
    stage.ns.set_secret("api", &[("token", "two")]).await;
    both_rolled_once(&stage, web).await;
}

/// Case 8, with an end between the two.
#[tokio::test]
async fn two_secrets_that_change_around_an_end_are_one_rollout() {
    let mut stage = Stage::set("two-ends").await;
    stage.install = stage.install.settle(DEFAULT_SETTLE);
    let web = &reader_of_two(&stage).await;
    let operator = stage.operator().await;
    stage.rotate("two").await;
    wait_held(&operator, "settling", 1.0).await;
    operator.kill9();
    stage.ns.set_secret("api", &[("token", "two")]).await;
    let _operator = stage.operator().await;
    both_rolled_once(&stage, web).await;
}
