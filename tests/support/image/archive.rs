//! One image of one platform as an OCI archive, the same byte for byte whoever makes it.

use super::dockerfile::Recipe;
use crate::support::Result;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

/// An image in the making.
pub struct Image<'a> {
    pub recipe: &'a Recipe,
    /// As images call it: `amd64`, `arm64`.
    pub architecture: &'a str,
    /// Seconds since 1970: when the source was last changed.
    pub created: u64,
    /// The tag that tools give it.
    pub name: &'a str,
}

struct Blob {
    digest: String,
    bytes: Vec<u8>,
}

impl Blob {
    fn new(bytes: Vec<u8>) -> Self {
        let digest = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        });
        Self { digest, bytes }
    }

    fn json(value: &Value) -> Self {
        Self::new(value.to_string().into_bytes())
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({ "mediaType": media_type, "digest": format!("sha256:{}", self.digest), "size": self.bytes.len() })
    }
}

impl Image<'_> {
    /// The archive's bytes and the manifest's digest; `content` gives a file's content by its source.
    pub fn archive(&self, content: impl Fn(&str) -> Result<Vec<u8>>) -> Result<(Vec<u8>, String)> {
        let layer = Blob::new(self.layer(content)?);
        let config = Blob::json(&self.config(&layer.digest)?);
        let manifest = Blob::json(&json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": config.descriptor("application/vnd.oci.image.config.v1+json"),
            "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar")],
        }));
        let mut descriptor = manifest.descriptor("application/vnd.oci.image.manifest.v1+json");
        descriptor["platform"] = json!({ "architecture": self.architecture, "os": "linux" });
        descriptor["annotations"] = json!({ "org.opencontainers.image.ref.name": self.name });
        let index = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.index.v1+json",
            "manifests": [descriptor],
        });
        let digest = format!("sha256:{}", manifest.digest);
        let mut files = vec![
            ("oci-layout".to_owned(), br#"{"imageLayoutVersion":"1.0.0"}"#.to_vec()),
            ("index.json".to_owned(), index.to_string().into_bytes()),
        ];
        files.extend(
            [layer, config, manifest].map(|blob| (format!("blobs/sha256/{}", blob.digest), blob.bytes)),
        );
        let mut archive = tar::Builder::new(Vec::new());
        for (path, bytes) in &files {
            self.append(&mut archive, path, 0o644, bytes)?;
        }
        Ok((archive.into_inner()?, digest))
    }

    fn layer(&self, content: impl Fn(&str) -> Result<Vec<u8>>) -> Result<Vec<u8>> {
        let mut layer = tar::Builder::new(Vec::new());
        for file in &self.recipe.files {
            self.append(&mut layer, &file.path, file.mode, &content(&file.source)?)?;
        }
        Ok(layer.into_inner()?)
    }

    /// Everything belongs to root and is of one time.
    fn append(&self, to: &mut tar::Builder<Vec<u8>>, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        let mut header = tar::Header::new_ustar();
        header.set_mode(mode);
        header.set_mtime(self.created);
        header.set_uid(0);
        header.set_gid(0);
        header.set_size(bytes.len() as u64);
        Ok(to.append_data(&mut header, path, bytes)?)
    }

    fn config(&self, layer: &str) -> Result<Value> {
        let Recipe { files: _, entrypoint, user, ports, labels } = self.recipe;
        let ports: serde_json::Map<String, Value> =
            ports.iter().map(|port| (port.clone(), json!({}))).collect();
        let created = jiff::Timestamp::from_second(i64::try_from(self.created)?)?.to_string();
        Ok(json!({
            "architecture": self.architecture,
            "os": "linux",
            "created": created,
            "config": {
                "Entrypoint": entrypoint,
                "User": user,
                "ExposedPorts": ports,
                "Labels": labels,
                "WorkingDir": "/",
            },
            "rootfs": { "type": "layers", "diff_ids": [format!("sha256:{layer}")] },
            "history": [{ "created": created, "created_by": "COPY --from=build /image/ /" }],
        }))
    }
}
