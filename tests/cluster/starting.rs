//! What is wrong from the beginning is said in one line, and the process ends.

use crate::support::cluster::{Cluster, User, free_ports};
use crate::support::objects::unique;
use crate::support::operator::{Install, program};
use crate::support::rules;
use serde_json::{Value, json};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::Duration;
use tokio::process::Command;

/// No failure may take longer: whoever starts it by hand would think that it hangs.
const NOT_LONGER: Duration = Duration::from_secs(30);

const USAGE: i32 = 2;
const FAILED: i32 = 1;

struct Failure {
    code: i32,
    said: String,
}

/// Runs `uptake` to its end.
async fn run(kubeconfig: &Path, arguments: &[&str]) -> Failure {
    let mut command = Command::new(program());
    command.args(arguments).env("KUBECONFIG", kubeconfig).stdin(Stdio::null()).kill_on_drop(true);
    let ended = tokio::time::timeout(NOT_LONGER, command.output()).await;
    let Output { status, stdout, stderr } = ended.expect("it hangs").expect("it can be run");
    let said = String::from_utf8(stderr).unwrap();
    assert!(!said.contains("panicked"), "{said}");
    assert_eq!(String::from_utf8(stdout).unwrap(), "");
    Failure { code: status.code().expect("it was no signal"), said }
}

impl Failure {
    /// The one line that it said.
    fn line(&self, code: i32) -> &str {
        assert_eq!(self.code, code, "{}", self.said);
        let errors: Vec<_> = self.said.lines().filter(|line| line.starts_with("error: ")).collect();
        let [line] = *errors else { panic!("not one line: {}", self.said) };
        line
    }

    fn says(&self, code: i32, words: &[&str]) {
        let line = self.line(code);
        assert!(words.iter().all(|word| line.contains(word)), "{words:?} are not in: {line}");
    }
}

/// As somebody with these rights in the whole cluster and in its own namespace.
async fn start_as(cluster: &Cluster, everywhere: Option<Value>, own: Option<Value>) -> (Install, Failure) {
    let mut install = Install::for_namespaces(cluster, &[]).await;
    install.user = cluster.user();
    if let Some(rights) = everywhere {
        cluster.grant(&install.user, rights).await;
    }
    if let Some(rights) = own {
        cluster.grant_in(&install.own_namespace, &install.user, rights).await;
    }
    let failure = start(cluster, &install.user, &install.own_namespace).await;
    (install, failure)
}

async fn start(cluster: &Cluster, user: &User, own_namespace: &str) -> Failure {
    let arguments = ["controller", "--own-namespace", own_namespace, "--http-addr", "127.0.0.1:0"];
    run(&cluster.kubeconfig(user), &arguments).await
}

#[tokio::test]
async fn without_any_right_it_says_which_is_missing() {
    let (install, failure) = start_as(Cluster::shared().await, None, None).await;
    failure.says(FAILED, &[&install.own_namespace, "forbidden", "namespaces"]);
}

#[tokio::test]
async fn without_the_right_to_write_its_key_it_says_so() {
    let own = json!([{ "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"] }]);
    let (install, failure) = start_as(Cluster::shared().await, Some(rules::cluster_wide()), Some(own)).await;
    failure.says(FAILED, &[&install.own_namespace, "forbidden", "create", "secrets"]);
}

#[tokio::test]
async fn without_the_right_to_list_its_ledger_it_says_so() {
    let everywhere = json!([
        { "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get", "list", "watch"] },
    ]);
    let own = json!([{ "apiGroups": [""], "resources": ["secrets"], "verbs": ["get", "create"] }]);
    let (install, failure) = start_as(Cluster::shared().await, Some(everywhere), Some(own)).await;
    failure.says(FAILED, &[&install.own_namespace, "forbidden", "list", "secrets"]);
}

#[tokio::test]
async fn without_its_own_namespace_it_says_so() {
    let cluster = Cluster::shared().await;
    let user = cluster.user();
    let any = json!([{ "apiGroups": [""], "resources": ["namespaces"], "verbs": ["get"] }]);
    cluster.grant(&user, any).await;
    let absent = unique("absent");
    start(cluster, &user, &absent).await.says(FAILED, &[&absent, "not found"]);
    let kubeconfig = cluster.kubeconfig(&user);
    run(&kubeconfig, &["controller", "--http-addr", "127.0.0.1:0"]).await.says(FAILED, &["--own-namespace"]);
}

#[tokio::test]
async fn an_api_server_that_is_not_there_is_not_waited_for_forever() {
    let cluster = Cluster::shared().await;
    let [port] = free_ports().unwrap();
    let kubeconfig = cluster.kubeconfig_at(&cluster.user(), &format!("https://127.0.0.1:{port}"));
    let failure =
        run(&kubeconfig, &["controller", "--own-namespace", "x", "--http-addr", "127.0.0.1:0"]).await;
    failure.says(FAILED, &["refused"]);
}

#[tokio::test]
async fn an_api_server_that_never_answers_is_not_waited_for_forever() {
    let cluster = Cluster::shared().await;
    let deaf = TcpListener::bind("127.0.0.1:0").unwrap();
    let server = format!("http://{}", deaf.local_addr().unwrap());
    let kubeconfig = cluster.kubeconfig_at(&cluster.user(), &server);
    let failure =
        run(&kubeconfig, &["controller", "--own-namespace", "x", "--http-addr", "127.0.0.1:0"]).await;
    failure.line(FAILED);
}

#[tokio::test]
async fn a_port_in_use_is_named() {
    let cluster = Cluster::shared().await;
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let kubeconfig = cluster.kubeconfig(&cluster.user());
    let failure = run(&kubeconfig, &["controller", "--own-namespace", "x", "--http-addr", &address]).await;
    failure.says(FAILED, &["--http-addr", &address, "in use"]);
}

#[tokio::test]
async fn a_kubeconfig_that_does_not_exist_is_named() {
    let absent = Path::new("/nonexistent/kubeconfig");
    let arguments = ["controller", "--own-namespace", "x", "--http-addr", "127.0.0.1:0"];
    run(absent, &arguments).await.line(FAILED);
    let named = [&arguments[..], &["--kubeconfig", "/nonexistent/named"]].concat();
    run(absent, &named).await.says(FAILED, &["--kubeconfig"]);
}

#[tokio::test]
async fn a_context_that_does_not_exist_is_named() {
    let cluster = Cluster::shared().await;
    let kubeconfig = cluster.kubeconfig(&cluster.user());
    let arguments =
        ["controller", "--own-namespace", "x", "--http-addr", "127.0.0.1:0", "--context", "nowhere"];
    run(&kubeconfig, &arguments).await.says(FAILED, &["nowhere"]);
}

#[tokio::test]
async fn wrong_flags_are_named_and_are_usage_errors() {
    let nothing = Path::new("/nonexistent/kubeconfig");
    for (arguments, words) in [
        (&["--settle", "soon"][..], &["--settle", "soon"][..]),
        (&["--settle", "-1s"], &["-1"]),
        (&["--settle", "10s", "--settle-max", "1s"], &["--settle", "--settle-max"]),
        (&["--max-concurrent-rollouts", "many"], &["--max-concurrent-rollouts", "many"]),
        (&["--default-rollout", "always"], &["--default-rollout", "always"]),
        (&["--first-sight", "AUTO"], &["--first-sight", "AUTO"]),
        (&["--trigger", ""], &["--trigger"]),
        (&["--canary=perhaps"], &["--canary", "perhaps"]),
        (&["--workload", "Unheard"], &["--workload", "Unheard"]),
        (&["--namespace", "Not A Name"], &["--namespace", "Not A Name"]),
        (&["--own-namespace", "a/b"], &["--own-namespace", "a/b"]),
        (&["--http-addr", "8080"], &["--http-addr", "8080"]),
        (&["--log-level", "loud"], &["--log-level", "loud"]),
        (&["--log-format", "xml"], &["--log-format", "xml"]),
        (&["--unknown"], &["--unknown"]),
        (&["stray"], &["stray"]),
    ] {
        let all = [&["controller"], arguments].concat();
        run(nothing, &all).await.says(USAGE, words);
    }
    run(nothing, &["rollout"]).await.says(USAGE, &["rollout"]);
}
