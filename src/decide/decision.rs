//! What is decided of a workload, with its reason.

use std::fmt;

use crate::facts::Name;

/// The decision.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Nothing that it consumes changed since it was last proven clean.
    UpToDate,
    /// Something changed, and it needs no rollout.
    NothingToDo(Nothing),
    /// It has stale pods, and policy says to report only.
    Report(ReportOnly),
    /// Policy leaves it alone.
    Skip(Skipped),
    /// It may need a rollout, but not now.
    Hold(Held),
    /// It is rolled.
    Roll,
}

/// Why a change needs no rollout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Nothing {
    /// It has no live pods.
    NoPods,
    /// No live pod is stale.
    NoStalePod,
}

/// Why stale pods are only reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReportOnly {
    /// `uptake.dev/rollout: report`, or the default.
    Policy,
    /// An annotation of it can't be parsed.
    InvalidAnnotation,
    /// The pods were older than their Secret's last change when Uptake was installed.
    FirstSight,
    /// This version was attempted already and failed.
    Attempted,
    /// It has more references, or its namespace more workloads, than are kept.
    TooMany,
}

/// Why policy leaves a workload alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Skipped {
    /// `uptake.dev/rollout: off`.
    OptedOut,
    /// It is being deleted.
    BeingDeleted,
}

/// What holds a rollout.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Held {
    /// What it consumes changed just now.
    Settling,
    /// A rollout is running, ours or another's.
    RolloutRunning,
    /// No pod is stale for certain, and some have not started.
    Undecided,
    /// As many rollouts run as may.
    NoFreeSlot,
    /// The value broke its first consumer.
    BreakerOpen,
    /// Another consumer of the Secret is rolled first, alone.
    Canary,
    /// The Secret, or a key of it, is missing and required: new pods would not start.
    Missing {
        /// The Secret.
        secret: Name,
        /// The key; none if the whole Secret is missing.
        key: Option<Name>,
    },
    /// `uptake.dev/paused` on Uptake's own namespace.
    OperatorPaused,
    /// The ledger can't be written.
    LedgerUnwritable,
    /// The Secrets' or this kind's inventory isn't known.
    InventoryUnknown,
    /// The API server failed a call; it is tried again.
    Backoff,
}

impl Held {
    /// The word for it: the label `reason` of `uptake_held_workloads`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Settling => "settling",
            Self::RolloutRunning => "rollout_running",
            Self::Undecided => "undecided",
            Self::NoFreeSlot => "no_free_slot",
            Self::BreakerOpen => "breaker_open",
            Self::Canary => "canary",
            Self::Missing { .. } => "missing",
            Self::OperatorPaused => "operator_paused",
            Self::LedgerUnwritable => "ledger_unwritable",
            Self::InventoryUnknown => "inventory_unknown",
            Self::Backoff => "backoff",
        }
    }
}

impl Decision {
    /// The decision's word and its reason's, for logs and metrics.
    #[must_use]
    pub const fn words(&self) -> (&'static str, &'static str) {
        match self {
            Self::UpToDate => ("up_to_date", "nothing_changed"),
            Self::NothingToDo(Nothing::NoPods) => ("nothing_to_do", "no_pods"),
            Self::NothingToDo(Nothing::NoStalePod) => ("nothing_to_do", "no_stale_pod"),
            Self::Report(ReportOnly::Policy) => ("report", "policy"),
            Self::Report(ReportOnly::InvalidAnnotation) => ("report", "invalid_annotation"),
            Self::Report(ReportOnly::FirstSight) => ("report", "first_sight"),
            Self::Report(ReportOnly::Attempted) => ("report", "attempted"),
            Self::Report(ReportOnly::TooMany) => ("report", "too_many"),
            Self::Skip(Skipped::OptedOut) => ("skip", "opted_out"),
            Self::Skip(Skipped::BeingDeleted) => ("skip", "being_deleted"),
            Self::Hold(held) => ("hold", held.as_str()),
            Self::Roll => ("roll", "stale_pods"),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (decision, reason) = self.words();
        write!(f, "{decision} ({reason})")
    }
}
