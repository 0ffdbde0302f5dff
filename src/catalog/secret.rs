//! What is kept of a Secret: digests of its data, never the data.

use crate::{
    facts::{Name, SecretId, Time, Uid, Version},
    ledger::Digest,
};

/// A Secret as a watch delivered it, its values hashed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretFacts {
    /// Where it is.
    pub id: SecretId,
    /// Its identity.
    pub uid: Uid,
    /// The resourceVersion it was delivered with.
    pub version: Version,
    /// When it was created.
    pub created: Time,
    /// The digest over all of its data.
    pub all: Digest,
    /// Its keys, sorted by name.
    pub keys: Box<[KeyFacts]>,
    /// The latest `managedFields` time of an entry that owns any of its data.
    pub written: Option<Time>,
    /// Its annotations that concern Uptake, unparsed.
    pub annotations: SecretAnnotations,
}

/// One key of a Secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFacts {
    /// The key's name.
    pub name: Name,
    /// The digest of its value.
    pub digest: Digest,
    /// The latest `managedFields` time of an entry that owns the key. It can be older than the value
    /// and it can be forged, so it is only a hint for times in which nobody watched.
    pub written: Option<Time>,
}

/// The annotations of a Secret that concern Uptake, as they stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SecretAnnotations {
    /// `uptake.dev/rollout`.
    pub rollout: Option<Box<str>>,
    /// `uptake.dev/release`.
    pub release: Option<Box<str>>,
}

impl SecretFacts {
    /// The facts of one of its keys.
    #[must_use]
    pub fn key(&self, name: &str) -> Option<&KeyFacts> {
        self.keys.binary_search_by(|key| (*key.name).cmp(name)).ok().map(|at| &self.keys[at])
    }
}
