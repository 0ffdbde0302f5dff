//! The consumers: what their processes print, and which revision they are at.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    Result,
    node::Node,
    stage::Stage,
    wait::{PATIENCE, until},
};

/// A consumer at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// How many templates it has had: ReplicaSets, or revisions.
    pub revisions: usize,
    /// The name of the newest.
    pub revision: String,
    /// Its live pods.
    pub pods: Vec<String>,
}

/// All consumers of a namespace, by `Kind/name`.
pub type Consumers = BTreeMap<String, Consumer>;

/// All of them as they are now.
pub fn look(node: &Node, namespace: &str) -> Result<Consumers> {
    let list = node.json(&[
        "get",
        "deployments,statefulsets,daemonsets,replicasets,controllerrevisions,pods",
        "-n",
        namespace,
    ])?;
    let objects = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |app: &str, kinds: &[&str]| {
        let chosen = objects.iter().filter(|object| {
            kinds.iter().any(|kind| object["kind"] == *kind) && text(object, "/metadata/labels/app") == app
        });
        chosen.collect::<Vec<&Value>>()
    };
    let mut consumers = Consumers::new();
    for object in objects {
        let kind = text(object, "/kind");
        if !["Deployment", "StatefulSet", "DaemonSet"].contains(&kind.as_str()) {
            continue;
        }
        let name = text(object, "/metadata/name");
        let mut revisions = of(&name, &["ReplicaSet", "ControllerRevision"]);
        revisions.sort_by_key(|revision| number(revision));
        let pods = of(&name, &["Pod"])
            .into_iter()
            .filter(|pod| pod.pointer("/metadata/deletionTimestamp").is_none());
        let consumer = Consumer {
            revisions: revisions.len(),
            revision: revisions.last().map(|newest| text(newest, "/metadata/name")).unwrap_or_default(),
            pods: pods.map(|pod| text(pod, "/metadata/name")).collect(),
        };
        consumers.insert(format!("{kind}/{name}"), consumer);
    }
    Ok(consumers)
}

/// All that are there through the whole story: what rolls nothing leaves them as they are, pod by pod.
pub fn all(node: &Node) -> Result<[Consumers; 2]> {
    Ok([look(node, "shop")?, look(node, "vault")?])
}

fn number(revision: &Value) -> i64 {
    let of_set = text(revision, "/metadata/annotations/deployment.kubernetes.io~1revision");
    of_set.parse().ok().or_else(|| revision["revision"].as_i64()).unwrap_or(0)
}

pub fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Waits until all pods are there and ready.
pub fn settled(node: &Node, namespace: &str) -> Result<()> {
    for name in look(node, namespace)?.keys() {
        node.kubectl(&["rollout", "status", &name.to_lowercase(), "-n", namespace, "--timeout=240s"])?;
    }
    Ok(())
}

/// The last line of each live process, by pod.
pub fn printed(node: &Node, namespace: &str) -> Result<BTreeMap<String, String>> {
    let consumers = look(node, namespace)?;
    let live: Vec<&String> = consumers.values().flat_map(|consumer| &consumer.pods).collect();
    let mut lines = BTreeMap::new();
    for pod in live {
        let log = node.kubectl(&["logs", pod, "-n", namespace, "--tail=1"])?;
        lines.insert(pod.clone(), log.trim().to_owned());
    }
    Ok(lines)
}

/// Waits until every live process prints that value, and no other.
pub fn prints(node: &Node, namespace: &str, value: &str) -> Result<BTreeMap<String, String>> {
    let holds = |line: &String| {
        let mut values = line.split_whitespace().filter_map(|word| word.split_once('=')).map(|(_, got)| got);
        line.contains(value) && values.all(|got| got == value || got == "-")
    };
    until(PATIENCE, || {
        let lines = printed(node, namespace)?;
        if !lines.is_empty() && lines.values().all(holds) {
            Ok(lines)
        } else {
            Err(format!("{lines:?}").into())
        }
    })
}

/// Shows what they print.
pub fn show(stage: &Stage, lines: &BTreeMap<String, String>) {
    for (pod, line) in lines {
        stage.output(&format!("{pod:<28} {line}"));
    }
}

/// Who has a newer revision than before.
pub fn rolled(before: &Consumers, after: &Consumers) -> Vec<String> {
    let newer =
        after.iter().filter(|(name, now)| before.get(*name).is_none_or(|then| then.revision != now.revision));
    newer.map(|(name, _)| name.clone()).collect()
}

/// Whether everybody has exactly one revision more than before.
pub fn each_once(before: &Consumers, after: &Consumers) -> bool {
    after.iter().all(|(name, now)| before.get(name).is_some_and(|then| now.revisions == then.revisions + 1))
}

/// Waits until so many have another revision.
pub fn wait_rolled(node: &Node, namespace: &str, before: &Consumers, count: usize) -> Result<Vec<String>> {
    until(PATIENCE, || {
        let rolled = rolled(before, &look(node, namespace)?);
        if rolled.len() >= count {
            Ok(rolled)
        } else {
            Err(format!("of {count}, rolled are {rolled:?}").into())
        }
    })
}

/// Changes the password of a namespace's Secret.
pub fn rotate(stage: &Stage, node: &Node, namespace: &str, value: &str) -> Result<()> {
    let patch = format!("{{\"stringData\":{{\"PASSWORD\":\"{value}\"}}}}");
    let secret = format!("{namespace}-db");
    stage.act(&format!("kubectl patch secret {secret} -n {namespace} -p '{patch}'"));
    node.kubectl(&["patch", "secret", &secret, "-n", namespace, "-p", &patch]).map(drop)
}
