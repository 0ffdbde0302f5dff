//! What goes into the engine and what comes out of it.
//!
//! The engine is driven by [`Input`]s: watch events, answers to its calls, and the passing of time. It
//! gives [`Call`]s to perform, each with an id under which the answer comes back, and [`Record`]s
//! to count and log. Whoever drives it (the operator, the simulation) performs calls in any order and at any pace;
//! a call that was lost in a crash is simply never answered.

use std::{collections::BTreeMap, fmt};

use crate::{
    catalog::{
        SecretFacts, Selection, Workload,
        beside::{BesideId, ProviderClassFacts, ServiceAccountFacts},
        mounted::MountFacts,
        namespace::NamespaceFacts,
    },
    decide::{OwnerFacts, PodFacts},
    facts::{Kind, Name, Namespace, SecretId, Uid, Version, WorkloadId},
    record::{EventNote, Record},
};

/// The number under which a call's answer comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallId(pub u64);

/// What the engine is told.
#[derive(Debug)]
pub enum Input {
    /// The watch of Secrets.
    Secrets(Watched<SecretFacts, SecretId>),
    /// The watch of a kind of workload.
    Workloads(Kind, Watched<Workload, WorkloadId>),
    /// The watch of Namespaces.
    Namespaces(Watched<NamespaceFacts, Namespace>),
    /// The watch of ServiceAccounts.
    ServiceAccounts(Watched<ServiceAccountFacts, BesideId>),
    /// The watch of SecretProviderClasses; where the API server doesn't serve the kind, the list is empty.
    ProviderClasses(Watched<ProviderClassFacts, BesideId>),
    /// The watch of what the Secrets Store CSI driver mounted; where the API server doesn't serve the kind, the list is
    /// empty.
    Mounts(Watched<MountFacts, BesideId>),
    /// The answer to a call.
    Answer(CallId, Answer),
    /// Nothing but the passing of time.
    Tick,
    /// This process leads from now on: see [`Engine::standby`](super::Engine::standby).
    Lead,
    /// The process is asked to end: nothing new is begun, what is known is written.
    Stop,
}

/// What a watch says. Between a `Complete` and the next `Relist` it is unbroken: every change there was
/// has been delivered, in order (a reconnection that resumes at the last version breaks nothing).
#[derive(Debug)]
pub enum Watched<T, Id> {
    /// The list failed or the watch can't go on: what is known is old. Says why, in words for people.
    Broken(InventoryFault),
    /// A fresh list starts: what isn't named by an `Apply` before the `Complete` is gone.
    Relist,
    /// An object, new or changed, or part of a fresh list.
    Apply(T),
    /// An object is gone; at that version.
    Delete(Id, Version),
    /// The fresh list is complete; the watch goes on from this version.
    Complete(Version),
    /// Everything up to this version has been delivered (a bookmark).
    Progress(Version),
}

/// Why a kind's inventory isn't known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InventoryFault {
    /// The rights are missing.
    Forbidden(String),
    /// The API server doesn't know the kind.
    UnknownKind,
    /// Anything else: unreachable, overloaded, undecodable. The watch tries on.
    Unavailable(String),
}

impl fmt::Display for InventoryFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Forbidden(words) => write!(f, "the rights are missing: {words}"),
            Self::UnknownKind => f.write_str("the API server doesn't know the kind"),
            Self::Unavailable(words) => f.write_str(words),
        }
    }
}

/// A call to the API server.
#[derive(Clone, Debug, PartialEq)]
pub enum Call {
    /// All ledger objects in Uptake's own namespace. Answer: [`Answer::Ledger`].
    ListLedger,
    /// Writes a ledger object whole: creates it (no version) or replaces the one of that version.
    /// Answer: [`Answer::Written`].
    WriteLedger {
        /// The object's name.
        name: String,
        /// The version to replace, none to create.
        over: Option<Version>,
        /// The content.
        body: Vec<u8>,
    },
    /// Removes a ledger object of that version. Answer: [`Answer::Done`].
    DeleteLedger {
        /// The object's name.
        name: String,
        /// Its version.
        over: Version,
    },
    /// A consistent list of those of a namespace's pods. Answer: [`Answer::Pods`].
    ListPods(Namespace, Selection),
    /// The pods that lived at exactly that version. Answer: [`Answer::PodUids`].
    ListPodsAt(Namespace, Version),
    /// A consistent list of what stands between a namespace's pods and their workloads (ReplicaSets above all), and of its
    /// owners; a ReplicaSet has the labels of its pods. Answer: [`Answer::Owners`].
    ListReplicaSets(Namespace, Selection),
    /// One pod of the whole cluster, for the version of the list. Answer: [`Answer::PodListVersion`].
    ProbePodVersion,
    /// A Secret that may lie outside the watch. Answer: [`Answer::Secret`].
    GetSecret(SecretId),
    /// A workload as it is now. Answer: [`Answer::Workload`].
    GetWorkload(WorkloadId),
    /// Sets the stamp on the template of exactly the inspected object. Answer: [`Answer::Workload`].
    Stamp {
        /// The workload.
        id: WorkloadId,
        /// Its identity.
        uid: Uid,
        /// The inspected version.
        over: Version,
        /// The stamp.
        stamp: String,
    },
    /// Writes an Event; its name is the same for the same transition, so a repeat is harmless.
    /// Answer: [`Answer::Done`], also when it exists already.
    Note(Box<EventNote>),
}

/// The answer to a call: what it asked for, or why not.
#[derive(Debug)]
pub enum Answer {
    /// To `ListLedger`: name, version and content of each object; content `None` if it has none.
    Ledger(Result<Vec<LedgerObject>, Fault>),
    /// To `WriteLedger`: the new version.
    Written(Result<Version, Fault>),
    /// To calls that bring nothing.
    Done(Result<(), Fault>),
    /// To `ListPods`.
    Pods(Result<Vec<PodFacts>, Fault>),
    /// To `ListPodsAt`; sorted.
    PodUids(Result<Vec<Uid>, Fault>),
    /// To `ListReplicaSets`: by the ReplicaSet's uid its controlling owner.
    Owners(Result<BTreeMap<Uid, Option<OwnerFacts>>, Fault>),
    /// To `ProbePodVersion`.
    PodListVersion(Result<Version, Fault>),
    /// To `GetSecret`; `Ok(None)` if there is none.
    Secret(Result<Option<SecretFacts>, Fault>),
    /// To `GetWorkload` and `Stamp`.
    Workload(Result<Workload, Fault>),
}

/// A ledger object as it was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerObject {
    /// Its name.
    pub name: Name,
    /// Its version.
    pub version: Version,
    /// Its content, whatever it is.
    pub body: Vec<u8>,
}

/// Why a call didn't bring what it asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The object isn't there (404).
    NotFound,
    /// It isn't the inspected one any more, or exists already (409).
    Conflict,
    /// The rights are missing (403). The API server's words.
    Forbidden(String),
    /// The API server, an admission plugin or a webhook says no to this very request (400, 403 by
    /// admission, 422). Its words.
    Refused(String),
    /// The asked-for version isn't known: it is too old (410), or above all that the store has.
    Expired,
    /// Too many requests (429); not done.
    Throttled,
    /// Anything else. A write may or may not have happened.
    Unknown(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotFound => f.write_str("not found"),
            Self::Conflict => f.write_str("conflict"),
            Self::Forbidden(words) => write!(f, "the rights are missing: {words}"),
            Self::Refused(words) => write!(f, "refused: {words}"),
            Self::Expired => f.write_str("the version is too old"),
            Self::Throttled => f.write_str("too many requests"),
            Self::Unknown(words) => f.write_str(words),
        }
    }
}

/// What the engine gives.
#[derive(Debug, Default)]
pub struct Output {
    /// Calls to perform.
    pub calls: Vec<(CallId, Call)>,
    /// What happened, to count and log.
    pub records: Vec<Record>,
    /// Every watch is to start over with a fresh list.
    pub relist: bool,
}
