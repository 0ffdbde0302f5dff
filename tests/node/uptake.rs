//! Uptake in the cluster: installed with Helm as a user would.

use serde_json::Value;

use crate::{
    Result,
    node::{Node, said},
    shop::text,
    stage::Stage,
    wait::{PATIENCE, until},
};

pub const NAMESPACE: &str = "uptake-system";
const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/charts/uptake");

/// Runs helm, shown as a user would type it.
pub fn helm(stage: &Stage, node: &Node, arguments: &[&str]) -> Result<()> {
    stage.act(&format!("helm -n {NAMESPACE} {}", arguments.join(" ")));
    let real: Vec<&str> =
        arguments.iter().map(|word| if *word == "charts/uptake" { CHART } else { word }).collect();
    let mut command = node.program(node.programs.join("helm"));
    said(command.args(["-n", NAMESPACE]).args(real)).map(drop)
}

/// The chart's manifests for these arguments, unapplied.
pub fn rendered(node: &Node, arguments: &[&str]) -> Result<String> {
    let mut command = node.program(node.programs.join("helm"));
    said(command.args(["template", "uptake", CHART, "-n", NAMESPACE]).args(arguments))
}

/// A replica.
#[derive(Clone, Debug)]
pub struct Replica {
    pub pod: String,
    pub address: String,
    /// Of its container.
    pub container: String,
    pub ready: bool,
    pub restarts: i64,
}

/// Its replicas that aren't on their way out.
pub fn replicas(node: &Node) -> Result<Vec<Replica>> {
    let list = node.json(&["get", "pods", "-n", NAMESPACE, "-l", "app.kubernetes.io/name=uptake"])?;
    let pods = list["items"].as_array().cloned().unwrap_or_default();
    let live = pods.iter().filter(|pod| pod.pointer("/metadata/deletionTimestamp").is_none());
    Ok(live.map(replica).collect())
}

fn replica(pod: &Value) -> Replica {
    let status = pod.pointer("/status/containerStatuses/0").cloned().unwrap_or_default();
    Replica {
        pod: text(pod, "/metadata/name"),
        address: text(pod, "/status/podIP"),
        container: text(&status, "/containerID").trim_start_matches("containerd://").to_owned(),
        ready: status["ready"] == true,
        restarts: status["restartCount"].as_i64().unwrap_or(0),
    }
}

/// Who holds the Lease.
pub fn holder(node: &Node) -> Result<String> {
    Ok(text(&node.json(&["get", "lease", "uptake", "-n", NAMESPACE])?, "/spec/holderIdentity"))
}

/// The replica that leads, once there is one.
pub fn leader(node: &Node) -> Result<Replica> {
    until(PATIENCE, || {
        let holder = holder(node)?;
        let replicas = replicas(node)?;
        let leads = replicas
            .iter()
            .find(|replica| !holder.is_empty() && holder.starts_with(&replica.pod) && replica.ready);
        leads
            .cloned()
            .ok_or_else(|| format!("the Lease is held by {holder:?}, replicas: {replicas:?}").into())
    })
}

/// Samples of a replica's metrics page whose line starts with that.
pub fn metrics(node: &Node, pod: &str, start: &str) -> Result<Vec<(String, usize)>> {
    let page = node.kubectl(&[
        "get",
        "--raw",
        &format!("/api/v1/namespaces/{NAMESPACE}/pods/{pod}:8080/proxy/metrics"),
    ])?;
    let samples = page.lines().filter(|line| line.starts_with(start)).filter_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        Some((series.to_owned(), value.parse().ok()?))
    });
    Ok(samples.collect())
}

/// The sum of these samples.
pub fn metric(node: &Node, pod: &str, start: &str) -> Result<usize> {
    Ok(metrics(node, pod, start)?.iter().map(|(_, value)| value).sum())
}

/// Its Events in a namespace with that reason, as `kubectl get` shows them.
pub fn events(node: &Node, namespace: &str, reason: &str) -> Result<Vec<Value>> {
    let list = node.json(&[
        "get",
        "events.events.k8s.io",
        "-n",
        namespace,
        "--field-selector",
        &format!("reason={reason}"),
    ])?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}
