//! What the Secrets Store CSI driver says that it mounted into each pod: the versions of a SecretProviderClass's
//! objects.
//!
//! It writes a `SecretProviderClassPodStatus` a pod and class (secrets-store-csi-driver
//! `apis/v1/secretproviderclasspodstatus_types.go`) when it mounts, and again when it rotates the mounted files. So
//! a pod's own status tells what it was born with, as long as it was written once only.

use serde_json::Value;

use super::beside::{Beside, BesideId, Shelf};
use crate::{
    engine::Watched,
    facts::{
        Name, Namespace, Raw, SecretId, Time, Uid, Unreadable,
        raw::{elements, text},
    },
    ledger::Point,
};

/// A `SecretProviderClassPodStatus`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MountFacts {
    /// Where it is.
    pub id: BesideId,
    /// The class that was mounted.
    pub class: Name,
    /// The pod that it was mounted into, by its identity: a StatefulSet's pods share their names with those before.
    pub pod: Option<Uid>,
    /// The mounted objects with their versions, sorted.
    pub objects: Box<[(Name, Name)]>,
    /// Since when these versions are mounted.
    pub since: Point,
    /// Whether other versions were mounted before: it was written more than once.
    pub rotated: bool,
}

impl MountFacts {
    /// What its class is among the Secrets.
    #[must_use]
    pub fn source(&self) -> SecretId {
        SecretId::of_class(self.id.namespace.clone(), &self.class)
    }
}

impl Beside for MountFacts {
    fn read(object: &Value) -> Result<Self, Unreadable> {
        let raw = Raw(object);
        let status = object.get("status").unwrap_or(&Value::Null);
        let pairs = elements(status, "objects")
            .filter_map(|object| Some((text(object, "id")?.into(), text(object, "version")?.into())));
        let objects: std::collections::BTreeSet<(Name, Name)> = pairs.collect();
        let generation = raw.meta("generation").and_then(Value::as_i64);
        Ok(Self {
            id: BesideId::new(raw.namespace()?, raw.name()?),
            class: text(status, "secretProviderClassName").unwrap_or_default().into(),
            pod: pod(raw),
            objects: objects.into_iter().collect(),
            since: Point { version: raw.version()?, time: written(raw).unwrap_or(raw.created()?) },
            // The kind has no status subresource, so each write of other content counts.
            rotated: generation != Some(1),
        })
    }

    fn id(&self) -> &BesideId {
        &self.id
    }

    fn names_any(&self) -> bool {
        !self.class.is_empty() && !self.objects.is_empty()
    }
}

/// The driver makes the pod its owner.
fn pod(raw: Raw<'_>) -> Option<Uid> {
    let owners = raw.meta("ownerReferences").and_then(Value::as_array)?;
    let owner = owners.iter().find(|owner| text(owner, "kind") == Some("Pod"))?;
    text(owner, "uid").map(Uid::parse)
}

/// When the status was written last, by `managedFields`: labels and owners are written without it.
fn written(raw: Raw<'_>) -> Option<Time> {
    let entries = raw.meta("managedFields").and_then(Value::as_array)?;
    let of_status = entries
        .iter()
        .filter(|entry| entry.get("fieldsV1").and_then(|fields| fields.get("f:status")).is_some());
    of_status.filter_map(|entry| Time::parse(text(entry, "time")?)).max()
}

/// All that is mounted.
#[derive(Debug, Default)]
pub struct Mounts(Shelf<MountFacts>);

impl Mounts {
    /// What is known of the kind.
    #[must_use]
    pub fn inventory(&self) -> &super::Inventory {
        self.0.inventory()
    }

    /// Takes in what the watch says; gives the classes of which something was mounted.
    pub fn take(&mut self, watched: Watched<MountFacts, BesideId>) -> Vec<SecretId> {
        let changed = self.0.take(watched);
        let sources: std::collections::BTreeSet<SecretId> =
            changed.iter().filter_map(|id| self.0.get(id)).map(MountFacts::source).collect();
        sources.into_iter().collect()
    }

    /// What was mounted of a class last, into whichever pod, and since when that is known to be mounted anywhere: other
    /// pods' files are rotated later, or never, and say nothing newer.
    #[must_use]
    pub fn newest(&self, namespace: &Namespace, class: &str) -> Option<(&MountFacts, Point)> {
        let age = |mount: &MountFacts| (mount.since.time, mount.since.version);
        let newest = self.of_class(namespace, class).max_by_key(|mount| age(mount))?;
        let same = self.of_class(namespace, class).filter(|mount| mount.objects == newest.objects);
        let first = same.min_by_key(|mount| age(mount)).unwrap_or(newest);
        Some((newest, first.since))
    }

    /// What pods were born with: those whose status tells.
    pub fn births<'a, 'b>(
        &'a self,
        namespace: &Namespace,
        class: &'b str,
    ) -> impl Iterator<Item = (Uid, &'a MountFacts)> + use<'a, 'b> {
        let known = self.of_class(namespace, class).filter(|mount| !mount.rotated);
        known.filter_map(|mount| Some((mount.pod?, mount)))
    }

    fn of_class<'a, 'b>(
        &'a self,
        namespace: &Namespace,
        class: &'b str,
    ) -> impl Iterator<Item = &'a MountFacts> + use<'a, 'b> {
        self.0.in_namespace(namespace).filter(move |mount| *mount.class == *class)
    }
}

/// For tests that tell of mounts: a status as the driver writes it.
#[cfg(test)]
#[must_use]
pub fn status(pod: &str, class: &str, version: u64, time: &str, objects: &[(&str, &str)]) -> Value {
    use serde_json::json;

    use crate::facts::Version;

    let objects: Vec<Value> =
        objects.iter().map(|(id, version)| json!({"id": id, "version": version})).collect();
    json!({
        "metadata": {
            "name": format!("{pod}-demo-{class}"), "namespace": "demo", "uid": pod, "generation": 1,
            "resourceVersion": Version(version).to_string(), "creationTimestamp": time,
            "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": pod}],
        },
        "status": {"podName": pod, "secretProviderClassName": class, "mounted": true, "objects": objects},
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::facts::Version;

    fn at(second: u32) -> String {
        format!("2026-12-01T00:00:{second:02}Z")
    }

    fn mounts(of: &[(&str, u32, &str)]) -> Mounts {
        let mut mounts = Mounts::default();
        for (pod, second, version) in of {
            let object = status(pod, "vault", u64::from(*second), &at(*second), &[("db", version)]);
            mounts.take(Watched::Apply(MountFacts::read(&object).unwrap()));
        }
        mounts
    }

    fn newest(mounts: &Mounts) -> (String, u64) {
        let (mount, since) = mounts.newest(&"demo".into(), "vault").unwrap();
        (mount.objects[0].1.to_string(), since.version.0)
    }

    #[test]
    fn a_status_is_read_whole() {
        let mut object = status("web-1", "vault", 7, &at(3), &[("b", "2"), ("a", "1")]);
        let mount = MountFacts::read(&object).unwrap();
        assert_eq!(*mount.objects, [("a".into(), "1".into()), ("b".into(), "2".into())]);
        assert_eq!((mount.since.version, mount.rotated), (Version(7), false));
        assert_eq!(mount.pod, Some(Uid::parse("web-1")));
        assert_eq!(mount.source().to_string(), "demo/secretproviderclass/vault");
        object["metadata"]["generation"] = json!(2);
        object["metadata"]["managedFields"] = json!([
            {"time": at(40), "fieldsV1": {"f:metadata": {}}},
            {"time": at(20), "fieldsV1": {"f:status": {}}},
        ]);
        let mount = MountFacts::read(&object).unwrap();
        assert!(mount.rotated);
        assert_eq!(Some(mount.since.time), Time::parse(&at(20)));
    }

    #[test]
    fn a_status_of_an_odd_shape_names_nothing() {
        for odd in [json!(null), json!({"objects": [1, {"id": "a"}]}), json!("x")] {
            let mut object = status("web-1", "vault", 7, &at(3), &[]);
            object["status"] = odd;
            assert!(!MountFacts::read(&object).unwrap().names_any());
        }
    }

    #[test]
    fn what_was_mounted_last_is_the_newest_since_it_was_mounted_first() {
        assert_eq!(newest(&mounts(&[("a", 1, "one"), ("b", 2, "one")])), ("one".into(), 1));
        let rotated = mounts(&[("a", 1, "one"), ("c", 5, "two"), ("b", 2, "one"), ("d", 6, "two")]);
        assert_eq!(newest(&rotated), ("two".into(), 5), "whose files aren't rotated says nothing newer");
    }

    #[test]
    fn what_a_pod_was_born_with_is_known_until_its_files_are_rotated() {
        let mut mounts = mounts(&[("a", 1, "one")]);
        let born = |mounts: &Mounts| mounts.births(&"demo".into(), "vault").next().is_some();
        assert!(born(&mounts));
        let mut object = status("a", "vault", 9, &at(9), &[("db", "two")]);
        object["metadata"]["generation"] = json!(2);
        mounts.take(Watched::Apply(MountFacts::read(&object).unwrap()));
        assert!(!born(&mounts));
    }
}
