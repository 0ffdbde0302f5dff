//! What befalls the store: compaction, and being put back to an earlier state.

use super::{Cluster, Component};
use crate::support::Result;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde_json::{Value, json};
use std::fs;
use std::path::{Path, PathBuf};

/// What etcd takes at once.
const PUTS: usize = 100;

/// A copy of etcd's data. It lives as long as the cluster.
pub struct Backup(PathBuf);

impl Cluster {
    /// Forgets all history up to now: a watch from before it gets 410 once the API server's cache is gone too.
    pub async fn compact_etcd(&self) -> Result<()> {
        let answer = self.etcd("range", &json!({ "key": "AA==" })).await?;
        let revision = answer["header"]["revision"].as_str().ok_or("etcd told no revision")?;
        self.etcd("compaction", &json!({ "revision": revision, "physical": true })).await?;
        Ok(())
    }

    /// Copies etcd's data. etcd is away for that moment; the API server finds it again by itself.
    pub async fn back_up(&self) -> Result<Backup> {
        self.kill(Component::Etcd);
        let copy = self.folder().join("backups").join(crate::support::objects::unique("etcd"));
        copy_folder(&self.folder().join("etcd"), &copy)?;
        self.start_etcd().await?;
        self.wait_api_server().await?;
        Ok(Backup(copy))
    }

    /// Puts the store back: resourceVersions go back too. The cluster's own parts start anew, as the restore
    /// procedure asks for; who watches from outside is on his own.
    pub async fn restore(&self, backup: &Backup) -> Result<()> {
        self.stop_agents();
        self.stop_api_server();
        self.kill(Component::Etcd);
        let data = self.folder().join("etcd");
        fs::remove_dir_all(&data)?;
        copy_folder(&backup.0, &data)?;
        self.start_etcd().await?;
        self.start_api_server().await?;
        self.launch_agents()?;
        self.wait_agents().await
    }

    /// Copies an object as it is stored, under its key with the same replacements: texts in the place of others of the same
    /// length, in their order. So a test has as many objects of the API server's own making as it wants, in a moment.
    pub async fn copy_stored(
        &self,
        key: &str,
        copies: impl Iterator<Item = Vec<(String, String)>>,
    ) -> Result<()> {
        let answer = self.etcd("range", &json!({ "key": BASE64_STANDARD.encode(key) })).await?;
        let stored =
            answer["kvs"][0]["value"].as_str().ok_or_else(|| format!("nothing is stored at {key}"))?;
        let stored = BASE64_STANDARD.decode(stored)?;
        let puts: Vec<Value> = copies
            .map(|replacements| {
                let (mut name, mut value) = (key.as_bytes().to_vec(), stored.clone());
                for (from, to) in &replacements {
                    assert_eq!(from.len(), to.len(), "lengths are stored too");
                    replace(&mut name, from.as_bytes(), to.as_bytes());
                    replace(&mut value, from.as_bytes(), to.as_bytes());
                }
                json!({ "requestPut": { "key": BASE64_STANDARD.encode(name), "value": BASE64_STANDARD.encode(value) } })
            })
            .collect();
        for puts in puts.chunks(PUTS) {
            self.etcd("txn", &json!({ "success": puts })).await?;
        }
        Ok(())
    }

    /// etcd's JSON gateway.
    async fn etcd(&self, call: &str, body: &Value) -> Result<Value> {
        let address = format!("127.0.0.1:{}", self.ports.etcd);
        let request = http::Request::post(format!("/v3/kv/{call}")).body(body.to_string().into())?;
        let (status, text) = crate::support::http::send(&address, request).await?;
        if !status.is_success() {
            return Err(
                format!("etcd answered {call} with {status}: {}", String::from_utf8_lossy(&text)).into()
            );
        }
        Ok(serde_json::from_slice(&text)?)
    }
}

fn replace(bytes: &mut [u8], from: &[u8], to: &[u8]) {
    for start in 0..=bytes.len().saturating_sub(from.len()) {
        if bytes[start..].starts_with(from) {
            bytes[start..start + to.len()].copy_from_slice(to);
        }
    }
}

fn copy_folder(from: &Path, to: &Path) -> Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
