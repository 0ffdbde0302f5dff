//! Verbs about the operator: `release`, `purge`; and kubectl, of which the binary is a plugin.

use std::time::Duration;

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::api::ListParams;
use serde_json::json;

use super::{Person, run};
use crate::stage::{Stage, VALUE, reader};
use crate::support::cluster::Cluster;
use crate::support::objects::Namespace;
use crate::support::operator::program;

#[tokio::test]
async fn a_release_closes_the_breaker_and_a_purge_leaves_nothing() {
    let mut stage = Stage::set("release").await;
    let breaks = &reader("a-breaks")
        .template_annotation("test.uptake.dev/ready-if", "db/password=one")
        .set("/spec/progressDeadlineSeconds", json!(2));
    let held = &reader("b-held");
    stage.run(&[breaks, held]).await;
    stage.install = stage.install.clone().arg("--canary");
    let operator = stage.operator().await;
    stage.wait_aged(held).await;
    stage.rotate("two").await;
    // One of them is rolled first, alone. If it is the good one the value is proven good, and there is no breaker.
    stage.wait_outcomes("RolloutFailed", breaks, 1).await;
    let person = Person::admin(stage.cluster, &stage.ns);
    let own = ["--operator-namespace", stage.install.own_namespace.as_str()];
    let said = person.runs(&[&["release", "secret/db"], &own[..]].concat()).await.ended(0);
    assert!(said.out.contains("version"), "{}", said.out);
    stage.wait_values(held, VALUE, "two").await;
    let secret = stage.ns.api::<Secret>().get("db").await.unwrap();
    assert!(secret.metadata.annotations.unwrap().contains_key("uptake.dev/release"));
    person.runs(&["release", "secret/absent"]).await.ended(5);
    operator.sigterm();
    operator.wait_exit(Duration::from_secs(30)).await;

    let dry = person.types(&[&["purge", "--dry-run"], &own[..]].concat()).await.ended(0);
    assert!(dry.out.contains("uptake-digest-key"), "{}", dry.out);
    let secrets: Api<Secret> =
        Api::namespaced(stage.cluster.admin_client().await, &stage.install.own_namespace);
    assert!(!secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
    person.types(&[&["purge"], &own[..]].concat()).await.ended(0);
    assert!(secrets.list(&ListParams::default()).await.unwrap().items.is_empty());
    person.types(&[&["purge"], &own[..]].concat()).await.ended(0);
    let nobody = Person::user(stage.cluster, &stage.ns, &stage.cluster.user());
    nobody.types(&[&["purge"], &own[..]].concat()).await.ended(6);
}

#[tokio::test]
async fn kubectl_finds_it_as_a_plugin() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "plugin").await;
    ns.set_secret("db", &[("password", "one")]).await;
    ns.run(&reader("web")).await;
    let folder = tempfile::tempdir().unwrap();
    std::os::unix::fs::symlink(program(), folder.path().join("kubectl-uptake")).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap_or_default());
    let script = "PATH=\"$1\"; shift; exec \"$@\"";
    let kubectl = cluster.program("kubectl");
    let kubeconfig = cluster.kubeconfig(&cluster.admin());
    let says = |arguments: Vec<&'static str>| {
        let mut all = vec!["-c", script, "sh", path.as_str(), kubectl.to_str().unwrap(), "uptake"];
        all.extend(arguments);
        let all: Vec<String> =
            all.into_iter().map(str::to_owned).chain(["-n".to_owned(), ns.name.clone()]).collect();
        let kubeconfig = kubeconfig.clone();
        async move {
            let all: Vec<&str> = all.iter().map(String::as_str).collect();
            run("/bin/sh".as_ref(), &all, Some(&kubeconfig), "").await
        }
    };
    let said = says(vec!["status"]).await.ended(0);
    assert!(said.out.contains("Deployment/web"), "{}", said.out);
    let help = says(vec!["--help"]).await.ended(0);
    assert!(help.out.contains("status") && !help.out.contains("controller"), "{}", help.out);
    let usage = says(vec!["status", "--nonsense"]).await;
    assert!(usage.err.contains("Usage: kubectl uptake status"), "{}", usage.err);
}
