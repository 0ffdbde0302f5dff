//! `uptake controller` as a process of its own, as it runs in a cluster.

use super::cluster::{Cluster, User, free_ports};
use super::objects::unique;
use super::proxy::Proxy;
use super::wait::eventually;
use super::{Result, http, rules};
use k8s_openapi::api::core::v1 as core;
use kube::Api;
use kube::api::PostParams;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use std::time::Duration;

/// One installation: an identity, its rights and its own namespace. Several processes may run of it, one after
/// the other (a restart) or side by side (replicas).
#[derive(Clone, Debug)]
pub struct Install {
    /// The built `uptake`, or what stands in for it.
    pub program: PathBuf,
    pub user: User,
    pub own_namespace: String,
    /// `--namespace`: tests that share a cluster must not roll each other's workloads. Empty: all.
    pub namespaces: Vec<String>,
    pub settle: Duration,
    pub log_level: String,
    pub args: Vec<String>,
    pub env: Vec<(String, String)>,
    /// Stands between the operator and the API server.
    server: Option<String>,
}

impl Install {
    /// Watches these namespaces; its own is made here. It has the rights of an installation in the whole cluster.
    pub async fn for_namespaces(cluster: &Cluster, namespaces: &[&str]) -> Self {
        let user = cluster.user();
        let own_namespace = unique("uptake-system");
        let api: Api<core::Namespace> = Api::all(cluster.admin_client().await);
        let namespace =
            serde_json::from_value(json!({ "metadata": { "name": own_namespace } })).expect("a namespace");
        api.create(&PostParams::default(), &namespace).await.expect("a namespace can be made");
        grant(cluster, &user, &own_namespace).await;
        Self {
            program: program(),
            user,
            own_namespace,
            namespaces: namespaces.iter().map(ToString::to_string).collect(),
            settle: Duration::from_millis(200),
            log_level: "debug".into(),
            args: Vec::new(),
            env: Vec::new(),
            server: None,
        }
    }

    /// Watches everything: for a test with a cluster of its own.
    pub async fn for_cluster(cluster: &Cluster) -> Self {
        Self::for_namespaces(cluster, &[]).await
    }

    /// Another replica of the same installation, with a user of its own: so the audit log tells them apart.
    pub async fn replica(&self, cluster: &Cluster) -> Self {
        let user = cluster.user();
        grant(cluster, &user, &self.own_namespace).await;
        Self { user, ..self.clone() }
    }

    /// What a Deployment's pod would run, with its arguments; where this process listens, how long it waits and what it
    /// logs is the test's.
    pub fn of_deployment(user: User, own_namespace: &str, arguments: &[String]) -> Self {
        let tests = ["controller", "--own-namespace=", "--http-addr=", "--settle=", "--log-level="];
        let is_tests = |argument: &String| tests.iter().any(|own| argument.starts_with(own));
        Self {
            program: program(),
            user,
            own_namespace: own_namespace.into(),
            namespaces: Vec::new(),
            settle: Duration::from_millis(200),
            log_level: "debug".into(),
            args: arguments.iter().filter(|argument| !is_tests(argument)).cloned().collect(),
            env: Vec::new(),
            server: None,
        }
    }

    /// The same installation with Roles in the watched namespaces and in its own, and no ClusterRole.
    pub async fn by_roles_only(self, cluster: &Cluster) -> Self {
        let user = cluster.user();
        for namespace in &self.namespaces {
            cluster.grant_in(namespace, &user, rules::watched(namespace)).await;
        }
        cluster
            .grant_in(&self.own_namespace, &user, rules::own_without_cluster_role(&self.own_namespace))
            .await;
        cluster.audited(&user, &self.own_namespace, "roles");
        Self { user, ..self }
    }

    /// The same installation, told of Argo's Rollouts, with the rights that the chart gives for them.
    pub async fn with_rollouts(self, cluster: &Cluster) -> Self {
        let user = cluster.user();
        cluster.grant(&user, rules::cluster_wide_with_rollouts()).await;
        cluster.grant_in(&self.own_namespace, &user, rules::own(&self.own_namespace)).await;
        cluster.audited(&user, &self.own_namespace, "rollouts");
        Self { user, ..self }.arg("--workload=Rollout")
    }

    pub fn arg(mut self, argument: &str) -> Self {
        self.args.push(argument.into());
        self
    }

    pub fn settle(mut self, settle: Duration) -> Self {
        self.settle = settle;
        self
    }

    pub fn log_level(mut self, level: &str) -> Self {
        self.log_level = level.into();
        self
    }

    pub fn via(mut self, proxy: &Proxy) -> Self {
        self.server = Some(proxy.server());
        self
    }

    fn arguments(&self, port: u16) -> Vec<String> {
        let mut arguments = vec!["controller".into()];
        let mut flag = |name: &str, value: &str| arguments.extend([format!("--{name}"), value.into()]);
        flag("own-namespace", &self.own_namespace);
        flag("http-addr", &format!("127.0.0.1:{port}"));
        flag("settle", &humantime::format_duration(self.settle).to_string());
        flag("log-level", &self.log_level);
        self.namespaces.iter().for_each(|namespace| flag("namespace", namespace));
        arguments.extend(self.args.iter().cloned());
        arguments
    }
}

/// What an installation in the whole cluster may do, and no more.
async fn grant(cluster: &Cluster, user: &User, own_namespace: &str) {
    cluster.grant(user, rules::cluster_wide()).await;
    cluster.grant_in(own_namespace, user, rules::own(own_namespace)).await;
    cluster.audited(user, own_namespace, "cluster");
}

/// A running operator; killed when dropped.
pub struct Operator {
    child: Mutex<Child>,
    address: String,
    log: PathBuf,
}

/// One line of `/metrics`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: BTreeMap<String, String>,
    pub value: f64,
}

impl Operator {
    pub fn start(cluster: &Cluster, install: &Install) -> Self {
        let [port] = free_ports().expect("a port is free");
        let server = install.server.clone().unwrap_or_else(|| cluster.server());
        let log = cluster.folder().join("logs").join(format!("{}.log", unique("uptake")));
        let output = File::create(&log).expect("a log can be made");
        let mut command = Command::new(&install.program);
        command
            .args(install.arguments(port))
            .env("KUBECONFIG", cluster.kubeconfig_at(&install.user, &server))
            .envs(install.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::null())
            .stdout(output.try_clone().expect("a file can be shared"))
            .stderr(output);
        let child = cluster.adopt(&mut command).spawn();
        let child =
            child.unwrap_or_else(|error| panic!("cannot start {}: {error}", install.program.display()));
        Self { child: Mutex::new(child), address: format!("127.0.0.1:{port}"), log }
    }

    /// Everything it said so far, on both outputs.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(&self.log).unwrap_or_default()).into_owned()
    }

    /// Where its HTTP server listens.
    pub fn address(&self) -> &str {
        &self.address
    }

    pub async fn wait_ready(&self, deadline: Duration) {
        eventually(deadline, || async {
            if let Some(status) = self.exited() {
                return Err(format!("it ended with {status}: {}", self.log()));
            }
            match http::get(&self.address, "/readyz").await {
                Ok((status, _)) if status.is_success() => Ok(()),
                Ok((status, text)) => Err(format!("/readyz says {status}: {text}")),
                Err(error) => Err(format!("/readyz: {error}")),
            }
        })
        .await;
    }

    pub async fn metrics(&self) -> Result<Vec<Sample>> {
        let (status, text) = http::get(&self.address, "/metrics").await?;
        if !status.is_success() {
            return Err(format!("/metrics says {status}").into());
        }
        Ok(text.lines().filter_map(Sample::parse).collect())
    }

    /// The sum over all samples of this name whose labels include these; 0 if there are none.
    pub async fn metric(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let samples = self.metrics().await.unwrap_or_else(|error| panic!("no metrics: {error}"));
        let is_meant = |sample: &&Sample| {
            sample.name == name
                && labels.iter().all(|(label, value)| sample.labels.get(*label).is_some_and(|is| is == value))
        };
        samples.iter().filter(is_meant).map(|sample| sample.value).sum()
    }

    pub fn id(&self) -> u32 {
        self.lock().id()
    }

    pub fn sigterm(&self) {
        self.signal(Signal::TERM);
    }

    pub fn kill9(&self) {
        let mut child = self.lock();
        let _ = child.kill();
        let _ = child.wait();
    }

    /// The process stands still; its connections stay open.
    pub fn sigstop(&self) {
        self.signal(Signal::STOP);
    }

    pub fn sigcont(&self) {
        self.signal(Signal::CONT);
    }

    pub fn exited(&self) -> Option<ExitStatus> {
        self.lock().try_wait().expect("it is our child")
    }

    pub async fn wait_exit(&self, deadline: Duration) -> ExitStatus {
        eventually(deadline, || async { self.exited().ok_or("the operator still runs") }).await
    }

    fn signal(&self, signal: Signal) {
        let id = i32::try_from(self.id()).expect("a process id fits");
        kill_process(Pid::from_raw(id).expect("it is not 0"), signal).expect("it is our child");
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.kill9();
    }
}

impl Sample {
    /// None for comments and for what is no sample.
    pub fn parse(line: &str) -> Option<Self> {
        let (series, value) = line.rsplit_once(' ').filter(|_| !line.starts_with('#'))?;
        let (name, rest) = series.split_once('{').unwrap_or((series, ""));
        let mut labels = BTreeMap::new();
        let mut rest = rest.strip_suffix('}').unwrap_or(rest);
        while let Some((label, quoted)) = rest.split_once("=\"") {
            let end = end_of_string(quoted)?;
            let value = quoted[..end].replace("\\\"", "\"").replace("\\n", "\n").replace("\\\\", "\\");
            labels.insert(label.trim_start_matches(',').into(), value);
            rest = &quoted[end + 1..];
        }
        Some(Self { name: name.into(), labels, value: value.parse().ok()? })
    }
}

/// The first quote that no backslash makes part of the value.
fn end_of_string(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.bytes().position(|byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    })
}

/// Cargo tells tests where the binary is; an example finds it beside its own folder.
pub fn program() -> PathBuf {
    option_env!("CARGO_BIN_EXE_uptake").map_or_else(
        || {
            let own = std::env::current_exe().expect("a program knows its place");
            own.parent().and_then(std::path::Path::parent).expect("target/PROFILE/examples").join("uptake")
        },
        PathBuf::from,
    )
}
