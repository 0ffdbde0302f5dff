//! A change reaches the pods; nothing else does anything.

use std::time::Duration;

use crate::support::{
    cluster::Cluster,
    objects::Namespace,
    operator::{Install, Operator},
    wait::eventually,
    workload::{Via, Workload},
};

/// A few seconds of settling, looking, rolling and proving, on a busy machine.
pub const ROLLED: Duration = Duration::from_secs(40);

#[tokio::test]
async fn a_changed_secret_rolls_its_consumer_once() {
    let cluster = Cluster::shared().await;
    let ns = Namespace::create(cluster, "roll").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let web = Workload::deployment("web").consumes(Via::env("db", "password"));
    ns.run(&web).await;
    let install = Install::for_namespaces(cluster, &[&ns.name]).await;
    let operator = Operator::start(cluster, &install);
    operator.wait_ready(ROLLED).await;
    ns.set_secret("db", &[("password", "two")]).await;
    eventually(ROLLED, || async {
        let values = ns.values_in_pods(&web, "db/password").await;
        if values == ["two"] { Ok(()) } else { Err(format!("{values:?}")) }
    })
    .await;
    ns.wait_event(ROLLED, "RolloutCompleted", "web").await;
    assert_eq!(ns.revisions(&web).await, 2);
}
