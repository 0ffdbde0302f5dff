//! What came of one change of one Secret, over all of its consumers.

use std::collections::{BTreeMap, BTreeSet};

use super::{Engine, consumption::rolling};
use crate::{
    catalog::policy::Mode,
    decide::{Decision, Held, parts},
    facts::{Name, SecretId, Uid, Version, WorkloadId},
    ledger::Part,
    record::Effect,
    rollout::Outcome,
};

/// From how many rolled consumers on a rotation is told in one summary on the Secret.
pub(super) const MANY: usize = 20;

/// What a missing Secret or key holds is held by.
const MISSING: &str = "missing";

/// One change and its consumers.
#[derive(Debug, Default)]
pub(super) struct Rotation {
    pub(super) version: Version,
    /// The keys that changed, as far as somebody consumes them by name.
    pub(super) keys: BTreeSet<Name>,
    /// Consumers of which nothing is known yet.
    pub(super) waiting: BTreeSet<WorkloadId>,
    /// How many consumers it has in all.
    pub(super) consumers: usize,
    /// Consumers whose rollout runs.
    pub(super) rolling: BTreeSet<WorkloadId>,
    /// Consumers of whose completion only the summary tells, with the number of the rollout.
    pub(super) unsaid: BTreeMap<WorkloadId, (Uid, u32)>,
    pub(super) rolled: usize,
    pub(super) completed: usize,
    pub(super) failed: usize,
    pub(super) nothing: usize,
    reported: usize,
    /// Consumers that something holds which is nobody's own affair, with the word for it.
    pub(super) held: BTreeMap<WorkloadId, &'static str>,
    /// Whether its effect was counted.
    pub(super) counted: bool,
    /// Whether it was read off the ledger: then it has the consumers of those kinds that were known by then.
    pub(super) resumed: bool,
}

impl Engine {
    /// Consumed parts of a Secret changed: its consumers settle, and are accounted for.
    pub(super) fn begin_rotation(&mut self, id: &SecretId, changed: &[Part]) {
        if self.secret_mode(id) == Some(Mode::Off) {
            self.examined(id, Effect::Report);
            return;
        }
        let consumers: BTreeSet<WorkloadId> = self
            .catalog
            .consumers(id)
            .filter(|workload| {
                rolling(workload).any(|reference| {
                    *reference.secret == *id.name
                        && parts(reference).iter().any(|part| changed.contains(part))
                })
            })
            .map(|workload| workload.id.clone())
            .collect();
        let version = self.book.secret(id).map(|record| {
            changed
                .iter()
                .filter_map(|part| record.history(part))
                .map(crate::ledger::History::version)
                .max()
                .unwrap_or_default()
        });
        for consumer in &consumers {
            self.unsettle(consumer);
        }
        let keys = changed.iter().filter_map(|part| match part {
            Part::Key(key) => Some(key.clone()),
            Part::All => None,
        });
        if consumers.is_empty() {
            self.examined(id, Effect::Unchanged);
            return;
        }
        // Changes within one settling are one rotation.
        let rotation = self.rotations.entry(id.clone()).or_default();
        if rotation.counted {
            *rotation = Rotation::default();
        }
        rotation.version = version.unwrap_or_default();
        rotation.keys.extend(keys);
        rotation.waiting.extend(consumers);
        rotation.consumers = rotation.waiting.len();
    }

    /// What was decided of a consumer is accounted for where it is final for now.
    pub(super) fn take_part(&mut self, id: &WorkloadId, decision: &Decision) {
        match decision {
            Decision::UpToDate | Decision::NothingToDo(_) => {
                self.account(id, |rotation| rotation.nothing += 1);
            }
            Decision::Report(_) | Decision::Skip(_) => self.account(id, |rotation| rotation.reported += 1),
            Decision::Hold(
                held @ (Held::Missing { .. }
                | Held::BreakerOpen
                | Held::OperatorPaused
                | Held::LedgerUnwritable),
            ) => {
                self.account(id, |rotation| {
                    rotation.held.insert(id.clone(), held.as_str());
                });
            }
            // It will come to something else.
            Decision::Hold(_) | Decision::Roll => {}
        }
    }

    /// A consumer was stamped.
    pub(super) fn rotation_rolled(&mut self, id: &WorkloadId) {
        let rolled = id.clone();
        self.account(id, |rotation| {
            rotation.rolled += 1;
            rotation.rolling.insert(rolled.clone());
        });
    }

    /// A consumer's rollout ended.
    pub(super) fn rotation_ended(&mut self, id: &WorkloadId, outcome: &Outcome) {
        let mut finished = Vec::new();
        for (secret, rotation) in &mut self.rotations {
            if *secret.namespace == *id.namespace && rotation.rolling.remove(id) {
                if *outcome == Outcome::Completed {
                    rotation.completed += 1;
                } else {
                    rotation.failed += 1;
                }
                if rotation.counted && rotation.rolling.is_empty() {
                    finished.push(secret.clone());
                }
            }
        }
        for secret in finished {
            self.tell_rotation(&secret);
            self.rotations.remove(&secret);
        }
    }

    /// A workload is gone: nothing of it is waited for.
    pub(super) fn leave_rotations(&mut self, id: &WorkloadId) {
        self.account(id, |_| {});
    }

    fn account(&mut self, id: &WorkloadId, count: impl Fn(&mut Rotation)) {
        let mut counted = Vec::new();
        for (secret, rotation) in &mut self.rotations {
            if *secret.namespace == *id.namespace && rotation.waiting.remove(id) {
                count(rotation);
                if rotation.waiting.is_empty() && !rotation.counted {
                    rotation.counted = true;
                    counted.push(secret.clone());
                }
            }
        }
        for secret in counted {
            self.count(&secret);
        }
    }

    fn count(&mut self, secret: &SecretId) {
        let Some(rotation) = self.rotations.get(secret) else { return };
        let effect = rotation.effect();
        let over = rotation.rolling.is_empty();
        // Where something holds the others, that is told, and they are rolled for a version to come.
        let worth_a_summary = rotation.held.is_empty() || !rotation.unsaid.is_empty();
        self.examined(secret, effect);
        if effect == Effect::NothingToDo {
            self.tell_nothing(secret);
        }
        self.tell_held(secret);
        if over {
            if worth_a_summary {
                self.tell_rotation(secret);
            }
            self.rotations.remove(secret);
        }
    }

    /// Whether a Secret's rotation is so large that its consumers' successes are told in one summary.
    pub(super) fn is_summarised(&self, id: &WorkloadId) -> bool {
        let mut of_namespace = self.rotations.iter().filter(|(secret, _)| *secret.namespace == *id.namespace);
        of_namespace.any(|(_, rotation)| {
            let concerned = rotation.rolling.contains(id) || rotation.waiting.contains(id);
            rotation.consumers > MANY && (concerned || rotation.unsaid.contains_key(id))
        })
    }

    /// A workload's completion is left to the summary.
    pub(super) fn leave_unsaid(&mut self, id: &WorkloadId, uid: Uid, number: u32) {
        let of_namespace = self.rotations.iter_mut().filter(|(secret, _)| *secret.namespace == *id.namespace);
        for (_, rotation) in of_namespace {
            if rotation.consumers > MANY && rotation.rolling.contains(id) {
                rotation.unsaid.insert(id.clone(), (uid, number));
            }
        }
    }
}

impl Rotation {
    /// Of a version, with nobody in it yet.
    pub(super) fn of(version: Version) -> Self {
        Self { version, ..Self::default() }
    }

    /// The consumers that something holds of which no other Event tells, and what holds them: a missing Secret is told of
    /// on each workload, an open breaker on the Secret.
    pub(super) fn held_untold(&self) -> (Vec<&WorkloadId>, BTreeSet<&'static str>) {
        let told = [Held::BreakerOpen.as_str(), MISSING];
        let untold = self.held.iter().filter(|(_, reason)| !told.contains(*reason));
        untold.map(|(id, reason)| (id, *reason)).unzip()
    }

    fn effect(&self) -> Effect {
        if self.rolled > 0 {
            Effect::Rolled
        } else if !self.held.is_empty() {
            Effect::Held
        } else if self.reported > 0 {
            Effect::Report
        } else {
            Effect::NothingToDo
        }
    }
}
