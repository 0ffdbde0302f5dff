//! What is remembered of a workload: up to where it is clean, and how it was last rolled.

use std::{collections::BTreeMap, time::Duration};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use crate::{
    catalog::TemplateHash,
    facts::{Kind, Name, Time, Version},
    rollout::Outcome,
};

/// How many stamps of a Secret are remembered as this ledger's own: pods of older ones are compared by
/// their birth.
const STAMPS: usize = 8;

/// Versions by the Secret's name.
pub type Versions = BTreeMap<Name, Version>;

/// The marks of one workload, found by its uid.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Marks {
    /// `GROUP/VERSION/KIND`: whose inventory says whether it is still there.
    pub kind: String,
    /// Its name, for people who read the ledger.
    pub name: Name,
    /// The versions up to which no live pod is stale, proven.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub clean: Versions,
    /// For which references that was proven: others may consume what changed before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clean_for: Option<u64>,
    /// The versions that this ledger stamped on it, oldest first.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub stamped: BTreeMap<Name, Vec<Version>>,
    /// The last rollout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Attempt>,
    /// What was last said of it in an Event that isn't a rollout's, so that it isn't said again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub said: Option<String>,
    /// What a newer version of Uptake wrote.
    #[serde(flatten)]
    pub more: Map<String, Json>,
}

/// One rollout of a workload by Uptake.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Attempt {
    /// Its number among the workload's: part of its Events' names.
    pub number: u32,
    /// The versions that its stamp names.
    pub versions: Versions,
    /// The template that it was decided for, without the stamp.
    pub template: TemplateHash,
    /// When it was decided.
    pub at: Time,
    /// The pods that were stale when it was decided.
    pub stale: usize,
    /// How often its stamp was put back after something else took it away.
    #[serde(default)]
    pub reverts: u32,
    /// When the API server acknowledged the stamp.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamped: Option<Time>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Events of it that were not acknowledged yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub untold: Vec<Untold>,
    /// What a newer version of Uptake wrote.
    #[serde(flatten)]
    pub more: Map<String, Json>,
}

/// The end of a rollout.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ended {
    /// How.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// When.
    pub at: Time,
    /// The pods that are still stale.
    #[serde(default)]
    pub stale: usize,
    /// A pod that had got the new values started and didn't become ready: for these Secrets' versions the breaker is
    /// open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub broke: Vec<Name>,
    /// A failed or blocked rollout that was completed later after all.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub late: bool,
}

impl Ended {
    /// This end, of which no pod is stale any more.
    #[must_use]
    pub fn new(outcome: Outcome, at: Time) -> Self {
        Self { outcome, at, stale: 0, broke: Vec::new(), late: false }
    }

    /// So many pods are still stale.
    #[must_use]
    pub fn with_stale(self, stale: usize) -> Self {
        Self { stale, ..self }
    }

    /// These Secrets' versions broke it.
    #[must_use]
    pub fn having_broken(self, broke: Vec<Name>) -> Self {
        Self { broke, ..self }
    }

    /// It came after another end.
    #[must_use]
    pub fn made_late(self) -> Self {
        Self { late: true, ..self }
    }
}

/// An Event of a rollout that the API server hasn't acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Untold {
    /// That it started.
    Started,
    /// How it ended.
    Ended,
}

impl Attempt {
    /// Whether it goes on.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.ended.is_none()
    }

    /// Whether it ended with the pods having the values.
    #[must_use]
    pub fn is_completed(&self) -> bool {
        self.ended.as_ref().is_some_and(|ended| ended.outcome == Outcome::Completed)
    }

    /// Whether it ended without the pods having the values: those versions aren't tried again by itself.
    #[must_use]
    pub fn has_failed_for(&self, versions: &Versions) -> bool {
        let failed = self
            .ended
            .as_ref()
            .is_some_and(|ended| matches!(ended.outcome, Outcome::Failed(_) | Outcome::Blocked(_)));
        failed
            && versions
                .iter()
                .all(|(secret, version)| self.versions.get(secret).is_some_and(|tried| tried >= version))
    }

    /// How long it took from its decision to that moment.
    #[must_use]
    pub fn took(&self, at: Time) -> Duration {
        at.since(self.stamped.unwrap_or(self.at))
    }
}

impl Marks {
    /// Marks of a workload that is seen for the first time.
    #[must_use]
    pub fn new(kind: &Kind, name: Name) -> Self {
        Self { kind: kind_id(kind), name, ..Self::default() }
    }

    /// Whether this ledger stamped that version of the Secret on the workload.
    #[must_use]
    pub fn has_stamped(&self, secret: &str, version: Version) -> bool {
        self.stamped.get(secret).is_some_and(|versions| versions.contains(&version))
    }

    /// Whether it was rolled for that version of the Secret, and none of its pods was stale afterwards.
    #[must_use]
    pub fn has_proven(&self, secret: &str, version: Version) -> bool {
        self.has_stamped(secret, version) && self.clean.get(secret).is_some_and(|clean| *clean >= version)
    }

    /// Remembers a stamp as this ledger's own.
    pub fn remember_stamp(&mut self, versions: &Versions) {
        for (secret, version) in versions {
            let known = self.stamped.entry(secret.clone()).or_default();
            if !known.contains(version) {
                known.push(*version);
                let surplus = known.len().saturating_sub(STAMPS);
                known.drain(..surplus);
            }
        }
    }

    /// Forgets versions from above that one, of a store that was set back since: they never were. Whether there were any.
    pub fn forget_above(&mut self, version: Version) -> bool {
        let mut forgot = !self.clean.is_empty();
        // Pods were set back too, to what they were before they were proven, whatever version that names.
        self.clean.clear();
        let mut retain = |versions: &mut Versions| {
            let before = versions.len();
            versions.retain(|_, known| *known <= version);
            forgot |= versions.len() < before;
        };
        if let Some(attempt) = self.attempt.as_mut().filter(|attempt| !attempt.is_running()) {
            retain(&mut attempt.versions);
        }
        for versions in self.stamped.values_mut() {
            versions.retain(|known| *known <= version);
        }
        forgot
    }

    /// Joins what another writer of the same ledger knows.
    pub fn join(&mut self, theirs: Self) {
        if self.clean_for == theirs.clean_for {
            for (secret, version) in theirs.clean {
                let mine = self.clean.entry(secret).or_default();
                *mine = version.max(*mine);
            }
        } else if self.clean_for.is_none() {
            (self.clean, self.clean_for) = (theirs.clean, theirs.clean_for);
        }
        for (secret, versions) in theirs.stamped {
            for version in versions {
                self.remember_stamp(&Versions::from([(secret.clone(), version)]));
            }
        }
        if later(theirs.attempt.as_ref(), self.attempt.as_ref()) {
            self.attempt = theirs.attempt;
            self.said = theirs.said.or_else(|| self.said.take());
        } else if let (Some(mine), Some(theirs)) = (&mut self.attempt, theirs.attempt)
            && mine.number == theirs.number
            && let (Some(my_end), Some(their_end)) = (&mine.ended, &theirs.ended)
            && (their_end.late || !my_end.late)
        {
            // What stands in the store was told already: a rollout has one outcome.
            mine.ended = theirs.ended;
        }
    }
}

fn later(a: Option<&Attempt>, b: Option<&Attempt>) -> bool {
    let rank =
        |attempt: &Attempt| (attempt.number, attempt.ended.is_some(), attempt.stamped.is_some(), attempt.at);
    a.map(rank) > b.map(rank)
}

/// A kind as the ledger names it.
#[must_use]
pub fn kind_id(kind: &Kind) -> String {
    format!("{}/{}", kind.api_version(), kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ended(outcome: Outcome, at: i64, late: bool) -> Marks {
        let ended = Some(Ended { late, ..Ended::new(outcome, Time(at)) });
        let attempt = Attempt {
            number: 1,
            versions: Versions::new(),
            template: TemplateHash(1),
            at: Time(1),
            stale: 1,
            reverts: 0,
            stamped: Some(Time(2)),
            ended,
            untold: Vec::new(),
            more: Map::new(),
        };
        Marks { attempt: Some(attempt), ..Marks::default() }
    }

    #[test]
    fn versions_of_a_store_that_is_gone_prove_and_hold_nothing() {
        let versions = || Versions::from([("s".into(), Version(9)), ("t".into(), Version(4))]);
        let mut marks = ended(Outcome::Completed, 3, false);
        marks.clean = versions();
        marks.remember_stamp(&versions());
        if let Some(attempt) = &mut marks.attempt {
            attempt.versions = versions();
        }
        assert!(marks.forget_above(Version(9)));
        assert!(marks.clean.is_empty(), "pods were set back too");
        assert!(!marks.forget_above(Version(9)));
        assert!(marks.forget_above(Version(5)));
        let left = Versions::from([("t".into(), Version(4))]);
        assert_eq!(marks.attempt.as_ref().map(|attempt| &attempt.versions), Some(&left));
        assert!(marks.has_stamped("t", Version(4)) && !marks.has_stamped("s", Version(9)));
    }

    #[test]
    fn a_version_is_proven_by_a_rollout_for_it_and_clean_pods() {
        let version = |version| Versions::from([("s".into(), Version(version))]);
        let mut marks = Marks { clean: version(9), ..Marks::default() };
        assert!(!marks.has_proven("s", Version(5)), "it was never rolled for it");
        marks.remember_stamp(&version(5));
        marks.remember_stamp(&version(10));
        assert!(marks.has_proven("s", Version(5)));
        assert!(!marks.has_proven("s", Version(9)) && !marks.has_proven("t", Version(5)));
        assert!(!marks.has_proven("s", Version(10)), "it may still be at it");
        assert!(ended(Outcome::Completed, 1, false).attempt.is_some_and(|attempt| attempt.is_completed()));
        assert!(!ended(Outcome::Superseded, 1, false).attempt.is_some_and(|attempt| attempt.is_completed()));
    }

    #[test]
    fn proofs_for_other_references_are_not_joined() {
        let marks = |version, references| Marks {
            clean: Versions::from([("s".into(), Version(version))]),
            clean_for: Some(references),
            ..Marks::default()
        };
        let mut mine = marks(5, 1);
        mine.join(marks(9, 2));
        assert_eq!(mine, marks(5, 1));
        mine.join(marks(9, 1));
        assert_eq!(mine, marks(9, 1));
    }

    #[test]
    fn an_outcome_that_stands_in_the_store_stays_unless_it_is_revised() {
        let mut mine = ended(Outcome::Completed, 9, false);
        mine.join(ended(Outcome::Completed, 5, false));
        assert_eq!(mine, ended(Outcome::Completed, 5, false));
        let mut late = ended(Outcome::Completed, 9, true);
        late.join(ended(Outcome::Superseded, 5, false));
        assert_eq!(late, ended(Outcome::Completed, 9, true));
        late.join(ended(Outcome::Completed, 7, true));
        assert_eq!(late, ended(Outcome::Completed, 7, true), "a revision happens once, too");
    }
}
