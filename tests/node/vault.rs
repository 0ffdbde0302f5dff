//! The Secrets Store CSI driver on the node, and the vault that it takes values from: a folder.

use std::{fs, path::PathBuf};

use serde_json::Value;

use crate::{
    Result,
    node::Node,
    wait::{PATIENCE, until},
};

const DRIVER: &str = "secrets-store.csi.k8s.io";
/// Where a kubelet looks for drivers, and they for it.
const SOCKETS: &str = "/var/lib/kubelet/plugins/csi-secrets-store";
const REGISTRY: &str = "/var/lib/kubelet/plugins_registry";
const PROVIDERS: &str = "/var/lib/csi-providers";

/// Goes with the node.
pub struct Vault {
    folder: PathBuf,
}

impl Vault {
    /// Starts the driver, its provider and what its CRDs describe, and waits until the kubelet knows it.
    pub fn start(node: &Node) -> Result<Self> {
        let vault = Self { folder: node.folder.join("vault") };
        fs::create_dir(&vault.folder)?;
        for crd in fs::read_dir(&node.images)?.flatten().map(|entry| entry.path()) {
            if crd.extension().is_some_and(|extension| extension == "yaml") {
                node.apply(&fs::read_to_string(crd)?)?;
            }
        }
        node.kubectl(&["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"])?;
        for folder in [SOCKETS, PROVIDERS] {
            // The node's /var.
            fs::create_dir_all(node.folder.join(folder.trim_start_matches('/')))?;
        }
        let endpoint = format!("{SOCKETS}/csi.sock");
        node.start_inside(
            "csi-provider",
            &node.programs.join("csi-provider"),
            &[&vault.folder.display().to_string(), PROVIDERS, &endpoint, REGISTRY],
        )?;
        node.start_inside(
            "csi-driver",
            &node.programs.join("secrets-store-csi-driver"),
            &[
                &format!("--endpoint=unix://{endpoint}"),
                &format!("--provider-volume={PROVIDERS}"),
                &format!("--additional-provider-volume-paths={PROVIDERS}"),
                "--nodeid=node",
                "--metrics-addr=127.0.0.1:27260",
                "--enable-secret-rotation",
                // By itself it looks each two minutes.
                "--rotation-poll-interval=3s",
            ],
        )?;
        until(PATIENCE, || {
            let known = node.json(&["get", "csinode", "node"])?;
            let drivers =
                known.pointer("/spec/drivers").and_then(Value::as_array).cloned().unwrap_or_default();
            let is_there = drivers.iter().any(|driver| driver["name"] == DRIVER);
            if is_there { Ok(()) } else { Err(format!("the kubelet's drivers: {drivers:?}").into()) }
        })?;
        Ok(vault)
    }

    /// Sets the password: complete or not at all.
    pub fn set(&self, value: &str) -> Result<()> {
        let new = self.folder.join(".new");
        fs::write(&new, value)?;
        Ok(fs::rename(new, self.folder.join("PASSWORD"))?)
    }
}
