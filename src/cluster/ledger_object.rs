//! A ledger object as a Secret.

use std::collections::BTreeMap;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{Api, api, list::List, path};
use crate::{
    engine::{Fault, LedgerObject},
    facts::Version,
};

/// The type of the Secrets that hold the ledger. The watch leaves them out.
pub const TYPE: &str = "uptake.dev/ledger";
/// The label of everything that Uptake makes.
pub const MANAGED: (&str, &str) = ("app.kubernetes.io/managed-by", "uptake");
const DATA_KEY: &str = "ledger";
/// Ledger objects have up to 64 KiB.
const PAGE: u16 = 100;

/// All ledger objects in Uptake's own namespace.
///
/// # Errors
/// They can't be listed.
pub async fn list(api: &Api, own_namespace: &str) -> Result<Vec<LedgerObject>, Fault> {
    let (label, value) = MANAGED;
    let labels = format!("{label}={value}");
    let fields = format!("type={TYPE}");
    let list = List {
        path: &path::core(Some(own_namespace), "secrets"),
        query: &[("labelSelector", &labels), ("fieldSelector", &fields)],
        at: None,
        page: PAGE,
        metadata_only: false,
    };
    let each = |objects: &mut Vec<LedgerObject>, item: &RawValue| {
        let stored: Stored = api::decode(item.get().as_bytes())?;
        objects.push(stored.read().ok_or_else(api::undecodable)?);
        Ok(())
    };
    Ok(list.each(api, Vec::new, each).await?.0)
}

/// The manifest that creates the object, or replaces the one of that version.
pub fn manifest(namespace: &str, name: &str, over: Option<Version>, body: &[u8]) -> Value {
    let mut secret = json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace, "labels": {MANAGED.0: MANAGED.1}},
        "type": TYPE,
        "data": {DATA_KEY: BASE64_STANDARD.encode(body)},
    });
    if let Some(version) = over {
        secret["metadata"]["resourceVersion"] = version.to_string().into();
    }
    secret
}

/// A ledger object as the API server gives it. A damaged one has an empty body: the engine judges it.
#[derive(Deserialize)]
pub struct Stored {
    metadata: StoredMeta,
    #[serde(default)]
    data: Option<BTreeMap<String, Option<String>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMeta {
    name: String,
    resource_version: String,
}

impl Stored {
    /// The object; none if its version isn't one.
    pub fn read(mut self) -> Option<LedgerObject> {
        let text = self.data.as_mut().and_then(|data| data.remove(DATA_KEY)).flatten().unwrap_or_default();
        Some(LedgerObject {
            name: self.metadata.name.into(),
            version: self.metadata.resource_version.parse().ok()?,
            body: BASE64_STANDARD.decode(text).unwrap_or_default(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_reads_as_it_was_written() {
        let secret = manifest("ns", "uptake-ledger-x-0", Some(Version(9)), b"\0body");
        let read = serde_json::from_value::<Stored>(secret).unwrap().read().unwrap();
        assert_eq!(
            read,
            LedgerObject { name: "uptake-ledger-x-0".into(), version: Version(9), body: b"\0body".to_vec() }
        );
    }

    #[test]
    fn a_damaged_object_has_no_body() {
        let secret = json!({"metadata": {"name": "x", "resourceVersion": "1"}, "data": {"ledger": "%"}});
        assert!(serde_json::from_value::<Stored>(secret).unwrap().read().unwrap().body.is_empty());
    }
}
