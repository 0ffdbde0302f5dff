//! Keeps a bad value from breaking every consumer of it: the breaker and the canary.
//!
//! Neither is stored: both are read off the attempts in the ledger, so they survive whatever the ledger does.

use super::{Engine, Phase, notes::named};
use crate::{
    catalog::Workload,
    decide::{Decision, Held, Verdict},
    facts::{Name, SecretId, Version, WorkloadId},
    ledger::{Attempt, Ended, Marks, Ticket},
    record::Reason,
    rollout::{Failure, Outcome},
};

impl Engine {
    /// The Secrets whose new versions broke a workload: a pod that had got them started and didn't become ready, and
    /// the rollout failed of it. What a person, a quota or a node did says nothing of a value.
    pub(super) fn broke(&self, id: &WorkloadId, outcome: &Outcome, verdict: &Verdict) -> Vec<Name> {
        let blamed = matches!(outcome, Outcome::Failed(Failure::DeadlineExceeded(_) | Failure::NoProgress));
        let Some(workload) = self.catalog.get(id).filter(|_| blamed && !verdict.broken.is_empty()) else {
            return Vec::new();
        };
        let Some(marks) = self.book.marks(&id.namespace, workload.uid) else { return Vec::new() };
        let Some(attempt) = &marks.attempt else { return Vec::new() };
        let new =
            attempt.versions.iter().filter(|(secret, version)| marks.clean.get(*secret) < Some(version));
        new.map(|(secret, _)| secret.clone()).collect()
    }

    /// Whether a version that the workload would be rolled for broke another consumer, and nobody released it.
    pub(super) fn breaker_holds(&self, workload: &Workload) -> bool {
        self.new_versions(workload).into_iter().any(|(secret, version)| {
            let released = self
                .sightings
                .get(&secret)
                .and_then(|sighting| sighting.annotations.release.as_deref())
                .is_some_and(|release| release.trim() == version.to_string());
            !released
                && self
                    .others(workload, &secret)
                    .filter_map(|(_, marks)| marks.attempt.as_ref())
                    .any(|attempt| has_broken(attempt, &secret.name, version))
        })
    }

    /// Whether another consumer tries a version first, alone, that the workload would be rolled for.
    pub(super) fn canary_holds(&self, workload: &Workload) -> bool {
        self.config.canary
            && self.new_versions(workload).into_iter().any(|(secret, version)| {
                let (mut proven, mut trying) = (false, false);
                for (other, marks) in self.others(workload, &secret) {
                    let attempt = marks.attempt.as_ref();
                    let last = attempt.filter(|it| it.versions.get(&secret.name) == Some(&version));
                    if marks.has_proven(&secret.name, version) || last.is_some_and(Attempt::is_completed) {
                        proven = true;
                    } else if last.is_some_and(Attempt::is_running) {
                        trying |= self.is_on_its_way(other) || self.goes_first(other, workload);
                    }
                }
                trying && !proven
            })
    }

    /// Whether a workload's rollout runs or is about to begin.
    fn is_on_its_way(&self, workload: &Workload) -> bool {
        let about_to = self.tasks.get(&workload.id).is_some_and(|task| match task.phase {
            Phase::Intended { .. } | Phase::Stamping { .. } => true,
            Phase::Idle | Phase::Looking => false,
        });
        about_to || self.running_attempt(workload).is_some()
    }

    /// Whether what another workload was intended to be rolled for is still to be carried out, and before this one's. The
    /// process that intended it may have died, and its stamp may still arrive.
    fn goes_first(&self, other: &Workload, workload: &Workload) -> bool {
        // Of several such intents, which an engine without a canary may have left, one goes first.
        let is_first = self.has_open_attempt(workload) && workload.id < other.id;
        !is_first && self.is_still_intended(other)
    }

    fn has_open_attempt(&self, workload: &Workload) -> bool {
        self.attempt_of(workload).is_some_and(Attempt::is_running)
    }

    /// Whether nothing was decided that leaves a workload's open intent lying.
    fn is_still_intended(&self, workload: &Workload) -> bool {
        match self.tasks.get(&workload.id).and_then(|task| task.decision.as_ref()) {
            None => self.is_candidate(workload),
            Some(Decision::Hold(Held::InventoryUnknown)) => self.is_known(workload),
            Some(decision) => lets_intent_stand(decision),
        }
    }

    /// An intent that isn't carried out any more holds nobody.
    pub(super) fn intent_is_left(&mut self, id: &WorkloadId, decision: &Decision) {
        let is_open = self.catalog.get(id).is_some_and(|workload| self.has_open_attempt(workload));
        if self.config.canary && is_open && !lets_intent_stand(decision) {
            self.look_at_followers(id);
        }
    }

    /// What a workload consumes in versions that it isn't proven to have.
    fn new_versions(&self, workload: &Workload) -> Vec<(SecretId, Version)> {
        let clean = self.book.marks(&workload.id.namespace, workload.uid).map(|marks| &marks.clean);
        let versions = self.versions(workload).into_iter();
        let new =
            versions.filter(|(secret, version)| clean.and_then(|clean| clean.get(secret)) < Some(version));
        new.map(|(name, version)| (SecretId { namespace: workload.id.namespace.clone(), name }, version))
            .collect()
    }

    /// The other consumers of a Secret that have marks.
    fn others<'a>(
        &'a self,
        workload: &'a Workload,
        secret: &SecretId,
    ) -> impl Iterator<Item = (&'a Workload, &'a Marks)> + 'a {
        let others = self.catalog.consumers(secret).filter(move |other| other.id != workload.id);
        others.filter_map(move |other| Some((other, self.book.marks(&other.id.namespace, other.uid)?)))
    }

    /// A rollout ended: those whom it held for its Secrets' sake are looked at.
    pub(super) fn look_at_followers(&mut self, id: &WorkloadId) {
        let waits = |task: &super::Task| {
            matches!(task.decision, Some(Decision::Hold(Held::Canary | Held::BreakerOpen)))
        };
        let namespace = |other: &WorkloadId| *other.namespace == *id.namespace;
        let held: Vec<WorkloadId> = self
            .tasks
            .iter()
            .filter(|(other, task)| namespace(other) && waits(task))
            .map(|(other, _)| other.clone())
            .collect();
        for other in held {
            self.queue.at_latest(&other, self.now.mono);
        }
    }

    /// Says on a Secret that its version broke a consumer, and whom that holds.
    pub(super) fn tell_breaker(
        &mut self,
        id: &WorkloadId,
        attempt: &Attempt,
        ended: &Ended,
        ticket: Option<&Ticket>,
    ) {
        for name in &ended.broke {
            let secret = SecretId { namespace: id.namespace.clone(), name: name.clone() };
            let version = attempt.versions.get(name).copied().unwrap_or_default();
            let held: Vec<String> = self
                .catalog
                .consumers(&secret)
                .filter(|other| other.id != *id && self.is_candidate(other) && !self.is_on_its_way(other))
                .map(|other| format!("{}/{}", other.id.kind, other.id.name))
                .collect();
            let held = if held.is_empty() { "nobody else".to_owned() } else { named(held) };
            let note = format!(
                "Version {version} broke {}/{}: its new pods started and didn't become ready. Held until the Secret changes, or \
                 is annotated uptake.dev/release: \"{version}\": {held}",
                id.kind, id.name
            );
            self.tell_of_secret(&secret, Reason::BreakerOpen, &version.to_string(), note, ticket.cloned());
        }
    }
}

fn has_broken(attempt: &Attempt, secret: &str, version: Version) -> bool {
    attempt.versions.get(secret) == Some(&version)
        && attempt.ended.as_ref().is_some_and(|ended| ended.broke.iter().any(|broke| **broke == *secret))
}

/// Whether a workload of which this was decided will be rolled yet for what it was intended for, as far as that tells.
fn lets_intent_stand(decision: &Decision) -> bool {
    match decision {
        Decision::Roll => true,
        Decision::Hold(held) => match held {
            Held::Settling
            | Held::NoFreeSlot
            | Held::Canary
            | Held::OperatorPaused
            | Held::LedgerUnwritable
            | Held::InventoryUnknown
            | Held::Backoff => true,
            // The first that can finish is tried first.
            Held::RolloutRunning | Held::Undecided | Held::BreakerOpen | Held::Missing { .. } => false,
        },
        Decision::UpToDate | Decision::NothingToDo(_) | Decision::Report(_) | Decision::Skip(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decide::{Nothing, ReportOnly, Skipped};

    #[test]
    fn an_intent_stands_while_nothing_is_decided_that_lasts() {
        let stands =
            [Held::Settling, Held::NoFreeSlot, Held::Canary, Held::OperatorPaused, Held::LedgerUnwritable];
        for held in stands {
            assert!(lets_intent_stand(&Decision::Hold(held)));
        }
        assert!(lets_intent_stand(&Decision::Roll));
        let missing = Held::Missing { secret: "db".into(), key: None };
        for held in [Held::BreakerOpen, Held::Undecided, Held::RolloutRunning, missing] {
            assert!(!lets_intent_stand(&Decision::Hold(held)), "others needn't wait for what may not end");
        }
        for decision in [
            Decision::UpToDate,
            Decision::NothingToDo(Nothing::NoPods),
            Decision::Report(ReportOnly::Policy),
            Decision::Skip(Skipped::OptedOut),
        ] {
            assert!(!lets_intent_stand(&decision));
        }
    }
}
