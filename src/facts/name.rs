//! Names of objects. Those that come from the API server are only carried, for it has checked them.

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

    /// What a SecretProviderClass mounts. The versions of its objects stand among those of Secrets, in the ledger and in
    /// the stamp, under a name that no Secret can have.
    pub fn of_class(namespace: impl Into<Namespace>, class: &str) -> Self {
        Self::new(namespace, class_source(class))
    }

    /// The SecretProviderClass, if it is that and no Secret.
    #[must_use]
    pub fn class(&self) -> Option<&str> {
        class_of(&self.name)
    }
}

/// Before the name of a SecretProviderClass that stands among Secrets.
const CLASS: &str = "secretproviderclass/";

/// `secretproviderclass/NAME`.
#[must_use]
pub fn class_source(class: &str) -> Name {
    format!("{CLASS}{class}").into()
}

/// The SecretProviderClass of such a name; none for a Secret's.
#[must_use]
pub fn class_of(name: &str) -> Option<&str> {
    name.strip_prefix(CLASS)
}

/// Whether a Secret, or a SecretProviderClass among Secrets, can have that name.
#[must_use]
pub fn is_source(name: &str) -> bool {
    is_dns_subdomain(class_of(name).unwrap_or(name))
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

/// Whether it is a DNS-1123 subdomain, as Secrets' names are (`IsDNS1123Subdomain` in
/// k8s.io/apimachinery `pkg/util/validation`).
#[must_use]
pub fn is_dns_subdomain(text: &str) -> bool {
    text.len() <= 253 && text.split('.').all(is_label_of_any_length)
}

/// Whether a namespace is watched: `--namespace` names it, or none, and `--ignore-namespace` doesn't.
#[must_use]
pub fn is_covered(namespace: &str, named: &[Namespace], ignored: &[Namespace]) -> bool {
    let is_among = |names: &[Namespace]| names.iter().any(|name| **name == *namespace);
    (named.is_empty() || is_among(named)) && !is_among(ignored)
}

/// Whether it is a DNS-1123 label, as namespaces' names are (`IsDNS1123Label` there).
#[must_use]
pub fn is_dns_label(text: &str) -> bool {
    text.len() <= 63 && is_label_of_any_length(text)
}

fn is_label_of_any_length(text: &str) -> bool {
    let inside = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-';
    !text.is_empty() && text.bytes().all(inside) && !text.starts_with('-') && !text.ends_with('-')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_labels_with_dots_between() {
        for good in ["a", "db", "tls.internal", "0.a-b.c", &"a".repeat(253)] {
            assert!(is_dns_subdomain(good), "{good}");
        }
        for bad in
            ["", ".", "a.", "a..b", "-a", "a-", "a.-b", "A", "a_b", "a b", "é", "a\n", &"a".repeat(254)]
        {
            assert!(!is_dns_subdomain(bad), "{bad}");
        }
    }

    #[test]
    fn a_namespaces_name_is_one_label() {
        for good in ["a", "kube-system", "0", &"a".repeat(63)] {
            assert!(is_dns_label(good), "{good}");
        }
        for bad in ["", "..", "a.b", "a/b", "a?b", "-a", "a-", "A", "é", "a\n", &"a".repeat(64)] {
            assert!(!is_dns_label(bad), "{bad}");
        }
    }
}
