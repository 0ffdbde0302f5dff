//! What is read of a pod.

use std::collections::BTreeMap;

use crate::facts::{Name, Time, Uid, Version};

/// A pod as a list delivered it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodFacts {
    /// Its name.
    pub name: Name,
    /// Its identity.
    pub uid: Uid,
    /// `metadata.creationTimestamp`, in whole seconds.
    pub born: Time,
    /// The version at which it was changed last.
    pub version: Version,
    /// The object that controls it.
    pub owner: Option<OwnerFacts>,
    /// The stamp it was born with: its annotation, copied from the template by its controller.
    pub stamp: Option<Box<str>>,
    /// Whether its phase is Succeeded or Failed.
    pub ended: bool,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// Whether it is ready.
    pub ready: bool,
    /// Containers (init and sidecar ones too) that have not started yet, sorted.
    pub not_started: Box<[Name]>,
    /// Why it doesn't run, if its status tells.
    pub trouble: Option<Trouble>,
}

#[cfg(test)]
impl PodFacts {
    /// A ready one for tests, that was born without a stamp.
    #[must_use]
    pub fn sample(name: &str, uid: Uid, born: Time, version: Version, owner: Option<OwnerFacts>) -> Self {
        Self {
            name: name.into(),
            uid,
            born,
            version,
            owner,
            stamp: None,
            ended: false,
            deleting: false,
            ready: true,
            not_started: Box::default(),
            trouble: None,
        }
    }
}

/// A controlling owner reference.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OwnerFacts {
    /// The owner's kind.
    pub kind: Name,
    /// The owner's name.
    pub name: Name,
    /// The owner's identity.
    pub uid: Uid,
}

/// A Knative Service is four levels above a ReplicaSet; owners that own each other have no end.
pub(crate) const MOST_ABOVE: usize = 8;

/// Of what may stand between a pod and its workload, by its uid: what controls it.
pub type Owners = BTreeMap<Uid, Option<OwnerFacts>>;

/// That owner, and what controls it, and so on up.
pub fn upwards<'a>(from: Option<&'a OwnerFacts>, owners: &'a Owners) -> impl Iterator<Item = &'a OwnerFacts> {
    let up = |owner: &&'a OwnerFacts| owners.get(&owner.uid)?.as_ref();
    std::iter::successors(from, up).take(MOST_ABOVE)
}

/// What keeps a pod from running, of causes that say nothing about the Secret's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No node takes it.
    Unschedulable,
    /// Its image can't be pulled.
    ImagePull,
    /// A Secret, ConfigMap or key that it needs is missing (`CreateContainerConfigError`).
    Config,
}
