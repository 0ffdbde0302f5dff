//! Admission by the test.

use crate::support::cluster::Cluster;
use crate::support::objects::{Namespace, SOON};
use crate::support::wait::eventually;
use crate::support::webhook::{Verdict, Webhook};
use kube::Api;
use serde_json::json;
use std::time::{Duration, Instant};

#[tokio::test]
async fn it_takes_its_time_and_refuses() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "webhook").await;
    ns.set_secret("db", &[("n", "0")]).await;
    let slow = Webhook::start(cluster, ns, "secrets", Verdict::allow_after(Duration::from_secs(1))).await;
    let slow = &slow;
    let took = eventually(SOON, || async move {
        let began = Instant::now();
        ns.set_secret("db", &[("n", &slow.asked().to_string())]).await;
        let took = began.elapsed();
        (slow.asked() > 0).then_some(took).ok_or("not asked")
    })
    .await;
    assert!(took >= Duration::from_secs(1), "{took:?}");

    let _strict = Webhook::start(cluster, ns, "configmaps", Verdict::refuse("not today")).await;
    let maps: &Api<k8s_openapi::api::core::v1::ConfigMap> = &ns.api();
    eventually(SOON, || async move {
        let map = serde_json::from_value(json!({ "metadata": { "generateName": "map-" } })).unwrap();
        let refused = maps.create(&kube::api::PostParams::default(), &map).await;
        refused.err().filter(|error| error.to_string().contains("not today")).map(|_| ()).ok_or("accepted")
    })
    .await;
}
