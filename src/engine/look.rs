//! Looks at workloads and decides.

use std::time::Duration;

use super::lists::NamespaceLook;
use super::{
    Engine, LOOK_EVERY, Outside, Phase, STALLED, Stage,
    consumption::{references_hash, rolling},
};
use crate::{
    catalog::{Inventory, Workload},
    decide::{self, Decision, Facts, Held, Step, Verdict},
    facts::{Mono, Name, SecretId, WorkloadId},
    ledger::{Marks, Urgency, Versions},
    record::Record,
    rollout::{State, state},
};

/// Looks that nothing presses are made together within this time: one list of pods serves them all.
const LOOK_GROUP: Duration = Duration::from_millis(200);

/// The pods are listed and judged so long before the settle time ends, so that the stamp can follow at once.
const AHEAD: Duration = Duration::from_millis(250);

impl Engine {
    /// Looks at a workload within a moment, together with others.
    pub(super) fn look_soon(&mut self, id: &WorkloadId) {
        if self.concerns(id) {
            let when = self.now.mono + LOOK_GROUP;
            self.queue.at_latest(id, when);
        }
    }

    /// Whether there is anything to look at.
    fn concerns(&self, id: &WorkloadId) -> bool {
        let Some(workload) = self.catalog.get(id) else { return false };
        let running = self.running_attempt(workload).is_some();
        let known = self.tasks.contains_key(id) || running;
        known
            || (self.stage != Stage::Ready)
            || (rolling(workload).next().is_some() && self.is_candidate(workload))
    }

    pub(super) fn look_at_all(&mut self) {
        let ids: Vec<WorkloadId> = self.catalog.workloads().map(|workload| workload.id.clone()).collect();
        for id in ids {
            self.look_soon(&id);
        }
    }

    /// The same, after the store was set back: lists at its versions were of another history.
    pub(super) fn look_at_all_anew(&mut self) {
        self.looks.values_mut().for_each(NamespaceLook::forget_versions);
        self.look_at_all();
    }

    pub(super) fn look_at_consumers(&mut self, secret: &SecretId) {
        let ids: Vec<WorkloadId> =
            self.catalog.consumers(secret).map(|workload| workload.id.clone()).collect();
        for id in ids {
            self.look_soon(&id);
        }
    }

    /// Looks at those again that something holds.
    pub(super) fn look_at_held(&mut self) {
        let held = self.tasks.iter().filter(|(_, task)| matches!(task.decision, Some(Decision::Hold(_))));
        let ids: Vec<WorkloadId> = held.map(|(id, _)| id.clone()).collect();
        for id in ids {
            self.queue.at_latest(&id, self.now.mono);
        }
    }

    /// Looks at a workload now.
    pub(super) fn look(&mut self, id: &WorkloadId) {
        let Some(workload) = self.catalog.get(id) else { return };
        let busy = self.tasks.get(id).is_some_and(|task| !matches!(task.phase, Phase::Idle | Phase::Looking));
        if busy {
            return;
        }
        if self.running_attempt(workload).is_some() && self.follow(id) {
            return;
        }
        let Some(step) = self.decide(id, None) else { return };
        match step {
            Step::Decided(decision) => self.decided(id, decision, None),
            Step::NeedsPods => self.list_for(id),
        }
    }

    /// The decision by what is known now.
    pub(super) fn decide(&self, id: &WorkloadId, pods: Option<&Verdict>) -> Option<Step> {
        let workload = self.catalog.get(id)?;
        let consumption = self.consumption(workload);
        let consumes = rolling(workload).next().is_some();
        let (mode, report) = self.mode(workload);
        let mode = if consumption.all_off && consumes { crate::catalog::policy::Mode::Off } else { mode };
        let missing = consumption.missing.clone().filter(|missing| {
            let secret = SecretId { namespace: id.namespace.clone(), name: missing.secret.clone() };
            missing.key.is_some() || self.outside.get(&secret) == Some(&Outside::Gone)
        });
        let asked = consumption.missing.is_some() && missing.is_none();
        let task = self.tasks.get(id);
        Some(decide::decide(&Facts {
            known: self.is_known(workload) && !consumption.untracked && !asked,
            deleting: workload.deleting,
            consumes,
            candidate: self.is_candidate(workload),
            mode,
            report,
            missing,
            settling: task.is_some_and(|task| task.settle.until(self.now.mono + AHEAD).is_some()),
            running: self.is_rolling(workload),
            pods,
            first_sight: self.config.first_sight,
            attempted: self.was_attempted(workload),
            paused: self.is_paused(),
            ledger_unwritable: self.book.is_failing(),
            breaker: self.breaker_holds(workload),
            canary: self.canary_holds(workload),
            slot: self.slots.is_free_for(id),
        }))
    }

    pub(super) fn is_known(&self, workload: &Workload) -> bool {
        self.stage == Stage::Ready
            && self.united
            && self.secrets_fault.is_none()
            && *self.catalog.inventory(&workload.id.kind) == Inventory::Complete
            && (workload.declared.provider_classes.is_empty() || self.knows_provider_classes())
    }

    pub(super) fn is_paused(&self) -> bool {
        let own = self.catalog.namespace(&self.config.own_namespace);
        let text = own.and_then(|namespace| namespace.paused.as_deref());
        // What can't be parsed pauses: somebody wanted something stopped.
        text.is_some_and(|text| crate::catalog::policy::paused(text).unwrap_or(true))
    }

    /// Whether a rollout of it is running, anybody's, and makes progress.
    fn is_rolling(&self, workload: &Workload) -> bool {
        let since = self
            .tasks
            .get(&workload.id)
            .and_then(|task| task.progress)
            .map_or(self.now.mono, |(_, since)| since);
        let idle = self.now.mono.since(since);
        match state(&workload.rollout) {
            State::NotObserved => idle < super::UNOBSERVED,
            State::Running(_) => idle < STALLED,
            State::Done | State::DeadlineExceeded(_) | State::Blocked(_) => false,
        }
    }

    fn was_attempted(&self, workload: &Workload) -> bool {
        let versions = self.versions(workload);
        self.attempt_of(workload).is_some_and(|attempt| attempt.has_failed_for(&versions))
    }

    /// Holds a workload and looks at it again after that delay. One that went meanwhile is held by nothing.
    pub(super) fn hold(&mut self, id: &WorkloadId, held: Held, delay: Duration) {
        if self.catalog.get(id).is_none() {
            return;
        }
        let task = self.tasks.entry(id.clone()).or_default();
        task.phase = Phase::Idle;
        self.set_decision(id, Decision::Hold(held));
        self.queue.at(id, self.now.mono + delay);
    }

    /// A workload's pods were judged.
    pub(super) fn judged(&mut self, id: &WorkloadId, verdict: Verdict, listed: Mono) {
        let Some(workload) = self.catalog.get(id) else { return };
        if self.running_attempt(workload).is_some() && self.conclude(id, &verdict) {
            return;
        }
        match self.decide(id, Some(&verdict)) {
            Some(Step::Decided(decision)) => self.decided(id, decision, Some((verdict, listed))),
            Some(Step::NeedsPods) | None => {}
        }
    }

    /// Acts on a decision.
    pub(super) fn decided(&mut self, id: &WorkloadId, decision: Decision, pods: Option<(Verdict, Mono)>) {
        self.note_stale(id, pods.as_ref().map(|(verdict, _)| verdict));
        self.set_decision(id, decision.clone());
        self.take_part(id, &decision);
        let rolls = decision == Decision::Roll
            || self.catalog.get(id).is_some_and(|workload| self.running_attempt(workload).is_some());
        if !rolls {
            // A rollout that something took away, and that isn't needed any more.
            self.release_slot(id);
        }
        self.intent_is_left(id, &decision);
        match decision {
            Decision::UpToDate | Decision::Skip(_) => self.rest(id),
            Decision::NothingToDo(_) => {
                self.settle_look(id);
                self.mark_clean(id, None);
                self.completed_late(id);
                self.rest(id);
            }
            Decision::Report(why) => {
                self.settle_look(id);
                if let Some((verdict, _)) = &pods {
                    self.tell_report(id, why, verdict);
                }
                self.queue.at_latest(id, self.now.mono + LOOK_EVERY);
            }
            Decision::Hold(held) => self.held(id, held),
            Decision::Roll => {
                if let Some((verdict, listed)) = pods.filter(|_| !self.stopping) {
                    self.intend(id, verdict, listed);
                }
            }
        }
    }

    fn held(&mut self, id: &WorkloadId, held: Held) {
        let now = self.now.mono;
        let task = self.tasks.entry(id.clone()).or_default();
        let again = match &held {
            Held::Settling => {
                task.settle.until(now).map_or(now, |until| Mono(until.0.saturating_sub(AHEAD)).max(now))
            }
            Held::RolloutRunning => task.progress.map_or(now + STALLED, |(stretch, since)| {
                since + if stretch.observed { STALLED } else { super::UNOBSERVED }
            }),
            Held::Undecided => now + task.patience.fail(),
            Held::NoFreeSlot
            | Held::BreakerOpen
            | Held::Canary
            | Held::Missing { .. }
            | Held::OperatorPaused
            | Held::LedgerUnwritable
            | Held::InventoryUnknown
            | Held::Backoff => now + LOOK_EVERY,
        };
        self.queue.at_latest(id, again.max(now));
        match held {
            Held::NoFreeSlot => self.slots.wait(id),
            Held::Missing { secret, key } => self.tell_missing(id, &secret, key.as_ref()),
            Held::InventoryUnknown => self.ask_for_missing(id),
            _ => {}
        }
    }

    /// Asks after Secrets that are missing and that the watch may leave out.
    fn ask_for_missing(&mut self, id: &WorkloadId) {
        let Some(workload) = self.catalog.get(id) else { return };
        if !self.is_known(workload) {
            return;
        }
        let missing = self.consumption(workload).missing.filter(|missing| missing.key.is_none());
        if let Some(missing) = missing {
            self.ask_outside(&SecretId { namespace: id.namespace.clone(), name: missing.secret });
        }
    }

    /// Nothing is to be done about it until something changes.
    fn rest(&mut self, id: &WorkloadId) {
        self.queue.remove(id);
        if self.catalog.get(id).is_some_and(|workload| self.running_attempt(workload).is_some()) {
            // A rollout that stalled, of values that no pod needs any more, still has an end to be told.
            self.queue.at(id, self.now.mono + LOOK_EVERY);
        }
        self.slots.stop_waiting(id);
        let keep = self
            .tasks
            .get(id)
            .is_some_and(|task| task.settle.remembers(self.now.mono) || task.progress.is_some());
        if !keep {
            self.tasks.remove(id);
        }
    }

    fn settle_look(&mut self, id: &WorkloadId) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.settle.looked();
            task.patience.succeed();
            task.backoff.succeed();
        }
    }

    pub(super) fn set_decision(&mut self, id: &WorkloadId, decision: Decision) {
        let task = self.tasks.entry(id.clone()).or_default();
        if task.decision.as_ref() != Some(&decision) {
            task.decision = Some(decision.clone());
            self.record(Record::Decided { workload: id.clone(), decision });
        }
    }

    fn note_stale(&mut self, id: &WorkloadId, verdict: Option<&Verdict>) {
        let Some(verdict) = verdict else { return };
        let first_sight: Vec<Name> =
            verdict.first_sight.iter().chain(&verdict.first_sight_reported).cloned().collect();
        let count = verdict.stale.len() + first_sight.len() + verdict.reported.len();
        if count == 0 {
            self.stale.remove(id);
        } else {
            self.stale.insert(id.clone(), count);
        }
        if first_sight.is_empty() {
            self.first_sight.remove(id);
        } else {
            self.first_sight.insert(id.clone(), first_sight);
        }
    }

    /// No live pod is stale up to these versions; none given means the newest.
    pub(super) fn mark_clean(&mut self, id: &WorkloadId, upto: Option<&Versions>) {
        let Some(workload) = self.catalog.get(id) else { return };
        let consumption = self.consumption(workload);
        let mut clean = Versions::new();
        for consumed in consumption.rolling.iter().chain(&consumption.reported) {
            let name: &Name = &consumed.reference.secret;
            let newest = clean.entry(name.clone()).or_default();
            *newest = consumed.history.version().max(*newest);
        }
        if let Some(upto) = upto {
            clean.retain(|secret, _| upto.contains_key(secret));
            for (secret, version) in &mut clean {
                *version = upto.get(secret).copied().unwrap_or_default().min(*version);
            }
        }
        let (uid, references) = (workload.uid, references_hash(workload));
        let marks = self.book.marks(&id.namespace, uid).filter(|marks| marks.clean_for == Some(references));
        let before = marks.map(|marks| marks.clean.clone());
        let after = match &before {
            Some(before) if upto.is_some() => joined(before, &clean),
            _ => clean,
        };
        if before.as_ref() == Some(&after) {
            return;
        }
        let edit = self.edit(Urgency::Soon);
        let new = || Marks::new(&id.kind, id.name.clone());
        let _ = self.book.edit_marks(&id.namespace, uid, edit, new, |marks| {
            (marks.clean, marks.clean_for) = (after, Some(references));
        });
    }
}

fn joined(before: &Versions, newer: &Versions) -> Versions {
    let mut all = before.clone();
    for (secret, version) in newer {
        let known = all.entry(secret.clone()).or_default();
        *known = (*version).max(*known);
    }
    all
}
