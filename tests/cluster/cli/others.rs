//! A restart beside others: the API server, which isn't flooded, and tools that apply manifests, which don't undo it.

use serde_json::{Value, json};

use super::Person;
use crate::stage::{ROLLED, kubectl, reader};
use crate::support::cluster::Cluster;
use crate::support::objects::Namespace;
use crate::support::proxy::{Fault, Proxy, write_of};
use crate::support::wait::eventually;
use crate::support::workload::Workload;

#[tokio::test]
async fn at_most_four_patches_are_in_flight() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "flight").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let all: Vec<Workload> = (0..7).map(|number| reader(&format!("web-{number}")).replicas(0)).collect();
    for workload in &all {
        ns.create_workload(workload).await;
    }
    let proxy = Proxy::start(cluster).await;
    let rule = proxy.on(write_of("deployments"), Fault::Stall);
    let slow = Person::behind(&proxy, cluster, ns, &cluster.admin());
    let restart = slow.runs(&["restart", "secret/db", "-o", "json", "--request-timeout", "100s"]);
    let watched = async {
        eventually(ROLLED, || async { (rule.hits() == 4).then_some(()).ok_or(rule.hits().to_string()) })
            .await;
        // A whole look at the namespace later there are no more.
        Person::admin(cluster, ns).runs(&["status"]).await.ended(0);
        assert_eq!(rule.hits(), 4);
        rule.remove();
    };
    let (said, ()) = tokio::join!(restart, watched);
    assert_eq!(said.ended(0).json()["requested"].as_array().unwrap().len(), all.len());
}

fn stamp(object: &Value) -> &Value {
    &object["spec"]["template"]["metadata"]["annotations"]["uptake.dev/secret-version"]
}

/// As GitOps tools do it: by the client's merge, and by the server with all conflicts forced.
#[tokio::test]
async fn those_who_apply_their_manifests_again_undo_nothing() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "applied").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let web = &reader("web").template_annotation("example.org/kept", "1");
    let manifest = web.manifest().to_string();
    let by_client: &[&str] = &["apply", "-f", "-"];
    let by_server: &[&str] =
        &["apply", "-f", "-", "--server-side", "--force-conflicts", "--field-manager=gitops"];
    for (apply, revisions) in [(by_client, 2), (by_server, 3)] {
        kubectl(ns, cluster, apply, &manifest);
        ns.wait_rolled_out_within(ROLLED, web).await;
        let person = Person::admin(cluster, ns);
        person.runs(&["restart", "secret/db", "--wait"]).await.ended(0);
        let before = ns.get(web).await;
        kubectl(ns, cluster, apply, &manifest);
        let after = ns.get(web).await;
        assert!(stamp(&before).is_string());
        assert_eq!(stamp(&after), stamp(&before), "{apply:?}");
        assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"], "{apply:?}");
        assert_eq!(ns.revisions(web).await, revisions);
        assert_eq!(after["spec"]["template"]["metadata"]["annotations"]["example.org/kept"], json!("1"));
    }
}
