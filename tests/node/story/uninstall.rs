//! Uptake leaves.

use crate::{
    Result,
    node::Node,
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
    let kept = node.kubectl(&["get", "secrets,leases", "-n", uptake::NAMESPACE, "-o", "name"])?;
    stage.output(&kept);
    check(kept.contains("uptake-ledger-") && kept.contains("uptake-digest-key"), "the ledger stays")?;
    stage.fact("its ledger and key stay: an installation that comes later goes on where this one ended");
    Ok(())
}
