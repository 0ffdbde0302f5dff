//! Each fault of the proxy is what it says it is.

use crate::support::cluster::Cluster;
use crate::support::objects::Namespace;
use crate::support::proxy::{Fault, Proxy, everything, list_of, watch_of, write_of};
use crate::support::wait::eventually;
use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, WatchEvent, WatchParams};
use kube::{Api, ResourceExt};
use std::time::{Duration, Instant};

/// A namespace with one Secret, and a client that comes through a proxy.
async fn stage<'a>(cluster: &'a Cluster, name: &str) -> (Namespace<'a>, Proxy, Api<Secret>) {
    let ns = Namespace::create(cluster, name).await;
    ns.set_secret("db", &[("password", "one")]).await;
    let proxy = Proxy::start(cluster).await;
    let client = crate::support::cluster::client(&proxy.kubeconfig(cluster, &cluster.admin())).await.unwrap();
    let secrets = Api::namespaced(client, &ns.name);
    (ns, proxy, secrets)
}

#[tokio::test]
async fn without_rules_it_passes_everything_on() {
    let cluster = Cluster::shared().await;
    let (ns, proxy, secrets) = stage(cluster, "honest").await;
    assert_eq!(secrets.list(&ListParams::default()).await.unwrap().items.len(), 1);
    let mut watch = secrets.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap().boxed();
    assert!(matches!(watch.next().await.unwrap().unwrap(), WatchEvent::Added(_)));
    ns.set_secret("db", &[("password", "two")]).await;
    assert!(matches!(watch.next().await.unwrap().unwrap(), WatchEvent::Modified(_)));
    assert_eq!(proxy.requests(), 2);
}

#[tokio::test]
async fn it_answers_in_the_servers_place_as_often_as_told() {
    let cluster = Cluster::shared().await;
    let (_ns, proxy, secrets) = stage(cluster, "answers").await;
    let rule = proxy.on(list_of("secrets"), Fault::Answer { status: 429, retry_after: Some(1) }).times(2);
    for _ in 0..2 {
        let error = secrets.list(&ListParams::default()).await.unwrap_err();
        assert!(matches!(&error, kube::Error::Api(status) if status.code == 429), "{error}");
    }
    secrets.list(&ListParams::default()).await.unwrap();
    assert_eq!(rule.hits(), 2);
}

#[tokio::test]
async fn it_delays_and_refuses() {
    let cluster = Cluster::shared().await;
    let (_ns, proxy, secrets) = stage(cluster, "delays").await;
    let rule = proxy.on(everything(), Fault::Delay(Duration::from_millis(300)));
    let began = Instant::now();
    secrets.get("db").await.unwrap();
    assert!(began.elapsed() >= Duration::from_millis(300));
    rule.remove();
    proxy.on(everything(), Fault::Refuse);
    secrets.get("db").await.unwrap_err();
    proxy.clear();
    secrets.get("db").await.unwrap();
}

#[tokio::test]
async fn a_write_whose_answer_is_lost_has_happened() {
    let cluster = Cluster::shared().await;
    let (ns, proxy, secrets) = stage(cluster, "lost").await;
    let rule = proxy.on(write_of("secrets"), Fault::LoseAnswer).times(1);
    secrets.delete("db", &kube::api::DeleteParams::default()).await.unwrap_err();
    assert_eq!(rule.hits(), 1);
    assert!(ns.api::<Secret>().get_opt("db").await.unwrap().is_none());
}

#[tokio::test]
async fn it_garbles_answers() {
    let cluster = Cluster::shared().await;
    let (_ns, proxy, secrets) = stage(cluster, "garbles").await;
    for fault in [
        Fault::CutAfter(100),
        Fault::EndAfter(100),
        Fault::Corrupt(100),
        Fault::Rewrite(|body| body[..body.len() / 2].to_vec()),
    ] {
        let rule = proxy.on(list_of("secrets"), fault).times(1);
        secrets.list(&ListParams::default()).await.unwrap_err();
        assert_eq!(rule.hits(), 1);
    }
    secrets.list(&ListParams::default()).await.unwrap();
}

#[tokio::test]
async fn it_stalls_and_cuts_a_watch() {
    let cluster = Cluster::shared().await;
    let (ns, proxy, secrets) = stage(cluster, "stalls").await;
    let mut watch = secrets.watch(&WatchParams::default().disable_bookmarks(), "0").await.unwrap().boxed();
    watch.next().await.unwrap().unwrap();
    let rule = proxy.on(watch_of("secrets"), Fault::Stall);
    ns.set_secret("db", &[("password", "two")]).await;
    eventually(Duration::from_secs(5), || async { (rule.hits() == 1).then_some(()).ok_or("not stalled") })
        .await;
    let nothing = tokio::time::timeout(Duration::from_millis(300), watch.next()).await;
    assert!(nothing.is_err(), "{nothing:?}");
    rule.remove();
    let WatchEvent::Modified(secret) = watch.next().await.unwrap().unwrap() else { panic!("no change") };
    assert_eq!(secret.name_any(), "db");
    proxy.cut_open_answers();
    let end = tokio::time::timeout(Duration::from_secs(5), watch.next()).await.unwrap();
    assert!(!matches!(end, Some(Ok(_))), "{end:?}");
}
