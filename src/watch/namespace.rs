//! Reads a Namespace.

use serde::Deserialize;

use super::{
    message::Meta,
    read::{Read, Reading},
    secret::cut,
};
use crate::{
    catalog::namespace::NamespaceFacts,
    facts::{Namespace, Uid},
};

/// Reads Namespaces.
pub struct Namespaces {
    /// The namespaces that are left alone.
    pub ignored: Vec<Namespace>,
    /// Uptake's own is passed on though it be left alone: the pause switch is on it.
    pub own: Namespace,
}

impl Read for Namespaces {
    type Item = NamespaceFacts;
    type Id = Namespace;

    fn wants(&self, meta: &Meta) -> bool {
        *self.own == *meta.name || !self.ignored.iter().any(|ignored| **ignored == *meta.name)
    }

    fn read(&self, object: &[u8]) -> Reading<NamespaceFacts> {
        read(object).into()
    }

    fn id(&self, meta: &Meta) -> Namespace {
        meta.name.as_str().into()
    }
}

fn read(object: &[u8]) -> Option<NamespaceFacts> {
    let Object { metadata } = serde_json::from_slice(object).ok()?;
    let Annotations { rollout, paused } = metadata.annotations.unwrap_or_default();
    Some(NamespaceFacts {
        name: metadata.name.into(),
        uid: Uid::parse(&metadata.uid),
        version: metadata.resource_version.parse().ok()?,
        rollout: rollout.map(|text| cut(&text)),
        paused: paused.map(|text| cut(&text)),
    })
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    uid: String,
    resource_version: String,
    #[serde(default)]
    annotations: Option<Annotations>,
}

#[derive(Default, Deserialize)]
struct Annotations {
    #[serde(default, rename = "uptake.dev/rollout")]
    rollout: Option<String>,
    #[serde(default, rename = "uptake.dev/paused")]
    paused: Option<String>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_own_namespace_is_passed_on_though_it_be_ignored() {
        let reader = Namespaces { ignored: vec!["a".into(), "b".into()], own: "b".into() };
        let wants = |name: &str| {
            let object = serde_json::json!({"metadata": {"name": name}}).to_string();
            reader.wants(&Meta::of(object.as_bytes()).unwrap())
        };
        assert!(!wants("a"));
        assert!(wants("b") && wants("c"));
    }
}
