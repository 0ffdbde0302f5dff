//! A value that breaks its first consumer.

use super::note;
use crate::stage::{ROLLED, Stage, reader, wait_held, wait_metric};
use crate::support::workload::{Via, Workload};
use serde_json::json;

const CONSUMERS: usize = 30;

/// Ready only if its process got the word that the value is good.
fn consumer(number: usize) -> Workload {
    Workload::deployment(&format!("web-{number}"))
        .consumes(Via::env_from("db"))
        .template_annotation("test.uptake.dev/ready-if", "db/is=good")
        .set("/spec/progressDeadlineSeconds", json!(5))
}

/// Case 24.
#[tokio::test]
async fn a_value_that_breaks_its_first_consumer_reaches_no_other() {
    let mut stage = Stage::set("breaker").await;
    stage.install = stage.install.arg("--canary");
    stage.ns.set_secret("db", &[("is", "good")]).await;
    let consumers: Vec<Workload> = (0..CONSUMERS).map(consumer).collect();
    stage.run(&consumers.iter().collect::<Vec<_>>()).await;
    let operator = stage.operator().await;
    stage.ns.set_secret("db", &[("password", "two"), ("is", "bad")]).await;

    let open = stage.ns.wait_event(ROLLED, "BreakerOpen", "db").await;
    let words = note(&open);
    assert!(words.contains("and 19 more") && words.contains("uptake.dev/release"), "{words}");
    let held = f64::from(u32::try_from(CONSUMERS - 1).unwrap());
    wait_held(&operator, "breaker_open", held).await;
    stage.witness().await;
    wait_held(&operator, "breaker_open", held).await;
    let mut revisions = 0;
    for workload in &consumers {
        revisions += stage.ns.revisions(workload).await;
    }
    assert_eq!(revisions, CONSUMERS + 1, "one was rolled");
    let broken: Vec<_> = stage.ns.events_with("RolloutFailed").await;
    assert_eq!(broken.len(), 1);

    stage.ns.set_secret("db", &[("password", "three"), ("is", "good")]).await;
    for workload in &consumers {
        stage.wait_values(workload, "db/password", "three").await;
    }
    wait_held(&operator, "breaker_open", 0.0).await;
    // The witness, too.
    let completed = [("kind", "Deployment"), ("outcome", "completed")];
    wait_metric(&operator, "uptake_rollouts_total", &completed, held + 2.0).await;
    let summary = stage.ns.wait_event(ROLLED, "ConsumersRolled", "db").await;
    assert!(note(&summary).contains("30 consumers rolled, 30 completed"), "{}", note(&summary));
}

/// Somebody knows better.
#[tokio::test]
async fn a_released_version_is_rolled_though_it_broke_another_consumer() {
    let mut stage = Stage::set("released").await;
    stage.install = stage.install.arg("--canary");
    let picky = &reader("a-picky")
        .template_annotation("test.uptake.dev/ready-if", "db/password=one")
        .set("/spec/progressDeadlineSeconds", json!(3));
    let web = &reader("web");
    stage.run(&[picky, web]).await;
    let operator = stage.operator().await;
    // Whoever is first: the picky one fails of it, and the other one waits or is done.
    stage.rotate("two").await;
    stage.ns.wait_event(ROLLED, "RolloutFailed", "a-picky").await;
    let open = stage.ns.wait_event(ROLLED, "BreakerOpen", "db").await;
    wait_held(&operator, "breaker_open", 1.0).await;
    assert!(note(&open).contains("Deployment/web"), "{}", note(&open));
    let secret = stage.ns.api::<k8s_openapi::api::core::v1::Secret>().get("db").await.unwrap();
    let version = secret.metadata.resource_version.unwrap();
    let release = json!({ "metadata": { "annotations": { "uptake.dev/release": version } } });
    stage.ns.merge_secret("db", &release, "test").await.unwrap();
    stage.wait_values(web, "db/password", "two").await;
    stage.wait_outcomes("RolloutCompleted", web, 1).await;
    wait_held(&operator, "breaker_open", 0.0).await;
}
