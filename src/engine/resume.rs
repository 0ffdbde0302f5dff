//! Large rotations that a crash cut short: their one summary is still to be told.
//!
//! They are read off the attempts in the ledger. A completion that only the summary tells of stays untold there until
//! the API server has the summary.

use std::collections::BTreeSet;

use super::{
    Engine,
    consumption::rolling,
    notes::TELL_WITHIN,
    rotation::{MANY, Rotation},
};
use crate::{
    facts::{Kind, SecretId, Version, WorkloadId},
    ledger::{Attempt, Untold},
    rollout::Outcome,
};

impl Engine {
    /// Takes up the rotations of Secrets with many consumers, some of whose rollouts run or weren't told of. Gives those
    /// whose completion the summary tells of.
    pub(super) fn resume_rotations(&mut self) -> BTreeSet<WorkloadId> {
        let mut left_to_summary = BTreeSet::new();
        // Half a list would make half a rotation.
        let kinds = self.known_kinds();
        let begun: BTreeSet<(SecretId, Version)> = self
            .catalog
            .workloads()
            .filter(|workload| kinds.contains(&workload.id.kind))
            .filter_map(|workload| {
                let attempt = self.attempt_of(workload).filter(|attempt| self.is_unfinished(attempt))?;
                let (name, version) = attempt.versions.iter().max_by_key(|(_, version)| **version)?;
                Some((SecretId { namespace: workload.id.namespace.clone(), name: name.clone() }, *version))
            })
            .collect();
        for (secret, version) in begun {
            if self.rotations.get(&secret).is_some_and(|rotation| !rotation.resumed) {
                continue;
            }
            let rotation = self.resumed(&secret, version, &kinds);
            if rotation.consumers <= MANY {
                continue;
            }
            left_to_summary.extend(rotation.unsaid.keys().cloned());
            let over = rotation.counted && rotation.rolling.is_empty();
            self.rotations.insert(secret.clone(), rotation);
            if over {
                self.tell_rotation(&secret);
                self.rotations.remove(&secret);
            }
        }
        left_to_summary
    }

    /// What came of that version so far, by the ledger.
    fn resumed(&self, secret: &SecretId, version: Version, kinds: &[Kind]) -> Rotation {
        let mut rotation = Rotation::of(version);
        rotation.resumed = true;
        for workload in self.catalog.consumers(secret) {
            if !kinds.contains(&workload.id.kind) {
                continue;
            }
            let newest = self.versions(workload).get(&secret.name).copied();
            if newest != Some(version) || rolling(workload).all(|reference| reference.secret != secret.name) {
                continue;
            }
            rotation.consumers += 1;
            let id = workload.id.clone();
            let attempt = self
                .attempt_of(workload)
                .filter(|attempt| attempt.versions.get(&secret.name) == Some(&version));
            match attempt.map(|attempt| (attempt, &attempt.ended)) {
                None if self.is_candidate(workload) => drop(rotation.waiting.insert(id)),
                None => rotation.nothing += 1,
                Some((attempt, None)) if attempt.stamped.is_none() && !self.bears_stamp(workload) => {
                    rotation.waiting.insert(id);
                }
                Some((_, None)) => {
                    rotation.rolled += 1;
                    rotation.rolling.insert(id);
                }
                Some((attempt, Some(ended))) => {
                    rotation.rolled += 1;
                    if ended.outcome != Outcome::Completed {
                        rotation.failed += 1;
                        continue;
                    }
                    rotation.completed += 1;
                    if attempt.untold.contains(&Untold::Ended) && !ended.late {
                        rotation.unsaid.insert(id, (workload.uid, attempt.number));
                    }
                }
            }
        }
        rotation.counted = rotation.waiting.is_empty();
        rotation
    }

    /// Whether it runs, or its completion wasn't told and is new enough to be.
    fn is_unfinished(&self, attempt: &Attempt) -> bool {
        match &attempt.ended {
            None => true,
            Some(ended) => {
                attempt.untold.contains(&Untold::Ended)
                    && ended.outcome == Outcome::Completed
                    && self.now.server.since(ended.at) <= TELL_WITHIN
            }
        }
    }
}

#[cfg(test)]
mod tests;
