//! The verbs that people call, as processes of their own, with rights of their own.

mod gate;
mod krew;
mod many;
mod offline;
mod operator;
mod others;
mod restart;
mod status;
mod watch;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::support::cluster::{Cluster, User};
use crate::support::objects::Namespace;
use crate::support::operator::program;
use crate::support::proxy::Proxy;

/// No verb takes as long, on whatever machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// Somebody at a terminal.
pub struct Person {
    kubeconfig: PathBuf,
    namespace: String,
}

/// What a verb said, and how it ended.
#[derive(Debug)]
pub struct Said {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Said {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    /// Fails the test unless it ended so.
    #[track_caller]
    pub fn ended(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}\n{}", self.out, self.err);
        self
    }
}

impl Person {
    /// May do everything.
    pub fn admin(cluster: &Cluster, ns: &Namespace<'_>) -> Self {
        Self::new(cluster.kubeconfig(&cluster.admin()), &ns.name)
    }

    pub fn user(cluster: &Cluster, ns: &Namespace<'_>, user: &User) -> Self {
        Self::new(cluster.kubeconfig(user), &ns.name)
    }

    pub fn behind(proxy: &Proxy, cluster: &Cluster, ns: &Namespace<'_>, user: &User) -> Self {
        Self::new(proxy.kubeconfig(cluster, user), &ns.name)
    }

    pub fn new(kubeconfig: PathBuf, namespace: &str) -> Self {
        Self { kubeconfig, namespace: namespace.into() }
    }

    /// Runs a verb about the namespace.
    pub async fn runs(&self, arguments: &[&str]) -> Said {
        let mut all = arguments.to_vec();
        all.extend(["-n", &self.namespace]);
        self.types(&all).await
    }

    /// Runs exactly that.
    pub async fn types(&self, arguments: &[&str]) -> Said {
        run(&program(), arguments, Some(&self.kubeconfig), "").await
    }
}

/// Runs a program with that on its standard input.
pub async fn run(program: &Path, arguments: &[&str], kubeconfig: Option<&Path>, input: &str) -> Said {
    let mut command = Command::new(program);
    command.args(arguments).env_remove("UPTAKE_OWN_NAMESPACE").env_remove("UPTAKE_WORKLOAD");
    if let Some(kubeconfig) = kubeconfig {
        command.env("KUBECONFIG", kubeconfig);
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("it can be run");
    let mut stdin = child.stdin.take().expect("a pipe");
    // Who doesn't read it may be gone already.
    let _ = stdin.write_all(input.as_bytes()).await;
    drop(stdin);
    let output = tokio::time::timeout(PATIENCE, child.wait_with_output()).await;
    let output = output.unwrap_or_else(|_| panic!("{arguments:?} doesn't end")).expect("it ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Said {
        code: output.status.code().expect("it isn't killed"),
        out: text(&output.stdout),
        err: text(&output.stderr),
    }
}

/// What differs from run to run, made equal: names of namespaces and pods, ages, times, versions.
pub fn settings(ns: &Namespace<'_>) -> insta::Settings {
    let mut settings = insta::Settings::clone_current();
    settings.set_prepend_module_to_snapshot(false);
    settings.set_snapshot_path("snapshots");
    settings.add_filter(&ns.name, "NAMESPACE");
    settings.add_filter(r"[a-z-]+-[a-z0-9]{8,10}-[a-z0-9]{5}\b", "POD");
    settings.add_filter(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "TIME");
    settings.add_filter(r"\b\d+[smhd]\b", "AGE");
    settings.add_filter(r"@\d+", "@VERSION");
    settings.add_filter(r" {2,}", "  ");
    settings
}

/// Rights to look, and what else is asked for.
pub fn rights(resources: &[&str], verbs: &[&str]) -> Value {
    json!({ "apiGroups": ["", "apps", "batch", "events.k8s.io"], "resources": resources, "verbs": verbs })
}

/// Everything that `status` looks at, but for one kind.
pub fn looking_but_at(kind: &str) -> Value {
    let all = [
        "secrets",
        "pods",
        "serviceaccounts",
        "deployments",
        "statefulsets",
        "daemonsets",
        "replicasets",
        "jobs",
        "cronjobs",
        "events",
    ];
    let seen: Vec<&str> = all.into_iter().filter(|resource| *resource != kind).collect();
    json!([rights(&seen, &["get", "list"])])
}
