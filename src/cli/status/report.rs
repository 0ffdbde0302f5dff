//! What `status` says, as programs read it. Pure.

use serde::Serialize;

pub use super::describe::{reference_report, report};
use crate::{
    cli::scene::Unknown,
    facts::{Name, Namespace, Time},
};

/// The report of `status`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// When it was made, by the API server's clock.
    pub at: String,
    /// The namespace that it is about; none if all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// What of it, as it was typed; none if everything.
    #[serde(skip)]
    pub target: Option<String>,
    /// Whether the operator's ledger was read: without it, staleness is only probable.
    pub ledger: bool,
    /// What the operator is taken to have been told.
    pub operator: OperatorReport,
    /// All in numbers.
    pub summary: Summary,
    /// The consumers, those first that need attention.
    pub consumers: Vec<ConsumerReport>,
    /// What couldn't be listed.
    pub unknown: Vec<Unknown>,
}

/// What the operator is taken to have been told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorReport {
    /// `ledger` if it says so itself, or `defaults`.
    pub from: &'static str,
    /// Where its ledger was looked for.
    pub namespace: Namespace,
    /// Its mode where no annotation says otherwise.
    pub default_rollout: &'static str,
    /// Whether a change of a mounted Secret rolls.
    pub roll_volumes: bool,
}

/// All in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Consumers.
    pub consumers: usize,
    /// Those that somebody should look at.
    pub attention: usize,
    /// Live pods.
    pub pods: usize,
    /// Pods with the current values.
    pub fresh: usize,
    /// Pods with an old value.
    pub stale: usize,
    /// Pods that are older than their Secret's last writing.
    pub probably_stale: usize,
    /// Pods of which a consuming container hasn't started.
    pub undecided: usize,
    /// Pods of which nothing is known.
    pub unknown: usize,
}

/// What is said of one consumer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerReport {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its kind.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// How it references Secrets.
    pub references: Vec<ReferenceReport>,
    /// Its live pods.
    pub pods: PodsReport,
    /// How its last rollout by Uptake ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<OutcomeReport>,
    /// What keeps it from being rolled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldReport>,
    /// What Uptake may do with it.
    pub policy: PolicyReport,
    /// What becomes of its pods when a Secret changes, if it can't be rolled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fate: Option<String>,
    /// Whether only a person can replace its stale pods.
    #[serde(skip)]
    pub(super) needs_a_person: bool,
    /// Whether nothing of it is known but its pods.
    #[serde(skip)]
    pub(super) not_listed: bool,
}

/// How a Secret is referenced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceReport {
    /// The Secret.
    pub secret: Name,
    /// How.
    pub via: &'static str,
    /// Which keys; none: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<Name>>,
    /// Whether pods start without.
    pub optional: bool,
    /// Where it stands, if not in the workload itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether a change rolls the workload, and why not if not.
    pub rolls: &'static str,
}

/// A consumer's live pods.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodsReport {
    /// How many there are.
    pub live: usize,
    /// How many hold the current values; none if that can't be told.
    pub fresh: Option<usize>,
    /// Those that don't.
    pub stale: Vec<StalePod>,
    /// Those of which a consuming container hasn't started.
    pub undecided: Vec<Name>,
    /// Whether what has to be listed to find them can't be.
    #[serde(skip)]
    pub uncounted: bool,
}

impl PodsReport {
    /// Nothing is known of them.
    #[must_use]
    pub fn uncounted() -> Self {
        Self { uncounted: true, ..Self::default() }
    }
}

/// A pod with an old value.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StalePod {
    /// Its name.
    pub name: Name,
    /// `stale`, or `probably_stale` without a ledger that knows.
    pub state: &'static str,
    /// When it was born.
    pub born: String,
    /// Since when it is stale.
    pub since: String,
    /// Of which values: `SECRET/KEY`, or the Secret for all of it.
    pub of: Vec<String>,
    /// The same as a time, for ages.
    #[serde(skip)]
    pub since_time: Time,
}

/// How a rollout ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeReport {
    /// The word for it.
    pub outcome: String,
    /// More of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Who says so: `ledger` or `event`; nobody if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<&'static str>,
    /// The same as a time, for ages.
    #[serde(skip)]
    pub time: Option<Time>,
}

/// What keeps a workload from being rolled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldReport {
    /// The word for it.
    pub reason: String,
    /// In words for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// What Uptake may do with a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReport {
    /// `auto`, `report` or `off`; `unknown` if its kind couldn't be listed.
    pub mode: &'static str,
    /// Whose word that is.
    pub from: &'static str,
    /// The reason that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What can't be understood of its annotations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

impl Summary {
    /// Of all consumers.
    #[must_use]
    pub(super) fn of(consumers: &[ConsumerReport]) -> Self {
        let mut summary = Self { consumers: consumers.len(), ..Self::default() };
        for consumer in consumers {
            let PodsReport { live, fresh, stale, undecided, .. } = &consumer.pods;
            let certain = stale.iter().filter(|pod| pod.state == "stale").count();
            summary.attention += usize::from(consumer.attention() > Attention::None);
            summary.pods += live;
            summary.fresh += fresh.unwrap_or(0);
            summary.stale += certain;
            summary.probably_stale += stale.len() - certain;
            summary.undecided += undecided.len();
            summary.unknown += if fresh.is_none() { live - stale.len() - undecided.len() } else { 0 };
        }
        summary
    }
}

/// How much a consumer needs somebody's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// It doesn't.
    None,
    /// Something of it isn't known.
    Unknown,
    /// Something holds it.
    Held,
    /// Pods are stale, and something will replace them.
    Stale,
    /// Pods are stale, and nothing will replace them by itself.
    Stuck,
}

impl ConsumerReport {
    /// Whether nothing of it is known but its pods, for its kind couldn't be listed.
    #[must_use]
    pub fn is_not_listed(&self) -> bool {
        self.not_listed
    }

    /// How much it needs somebody's attention.
    #[must_use]
    pub fn attention(&self) -> Attention {
        let failed = self
            .last_outcome
            .as_ref()
            .is_some_and(|last| matches!(last.outcome.as_str(), "failed" | "blocked" | "refused"));
        let nobody = self.needs_a_person || matches!(self.policy.mode, "report" | "off") || failed;
        match (self.pods.stale.is_empty(), nobody) {
            (false, true) => Attention::Stuck,
            (false, false) => Attention::Stale,
            (true, _) if self.held.is_some() => Attention::Held,
            (true, _) if self.not_listed => Attention::Unknown,
            (true, _) if self.pods.live > 0 && self.pods.fresh.is_none() => Attention::Unknown,
            (true, _) => Attention::None,
        }
    }
}
