//! What the engine remembers of a workload that it has to do with, besides the ledger.

use std::time::Duration;

use crate::{
    agenda::{Backoff, Settle},
    decide::{Decision, Verdict},
    facts::Mono,
    ledger::Ticket,
    rollout::Progress,
};

/// The work on one workload.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) settle: Settle,
    pub(super) phase: Phase,
    /// The last decision.
    pub(super) decision: Option<Decision>,
    /// How far its running rollout is, and since when it is no farther.
    pub(super) progress: Option<(Stretch, Mono)>,
    /// Failed calls in a row.
    pub(super) backoff: Backoff,
    /// Looks at undecided pods in a row.
    pub(super) patience: Backoff,
    /// When a stamp that something took away is put back.
    pub(super) restamp_at: Option<Mono>,
}

/// A state of a running rollout: it makes progress when this changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    pub(super) generation: i64,
    pub(super) observed: bool,
    pub(super) progress: Progress,
}

/// Where the work on a workload stands.
#[derive(Debug, Default)]
pub(super) enum Phase {
    /// Nothing is under way.
    #[default]
    Idle,
    /// It waits for its namespace's pods.
    Looking,
    /// It is to be stamped at that time, once the ledger has the intent.
    Intended {
        /// The intent in the ledger.
        ticket: Ticket,
        /// Not before.
        at: Mono,
        /// What it was decided by.
        verdict: Verdict,
        /// When the pods were listed.
        listed: Mono,
        /// How often the workload was another at the stamp than when it was inspected.
        conflicts: u32,
    },
    /// The stamp is under way, or the workload is read again after a conflict.
    Stamping {
        /// What it was decided by.
        verdict: Verdict,
        /// When the pods were listed.
        listed: Mono,
        /// How often the workload was another at the stamp than when it was inspected.
        conflicts: u32,
    },
}

impl Default for Task {
    fn default() -> Self {
        Self {
            settle: Settle::default(),
            phase: Phase::Idle,
            decision: None,
            progress: None,
            backoff: Backoff::new(Duration::from_secs(1), Duration::from_secs(60)),
            patience: Backoff::new(Duration::from_secs(2), super::LOOK_EVERY),
            restamp_at: None,
        }
    }
}
