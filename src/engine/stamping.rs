//! Rolls a workload: the intent into the ledger, then the stamp, then its answer.

use std::time::Duration;

use super::{Call, Engine, Fault, LOOK_EVERY, Pending, Phase, consumption::rolling};
use crate::{
    catalog::Workload,
    decide::{Decision, Held, Step, Verdict},
    facts::{Mono, Version, WorkloadId},
    ledger::{Attempt, Ended, Marks, Untold, Urgency},
    record::Record,
    rollout::{Outcome, Stamp},
};

/// How often a stamp is tried at once after conflicts, before it waits.
const CONFLICTS: u32 = 5;

/// A judgement older than this isn't stamped by: pods may have been replaced meanwhile.
const JUDGEMENT_HOLDS: Duration = Duration::from_secs(2);

impl Engine {
    /// Writes the intent to roll a workload.
    pub(super) fn intend(&mut self, id: &WorkloadId, verdict: Verdict, listed: Mono) {
        let Some(workload) = self.catalog.get(id) else { return };
        let (uid, template) = (workload.uid, workload.template);
        let versions = self.versions(workload);
        let last = self.book.marks(&id.namespace, uid).and_then(|marks| marks.attempt.as_ref());
        // An intent that was never carried out gives its number on: nothing was said of it.
        let number = last.map_or(1, |last| {
            if last.stamped.is_none() && last.ended.is_none() { last.number } else { last.number + 1 }
        });
        // Nor is a stamp that was taken away forgotten when it is put back.
        let reverts = last
            .filter(|last| last.number == number && last.versions == versions)
            .map_or(0, |last| last.reverts);
        let attempt = Attempt {
            number,
            versions: versions.clone(),
            template,
            at: self.now.server,
            stale: verdict.stale.len() + verdict.first_sight.len(),
            reverts,
            stamped: None,
            ended: None,
            untold: Vec::new(),
            more: serde_json::Map::new(),
        };
        self.supersede(id, uid);
        let edit = self.edit(Urgency::Now);
        let new = || Marks::new(&id.kind, id.name.clone());
        let written = self.book.edit_marks(&id.namespace, uid, edit, new, |marks| {
            marks.remember_stamp(&versions);
            marks.attempt = Some(attempt);
        });
        let Ok(ticket) = written else {
            self.full.insert(id.namespace.clone());
            self.look_soon(id);
            return;
        };
        self.slots.take(id);
        let now = self.now.mono;
        let task = self.tasks.entry(id.clone()).or_default();
        let at = task.settle.until(now).unwrap_or(now);
        task.phase = Phase::Intended { ticket, at, verdict, listed, conflicts: 0 };
        self.intended.insert(id.clone());
    }

    /// Stamps those whose intent is durable and whose time has come.
    pub(super) fn pump_stamps(&mut self) {
        let now = self.now.mono;
        let due: Vec<WorkloadId> = self
            .intended
            .iter()
            .filter(|id| {
                self.tasks.get(*id).is_some_and(|task| match &task.phase {
                    Phase::Intended { ticket, at, .. } => *at <= now && self.book.is_durable(ticket),
                    Phase::Idle | Phase::Looking | Phase::Stamping { .. } => false,
                })
            })
            .cloned()
            .collect();
        for id in due {
            self.intended.remove(&id);
            let Some(task) = self.tasks.get_mut(&id) else { continue };
            match std::mem::take(&mut task.phase) {
                Phase::Intended { verdict, listed, conflicts, .. } => {
                    self.stamp(&id, verdict, listed, conflicts);
                }
                other => task.phase = other,
            }
        }
    }

    /// Stamps a workload if what was decided still holds.
    fn stamp(&mut self, id: &WorkloadId, verdict: Verdict, listed: Mono, conflicts: u32) {
        let holds = self.now.mono.since(listed) <= JUDGEMENT_HOLDS
            && self.decide(id, Some(&verdict)) == Some(Step::Decided(Decision::Roll))
            && self.is_intent_current(id);
        let Some(workload) = self.catalog.get(id).filter(|_| holds) else {
            self.give_up_intent(id);
            return;
        };
        let (uid, over) = (workload.uid, workload.version);
        let Some(attempt) = self.book.marks(&id.namespace, uid).and_then(|marks| marks.attempt.as_ref())
        else {
            return;
        };
        let stamp: Stamp = attempt.versions.clone().into_iter().collect();
        self.call(
            Pending::Stamp(id.clone()),
            Call::Stamp { id: id.clone(), uid, over, stamp: stamp.to_string() },
        );
        self.tasks.entry(id.clone()).or_default().phase = Phase::Stamping { verdict, listed, conflicts };
    }

    /// Whether the intent in the ledger is what would be intended now.
    fn is_intent_current(&self, id: &WorkloadId) -> bool {
        let Some(workload) = self.catalog.get(id) else { return false };
        self.attempt_of(workload).is_some_and(|attempt| {
            attempt.ended.is_none()
                && attempt.template == workload.template
                && attempt.versions == self.versions(workload)
        })
    }

    /// The intent isn't carried out: the workload is looked at anew.
    pub(super) fn give_up_intent(&mut self, id: &WorkloadId) {
        self.intended.remove(id);
        if let Some(task) = self.tasks.get_mut(id) {
            task.phase = Phase::Idle;
        }
        if self.catalog.get(id).is_none_or(|workload| self.running_attempt(workload).is_none()) {
            self.release_slot(id);
        }
        self.queue.at_latest(id, self.now.mono);
    }

    pub(super) fn release_slot(&mut self, id: &WorkloadId) {
        for next in self.slots.release(id) {
            self.queue.at_latest(&next, self.now.mono);
        }
    }

    pub(super) fn stamp_answered(&mut self, id: &WorkloadId, result: Result<Workload, Fault>) {
        match result {
            Ok(workload) => {
                self.workload_applied(workload);
                self.stamp_taken(id);
            }
            // After a fault of which nothing is known it may have happened: what stands there now tells.
            Err(Fault::Conflict | Fault::Unknown(_) | Fault::Expired) => self.reread_for_stamp(id),
            Err(Fault::NotFound) => self.workload_gone(id),
            Err(Fault::Refused(words) | Fault::Forbidden(words)) => self.refused(id, words),
            Err(Fault::Throttled) => self.stamp_later(id),
        }
    }

    fn reread_for_stamp(&mut self, id: &WorkloadId) {
        let known = self.catalog.get(id).map(|workload| workload.version).unwrap_or_default();
        self.call(Pending::Reread(id.clone(), known), Call::GetWorkload(id.clone()));
    }

    /// A workload was read again after a conflict, or after a stamp whose answer was lost; that version of it was known.
    pub(super) fn reread(&mut self, id: &WorkloadId, known: Version, result: Result<Workload, Fault>) {
        match result {
            Ok(workload) => {
                // A read is never older than what was known before it, unless the store was restored from a backup.
                let is_same = self.catalog.get(id).is_some_and(|before| before.uid == workload.uid);
                if is_same && workload.version < known {
                    self.catalog.doubt(id);
                }
                self.workload_applied(workload);
                if self.catalog.get(id).is_some_and(|workload| self.bears_stamp(workload)) {
                    self.stamp_taken(id);
                } else {
                    self.stamp_again(id);
                }
            }
            Err(Fault::NotFound) => self.workload_gone(id),
            Err(_) => self.stamp_later(id),
        }
    }

    fn stamp_again(&mut self, id: &WorkloadId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        match std::mem::take(&mut task.phase) {
            Phase::Stamping { verdict, listed, conflicts } if conflicts < CONFLICTS => {
                self.stamp(id, verdict, listed, conflicts + 1);
            }
            Phase::Stamping { .. } => self.stamp_later(id),
            other => task.phase = other,
        }
    }

    /// The stamp couldn't be written for now; the intent stands.
    fn stamp_later(&mut self, id: &WorkloadId) {
        let delay = self.tasks.entry(id.clone()).or_default().backoff.fail();
        self.release_slot(id);
        self.hold(id, Held::Backoff, delay);
    }

    /// Whether the stamp of the last attempt stands on the workload.
    pub(super) fn bears_stamp(&self, workload: &Workload) -> bool {
        let Some((attempt, text)) = self.attempt_of(workload).zip(workload.stamp.as_deref()) else {
            return false;
        };
        let stamp: Stamp = attempt.versions.clone().into_iter().collect();
        stamp.matches(text) || names_all(text, attempt)
    }

    /// The stamp is on the workload, as the API server says.
    pub(super) fn stamp_taken(&mut self, id: &WorkloadId) {
        let Some(workload) = self.catalog.get(id) else { return };
        let (uid, bears) = (workload.uid, self.bears_stamp(workload));
        let Some(attempt) = self.book.marks(&id.namespace, uid).and_then(|marks| marks.attempt.clone())
        else {
            return;
        };
        if attempt.ended.is_some() {
            return;
        }
        // An accepted patch that admission took away again rolled nothing.
        let first = bears && attempt.stamped.is_none() && attempt.reverts == 0;
        let now = self.now;
        let edit = self.edit(Urgency::WithNext);
        let _ = self.book.edit_marks(&id.namespace, uid, edit, Marks::default, |marks| {
            if let Some(attempt) = &mut marks.attempt {
                attempt.stamped.get_or_insert(now.server);
                if first {
                    attempt.untold.push(Untold::Started);
                }
            }
        });
        let task = self.tasks.entry(id.clone()).or_default();
        task.phase = Phase::Idle;
        task.backoff.succeed();
        task.restamp_at = None;
        self.slots.take(id);
        self.watch_progress(id);
        if first {
            let too_fast = self.tasks.entry(id.clone()).or_default().settle.rolled(now.mono);
            self.started(id, &attempt, too_fast);
        }
        // Something in between may have taken the stamp away already.
        let again = if bears { LOOK_EVERY } else { Duration::ZERO };
        self.queue.at_latest(id, now.mono + again);
    }

    fn started(&mut self, id: &WorkloadId, attempt: &Attempt, too_fast: bool) {
        let stamp: Stamp = attempt.versions.clone().into_iter().collect();
        let after = self.now.server.since(self.changed_at(id).unwrap_or(attempt.at));
        self.record(Record::Stamped { workload: id.clone(), stamp: stamp.to_string(), after });
        self.rotation_rolled(id);
        self.tell_started(id, attempt);
        if too_fast {
            self.tell_too_fast(id);
        }
    }

    /// When the newest of what a workload consumes changed.
    fn changed_at(&self, id: &WorkloadId) -> Option<crate::facts::Time> {
        let workload = self.catalog.get(id)?;
        let consumption = self.consumption(workload);
        consumption.rolling.iter().map(|consumed| consumed.history.last().since.time()).max()
    }

    /// The API server refused the stamp: an outcome of its own. It is tried again at the next look.
    fn refused(&mut self, id: &WorkloadId, words: String) {
        let Some(workload) = self.catalog.get(id) else { return };
        let uid = workload.uid;
        let already =
            self.book.marks(&id.namespace, uid).and_then(|marks| marks.attempt.as_ref()).is_some_and(
                |attempt| {
                    attempt.ended.as_ref().is_some_and(|ended| matches!(ended.outcome, Outcome::Refused(_)))
                },
            );
        if let Some(task) = self.tasks.get_mut(id) {
            task.phase = Phase::Idle;
        }
        if !already {
            let stale = self.stale.get(id).copied().unwrap_or_default();
            self.end(id, &Ended::new(Outcome::Refused(words), self.now.server).with_stale(stale));
        }
        self.release_slot(id);
        self.queue.at(id, self.now.mono + LOOK_EVERY);
    }

    /// New data came while a stamp was being prepared: what was decided is void.
    pub(super) fn unsettle(&mut self, id: &WorkloadId) {
        let Some(workload) = self.catalog.get(id) else { return };
        if rolling(workload).next().is_none() {
            return;
        }
        let quiet = workload.policy.settle.unwrap_or(self.config.settle);
        let times = crate::agenda::SettleTimes { quiet, at_most: self.config.settle_max };
        let now = self.now.mono;
        let task = self.tasks.entry(id.clone()).or_default();
        task.settle.changed(now, times);
        if matches!(task.phase, Phase::Intended { .. }) {
            self.give_up_intent(id);
        }
        self.queue.at_latest(id, now);
    }
}

/// A stamp of another instance that names the same versions or later ones says the same.
fn names_all(text: &str, attempt: &Attempt) -> bool {
    let Some(stamp) = Stamp::parse(text) else { return false };
    attempt.versions.iter().all(|(secret, version)| stamp.get(secret).is_some_and(|named| named >= *version))
}
