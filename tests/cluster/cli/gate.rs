//! `gate`: a deploy pipeline's question.

use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use super::{Person, settings};
use crate::stage::{ROLLED, kubectl, reader};
use crate::support::cluster::{Cluster, Options};
use crate::support::objects::{Namespace, SOON};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};

const GROUP_VERSION: &str = "secrets-store.csi.x-k8s.io/v1";
const CRD: &str = include_str!("../crds/secret-provider-class.yaml");

async fn wait_aged(ns: &Namespace<'_>, workload: &Workload) {
    eventually(ROLLED, || async {
        let births = ns.pods(workload).await.into_iter().filter_map(|pod| pod.metadata.creation_timestamp);
        let aged = births.map(|birth| birth.0 + std::time::Duration::from_secs(4));
        let young = aged.into_iter().any(|aged| aged > jiff::Timestamp::now());
        (!young).then_some(()).ok_or("pods are too young")
    })
    .await;
}

#[tokio::test]
async fn a_gate_restarts_once_and_passes_or_fails() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "gate").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let person = Person::admin(cluster, ns);
    let empty = person.runs(&["gate", "secret/db"]).await.ended(0);
    assert!(empty.out.contains("nobody consumes it"), "{}", empty.out);
    person.runs(&["gate", "secret/db", "--require-consumers"]).await.ended(1);
    person.runs(&["gate", "secret/absent"]).await.ended(1);
    person.runs(&["gate", "deployment/web"]).await.ended(2);

    let web = &reader("web");
    ns.run(web).await;
    person.runs(&["gate", "secret/db", "--require-consumers"]).await.ended(0);
    assert_eq!(ns.revisions(web).await, 1);

    wait_aged(ns, web).await;
    ns.set_secret("db", &[("password", "two")]).await;
    let said = person.runs(&["gate", "secret/db", "--no-restart", "-o", "junit"]).await.ended(1);
    settings(ns).bind(|| insta::assert_snapshot!("gate_junit", said.out));
    assert_eq!(ns.revisions(web).await, 1);
    let said = person.runs(&["gate", "secret/db"]).await.ended(0);
    settings(ns).bind(|| insta::assert_snapshot!("gate_passed", said.out));
    assert_eq!(ns.revisions(web).await, 2);
    assert_eq!(ns.values_in_pods(web, "db/password").await, ["two"]);

    let nobody = Person::user(cluster, ns, &cluster.user());
    nobody.runs(&["gate", "secret/db"]).await.ended(6);
    // A pod that never starts is no proof, and no reason to wait for ever.
    ns.create_workload(&reader("nowhere").unschedulable()).await;
    let said = person.runs(&["gate", "secret/db", "--timeout", "1s", "-o", "json"]).await.ended(6);
    assert_eq!(said.json()["status"], "unknown");
}

async fn set_class(ns: &Namespace<'_>, keys: &[&str]) {
    let data: Vec<Value> = keys.iter().map(|key| json!({ "objectName": key, "key": key })).collect();
    let class = json!({
        "apiVersion": GROUP_VERSION,
        "kind": "SecretProviderClass",
        "metadata": { "name": "vault" },
        "spec": { "provider": "vault", "secretObjects": [{ "secretName": "db", "type": "Opaque", "data": data }] },
    });
    let api = ns.dynamic(GROUP_VERSION, "SecretProviderClass");
    let parameters = PatchParams::apply("test").force();
    // A CRD that is established may still not be served by the next request.
    eventually(SOON, || async { api.patch("vault", &parameters, &Patch::Apply(&class)).await }).await;
}

/// Mounts the class, and has the new key in its environment if it is there.
fn mounting(name: &str) -> Workload {
    let csi = json!({
        "driver": "secrets-store.csi.k8s.io",
        "readOnly": true,
        "volumeAttributes": { "secretProviderClass": "vault" },
    });
    let mount = json!([{ "name": "store", "mountPath": "/store", "readOnly": true }]);
    Workload::deployment(name)
        .consumes(Via::optional_env("db", "token"))
        .set("/spec/template/spec/volumes", json!([{ "name": "store", "csi": csi }]))
        .set("/spec/template/spec/containers/0/volumeMounts", mount)
}

#[tokio::test]
async fn a_pod_that_is_older_than_its_synced_key_is_named_and_replaced() {
    // The CRD would concern all tests of a shared cluster.
    let cluster = &Cluster::start(Options::default()).await.unwrap();
    let ns = &Namespace::create(cluster, "synced").await;
    kubectl(ns, cluster, &["apply", "--validate=false", "-f", "-"], CRD);
    set_class(ns, &["password", "token"]).await;
    ns.set_secret("db", &[("password", "one")]).await;
    let web = &mounting("web");
    ns.run(web).await;
    let old = ns.pods(web).await.remove(0).metadata.name.unwrap();
    wait_aged(ns, web).await;
    // The driver writes the new key; one pod is older than it, one younger.
    ns.merge_secret("db", &json!({ "stringData": { "token": "t" } }), "driver").await.unwrap();
    ns.scale(web, 2).await;
    ns.wait_rolled_out_within(ROLLED, web).await;
    let person = Person::admin(cluster, ns);
    let report = person.runs(&["status", "-o", "json", "--exit-code"]).await.ended(3).json();
    let stale = report["consumers"][0]["pods"]["stale"].as_array().unwrap();
    assert_eq!((stale.len(), &stale[0]["name"], &stale[0]["of"][0]), (1, &json!(old), &json!("db/token")));
    let table = person.runs(&["status"]).await.ended(0);
    assert!(table.out.contains(&old), "{}", table.out);

    let said = person.runs(&["gate", "secretproviderclass/vault"]).await.ended(0);
    settings(ns).bind(|| insta::assert_snapshot!("gate_class_passed", said.out));
    assert_eq!(ns.revisions(web).await, 2, "it was restarted once");
    person.runs(&["status", "--exit-code"]).await.ended(0);

    // Where a container can't be asked for its names, that isn't taken for a yes.
    person.runs(&["gate", "spc/vault", "--exec"]).await.ended(6);
    person.runs(&["gate", "spc/vault", "--exec", "--allow-unknown"]).await.ended(0);

    // A key that never appears: one more restart, and no.
    set_class(ns, &["password", "token", "never"]).await;
    let said = person.runs(&["gate", "secretproviderclass/vault"]).await.ended(1);
    settings(ns).bind(|| insta::assert_snapshot!("gate_class_failed", said.out));
    assert_eq!(ns.revisions(web).await, 3);
    person.runs(&["gate", "spc/vault", "--no-restart"]).await.ended(1);
    assert_eq!(ns.revisions(web).await, 3);
}
