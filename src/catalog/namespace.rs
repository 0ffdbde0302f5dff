//! What is kept of a Namespace.

use crate::facts::{Namespace, Uid, Version};

/// A Namespace as a watch delivered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceFacts {
    /// Its name.
    pub name: Namespace,
    /// Its identity.
    pub uid: Uid,
    /// Its version.
    pub version: Version,
    /// `uptake.dev/rollout`, unparsed.
    pub rollout: Option<Box<str>>,
    /// `uptake.dev/paused`, unparsed. It counts on Uptake's own namespace only.
    pub paused: Option<Box<str>>,
}
