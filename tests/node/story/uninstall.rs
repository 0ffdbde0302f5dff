//! Uptake leaves.

use crate::{
    Result,
    node::{Node, said},
    shop,
    stage::Stage,
    uptake,
    wait::{PATIENCE, check, until},
};

/// What `kubectl get` knows of a release, in all namespaces.
const KINDS: &str = "deployments,replicasets,pods,services,serviceaccounts,configmaps,roles,rolebindings,clusterroles,\
                     clusterrolebindings,poddisruptionbudgets,jobs,priorityclasses";

pub fn tell(stage: &Stage, node: &Node) -> Result<()> {
    stage.chapter("Uptake is uninstalled");
    let before = shop::look(node, "shop")?;
    uptake::helm(stage, node, &["uninstall", "uptake", "--wait"])?;
    // What belongs to its Deployment goes a moment later.
    until(PATIENCE, || {
        let left =
            node.kubectl(&["get", KINDS, "-A", "-l", "app.kubernetes.io/instance=uptake", "-o", "name"])?;
        check(left.trim().is_empty(), format!("nothing of the release is left, but: {left}"))
    })?;
    check(shop::look(node, "shop")? == before, "uninstalling rolls nothing")?;
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
    stage.fact("purged: nothing of it is left");
    Ok(())
}

/// What an operator leaves behind.
fn kept(node: &Node) -> Result<String> {
    node.kubectl(&["get", "secrets,leases", "-n", uptake::NAMESPACE, "-o", "name"])
}
