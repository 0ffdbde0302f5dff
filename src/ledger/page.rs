//! The durable form of the ledger: one small object holds some of a namespace's Secrets and workloads.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};
use sha2::{Digest as _, Sha256};

use super::{Marks, Point, SecretRecord};
use crate::facts::{Name, Namespace, Uid};

/// The form's number. A newer one is read as far as it is understood.
pub const SCHEMA: u32 = 1;

/// The name of the object that says up to where Secrets were watched.
pub const HEAD: &str = "uptake-ledger-head";

/// What every ledger object begins with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cover {
    /// [`SCHEMA`].
    pub schema: u32,
    /// How its digests were made; digests of different schemes can't be compared.
    pub scheme: String,
    /// The uid of Uptake's own namespace: a ledger of another cluster is none.
    pub identity: Uid,
    /// When the ledger was made: pods born before are the installed base.
    pub made: Point,
    /// Up to where every change of a Secret is in the ledger.
    #[serde(default)]
    pub seen_until: Point,
}

/// The object [`HEAD`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Head {
    /// What every ledger object begins with.
    #[serde(flatten)]
    pub cover: Cover,
    /// How often it was written: a write that changes nothing gets no version of its own.
    #[serde(default)]
    pub writes: u64,
    /// The [`Settings`](super::Settings) of who wrote it. Taken as it stands: a form that isn't understood must not cost the
    /// rest.
    #[serde(default, skip_serializing_if = "Json::is_null")]
    pub settings: Json,
    /// What a newer version of Uptake wrote.
    #[serde(flatten)]
    pub more: Map<String, Json>,
}

/// An object with a namespace's records.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Page {
    /// What every ledger object begins with.
    #[serde(flatten)]
    pub cover: Cover,
    /// The namespace.
    pub namespace: Namespace,
    /// By name, the Secrets that somebody consumes.
    #[serde(default)]
    pub secrets: BTreeMap<Name, SecretRecord>,
    /// By uid, the workloads that consume Secrets.
    #[serde(default)]
    pub workloads: BTreeMap<Uid, Marks>,
    /// What a newer version of Uptake wrote.
    #[serde(flatten)]
    pub more: Map<String, Json>,
}

/// The name of a namespace's n-th object. A namespace's name can be too long to be part of it.
#[must_use]
pub fn page_name(namespace: &str, number: usize) -> String {
    format!("uptake-ledger-{}-{number}", short_hash(&[namespace]))
}

/// A hash of these texts that is short enough for names: 16 hexadecimal digits.
#[must_use]
pub fn short_hash(texts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text.as_bytes());
    }
    let bits = hash.finalize().iter().take(8).fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    format!("{bits:016x}")
}

/// The number in a page's name.
#[must_use]
pub fn page_number(name: &str) -> Option<usize> {
    name.rsplit_once('-').and_then(|(_, number)| number.parse().ok())
}
