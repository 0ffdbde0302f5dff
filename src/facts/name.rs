//! Names of objects. They come from the API server, which has checked them, so they are only carried.

use std::{fmt, sync::Arc};

use super::Kind;

/// The name of a namespace.
pub type Namespace = Arc<str>;

/// The name of an object or of a key, shared where it stands many times.
pub type Name = Arc<str>;

/// A Secret's place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SecretId {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: Name,
}

impl SecretId {
    /// The Secret of that name in that namespace.
    pub fn new(namespace: impl Into<Namespace>, name: impl Into<Name>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

/// `NAMESPACE/NAME`.
impl fmt::Display for SecretId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// A workload's place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkloadId {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its kind.
    pub kind: Kind,
    /// Its name.
    pub name: Name,
}

impl WorkloadId {
    /// The workload of that kind and name in that namespace.
    pub fn new(kind: Kind, namespace: impl Into<Namespace>, name: impl Into<Name>) -> Self {
        Self { namespace: namespace.into(), kind, name: name.into() }
    }
}

/// `NAMESPACE/KIND/NAME`.
impl fmt::Display for WorkloadId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.namespace, self.kind, self.name)
    }
}
