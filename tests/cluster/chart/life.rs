//! A release's life, by the real helm on the test cluster: its pods "run", and the test runs what they would.

use super::helm;
use crate::stage::{ROLLED, reader};
use crate::support::chart::{folder, helm::Helm};
use crate::support::cluster::{Cluster, User};
use crate::support::objects::Namespace;
use crate::support::operator::{Install, Operator, program};
use crate::support::wait::eventually;
use clap::CommandFactory as _;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::batch::v1::Job;
use k8s_openapi::api::core::v1::{Pod, Secret, ServiceAccount};
use k8s_openapi::api::rbac::v1::Role;
use kube::ResourceExt as _;
use kube::api::{ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::process::Command;

struct Release<'a> {
    cluster: &'a Cluster,
    helm: Helm,
    /// Its own.
    ns: Namespace<'a>,
    watched: Namespace<'a>,
}

impl<'a> Release<'a> {
    async fn prepare(cluster: &'a Cluster) -> Self {
        let helm = helm().await.on(cluster.kubeconfig(&cluster.admin()));
        let ns = Namespace::create(cluster, "release").await;
        Self { cluster, helm, ns, watched: Namespace::create(cluster, "watched").await }
    }

    /// helm, beside the test: what it waits for may be the test's to do.
    fn helm(&self, arguments: &[&str]) -> tokio::task::JoinHandle<String> {
        let mut all: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        all.extend(["--namespace", &self.ns.name, "--timeout", "180s"].map(String::from));
        let helm = self.helm.clone();
        tokio::task::spawn_blocking(move || {
            let all: Vec<_> = all.iter().map(String::as_str).collect();
            helm.run(&all).unwrap_or_else(|error| panic!("{error}"))
        })
    }

    async fn install(&self, more: &[&str]) -> String {
        let chart = folder().display().to_string();
        let namespaces = format!("namespaces={{{}}}", self.watched.name);
        let mut arguments = vec!["install", "uptake", &chart, "--wait", "--set", &namespaces];
        arguments.extend_from_slice(more);
        self.helm(&arguments).await.unwrap()
    }

    async fn ready_replicas(&self) -> Option<i32> {
        let deployment = self.ns.api::<Deployment>().get("uptake").await.ok()?;
        deployment.status?.ready_replicas
    }

    /// As a pod with this ServiceAccount would be known.
    fn account(&self, name: &str) -> User {
        let mut kubectl = self.cluster.kubectl(&self.cluster.admin());
        let output = kubectl.args(["create", "token", name, "-n", &self.ns.name]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let token = String::from_utf8(output.stdout).unwrap();
        User::new(format!("system:serviceaccount:{}:{name}", self.ns.name), token.trim())
    }

    /// A pod by its label, when its containers run.
    async fn running(&self, label: &str) -> Pod {
        let listed = &ListParams::default().labels(label);
        let pods = &self.ns.api::<Pod>();
        eventually(ROLLED, || async move {
            let pods = pods.list(listed).await.map_err(|error| error.to_string())?;
            let is_ready = |pod: &Pod| {
                let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_deref());
                conditions
                    .unwrap_or_default()
                    .iter()
                    .any(|said| said.type_ == "Ready" && said.status == "True")
            };
            pods.items.into_iter().find(is_ready).ok_or_else(|| format!("no running pod {label}"))
        })
        .await
    }

    /// The pod's program has done its work.
    async fn succeed(&self, pod: &Pod) {
        let patch = Patch::Merge(json!({ "status": { "phase": "Succeeded" } }));
        self.ns.api::<Pod>().patch_status(&pod.name_any(), &PatchParams::default(), &patch).await.unwrap();
    }

    /// What Uptake keeps.
    async fn kept(&self) -> Vec<String> {
        let secrets = self.ns.api::<Secret>().list(&ListParams::default()).await.unwrap();
        let names = secrets.iter().map(kube::ResourceExt::name_any);
        names.filter(|name| name.starts_with("uptake-ledger-") || name == "uptake-digest-key").collect()
    }
}

fn arguments(pod_spec: &Value) -> Vec<String> {
    serde_json::from_value(pod_spec["containers"][0]["args"].clone()).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_is_installed_upgraded_rolled_back_tested_and_uninstalled() {
    let release = &Release::prepare(Cluster::shared().await).await;
    let notes = release.install(&[]).await;
    assert!(notes.contains(&format!("watches the namespaces {}", release.watched.name)), "{notes}");
    assert_eq!(release.ready_replicas().await, Some(2));

    works(release).await;

    release
        .helm(&[
            "upgrade",
            "uptake",
            &folder().display().to_string(),
            "--wait",
            "--reuse-values",
            "--set",
            "replicaCount=3",
        ])
        .await
        .unwrap();
    assert_eq!(release.ready_replicas().await, Some(3));
    release.helm(&["rollback", "uptake", "1", "--wait"]).await.unwrap();
    eventually(ROLLED, || async {
        let replicas = release.ready_replicas().await;
        (replicas == Some(2)).then_some(()).ok_or_else(|| format!("{replicas:?} replicas"))
    })
    .await;

    let test = release.helm(&["test", "uptake"]);
    let pod = release.running("app.kubernetes.io/part-of=uptake").await;
    release.succeed(&pod).await;
    let said = test.await.unwrap();
    assert!(said.contains("Succeeded"), "{said}");

    release.helm(&["uninstall", "uptake", "--wait"]).await.unwrap();
    assert_eq!(release.ns.api::<Deployment>().get_opt("uptake").await.unwrap(), None);
    let roles = release.watched.api::<Role>().list(&ListParams::default()).await.unwrap();
    assert!(roles.items.is_empty(), "{roles:?}");
    assert!(release.kept().await.len() >= 2, "ledger and key stay: {:?}", release.kept().await);
    purged(release).await;
}

/// What the pods would run works, with the ServiceAccount's rights and the container's arguments.
async fn works(release: &Release<'_>) {
    let watched = &release.watched;
    watched.set_secret("db", &[("password", "one")]).await;
    let web = &reader("web");
    watched.run(web).await;
    let deployment = serde_json::to_value(release.ns.deployment("uptake").await).unwrap();
    let arguments = arguments(&deployment["spec"]["template"]["spec"]);
    let install = Install::of_deployment(release.account("uptake"), &release.ns.name, &arguments);
    let operator = Operator::start(release.cluster, &install);
    operator.wait_ready(ROLLED).await;
    // A standby is ready too; what it sees before it leads would be a change while nobody looked.
    crate::stage::wait_metric(&operator, "uptake_leader", &[], 1.0).await;
    probe(&operator).await;
    watched.set_secret("db", &[("password", "two")]).await;
    eventually(ROLLED, || async {
        let values = watched.values_in_pods(web, "db/password").await;
        let all = !values.is_empty() && values.iter().all(|value| value == "two");
        all.then_some(()).ok_or_else(|| format!("{values:?}"))
    })
    .await;
    operator.sigterm();
    assert!(operator.wait_exit(ROLLED).await.success(), "{}", operator.log());
}

/// What the pod of `helm test` runs.
async fn probe(operator: &Operator) {
    let url = format!("http://{}/readyz", operator.address());
    let output = tokio::process::Command::new(program()).args(["probe", &url]).output().await.unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

async fn purged(release: &Release<'_>) {
    release.install(&["--set", "purge=true"]).await;
    let uninstall = release.helm(&["uninstall", "uptake"]);
    let pod = release.running("batch.kubernetes.io/job-name=uptake-purge").await;
    assert_eq!(
        release.ns.api::<Deployment>().get_opt("uptake").await.unwrap(),
        None,
        "the operator goes first"
    );
    let arguments = arguments(&serde_json::to_value(pod.spec.as_ref().unwrap()).unwrap());
    assert_eq!(arguments, ["purge".to_owned(), format!("--operator-namespace={}", release.ns.name)]);
    run_purge(release, &arguments).await;
    release.succeed(&pod).await;
    uninstall.await.unwrap();
    assert_eq!(release.ns.api::<Job>().get_opt("uptake-purge").await.unwrap(), None);
    assert_eq!(release.ns.api::<ServiceAccount>().get_opt("uptake-purge").await.unwrap(), None);
}

/// The Job's program, as its ServiceAccount.
async fn run_purge(release: &Release<'_>, arguments: &[String]) {
    if uptake::args::Args::command().find_subcommand("purge").is_none() {
        return;
    }
    let mut command = Command::new(program());
    command.args(arguments).env("KUBECONFIG", release.cluster.kubeconfig(&release.account("uptake-purge")));
    let output = tokio::task::spawn_blocking(move || command.output()).await.unwrap().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(release.kept().await.is_empty(), "{:?}", release.kept().await);
}
