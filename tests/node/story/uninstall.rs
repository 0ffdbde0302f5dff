//! Uptake leaves.

use super::prelude::*;

/// What `kubectl get` knows of a release, in all namespaces.
const KINDS: &str = "deployments,replicasets,pods,services,serviceaccounts,configmaps,roles,rolebindings,clusterroles,\
                     clusterrolebindings,poddisruptionbudgets,jobs,priorityclasses";

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("Uptake is uninstalled");
    let before = shop::all(node)?;
    uptake::helm(stage, node, &["uninstall", "uptake", "--wait"])?;
    // What belongs to its Deployment goes a moment later.
    until(PATIENCE, || {
        let left =
            node.kubectl(&["get", KINDS, "-A", "-l", "app.kubernetes.io/instance=uptake", "-o", "name"])?;
        check(left.trim().is_empty(), format!("nothing of the release is left, but: {left}"))
    })?;
    check(shop::all(node)? == before, "uninstalling rolls nothing")?;
    stage.fact("nothing of the release is left; no consumer was rolled");
    let kept = kept(node)?;
    stage.output(&kept);
    check(kept.contains("uptake-ledger-") && kept.contains("uptake-digest-key"), "the ledger stays")?;
    stage.fact("its ledger and key stay: an installation that comes later goes on where this one ended");
    purge(stage, node)
}

fn purge(stage: &Stage, node: &Node) -> Result<()> {
    let arguments = ["purge", "--operator-namespace", uptake::NAMESPACE];
    stage.act(&format!("kubectl uptake {}", arguments.join(" ")));
    stage.output(&said(node.program(&node.uptake).args(arguments))?);
    let kept = kept(node)?;
    check(kept.trim().is_empty(), format!("purging leaves nothing, but: {kept}"))?;
    let named = named(node)?;
    check(
        named == [format!("namespace/{}", uptake::NAMESPACE)],
        format!("only the namespace that Helm made is left, but: {named:?}"),
    )?;
    stage.fact("purged: nothing of it is left, of whatever kind, but the namespace that Helm made");
    Ok(())
}

/// Every object of every kind that has its name, but the Events, which go by themselves.
fn named(node: &Node) -> Result<Vec<String>> {
    let kinds = node.kubectl(&["api-resources", "--verbs=list", "-o", "name"])?;
    let kinds: Vec<&str> = kinds.lines().filter(|kind| !kind.starts_with("events")).collect();
    let objects = node.kubectl(&["get", &kinds.join(","), "-A", "-o", "name"])?;
    Ok(objects.lines().filter(|object| object.contains("uptake")).map(str::to_owned).collect())
}

/// What an operator leaves behind.
fn kept(node: &Node) -> Result<String> {
    node.kubectl(&["get", "secrets,leases", "-n", uptake::NAMESPACE, "-o", "name"])
}
