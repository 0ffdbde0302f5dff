//! Everything that an installation may do, done: what `tests/rights` looks for in the audit log. Both with a ClusterRole and
//! by Roles only.

use crate::cli::Person;
use crate::rollouts::custom::{self, controller::Controller};
use crate::stage::{ROLLED, VALUE, reader, wait_held};
use crate::support::cluster::{Cluster, Options};
use crate::support::objects::Namespace;
use crate::support::operator::{Install, Operator};
use crate::support::proxy::{Asked, Fault, Proxy, write_of};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const CRDS: [&str; 3] = [
    custom::CRD,
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/crds/secret-provider-class.yaml"),
    concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/crds/secret-provider-class-pod-status.yaml"),
];

#[tokio::test]
async fn an_installation_uses_its_rights() {
    // The CRD would concern all tests of a shared cluster.
    let cluster = &Cluster::start(Options::default()).await.unwrap();
    let files = CRDS.iter().flat_map(|crd| ["-f", crd]);
    let output = cluster.kubectl(&cluster.admin()).arg("apply").args(files).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));

    let roles = Scene::set(cluster, "roles").await;
    let install = Install::for_namespaces(cluster, &[&roles.ns.name]).await.by_roles_only(cluster).await;
    let (operator, _proxy) = roles.play(cluster, &install).await;
    // Without a ClusterRole too, the emergency stop is seen, and a word that can't be understood means it.
    let mut audit = cluster.audit_from_now();
    annotate(cluster, &install.own_namespace, Some("yes")).await;
    audit
        .wait(ROLLED, |entry| {
            entry.resource == "events" && entry.namespace == install.own_namespace && entry.code == 201
        })
        .await;
    roles.ns.set_secret("db", &[("password", "three")]).await;
    wait_held(&operator, "operator_paused", 3.0).await;
    annotate(cluster, &install.own_namespace, None).await;
    roles.wait_values("three").await;
    end(&operator).await;

    let everywhere = Scene::set(cluster, "everywhere").await;
    let install = Install::for_cluster(cluster).await;
    let (operator, _proxy) = everywhere.play(cluster, &install).await;
    end(&operator).await;
    forgets(cluster, &install, everywhere).await;

    custom_kind(cluster).await;
}

/// A kind that the chart was told of: its rights, each; and people who read the ledger needn't be told of it.
async fn custom_kind(cluster: &Cluster) {
    let scene = Scene::set(cluster, "rollouts").await;
    let _controller = Controller::start(cluster, &scene.ns.name);
    let canary = &Workload::deployment("canary").consumes(Via::env("db", "password"));
    custom::create_in(&scene.ns, &custom::rollout(canary)).await;
    wait_value(&scene.ns, canary, "one").await;
    let install = Install::for_cluster(cluster).await.with_rollouts(cluster).await;
    let (operator, _proxy) = scene.play(cluster, &install).await;
    wait_value(&scene.ns, canary, "two").await;
    let person = Person::admin(cluster, &scene.ns);
    let own = ["--operator-namespace", &install.own_namespace, "-o", "json"];
    let report = person.runs(&[&["status", "secret/db"], &own[..]].concat()).await.ended(0).json();
    let consumers = report["consumers"].as_array().unwrap();
    let kinds: BTreeSet<&str> = consumers.iter().filter_map(|consumer| consumer["kind"].as_str()).collect();
    assert_eq!(kinds, BTreeSet::from(["DaemonSet", "Deployment", "Rollout", "StatefulSet"]), "{report:#}");
    let only = ["restart", "secret/db", "--only", "rollout/canary"];
    let report = person.runs(&[&only, &own[..]].concat()).await.ended(0).json();
    assert_eq!(report["requested"][0]["kind"], "Rollout", "{report:#}");
    end(&operator).await;
}

async fn wait_value(ns: &Namespace<'_>, workload: &Workload, value: &str) {
    eventually(ROLLED, || async {
        let values = ns.values_in_pods(workload, VALUE).await;
        let all = !values.is_empty() && values.iter().all(|held| held == value);
        all.then_some(()).ok_or_else(|| format!("pods of {} hold {values:?}", workload.name))
    })
    .await;
}

/// Gives the Lease back.
async fn end(operator: &Operator) {
    operator.sigterm();
    assert!(operator.wait_exit(ROLLED).await.success(), "{}", operator.log());
}

/// What the ledger holds of a namespace that is gone is deleted.
async fn forgets(cluster: &Cluster, install: &Install, scene: Scene<'_>) {
    let namespaces: &Api<k8s_openapi::api::core::v1::Namespace> = &Api::all(cluster.admin_client().await);
    let name = scene.ns.name.clone();
    drop(scene);
    eventually(ROLLED, || async {
        let left = namespaces.get_opt(&name).await.map_err(|error| error.to_string())?;
        left.map_or(Ok(()), |_| Err("the namespace is still there".to_owned()))
    })
    .await;
    let mut audit = cluster.audit_from_now();
    let _operator = Operator::start(cluster, install);
    audit
        .wait(ROLLED, |entry| {
            entry.is_by(&install.user)
                && (&*entry.verb, &*entry.resource) == ("delete", "secrets")
                && entry.code == 200
        })
        .await;
}

async fn annotate(cluster: &Cluster, namespace: &str, paused: Option<&str>) {
    let api: Api<k8s_openapi::api::core::v1::Namespace> = Api::all(cluster.admin_client().await);
    let patch: Value = json!({ "metadata": { "annotations": { "uptake.dev/paused": paused } } });
    api.patch(namespace, &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
}

/// A workload of each kind, of which one reads a second Secret.
struct Scene<'a> {
    ns: Namespace<'a>,
    workloads: [Workload; 3],
}

impl<'a> Scene<'a> {
    async fn set(cluster: &'a Cluster, prefix: &str) -> Self {
        let ns = Namespace::create(cluster, prefix).await;
        ns.set_secret("db", &[("password", "one")]).await;
        ns.set_secret("other", &[("key", "one")]).await;
        let consumer = |workload: Workload| workload.consumes(Via::env("db", "password"));
        let workloads = [
            reader("web").consumes(Via::env("other", "key")),
            consumer(Workload::stateful_set("database")),
            consumer(Workload::daemon_set("agent")),
        ];
        for workload in &workloads {
            ns.run(workload).await;
        }
        Self { ns, workloads }
    }

    /// Lists by the page, conflicts, a missing Secret, a rollout of each kind.
    async fn play(&self, cluster: &Cluster, install: &Install) -> (Operator, Proxy) {
        let proxy = Proxy::start(cluster).await;
        // Of single namespaces there is a watch only.
        let streamed =
            |asked: &Asked| asked.query.contains("sendInitialEvents") && !asked.path.contains("/watch/");
        proxy.on(streamed, Fault::Answer { status: 400, retry_after: None });
        for plural in ["deployments", "statefulsets", "daemonsets", "rollouts"] {
            proxy.on(write_of(plural), Fault::Answer { status: 409, retry_after: None }).times(1);
        }
        let install = install.clone().via(&proxy).arg("--leader-elect");
        let operator = Operator::start(cluster, &install);
        operator.wait_ready(ROLLED).await;
        crate::stage::wait_metric(&operator, "uptake_leader", &[], 1.0).await;
        self.ns.delete_secret("other").await;
        self.ns.set_secret("db", &[("password", "two")]).await;
        wait_held(&operator, "missing", 1.0).await;
        self.ns.set_secret("other", &[("key", "two")]).await;
        self.wait_values("two").await;
        (operator, proxy)
    }

    async fn wait_values(&self, value: &str) {
        for workload in &self.workloads {
            wait_value(&self.ns, workload, value).await;
            self.ns.wait_rolled_out_within(ROLLED, workload).await;
        }
    }
}
