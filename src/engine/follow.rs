//! Follows a rollout to its outcome.

use std::time::Duration;

use super::{Engine, LOOK_EVERY, Phase, STALLED, task::Stretch};
use crate::{
    catalog::Workload,
    decide::Verdict,
    facts::{Kind, Mono, Uid, WorkloadId},
    ledger::{Attempt, Ended, Marks, Untold, Urgency},
    record::Record,
    rollout::{Block, Failure, Outcome, State, progress, state},
};

/// How often a stamp that something else took away is put back.
const REVERTS: u32 = 2;

/// How long after it was taken away a stamp is put back: whatever takes it away may still be at it.
const RESTAMP_AFTER: [Duration; 2] = [Duration::from_secs(5), Duration::from_secs(30)];

/// How often a rollout that is done but for its proof is looked at.
const PROOF_EVERY: Duration = Duration::from_secs(5);

/// Where a running rollout stands.
enum Standing {
    /// It goes on; it is looked at again by then at the latest.
    GoesOn(Mono),
    /// It came to this end, if the pods agree.
    Ended(Outcome),
    /// It is done, if the pods agree.
    Done,
    /// Nothing moves, and an old pod may be in the way.
    Stuck,
    /// Something took the stamp away.
    Reverted,
    /// The stamp is to be put back.
    Restamp,
}

impl Engine {
    /// The last rollout of ours.
    pub(super) fn attempt_of(&self, workload: &Workload) -> Option<&Attempt> {
        self.book.marks(&workload.id.namespace, workload.uid)?.attempt.as_ref()
    }

    /// The one that is running, stamped and without an end.
    pub(super) fn running_attempt(&self, workload: &Workload) -> Option<&Attempt> {
        self.attempt_of(workload).filter(|attempt| {
            attempt.is_running() && (attempt.stamped.is_some() || self.bears_stamp(workload))
        })
    }

    /// Keeps account of the progress of a workload's rollout, anybody's.
    pub(super) fn watch_progress(&mut self, id: &WorkloadId) {
        let Some(workload) = self.catalog.get(id) else { return };
        let facts = &workload.rollout;
        let at_rest = matches!(state(facts), State::Done) && self.running_attempt(workload).is_none();
        let stretch = Stretch {
            generation: facts.generation,
            observed: facts.generation <= facts.observed_generation,
            progress: progress(facts),
        };
        if at_rest || crate::engine::consumption::rolling(workload).next().is_none() {
            if let Some(task) = self.tasks.get_mut(id) {
                task.progress = None;
            }
            return;
        }
        let now = self.now.mono;
        let task = self.tasks.entry(id.clone()).or_default();
        if task.progress.is_none_or(|(known, _)| known != stretch) {
            task.progress = Some((stretch, now));
        }
    }

    /// Looks after a running rollout. Whether it still occupies the workload.
    pub(super) fn follow(&mut self, id: &WorkloadId) -> bool {
        self.adopt_stamp(id);
        let Some(standing) = self.standing(id) else { return false };
        match standing {
            Standing::GoesOn(again) => {
                if self.is_stalled(id) {
                    self.release_slot(id);
                    if self.has_newer_data(id) {
                        return false;
                    }
                }
                self.queue.at_latest(id, again);
                self.set_decision(id, crate::decide::Decision::Hold(crate::decide::Held::RolloutRunning));
                true
            }
            Standing::Ended(outcome @ (Outcome::Superseded | Outcome::Gone)) => {
                self.end(id, &Ended::new(outcome, self.now.server));
                false
            }
            Standing::Stuck => {
                self.release_slot(id);
                let newer = self.has_newer_data(id);
                if !newer {
                    self.list_for(id);
                }
                !newer
            }
            Standing::Ended(_) | Standing::Done | Standing::Reverted => {
                self.list_for(id);
                true
            }
            Standing::Restamp => {
                self.restamp(id);
                true
            }
        }
    }

    /// After a crash between a stamp and its acknowledgement: the stamp stands, so it was taken.
    fn adopt_stamp(&mut self, id: &WorkloadId) {
        let Some(workload) = self.catalog.get(id) else { return };
        let unacknowledged = self.running_attempt(workload).is_some_and(|attempt| attempt.stamped.is_none());
        if unacknowledged {
            self.stamp_taken(id);
        }
        self.watch_progress(id);
    }

    fn standing(&self, id: &WorkloadId) -> Option<Standing> {
        let workload = self.catalog.get(id)?;
        let attempt = self.running_attempt(workload)?;
        let now = self.now.mono;
        let since = self.since_progress(id);
        if workload.template != attempt.template {
            return Some(Standing::Ended(Outcome::Superseded));
        }
        let idle = now.since(since);
        let timeout = self.config.rollout_timeout;
        let patience = [since + STALLED, since + timeout].into_iter().filter(|at| *at > now).min();
        let goes_on = Standing::GoesOn(patience.unwrap_or(now + LOOK_EVERY));
        let rolling = state(&workload.rollout);
        if !self.bears_stamp(workload) {
            if matches!(rolling, State::NotObserved | State::Running(_)) && idle < STALLED {
                return Some(goes_on);
            }
            return Some(match self.tasks.get(id).and_then(|task| task.restamp_at) {
                Some(at) if at > now => Standing::GoesOn(at),
                Some(_) => Standing::Restamp,
                None => Standing::Reverted,
            });
        }
        Some(match rolling {
            State::Done => Standing::Done,
            State::DeadlineExceeded(words) => {
                Standing::Ended(Outcome::Failed(Failure::DeadlineExceeded(words)))
            }
            // Pods may be made in the next moment: only if nothing moves is it a block.
            State::Blocked(Block::ReplicaFailure(words)) if idle >= STALLED => {
                Standing::Ended(Outcome::Blocked(Block::ReplicaFailure(words)))
            }
            State::Blocked(Block::ReplicaFailure(_)) => goes_on,
            State::Blocked(block) => Standing::Ended(Outcome::Blocked(block)),
            State::NotObserved | State::Running(_) if idle >= timeout => {
                Standing::Ended(Outcome::Failed(Failure::NoProgress))
            }
            // A StatefulSet goes in order: it waits for an old pod to become ready before it replaces it.
            State::Running(_) if idle >= STALLED && workload.id.kind == Kind::StatefulSet => Standing::Stuck,
            State::NotObserved | State::Running(_) => goes_on,
        })
    }

    fn since_progress(&self, id: &WorkloadId) -> Mono {
        self.tasks.get(id).and_then(|task| task.progress).map_or(self.now.mono, |(_, since)| since)
    }

    fn is_stalled(&self, id: &WorkloadId) -> bool {
        self.now.mono.since(self.since_progress(id)) >= STALLED
    }

    /// Whether what the workload consumes changed after its running rollout was decided.
    fn has_newer_data(&self, id: &WorkloadId) -> bool {
        let Some(workload) = self.catalog.get(id) else { return false };
        let Some(attempt) = self.running_attempt(workload) else { return false };
        let versions = self.versions(workload);
        versions
            .iter()
            .any(|(secret, version)| attempt.versions.get(secret).is_none_or(|stamped| stamped < version))
    }

    /// Whether a running rollout waits for its end: then pods are judged by its own versions.
    pub(super) fn waits_for_end(&self, id: &WorkloadId) -> bool {
        !(self.is_stalled(id) && self.has_newer_data(id))
    }

    /// The pods of a workload with a running rollout were judged by its versions. Whether that settles the look.
    pub(super) fn conclude(&mut self, id: &WorkloadId, verdict: &Verdict) -> bool {
        let Some(standing) = self.standing(id) else { return false };
        let clean = verdict.is_clean();
        let at = self.now.server;
        let stale = verdict.stale.len() + verdict.first_sight.len();
        match standing {
            Standing::GoesOn(again) if self.waits_for_end(id) => {
                self.queue.at_latest(id, again);
                return true;
            }
            Standing::GoesOn(_) => return false,
            Standing::Stuck => match verdict.in_the_way.first().filter(|_| verdict.broken.is_empty()) {
                Some(pod) => {
                    let outcome = Outcome::Blocked(Block::BrokenPod(pod.to_string()));
                    self.end(id, &Ended::new(outcome, at).with_stale(stale));
                }
                None => self.queue.at_latest(id, self.now.mono + STALLED),
            },
            Standing::Ended(Outcome::Superseded | Outcome::Gone) | Standing::Restamp => {
                self.queue.at_latest(id, self.now.mono);
                return true;
            }
            Standing::Done | Standing::Reverted | Standing::Ended(Outcome::Blocked(_)) if clean => {
                let versions = self.attempt(id).map(|attempt| attempt.versions.clone());
                self.mark_clean(id, versions.as_ref());
                self.end(id, &Ended::new(Outcome::Completed, at));
            }
            Standing::Done => {
                let again = self.since_progress(id) + self.config.rollout_timeout;
                if again <= self.now.mono {
                    self.end(id, &Ended::new(Outcome::Failed(Failure::NoProgress), at).with_stale(stale));
                } else {
                    self.queue.at_latest(id, (self.now.mono + PROOF_EVERY).min(again));
                }
            }
            Standing::Reverted => self.reverted(id, stale),
            Standing::Ended(outcome) => {
                let broke = self.broke(id, &outcome, verdict);
                self.end(id, &Ended::new(outcome, at).with_stale(stale).having_broken(broke));
            }
        }
        true
    }

    fn attempt(&self, id: &WorkloadId) -> Option<&Attempt> {
        let workload = self.catalog.get(id)?;
        self.book.marks(&id.namespace, workload.uid)?.attempt.as_ref()
    }

    /// Something else took the stamp away and the pods are stale: it is put back, and not for ever.
    fn reverted(&mut self, id: &WorkloadId, stale: usize) {
        let Some(attempt) = self.attempt(id) else { return };
        let reverts = attempt.reverts;
        if reverts >= REVERTS {
            let writer =
                self.catalog.get(id).and_then(|workload| workload.last_writer.as_deref().map(str::to_owned));
            let outcome = Outcome::Failed(Failure::Reverted(writer));
            self.end(id, &Ended::new(outcome, self.now.server).with_stale(stale));
            return;
        }
        let at =
            self.now.mono + RESTAMP_AFTER[usize::try_from(reverts).unwrap_or(0).min(RESTAMP_AFTER.len() - 1)];
        self.tasks.entry(id.clone()).or_default().restamp_at = Some(at);
        self.queue.at_latest(id, at);
    }

    /// Puts a stamp back that something took away, after one more look at the pods.
    fn restamp(&mut self, id: &WorkloadId) {
        let Some(uid) = self.uid(id) else { return };
        let edit = self.edit(Urgency::Now);
        let _ = self.book.edit_marks(&id.namespace, uid, edit, Marks::default, |marks| {
            if let Some(attempt) = &mut marks.attempt {
                // It is an intent again: decided anew, with the same number and versions.
                attempt.reverts += 1;
                attempt.stamped = None;
            }
        });
        let task = self.tasks.entry(id.clone()).or_default();
        task.restamp_at = None;
        task.phase = Phase::Idle;
        self.queue.at_latest(id, self.now.mono);
    }

    /// A running rollout gives way to a newer one of ours.
    pub(super) fn supersede(&mut self, id: &WorkloadId, uid: Uid) {
        let running = self
            .catalog
            .get(id)
            .is_some_and(|workload| workload.uid == uid && self.running_attempt(workload).is_some());
        if running {
            self.end(id, &Ended::new(Outcome::Superseded, self.now.server));
        }
    }

    /// A rollout reached its outcome: once into the ledger, then it is told.
    pub(super) fn end(&mut self, id: &WorkloadId, ended: &Ended) {
        let Some(uid) = self.uid(id) else { return };
        let Some(attempt) = self.attempt(id).cloned() else { return };
        let edit = self.edit(Urgency::Now);
        let written = self.book.edit_marks(&id.namespace, uid, edit, Marks::default, |marks| {
            if let Some(attempt) = &mut marks.attempt {
                attempt.ended = Some(ended.clone());
                attempt.untold.push(Untold::Ended);
            }
        });
        self.record(Record::RolloutEnded {
            workload: id.clone(),
            outcome: ended.outcome.clone(),
            took: attempt.took(ended.at),
        });
        if let Ok(ticket) = written {
            self.tell_ended(id, &attempt, ended, Some(ticket));
        }
        self.rotation_ended(id, &ended.outcome);
        if let Some(task) = self.tasks.get_mut(id) {
            task.restamp_at = None;
            task.phase = Phase::Idle;
        }
        if ended.stale > 0 {
            self.stale.insert(id.clone(), ended.stale);
        } else {
            self.stale.remove(id);
        }
        self.release_slot(id);
        self.look_at_followers(id);
        self.queue.at_latest(id, self.now.mono);
    }

    /// A failed or blocked rollout turned out complete after all: recorded once.
    pub(super) fn completed_late(&mut self, id: &WorkloadId) {
        let late = self.attempt(id).and_then(|attempt| attempt.ended.as_ref()).is_some_and(|ended| {
            matches!(ended.outcome, Outcome::Failed(_) | Outcome::Blocked(_)) && !ended.late
        });
        let Some(workload) = self.catalog.get(id).filter(|_| late) else { return };
        let versions = self.versions(workload);
        let same = self.attempt(id).is_some_and(|attempt| attempt.versions == versions);
        if same {
            self.end(id, &Ended::new(Outcome::Completed, self.now.server).made_late());
        }
    }

    /// A workload with a running rollout is gone.
    pub(super) fn rollout_gone(&mut self, id: &WorkloadId, uid: Uid) {
        let marks = self.book.marks(&id.namespace, uid);
        let Some(attempt) = marks.and_then(|marks| marks.attempt.as_ref()) else { return };
        if attempt.is_running() && attempt.stamped.is_some() {
            let took = attempt.took(self.now.server);
            self.record(Record::RolloutEnded { workload: id.clone(), outcome: Outcome::Gone, took });
            self.rotation_ended(id, &Outcome::Gone);
        }
    }
}
