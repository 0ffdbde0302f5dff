//! References that no pod template names: those of the ServiceAccount and of SecretProviderClasses.

use std::time::Duration;

use k8s_openapi::api::core::v1::ServiceAccount;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::{
    stage::ROLLED,
    support::{
        cluster::{Cluster, Options},
        objects::{Namespace, SOON},
        operator::{Install, Operator},
        rules,
        wait::eventually,
        workload::{Via, Workload},
    },
};

/// An absent kind is looked for every 30 s at the longest.
const NOTICED: Duration = Duration::from_secs(90);

const GROUP_VERSION: &str = "secrets-store.csi.x-k8s.io/v1";
const CRD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/crds/secret-provider-class.yaml");

const STATUS_CRD: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/crds/secret-provider-class-pod-status.yaml");

fn kubectl(cluster: &Cluster, arguments: &[&str]) {
    let output = cluster.kubectl(&cluster.admin()).args(arguments).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// The class `vault`, which syncs these keys of the Secret `db`.
async fn set_class(ns: &Namespace<'_>, keys: &[&str]) {
    let data: Vec<Value> = keys.iter().map(|key| json!({ "objectName": key, "key": key })).collect();
    let synced = json!([{ "secretName": "db", "type": "Opaque", "data": data }]);
    let class = json!({
        "apiVersion": GROUP_VERSION,
        "kind": "SecretProviderClass",
        "metadata": { "name": "vault" },
        "spec": { "provider": "vault", "parameters": { "roleName": "app" }, "secretObjects": synced },
    });
    // A CRD that is established may still not be served by the next request.
    let api = ns.dynamic(GROUP_VERSION, "SecretProviderClass");
    let parameters = PatchParams::apply("test").force();
    eventually(SOON, || async { api.patch("vault", &parameters, &Patch::Apply(&class)).await }).await;
}

/// Mounts the class `vault`. Neither the kubelet of this cluster nor anything in it knows the CSI driver: tests
/// play its part.
fn mounting(name: &str) -> Workload {
    let csi = json!({
        "driver": "secrets-store.csi.k8s.io",
        "readOnly": true,
        "volumeAttributes": { "secretProviderClass": "vault" },
    });
    Workload::deployment(name)
        .set("/spec/template/spec/volumes", json!([{ "name": "store", "csi": csi }]))
        .set(
            "/spec/template/spec/containers/0/volumeMounts",
            json!([{ "name": "store", "mountPath": "/store", "readOnly": true }]),
        )
}

async fn wait_log(operator: &Operator, words: &[&str], times: usize) {
    let said = || operator.log().lines().filter(|line| words.iter().all(|word| line.contains(word))).count();
    eventually(NOTICED, || async {
        if said() >= times { Ok(()) } else { Err(format!("{words:?} is said {} times", said())) }
    })
    .await;
}

async fn wait_revisions(ns: &Namespace<'_>, workload: &Workload, revisions: usize) {
    eventually(ROLLED, || async {
        let now = ns.revisions(workload).await;
        if now == revisions { Ok(()) } else { Err(format!("{now} revisions of {}", workload.name)) }
    })
    .await;
    ns.wait_rolled_out(workload).await;
}

async fn completed(operator: &Operator) -> f64 {
    operator.metric("uptake_rollouts_total", &[("outcome", "completed")]).await
}

#[tokio::test]
async fn a_class_is_followed_from_when_its_kind_comes_until_it_goes() {
    // The CRD would concern all tests of a shared cluster.
    let cluster = &Cluster::start(Options::default()).await.unwrap();
    let ns = &Namespace::create(cluster, "classes").await;
    let install = Install::for_cluster(cluster).await;
    let operator = &Operator::start(cluster, &install);
    operator.wait_ready(ROLLED).await;
    wait_log(operator, &["SecretProviderClass", "There are no objects of this kind yet"], 1).await;

    kubectl(cluster, &["apply", "-f", CRD]);
    set_class(ns, &["password"]).await;
    wait_log(operator, &["SecretProviderClass", "Inventory is known again"], 1).await;
    let web = mounting("web");
    ns.run(&web).await;
    // Its own pod brings the Secret about, so that rolls nothing: exactly one more revision comes of what follows.
    let examined = format!("secret={}/db", ns.name);
    ns.set_secret("db", &[("password", "one")]).await;
    wait_log(operator, &["Secret was examined", &examined, "nothing_to_do"], 1).await;
    ns.set_secret("db", &[("password", "two")]).await;
    wait_revisions(ns, &web, 2).await;
    eventually(ROLLED, || async { (completed(operator).await >= 1.0).then_some(()).ok_or("not completed") })
        .await;

    // The class gains a key: what the driver then writes rolls nothing, its next value does.
    set_class(ns, &["password", "token"]).await;
    ns.set_secret("db", &[("token", "one")]).await;
    wait_log(operator, &["Secret was examined", &examined], 3).await;
    ns.set_secret("db", &[("token", "two")]).await;
    wait_revisions(ns, &web, 3).await;
    eventually(ROLLED, || async { (completed(operator).await >= 2.0).then_some(()).ok_or("not completed") })
        .await;

    // The kind goes, and with it the class: nobody consumes the Secret any more.
    kubectl(cluster, &["delete", "-f", CRD]);
    wait_log(operator, &["SecretProviderClass", "There are no objects of this kind yet"], 2).await;
    ns.set_secret("db", &[("password", "three")]).await;
    wait_log(operator, &["DEBUG", "Secret was examined", &examined, "unchanged"], 1).await;
    assert_eq!(ns.revisions(&web).await, 3);
    operator.wait_ready(SOON).await;
}

/// Says, as the driver does, that this version of the class's object is mounted into every pod of a workload.
async fn mount(ns: &Namespace<'_>, workload: &Workload, version: &str) {
    let api = ns.dynamic(GROUP_VERSION, "SecretProviderClassPodStatus");
    for pod in ns.pods(workload).await {
        let (Some(name), Some(uid)) = (pod.metadata.name, pod.metadata.uid) else { panic!("a pod has both") };
        let place = format!("{name}-{}-vault", ns.name);
        let status = json!({
            "apiVersion": GROUP_VERSION,
            "kind": "SecretProviderClassPodStatus",
            "metadata": {
                "name": place,
                "ownerReferences": [{ "apiVersion": "v1", "kind": "Pod", "name": name, "uid": uid }],
            },
            "status": {
                "podName": name,
                "secretProviderClassName": "vault",
                "mounted": true,
                "objects": [{ "id": "secret/password", "version": version }],
            },
        });
        let parameters = PatchParams::apply("secrets-store-csi-driver").force();
        eventually(SOON, || async { api.patch(&place, &parameters, &Patch::Apply(&status)).await }).await;
    }
}

#[tokio::test]
async fn another_version_of_what_a_class_mounts_rolls_its_consumers_once() {
    let cluster = &Cluster::start(Options::default()).await.unwrap();
    let ns = &Namespace::create(cluster, "mounts").await;
    kubectl(cluster, &["apply", "-f", CRD]);
    kubectl(cluster, &["apply", "-f", STATUS_CRD]);
    set_class(ns, &[]).await;
    let (web, other) = (mounting("web"), mounting("other"));
    ns.run(&web).await;
    ns.run(&other).await;
    let install = Install::for_cluster(cluster).await;
    let operator = &Operator::start(cluster, &install);
    operator.wait_ready(ROLLED).await;
    let wait_synced = || async {
        let synced =
            operator.metric("uptake_watch_synced", &[("kind", "SecretProviderClassPodStatus")]).await;
        (synced > 0.0).then_some(()).ok_or("not synced")
    };
    eventually(SOON, wait_synced).await;
    mount(ns, &web, "1").await;
    mount(ns, &other, "1").await;

    // The driver rotates the files of one workload's pods, and of the other's later.
    mount(ns, &web, "2").await;
    wait_revisions(ns, &web, 2).await;
    wait_revisions(ns, &other, 2).await;
    let stamp =
        ns.get(&web).await["spec"]["template"]["metadata"]["annotations"]["uptake.dev/secret-version"]
            .as_str()
            .expect("a stamp")
            .to_owned();
    assert!(stamp.starts_with("secretproviderclass/vault@"), "{stamp}");
    mount(ns, &web, "2").await;
    mount(ns, &other, "2").await;
    eventually(ROLLED, || async { (completed(operator).await >= 2.0).then_some(()).ok_or("not completed") })
        .await;
    // One more version proves that nothing but it came of all that.
    mount(ns, &other, "3").await;
    wait_revisions(ns, &web, 3).await;
    wait_revisions(ns, &other, 3).await;
}

#[tokio::test]
async fn inherited_pull_secrets_are_known_and_roll_nothing() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "pull").await;
    let pull = json!({ "imagePullSecrets": [{ "name": "registry" }] });
    let accounts = ns.api::<ServiceAccount>();
    accounts.patch("default", &PatchParams::default(), &Patch::Merge(&pull)).await.unwrap();
    ns.set_secret("registry", &[("password", "one")]).await;
    ns.set_secret("db", &[("password", "one")]).await;
    let web = Workload::deployment("web").consumes(Via::env("db", "password"));
    ns.run(&web).await;
    let spec = ns.pods(&web).await.remove(0).spec.unwrap();
    assert_eq!(spec.image_pull_secrets.unwrap()[0].name, "registry", "the API server copies them");

    let install = Install::for_namespaces(cluster, &[&ns.name]).await;
    let operator = &Operator::start(cluster, &install);
    operator.wait_ready(ROLLED).await;
    eventually(SOON, || async {
        let synced = operator.metric("uptake_watch_synced", &[("kind", "ServiceAccount")]).await;
        (synced > 0.0).then_some(()).ok_or("not synced")
    })
    .await;
    ns.set_secret("registry", &[("password", "two")]).await;
    // Of a Secret that nobody references this is said at the level debug.
    let secret = format!("secret={}/registry", ns.name);
    wait_log(operator, &["INFO", "Secret was examined", &secret, "unchanged"], 1).await;
    ns.set_secret("db", &[("password", "two")]).await;
    wait_revisions(ns, &web, 2).await;
}

#[tokio::test]
async fn without_the_right_to_read_service_accounts_everything_else_goes_on() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "no-accounts").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let web = Workload::deployment("web").consumes(Via::env("db", "password"));
    ns.run(&web).await;
    let mut install = Install::for_namespaces(cluster, &[&ns.name]).await;
    install.user = cluster.user();
    let mut rights = rules::cluster_wide();
    rights.as_array_mut().unwrap().retain(|rule| rule["resources"][0] != "serviceaccounts");
    cluster.grant(&install.user, rights).await;
    cluster.grant_in(&install.own_namespace, &install.user, rules::own(&install.own_namespace)).await;
    let operator = &Operator::start(cluster, &install);
    operator.wait_ready(ROLLED).await;
    wait_log(operator, &["ServiceAccount", "Inventory is not known"], 1).await;
    let synced = operator.metric("uptake_watch_synced", &[("kind", "ServiceAccount")]).await;
    assert!(synced < 1.0, "{synced}");
    ns.set_secret("db", &[("password", "two")]).await;
    wait_revisions(ns, &web, 2).await;
    operator.wait_ready(SOON).await;
}
