//! The nine consumers: what they consume, which revision they are at, what their processes hold.

use std::collections::BTreeMap;

use serde_json::Value;
use uptake::{
    catalog::{ReadOptions, read, reference::Keys},
    facts::Kind,
};

use crate::{stage::Stage, support::Result};

pub const NAMESPACE: &str = "shop";
pub const SECRET: &str = "shop-db";

/// A consumer at one moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Consumer {
    /// How many templates it has had: ReplicaSets, or revisions.
    pub revisions: usize,
    /// The name of the newest.
    pub revision: String,
    /// The passwords that its processes hold.
    pub passwords: Vec<String>,
}

/// All nine, by `Kind/name`.
pub type Shop = BTreeMap<String, Consumer>;

/// Who consumes what, by Uptake's own reading of the live objects.
pub fn consumers(stage: &Stage<'_>) -> Result<Vec<(String, String)>> {
    let list = stage.json(&["get", "deployments,statefulsets,daemonsets", "-n", NAMESPACE])?;
    let mut rows = Vec::new();
    for object in items(&list) {
        let kind = kind_of(object)?;
        let workload = read::workload(&kind, object, &ReadOptions { roll_volumes: true })?;
        let how: Vec<String> = workload
            .references
            .iter()
            .map(|reference| {
                let keys = match &reference.keys {
                    Keys::All => "all keys".to_owned(),
                    Keys::Named(keys) => keys.join(", "),
                };
                format!("{}: {keys}", reference.via)
            })
            .collect();
        rows.push((format!("{kind}/{}", workload.id.name), how.join("; ")));
    }
    Ok(rows)
}

fn kind_of(object: &Value) -> Result<Kind> {
    let name = object["kind"].as_str().unwrap_or_default();
    Kind::BUILTIN
        .into_iter()
        .find(|kind| kind.as_str() == name)
        .ok_or_else(|| format!("no kind {name}").into())
}

fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// All nine as they are now.
pub fn look(stage: &Stage<'_>) -> Result<Shop> {
    let workloads = stage.json(&["get", "deployments,statefulsets,daemonsets", "-n", NAMESPACE])?;
    let revisions = stage.json(&["get", "replicasets,controllerrevisions", "-n", NAMESPACE])?;
    let pods = stage.json(&["get", "pods", "-n", NAMESPACE])?;
    let mut shop = Shop::new();
    for object in items(&workloads) {
        let (kind, name) = (kind_of(object)?, text(object, "/metadata/name"));
        let mut own: Vec<&Value> =
            items(&revisions).iter().filter(|revision| app(revision) == name).collect();
        own.sort_by_key(|revision| number(revision));
        let passwords = items(&pods)
            .iter()
            .filter(|pod| app(pod) == name && pod.pointer("/metadata/deletionTimestamp").is_none())
            .filter_map(|pod| {
                let held = stage.cluster.values_at_start(&text(pod, "/metadata/uid"))?;
                held.get("shop-db/password").cloned()
            })
            .collect();
        let revision = own.last().map(|newest| text(newest, "/metadata/name")).unwrap_or_default();
        shop.insert(format!("{kind}/{name}"), Consumer { revisions: own.len(), revision, passwords });
    }
    Ok(shop)
}

/// Waits until all pods are there and ready.
pub fn settled(stage: &Stage<'_>) -> Result<()> {
    for (kind, name) in [
        ("deployment", "api"),
        ("deployment", "worker"),
        ("deployment", "web"),
        ("deployment", "billing"),
        ("deployment", "search"),
        ("deployment", "orders"),
        ("deployment", "mailer"),
        ("statefulset", "ledger"),
        ("daemonset", "agent"),
    ] {
        stage.kubectl(&["rollout", "status", kind, name, "-n", NAMESPACE, "--timeout=90s"])?;
    }
    Ok(())
}

fn app(object: &Value) -> String {
    text(object, "/metadata/labels/app")
}

fn number(revision: &Value) -> i64 {
    let of_set = revision.pointer("/metadata/annotations/deployment.kubernetes.io~1revision");
    of_set
        .and_then(Value::as_str)
        .and_then(|text| text.parse().ok())
        .or_else(|| revision["revision"].as_i64())
        .unwrap_or(0)
}

fn text(object: &Value, pointer: &str) -> String {
    object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// Who has a newer revision than before.
pub fn rolled(before: &Shop, after: &Shop) -> Vec<String> {
    after
        .iter()
        .filter(|(name, now)| before.get(*name).is_none_or(|then| then.revision != now.revision))
        .map(|(name, _)| name.clone())
        .collect()
}

/// Revisions before and after, as a table.
pub fn show(before: &Shop, after: &Shop) {
    println!("    {:<22} {:<24}   {:<24} ITS PROCESSES HOLD", "CONSUMER", "REVISION BEFORE", "NOW");
    for (name, now) in after {
        let then = before.get(name).map_or("-", |then| &then.revision);
        let arrow = if then == now.revision { " " } else { "→" };
        println!("    {name:<22} {then:<24} {arrow} {:<24} {}", now.revision, now.passwords.join(", "));
    }
}
