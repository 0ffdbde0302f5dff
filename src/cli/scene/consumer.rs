//! Somebody who consumes Secrets, whether it can be rolled or not.

use std::{collections::BTreeSet, fmt, sync::Arc};

use serde_json::Value;

use crate::{
    catalog::{
        Declared, ReadOptions, Workload,
        policy::WorkloadPolicy,
        read::{self, Consumption},
        reference::Reference,
    },
    facts::{Kind, Name, Namespace, Raw, Uid, Unreadable},
};

/// A consumer as it was listed.
#[derive(Clone, Debug)]
pub struct Consumer {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its kind.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// Its identity.
    pub uid: Uid,
    /// What it says itself of the Secrets that it consumes.
    pub declared: Arc<Declared>,
    /// All that it consumes: its own words, its ServiceAccount's and its SecretProviderClasses'.
    pub references: Arc<[Reference]>,
    /// How many references it has.
    pub reference_count: usize,
    /// What only its live pods name: something put it into them when they were made.
    pub injected: BTreeSet<Reference>,
    /// The ServiceAccount its pods run as.
    pub service_account: Name,
    /// What its annotations ask for.
    pub policy: WorkloadPolicy,
    /// What becomes of its pods when a Secret changes.
    pub fate: Fate,
    /// What is known of it beyond that, if it can be rolled.
    pub workload: Option<Box<Workload>>,
}

/// What becomes of a consumer's pods when a Secret changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fate {
    /// A change of its template replaces them.
    Rolls,
    /// A bare Pod: somebody has to delete it and make it again.
    PodStays,
    /// A ReplicaSet that no Deployment owns: it makes new pods when somebody deletes the old ones.
    ReplicaSetStays,
    /// A Job: it goes on with what it started with.
    JobGoesOn,
    /// A Job that is over.
    JobEnded,
    /// A `CronJob`: its next run starts with what is there then.
    NextRun {
        /// Whether there is no next run before somebody resumes it.
        suspended: bool,
    },
    /// Its controller is of a kind that nobody named.
    NotTold,
    /// Its controller is of a kind that couldn't be listed.
    NotListed,
}

impl Fate {
    /// Whether nothing but a person replaces the pods.
    #[must_use]
    pub const fn needs_a_person(&self) -> bool {
        matches!(self, Self::PodStays | Self::ReplicaSetStays | Self::NotTold)
    }
}

impl fmt::Display for Fate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rolls => "is rolled by its template",
            Self::PodStays => "bare Pod: keeps what it started with until somebody deletes and recreates it",
            Self::ReplicaSetStays => {
                "ReplicaSet without a Deployment: delete its pods, and it makes new ones"
            }
            Self::JobGoesOn => "Job: goes on with what it started with",
            Self::JobEnded => "Job: has ended",
            Self::NextRun { suspended: false } => "CronJob: the next run starts with the new value",
            Self::NextRun { suspended: true } => {
                "CronJob: suspended; the next run starts with the value of then"
            }
            Self::NotTold => "its kind isn't known as one that rolls: name it with --workload",
            Self::NotListed => "its kind couldn't be listed: what is known is of its pods only",
        })
    }
}

impl Consumer {
    /// A workload that can be rolled.
    ///
    /// # Errors
    /// It lacks something that every workload has.
    pub fn workload(kind: &Kind, object: &Value, options: &ReadOptions) -> Result<Self, Unreadable> {
        let workload = read::workload(kind, object, options)?;
        Ok(Self {
            namespace: workload.id.namespace.clone(),
            kind: kind.as_str().into(),
            name: workload.id.name.clone(),
            uid: workload.uid,
            declared: Arc::clone(&workload.declared),
            references: Arc::clone(&workload.references),
            reference_count: workload.reference_count,
            injected: BTreeSet::new(),
            service_account: workload.service_account.clone(),
            policy: workload.policy.clone(),
            fate: Fate::Rolls,
            workload: Some(Box::new(workload)),
        })
    }

    /// Something with pods that can't be rolled. `template` is where its pod template lies in it; the object itself if
    /// it is a Pod.
    ///
    /// # Errors
    /// It lacks something that every object has.
    pub fn standing(
        kind: &str,
        object: &Value,
        template: &Value,
        fate: Fate,
        options: &ReadOptions,
    ) -> Result<Self, Unreadable> {
        let raw = Raw(object);
        let Consumption { declared, policy, service_account } = read::consumption(object, template, options);
        Ok(Self {
            namespace: raw.namespace()?,
            kind: kind.into(),
            name: raw.name()?,
            uid: raw.uid()?,
            references: Arc::clone(&declared.references),
            reference_count: declared.count,
            declared: Arc::new(declared),
            injected: BTreeSet::new(),
            service_account,
            policy,
            fate,
            workload: None,
        })
    }

    /// Whether it names that Secret, in its template or in its pods only.
    #[must_use]
    pub fn names(&self, secret: &str) -> bool {
        self.references.iter().chain(&self.injected).any(|reference| *reference.secret == *secret)
    }
}

/// `KIND/NAME`.
impl fmt::Display for Consumer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.kind, self.name)
    }
}
