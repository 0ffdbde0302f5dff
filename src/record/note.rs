//! Kubernetes Events (`events.k8s.io/v1`), as values.

use std::fmt;

use crate::facts::{Kind, Name, Namespace, SecretId, Time, Uid, WorkloadId};

/// An Event to be written. Limits of the API (`reason` and `action` 128 characters, `note` 1 KiB) are
/// kept by whoever writes it, on a character boundary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventNote {
    /// The Event's name: the same for the same transition, so that writing it again after a crash is a
    /// conflict with itself and nothing more.
    pub name: String,
    /// The object it is about, whose namespace it lies in.
    pub regarding: ObjectRef,
    /// The other object it is about.
    pub related: Option<ObjectRef>,
    /// Why.
    pub reason: Reason,
    /// In words.
    pub note: String,
    /// When.
    pub at: Time,
    /// The Secret to filter by (label `uptake.dev/secret`).
    pub secret: Option<Name>,
}

/// A reference to an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectRef {
    /// `apiVersion`.
    pub api_version: String,
    /// `kind`.
    pub kind: String,
    /// The namespace, which the Event lies in.
    pub namespace: Namespace,
    /// The name.
    pub name: Name,
    /// The identity, if it is known.
    pub uid: Option<Uid>,
}

impl ObjectRef {
    /// A workload.
    #[must_use]
    pub fn workload(id: &WorkloadId, uid: Uid) -> Self {
        let kind: &Kind = &id.kind;
        Self {
            api_version: kind.api_version(),
            kind: kind.as_str().to_owned(),
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            uid: Some(uid),
        }
    }

    /// A Secret, or the SecretProviderClass that stands among Secrets.
    #[must_use]
    pub fn secret(id: &SecretId, uid: Option<Uid>) -> Self {
        let (api_version, kind, name) = match id.class() {
            Some(class) => ("secrets-store.csi.x-k8s.io/v1", "SecretProviderClass", class.into()),
            None => ("v1", "Secret", id.name.clone()),
        };
        Self {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: id.namespace.clone(),
            name,
            uid,
        }
    }

    /// A Namespace. The reference names it as its own namespace too, so that the Event lies where people look for it
    /// and not in `default`, where the API server wants Events about objects that lie nowhere.
    #[must_use]
    pub fn namespace(name: &Namespace, uid: Option<Uid>) -> Self {
        Self {
            api_version: "v1".to_owned(),
            kind: "Namespace".to_owned(),
            namespace: name.clone(),
            name: name.clone(),
            uid,
        }
    }
}

/// Whether an Event is news or a warning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoteType {
    /// News.
    Normal,
    /// Somebody should look.
    Warning,
}

/// The reason of an Event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// A stamp was written and made a new revision.
    RolloutStarted,
    /// A rollout ended and no live pod is stale.
    RolloutCompleted,
    /// A rollout failed.
    RolloutFailed,
    /// A rollout can't go on until somebody acts.
    RolloutBlocked,
    /// The template was changed again meanwhile.
    RolloutSuperseded,
    /// The API server refused the stamp.
    RolloutRefused,
    /// A rollout is needed and something holds it.
    RolloutHeld,
    /// Policy says report only: it would have been rolled.
    WouldRoll,
    /// A change needs no rollout.
    NothingToDo,
    /// A Secret's consumers were rolled: the summary on the Secret.
    ConsumersRolled,
    /// A value broke its first consumer; the others are held.
    BreakerOpen,
    /// A Secret changes faster than its consumers can be rolled.
    ChangesTooFast,
    /// An annotation can't be parsed.
    InvalidAnnotation,
    /// A kind can't be listed.
    InventoryUnknown,
    /// Pods were stale before Uptake was installed.
    StaleAtFirstSight,
}

impl Reason {
    /// The word, as it stands in the Event.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::RolloutStarted => "RolloutStarted",
            Self::RolloutCompleted => "RolloutCompleted",
            Self::RolloutFailed => "RolloutFailed",
            Self::RolloutBlocked => "RolloutBlocked",
            Self::RolloutSuperseded => "RolloutSuperseded",
            Self::RolloutRefused => "RolloutRefused",
            Self::RolloutHeld => "RolloutHeld",
            Self::WouldRoll => "WouldRoll",
            Self::NothingToDo => "NothingToDo",
            Self::ConsumersRolled => "ConsumersRolled",
            Self::BreakerOpen => "BreakerOpen",
            Self::ChangesTooFast => "ChangesTooFast",
            Self::InvalidAnnotation => "InvalidAnnotation",
            Self::InventoryUnknown => "InventoryUnknown",
            Self::StaleAtFirstSight => "StaleAtFirstSight",
        }
    }

    /// News or a warning.
    #[must_use]
    pub const fn note_type(self) -> NoteType {
        match self {
            Self::RolloutStarted
            | Self::RolloutCompleted
            | Self::RolloutSuperseded
            | Self::NothingToDo
            | Self::ConsumersRolled
            | Self::WouldRoll => NoteType::Normal,
            Self::RolloutFailed
            | Self::RolloutBlocked
            | Self::RolloutRefused
            | Self::RolloutHeld
            | Self::BreakerOpen
            | Self::ChangesTooFast
            | Self::InvalidAnnotation
            | Self::InventoryUnknown
            | Self::StaleAtFirstSight => NoteType::Warning,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
