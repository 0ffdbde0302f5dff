//! What people get to see: Events, metrics, log lines.

mod log;
mod metrics;
mod note;
#[cfg(test)]
mod runbook;
mod telemetry;

pub use log::log;
pub use metrics::Metrics;
#[cfg(test)]
pub(crate) use telemetry::captured;
pub use telemetry::{LogFormat, init as init_telemetry};

pub use note::{EventNote, NoteType, ObjectRef, Reason};

use std::time::Duration;

use crate::{
    decide::Decision,
    facts::{Kind, SecretId, WorkloadId},
    rollout::Outcome,
};

/// Something that happened, to be counted and logged. Gauges are read from the engine instead.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A Secret's new resourceVersion was examined, and this came of it.
    SecretChange {
        /// The Secret.
        secret: SecretId,
        /// What came of it.
        effect: Effect,
        /// Whether anybody references it.
        consumed: bool,
    },
    /// A workload was looked at.
    Decided {
        /// The workload.
        workload: WorkloadId,
        /// What was decided, with its reason.
        decision: Decision,
    },
    /// A stamp was acknowledged that changed the template.
    Stamped {
        /// The workload.
        workload: WorkloadId,
        /// The stamp.
        stamp: String,
        /// From the change's delivery to the acknowledgement.
        after: Duration,
    },
    /// A rollout reached its outcome.
    RolloutEnded {
        /// The workload.
        workload: WorkloadId,
        /// How it ended.
        outcome: Outcome,
        /// From the stamp to the end, as far as this process saw it.
        took: Duration,
    },
    /// A ledger object was written, or not.
    LedgerWrite {
        /// The object.
        name: String,
        /// How it went.
        result: LedgerWriteResult,
    },
    /// Something that a person running Uptake should know and that concerns no single workload.
    Notice {
        /// What.
        message: String,
        /// Whether it needs their attention.
        warning: bool,
    },
}

/// What came of a Secret's new resourceVersion: the label `effect` of `uptake_secret_changes_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// At least one consumer was rolled for it.
    Rolled,
    /// It had consumers, and none had a stale pod.
    NothingToDo,
    /// Policy says report only.
    Report,
    /// No data that anybody consumes changed.
    Unchanged,
    /// Something holds its consumers.
    Held,
}

/// How a ledger write went: the label `result` of `uptake_ledger_writes_total`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LedgerWriteResult {
    /// Written.
    Ok,
    /// Somebody else wrote the object first: it is read and merged.
    Conflict,
    /// It failed and is tried again.
    Error,
}

impl Effect {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Rolled => "rolled",
            Self::NothingToDo => "nothing_to_do",
            Self::Report => "report",
            Self::Unchanged => "unchanged",
            Self::Held => "held",
        }
    }
}

impl LedgerWriteResult {
    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Conflict => "conflict",
            Self::Error => "error",
        }
    }
}

/// The state of things that metrics show as gauges.
#[derive(Clone, Debug, PartialEq)]
pub struct Gauges {
    /// Workloads with stale pods, and how many.
    pub stale_pods: Vec<(WorkloadId, usize)>,
    /// Workloads that are held, by the word of the reason.
    pub held: Vec<(&'static str, usize)>,
    /// Workloads that are to be looked at.
    pub pending: usize,
    /// Rollouts between stamp and outcome.
    pub in_flight: usize,
    /// Watched kinds, and whether their inventory is complete; with the fault if not.
    pub synced: Vec<(Watch, Result<(), String>)>,
    /// Whether the ledger is loaded and writable.
    pub ledger: Result<(), String>,
}

/// A kind that is watched.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Watch {
    /// Secrets.
    Secrets,
    /// Namespaces.
    Namespaces,
    /// ServiceAccounts.
    ServiceAccounts,
    /// SecretProviderClasses.
    ProviderClasses,
    /// What the Secrets Store CSI driver mounted.
    Mounts,
    /// A kind of workload.
    Workloads(Kind),
}

impl Watch {
    /// Whether decisions need it. Pull secrets are listed only, so ServiceAccounts never make Uptake unready.
    #[must_use]
    pub const fn is_needed(&self) -> bool {
        !matches!(self, Self::ServiceAccounts)
    }

    /// The kind, as manifests write it.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Secrets => "Secret",
            Self::Namespaces => "Namespace",
            Self::ServiceAccounts => "ServiceAccount",
            Self::ProviderClasses => "SecretProviderClass",
            Self::Mounts => "SecretProviderClassPodStatus",
            Self::Workloads(kind) => kind.as_str(),
        }
    }
}
