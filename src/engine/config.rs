//! What the engine is told once, at its start.

use std::time::Duration;

use crate::{
    catalog::policy::Mode,
    facts::{Kind, Namespace, Uid},
    ledger::{DigestKey, Settings},
};

/// The engine's settings, checked.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// How long the consumed data must have been quiet before a workload is rolled.
    pub settle: Duration,
    /// How long that may delay a rollout at most.
    pub settle_max: Duration,
    /// How many rollouts may run at a time; 0 is no limit.
    pub max_concurrent_rollouts: usize,
    /// Whether one consumer is rolled first, alone.
    pub canary: bool,
    /// The mode where nothing says otherwise.
    pub default_rollout: Mode,
    /// What is done about pods that were stale before the ledger was made.
    pub first_sight: FirstSight,
    /// What counts as a change.
    pub trigger: Trigger,
    /// How long a rollout may make no progress.
    pub rollout_timeout: Duration,
    /// The kinds that are watched; nothing is decided for one before its inventory is known.
    pub kinds: Vec<Kind>,
    /// Whether a change of a mounted Secret rolls. Who reads workloads is told of it too; here it is written down for those
    /// who read the ledger.
    pub roll_volumes: bool,
    /// The namespaces that are watched; none means all.
    pub namespaces: Vec<Namespace>,
    /// The namespaces that are left alone.
    pub ignore_namespaces: Vec<Namespace>,
    /// Uptake's own namespace: ledger, pause switch.
    pub own_namespace: Namespace,
    /// The identity of the own namespace: a ledger of another is another cluster's.
    pub own_namespace_uid: Uid,
    /// Under which digests are made.
    pub digest_key: DigestKey,
}

impl EngineConfig {
    /// As much of it as readers of the ledger need.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            default_rollout: self.default_rollout.as_str().into(),
            roll_volumes: self.roll_volumes,
            workloads: Settings::workloads_of(&self.kinds),
            namespaces: self.namespaces.clone(),
            ignore_namespaces: self.ignore_namespaces.clone(),
        }
    }
}

#[cfg(test)]
impl EngineConfig {
    /// One for tests: those kinds, of the whole cluster, with the flags' defaults but for a settle time that is over soon.
    #[must_use]
    pub fn sample(kinds: Vec<Kind>) -> Self {
        Self {
            settle: Duration::from_secs(2),
            settle_max: Duration::from_secs(30),
            max_concurrent_rollouts: 20,
            canary: false,
            default_rollout: Mode::Auto,
            first_sight: FirstSight::Report,
            trigger: Trigger::Data,
            rollout_timeout: Duration::from_secs(900),
            roll_volumes: true,
            kinds,
            namespaces: Vec::new(),
            ignore_namespaces: Vec::new(),
            own_namespace: "uptake".into(),
            own_namespace_uid: Uid::parse("own"),
            digest_key: DigestKey::new([1; crate::ledger::KEY_BYTES]),
        }
    }
}

/// `--first-sight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FirstSight {
    /// List them in reports, a metric and one Event.
    Report,
    /// Roll them.
    Roll,
    /// Say nothing.
    Trust,
}

/// `--trigger`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trigger {
    /// A change of data that somebody consumes.
    Data,
    /// Each resourceVersion.
    ResourceVersion,
}
