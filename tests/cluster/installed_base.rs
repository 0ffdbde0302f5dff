//! What was stale before Uptake came is told of, once, in its own namespace, and not rolled.

use crate::support::{
    cluster::Cluster,
    objects::Namespace,
    operator::{Install, Operator},
    wait::eventually,
    workload::{Via, Workload},
};
use k8s_openapi::api::events::v1::Event;
use kube::{Api, api::ListParams};
use std::time::Duration;

const SOON: Duration = Duration::from_secs(40);

#[tokio::test]
async fn pods_older_than_their_secret_are_reported_once_and_not_rolled() {
    let cluster = Cluster::shared().await;
    let ns = Namespace::create(cluster, "base").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let web = Workload::deployment("web").consumes(Via::env("db", "password"));
    ns.run(&web).await;
    // Times have whole seconds: the change has to lie in a later one than the pod's birth and the Secret's making.
    let born = ns.pods(&web).await[0].metadata.creation_timestamp.clone().expect("a pod has one");
    eventually(SOON, || async {
        let second = jiff::Timestamp::now().as_second();
        if second > born.0.as_second() + 1 { Ok(()) } else { Err("the second isn't over") }
    })
    .await;
    ns.set_secret("db", &[("password", "two")]).await;

    let install = Install::for_namespaces(cluster, &[&ns.name]).await;
    let operator = Operator::start(cluster, &install);
    operator.wait_ready(SOON).await;
    let events: Api<Event> = Api::namespaced(ns.client.clone(), &install.own_namespace);
    let told = || async {
        let all = events.list(&ListParams::default()).await.map_err(|error| error.to_string())?;
        let told: Vec<Event> = all
            .items
            .into_iter()
            .filter(|event| event.reason.as_deref() == Some("StaleAtFirstSight"))
            .collect();
        if told.is_empty() { Err("no StaleAtFirstSight".to_owned()) } else { Ok(told) }
    };
    let first = eventually(SOON, told).await;
    let note = first[0].note.clone().unwrap_or_default();
    assert!(note.contains(&format!("{}/Deployment/web", ns.name)), "{note}");
    let stale = [("namespace", &*ns.name), ("kind", "Deployment"), ("name", "web")];
    assert!((operator.metric("uptake_stale_pods", &stale).await - 1.0).abs() < f64::EPSILON);

    // A restart says nothing new, and the next change is rolled as any other.
    operator.sigterm();
    operator.wait_exit(SOON).await;
    let operator = Operator::start(cluster, &install);
    operator.wait_ready(SOON).await;
    assert_eq!(ns.revisions(&web).await, 1);
    ns.set_secret("db", &[("password", "three")]).await;
    ns.wait_event(SOON, "RolloutCompleted", "web").await;
    assert_eq!(ns.values_in_pods(&web, "db/password").await, ["three"]);
    assert_eq!(ns.revisions(&web).await, 2);
    assert_eq!(eventually(SOON, told).await.len(), 1);
}
