//! What the operator told in Events, for those who may not read its ledger.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{
    facts::{Name, Namespace, Raw, Time, raw::text},
    record::Reason,
};

/// What was last told of workloads, by namespace, kind and name.
#[derive(Clone, Debug, Default)]
pub struct Told {
    outcomes: BTreeMap<(Namespace, Name, Name), Telling>,
    holds: BTreeMap<(Namespace, Name, Name), Telling>,
}

/// An Event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Telling {
    /// Its reason.
    pub reason: Reason,
    /// Its words.
    pub note: String,
    /// When it was written.
    pub at: Time,
}

/// The reasons that tell how a rollout ended, or that one has begun.
const OUTCOMES: [Reason; 6] = [
    Reason::RolloutStarted,
    Reason::RolloutCompleted,
    Reason::RolloutFailed,
    Reason::RolloutBlocked,
    Reason::RolloutSuperseded,
    Reason::RolloutRefused,
];

/// The reasons that tell why there is none.
const HOLDS: [Reason; 2] = [Reason::RolloutHeld, Reason::WouldRoll];

impl Told {
    /// Takes in an Event; one of anybody else is none.
    pub fn take(&mut self, event: &Value) {
        if text(event, "reportingController") != Some(crate::cluster::EVENT_CONTROLLER) {
            return;
        }
        let Some((place, telling)) = read(event) else { return };
        let into = if OUTCOMES.contains(&telling.reason) {
            &mut self.outcomes
        } else if HOLDS.contains(&telling.reason) {
            &mut self.holds
        } else {
            return;
        };
        let latest = into.entry(place).or_insert_with(|| telling.clone());
        if telling.at > latest.at {
            *latest = telling;
        }
    }

    /// How a workload's last rollout ended.
    #[must_use]
    pub fn outcome(&self, namespace: &Namespace, kind: &Name, name: &Name) -> Option<&Telling> {
        self.outcomes.get(&(namespace.clone(), kind.clone(), name.clone()))
    }

    /// What holds a workload, unless it was rolled since.
    #[must_use]
    pub fn hold(&self, namespace: &Namespace, kind: &Name, name: &Name) -> Option<&Telling> {
        let since = self.outcome(namespace, kind, name).map(|outcome| outcome.at);
        self.holds
            .get(&(namespace.clone(), kind.clone(), name.clone()))
            .filter(|hold| since.is_none_or(|since| since < hold.at))
    }
}

type Place = (Namespace, Name, Name);

fn read(event: &Value) -> Option<(Place, Telling)> {
    let regarding = event.get("regarding")?;
    let word = text(event, "reason")?;
    let reason = OUTCOMES.into_iter().chain(HOLDS).find(|reason| reason.as_str() == word)?;
    let at = text(event, "eventTime").and_then(Time::parse).or_else(|| Raw(event).created().ok())?;
    let place = (
        text(regarding, "namespace")?.into(),
        text(regarding, "kind")?.into(),
        text(regarding, "name")?.into(),
    );
    Some((place, Telling { reason, note: text(event, "note").unwrap_or_default().to_owned(), at }))
}
