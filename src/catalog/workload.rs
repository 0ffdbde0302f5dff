//! What is kept of a workload: its references, its policy, its rollout's status; never the object.

use std::sync::Arc;

use crate::{
    catalog::{
        Selector,
        policy::{ReferenceAnnotations, WorkloadPolicy},
        reference::Reference,
        references::ProviderClass,
    },
    facts::{Name, Uid, Version, WorkloadId},
    rollout::RolloutFacts,
};

/// A workload as a watch or a read delivered it.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    /// Where it is.
    pub id: WorkloadId,
    /// Its identity.
    pub uid: Uid,
    /// Its resourceVersion: a stamp is written only over this one.
    pub version: Version,
    /// Whether it is being deleted.
    pub deleting: bool,
    /// What it says itself of the Secrets it consumes.
    pub declared: Arc<Declared>,
    /// Its references to Secrets, sorted: what it says itself and, once the catalog has it, what its ServiceAccount and
    /// its SecretProviderClasses say.
    pub references: Arc<[Reference]>,
    /// How many references it has, also when they are too many to be kept.
    pub reference_count: usize,
    /// What its annotations ask for.
    pub policy: WorkloadPolicy,
    /// The pod template's identity without the stamp: two workloads' templates, or one's at two times,
    /// are the same if and only if this is equal.
    pub template: TemplateHash,
    /// The stamp on the pod template, as it stands.
    pub stamp: Option<Box<str>>,
    /// By which labels its pods are found.
    pub selector: Selector,
    /// The ServiceAccount its pods run as.
    pub service_account: Name,
    /// The status of its rollout.
    pub rollout: RolloutFacts,
    /// The manager that last wrote the template, by `managedFields`.
    pub last_writer: Option<Name>,
}

/// What a workload's own text says of the Secrets it consumes. What others say is added to it by
/// [`effective`](super::effective).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Declared {
    /// Its references, sorted.
    pub references: Arc<[Reference]>,
    /// How many references it has, also when they are too many to be kept.
    pub count: usize,
    /// The SecretProviderClasses that its containers mount, sorted by name.
    pub provider_classes: Box<[ProviderClass]>,
    /// What its annotations say of references; kept for what its classes add, empty without any.
    pub annotations: ReferenceAnnotations,
    /// `--roll-volumes`.
    pub roll_volumes: bool,
}

/// The hash of a pod template without Uptake's stamp.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct TemplateHash(pub u64);
