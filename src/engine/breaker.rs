//! Keeps a bad value from breaking every consumer of it: the breaker and the canary.
//!
//! Neither is stored: both are read off the attempts in the ledger, so they survive whatever the ledger does.

use super::{Engine, Phase, notes::named};
use crate::{
    catalog::Workload,
    decide::{Decision, Held, Verdict},
    facts::{Name, SecretId, Version, WorkloadId},
    ledger::{Attempt, Ended, Ticket},
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
                    .attempts_for(workload, &secret, version)
                    .any(|(_, attempt)| has_broken(attempt, &secret.name))
        })
    }

    /// Whether another consumer tries a version first, alone, that the workload would be rolled for.
    pub(super) fn canary_holds(&self, workload: &Workload) -> bool {
        self.config.canary
            && self.new_versions(workload).into_iter().any(|(secret, version)| {
                let completed = |attempt: &Attempt| {
                    attempt.ended.as_ref().is_some_and(|ended| ended.outcome == Outcome::Completed)
                };
                let (mut proven, mut trying) = (false, false);
                for (other, attempt) in self.attempts_for(workload, &secret, version) {
                    proven |= completed(attempt);
                    trying |= attempt.is_running() && self.is_on_its_way(other);
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

    /// What a workload consumes in versions that it isn't proven to have.
    fn new_versions(&self, workload: &Workload) -> Vec<(SecretId, Version)> {
        let clean = self.book.marks(&workload.id.namespace, workload.uid).map(|marks| &marks.clean);
        let versions = self.versions(workload).into_iter();
        let new =
            versions.filter(|(secret, version)| clean.and_then(|clean| clean.get(secret)) < Some(version));
        new.map(|(name, version)| (SecretId { namespace: workload.id.namespace.clone(), name }, version))
            .collect()
    }

    /// The other consumers' last attempts that were for exactly that version of the Secret.
    fn attempts_for<'a>(
        &'a self,
        workload: &'a Workload,
        secret: &SecretId,
        version: Version,
    ) -> impl Iterator<Item = (&'a Workload, &'a Attempt)> + 'a {
        let name = secret.name.clone();
        let others = self.catalog.consumers(secret).filter(move |other| other.id != workload.id);
        others.filter_map(move |other| {
            let attempt = self.book.marks(&other.id.namespace, other.uid)?.attempt.as_ref()?;
            (attempt.versions.get(&name) == Some(&version)).then_some((other, attempt))
        })
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

fn has_broken(attempt: &Attempt, secret: &str) -> bool {
    attempt.ended.as_ref().is_some_and(|ended| ended.broke.iter().any(|broke| **broke == *secret))
}
