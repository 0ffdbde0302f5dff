//! The Secrets Store CSI driver rotates what it mounted, and the Secret that it made of it.

use super::prelude::*;
use crate::vault::Vault;

const NAMESPACE: &str = "vault";

/// The driver and its consumers, which are there before Uptake.
pub fn begin(stage: &Stage, node: &Node) -> Result<Vault> {
    stage.chapter("The Secrets Store CSI driver, and what consumes its files and the Secret that it syncs");
    let vault = Vault::start(node)?;
    vault.set("winter")?;
    stage.act("kubectl apply -f tests/node/vault.yaml");
    node.apply(include_str!("../vault.yaml"))?;
    shop::settled(node, NAMESPACE)?;
    show(stage, &shop::prints(node, NAMESPACE, "winter")?);
    Ok(vault)
}

pub fn tell(stage: &Stage, node: &Node, vault: &Vault) -> Result<()> {
    stage.chapter("The password is rotated in the vault, and the driver rotates files and Secret");
    let mut before = shop::look(node, NAMESPACE)?;
    // The second proves that nothing more came of the first.
    for value in ["spring", "summer"] {
        stage.act(&format!("echo {value} > vault/PASSWORD"));
        vault.set(value)?;
        // Files are new before pods are, so that what is printed says nothing yet.
        shop::wait_rolled(node, NAMESPACE, &before, before.len())?;
        shop::settled(node, NAMESPACE)?;
        show(stage, &shop::prints(node, NAMESPACE, value)?);
        let after = shop::look(node, NAMESPACE)?;
        check(shop::each_once(&before, &after), format!("one new revision each: {before:?} {after:?}"))?;
        before = after;
    }
    for (consumer, sources) in [
        ("files", ["secretproviderclass/mounted@"].as_slice()),
        ("variable", &["vault-db@", "secretproviderclass/synced@"]),
    ] {
        let stamp = stamp(node, consumer)?;
        stage.output(&format!("{consumer}: uptake.dev/secret-version: {stamp}"));
        check(sources.iter().all(|source| stamp.contains(source)), format!("{stamp} names {sources:?}"))?;
    }
    stage.fact(
        "every process prints the new value, and each consumer has exactly one new revision a rotation",
    );
    Ok(())
}

fn stamp(node: &Node, deployment: &str) -> Result<String> {
    let object = node.json(&["get", "deployment", deployment, "-n", NAMESPACE])?;
    Ok(shop::text(&object, "/spec/template/metadata/annotations/uptake.dev~1secret-version"))
}
