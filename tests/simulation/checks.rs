//! What must hold, always or when all is quiet.

use std::collections::{BTreeMap, BTreeSet};

use uptake::{
    decide::{Decision, Held, ReportOnly, Skipped},
    engine::LedgerObject,
    facts::{Name, Uid, Version, WorkloadId},
    ledger::{Attempt, HEAD, Head, Page, Versions},
    record::{EventNote, Reason, Record},
    rollout::{Failure, Outcome, Stamp, State, state},
};

use crate::{
    history::{Ms, SECRETS},
    store::{self, Owner, Place},
    truth::Blind,
    world::World,
};

/// How often a workload may be stamped with the same while nothing happens by itself any more: whatever takes the stamp
/// away, it comes to an end.
const FIGHT: u32 = 8;

/// A list of pods that the operator was given.
#[derive(Clone, Debug)]
pub struct Evidence {
    pub namespace: Name,
    pub pods: Vec<usize>,
    pub version: u64,
}

#[derive(Default)]
pub struct Checks {
    pub violation: Option<String>,
    /// Of the process that is looked at.
    pub life: Life,
    pub blind: Vec<Blind>,
    /// Namespaces in which a Secret changed since the operator first ran.
    pub changed_namespaces: BTreeSet<u8>,
    pub ledger_was_deleted: bool,
    /// Stamps that somebody forged, by workload.
    pub forged: BTreeSet<(usize, String)>,
    /// When the store was set back last.
    pub restored: Option<Ms>,
    /// Versions that somebody released.
    pub released: BTreeSet<(store::SecretKey, u64)>,
    /// Workloads whose stamp something takes away.
    pub reverted: BTreeSet<Uid>,
    pub attempts: BTreeMap<Uid, Attempt>,
    /// Every intent that was ever in the ledger: a stamp may arrive when its process is long dead.
    intended: BTreeSet<(Uid, Versions)>,
    pub clean: BTreeMap<Uid, Versions>,
    /// How often each workload was stamped with what since all is quiet.
    stamps: BTreeMap<(Uid, String), u32>,
    /// By namespace, when its records were made, and at which version.
    made: [Option<(Ms, u64)>; 2],
}

/// What was seen of one process of the operator.
#[derive(Default)]
pub struct Life {
    /// The last answered list of each namespace.
    pub listed: BTreeMap<Name, Vec<(Ms, Evidence)>>,
    decisions: BTreeMap<WorkloadId, Decision>,
    /// What the ledger had when it was read, and when the Secrets were first complete.
    loaded: Option<[Loaded; 2]>,
    complete: Option<(u64, Ms)>,
    joined: bool,
}

#[derive(Clone, Debug, Default)]
struct Loaded {
    seen: u64,
    seen_at: Ms,
    known: BTreeSet<Place>,
}

impl Checks {
    /// The ledger was taken away: what it told is nobody's to know.
    pub fn forget_attempts(&mut self) {
        self.attempts.clear();
    }

    /// The store is another: what its ledger told is what it told then.
    pub fn store_was_restored(&mut self, version: u64, now: Ms) {
        self.forget_attempts();
        self.clean.clear();
        self.ledger_was_deleted = true;
        self.restored = Some(now);
        self.changed_namespaces.extend([0, 1]);
        // Nobody watched then in the restored history either.
        self.blind.retain(|blind| blind.after < version);
        self.blind.iter_mut().for_each(|blind| blind.by = blind.by.min(version));
        for (_, made) in self.made.iter_mut().flatten() {
            *made = version.min(*made);
        }
    }

    /// Whether a workload was ever to be rolled for that version.
    pub fn was_intended(&self, uid: Uid, name: &str, version: Version) -> bool {
        self.intended.iter().any(|(of, versions)| *of == uid && versions.get(name) == Some(&version))
    }

    pub fn made(&self, namespace: u8) -> Option<u64> {
        self.made[usize::from(namespace)].map(|(_, version)| version)
    }
}

impl World {
    pub fn violated(&mut self, what: String) {
        if self.checks.violation.is_none() {
            self.tell(|_| format!("VIOLATED: {what}"));
            self.checks.violation = Some(what);
        }
    }

    pub fn check_record(&mut self, record: &Record) {
        match record {
            Record::Decided { workload, decision } => {
                let (word, reason) = decision.words();
                self.tally.decision(word, reason);
                self.tell(|_| format!("  engine: {workload}: {decision}"));
                self.checks.life.decisions.insert(workload.clone(), decision.clone());
            }
            Record::RolloutEnded { workload, outcome, .. } => {
                self.tell(|_| format!("  engine: the rollout of {workload} ended: {outcome:?}"));
                if *outcome == Outcome::Gone {
                    self.tally.outcome("gone");
                }
            }
            Record::Notice { message, .. } => {
                if message.contains("unexpected answer") {
                    self.violated(message.clone());
                }
                self.tell(|_| format!("  engine: {message}"));
            }
            Record::SecretChange { secret, effect, consumed: _ } => {
                self.tell(|_| format!("  engine: change of {secret}: {effect:?}"));
            }
            Record::Stamped { .. } | Record::LedgerWrite { .. } => {}
        }
    }

    /// The operator read the ledger: from where on it is blind.
    pub fn ledger_is_loaded(&mut self, objects: &[LedgerObject]) {
        if self.checks.life.loaded.is_some() {
            return;
        }
        let mut loaded: [Loaded; 2] = Default::default();
        for object in objects {
            if &*object.name == HEAD {
                let Ok(head) = serde_json::from_slice::<Head>(&object.body) else { continue };
                for one in &mut loaded {
                    one.see(head.cover.seen_until.version.0, head.cover.seen_until.time.0);
                }
            } else if let Ok(page) = serde_json::from_slice::<Page>(&object.body)
                && let Some(number) = number(&page.namespace)
            {
                let one = &mut loaded[usize::from(number)];
                one.see(page.cover.seen_until.version.0, page.cover.seen_until.time.0);
                for (secret, record) in &page.secrets {
                    let Some(name) = (0..3).find(|name| store::secret_name(*name) == *secret) else {
                        continue;
                    };
                    if record.all.is_some() {
                        one.known.insert((number, name, None));
                    }
                    for key in 0..store::KEYS {
                        if record.keys.contains_key(&store::key_name(key)) {
                            one.known.insert((number, name, Some(key)));
                        }
                    }
                }
            }
        }
        self.checks.life.loaded = Some(loaded);
        self.join_blind();
    }

    /// The operator has all Secrets.
    pub fn watch_complete(&mut self, version: u64) {
        if self.checks.life.joined {
            let after = self.streams[0].gap_from;
            let margin = self.margin();
            let (now, wide) = (self.now, if self.knobs.late > 0 { 9_000 } else { 500 });
            for namespace in 0..2 {
                // When the last event before the gap happened isn't kept: long enough before is good enough.
                let after_at = self.writes_at(after).unwrap_or(now) - wide;
                self.checks.blind.push(Blind {
                    namespace,
                    after,
                    after_at: after_at - margin,
                    by: version,
                    by_at: now,
                    known: None,
                });
            }
        } else if self.checks.life.complete.is_none() {
            self.checks.life.complete = Some((version, self.now));
            self.join_blind();
        } else {
            self.checks.life.complete = Some((version, self.now));
        }
    }

    fn writes_at(&self, version: u64) -> Option<Ms> {
        self.writes.values().flatten().filter(|(written, _)| *written <= version).map(|(_, at)| *at).max()
    }

    fn join_blind(&mut self) {
        let (Some(loaded), Some((by, by_at))) = (&self.checks.life.loaded, self.checks.life.complete) else {
            return;
        };
        let by = by.max(self.streams[0].delivered);
        let by_at = by_at.max(self.now);
        let found = loaded.clone().into_iter().zip(0_u8..).map(|(loaded, namespace)| Blind {
            namespace,
            after: loaded.seen,
            after_at: loaded.seen_at,
            by,
            by_at,
            known: Some(loaded.known),
        });
        let found: Vec<Blind> = found.collect();
        self.checks.blind.extend(found);
        self.checks.life.joined = true;
    }

    /// A ledger object is about to be written.
    pub fn check_ledger_write(&mut self, name: &str, body: &[u8]) {
        if name == HEAD {
            return;
        }
        let Ok(page) = serde_json::from_slice::<Page>(body) else {
            self.violated(format!("{name} is written and can't be read"));
            return;
        };
        let Some(namespace) = number(&page.namespace) else { return };
        let made = page.cover.made.time.0;
        if self.checks.made[usize::from(namespace)].is_none_or(|(known, _)| known != made) {
            // The ledger may be begun before the first list is complete, so it need not know its version.
            self.checks.made[usize::from(namespace)] = Some((made, self.version));
        }
        for (uid, marks) in &page.workloads {
            self.checks.clean.insert(*uid, marks.clean.clone());
            let Some(attempt) = &marks.attempt else { continue };
            self.checks.intended.insert((*uid, attempt.versions.clone()));
            let before = self.checks.attempts.insert(*uid, attempt.clone());
            if let Some(before) = &before
                && !self.checks.ledger_was_deleted
                && let Some(wrong) = wrong_turn(before, attempt)
            {
                self.violated(format!("attempt of {}: {wrong}: {before:?} became {attempt:?}", marks.name));
            }
            let was_open = before
                .as_ref()
                .is_none_or(|before| before.number != attempt.number || before.ended.is_none());
            if let Some(ended) = &attempt.ended
                && (was_open || before.is_some_and(|before| before.ended != attempt.ended))
            {
                let word = match &ended.outcome {
                    Outcome::Failed(Failure::DeadlineExceeded(_)) => "failed_deadline",
                    Outcome::Failed(Failure::NoProgress) => "failed_no_progress",
                    Outcome::Failed(Failure::Reverted(_)) => "failed_reverted",
                    Outcome::Completed if ended.late => "completed_late",
                    other => other.as_str(),
                };
                self.tally.outcome(word);
                let blamed = matches!(
                    ended.outcome,
                    Outcome::Failed(Failure::DeadlineExceeded(_) | Failure::NoProgress)
                );
                if !blamed && !ended.broke.is_empty() {
                    self.violated(format!("{:?} is blamed on {:?}", ended.outcome, ended.broke));
                }
                for name in &ended.broke {
                    let secret = (0..3).find(|number| store::secret_name(*number) == *name);
                    let version = attempt.versions.get(name).map(|version| version.0);
                    if let (Some(secret), Some(version)) = (secret, version) {
                        self.breaker_opens((namespace, secret), version);
                    }
                }
            }
        }
    }

    pub fn check_note(&mut self, note: &EventNote) {
        let Some(namespace) = Some(&*note.regarding.namespace).and_then(number) else { return };
        let early = !self.checks.changed_namespaces.contains(&namespace) && !self.knobs.first_sight_rolls;
        if early && note.reason != Reason::InvalidAnnotation {
            self.violated(format!(
                "Event {} in {} before anything changed there: {}",
                note.reason,
                store::namespace(namespace),
                note.note
            ));
        }
    }

    /// A stamp is about to change a template.
    pub fn check_stamp(&mut self, owner: usize, stamp: &str, decided: Option<(Option<Evidence>, u64)>) {
        let it = self.owners[owner].clone();
        let (id, uid, namespace) = (it.id(), it.uid, it.namespace);
        self.tally.rollouts += 1;
        if self.quiet {
            let stamps = self.checks.stamps.entry((uid, stamp.to_owned())).or_default();
            *stamps += 1;
            if *stamps > FIGHT {
                self.violated(format!("{id} is stamped again and again: there is a fight"));
            }
        }
        if !self.checks.changed_namespaces.contains(&namespace) && !self.knobs.first_sight_rolls {
            self.violated(format!("{id} is stamped before anything changed"));
        }
        // A request that timed out and arrives late isn't what the operator wants now, and it can't know.
        let Some((evidence, delivered)) = decided else { return };
        let versions: Versions = Stamp::parse(stamp)
            .map(|stamp| stamp.iter().map(|(name, version)| (name.clone(), version)).collect())
            .unwrap_or_default();
        let is_told_by_ledger_alone = versions.values().any(|version| version.0 > delivered);
        let intended = self.checks.intended.contains(&(uid, versions));
        if !intended && !self.checks.ledger_was_deleted {
            self.violated(format!("{id} is stamped {stamp} and the ledger has no such intent"));
        }
        let facts = it.facts().rollout;
        // What it did while nobody could watch isn't known; nor what it does in a restored store, as long as the watch is of
        // the one before.
        let whole_since = self.streams[it.sort.stream()].whole_since;
        let is_watched = self.checks.restored.is_none_or(|at| whole_since > at);
        let moves = self.now - it.moved < 50_000 && it.moved > whole_since && is_watched;
        if moves
            && self.could_see_progress(owner)
            && facts.observed_generation >= facts.generation
            && matches!(state(&facts), State::Running(_))
        {
            self.violated(format!("{id} is stamped while a rollout of it makes progress"));
        }
        let Some(evidence) = evidence else {
            if self.checks.restored.is_some_and(|at| self.now - at < 60_000) {
                return;
            }
            self.violated(format!("{id} is stamped and its pods weren't listed"));
            return;
        };
        let template = self.owners[owner].template.clone();
        let pods = evidence.pods.iter().map(|pod| &self.pods[*pod]).filter(|pod| pod.owner == owner);
        let mut excuse = None;
        let from = delivered.min(evidence.version);
        for pod in pods {
            if self.was_stale(pod, &template, from, self.version) {
                return;
            }
            excuse = excuse.or_else(|| self.excuse(pod, &template));
        }
        // As long as its watch of Secrets is of the store before, so is what it knows: no API server tells a client that the
        // store behind it is another one now. The list after that does, unless a process that died put what it knew of the
        // lost history into the restored ledger: until the store has grown beyond that, the next one can't tell it from what a
        // leader before it saw and its own watch will tell yet.
        let restored = self
            .checks
            .restored
            .is_some_and(|at| self.streams[SECRETS].whole_since <= at || is_told_by_ledger_alone);
        match excuse {
            Some(excuse) => self.tally.excuse(excuse.as_str()),
            None if restored => self.tally.excuse("unnoticed_restore"),
            None => self.violated(format!("{id} is stamped {stamp} and none of its pods is stale")),
        }
    }

    /// Whether the watch told of a workload's last progress, or it shows now. A pod that went and came back meanwhile is
    /// neither.
    fn could_see_progress(&self, owner: usize) -> bool {
        let it = &self.owners[owner];
        let delivered = self.streams[it.sort.stream()].delivered;
        let known = it.trail.iter().rev().find(|(version, _)| *version <= delivered);
        let (Some((known_at, known)), Some((last_at, last))) = (known, it.trail.last()) else { return true };
        known_at == last_at || known != last
    }

    /// All is quiet.
    pub fn check_end(&mut self) {
        if self.checks.violation.is_some() {
            return;
        }
        let deciding = self.deciding();
        if deciding.is_empty() {
            self.violated("no operator is running at the end, or none leads".to_owned());
        }
        for replica in deciding {
            self.turn_to(replica);
            for owner in 0..self.owners.len() {
                if !self.owners[owner].gone {
                    self.check_workload(owner);
                }
            }
            self.check_held();
        }
    }

    fn check_held(&mut self) {
        let held = self.operator.engine().map(|engine| engine.gauges().held).unwrap_or_default();
        for (word, _) in held {
            if [
                "settling",
                "rollout_running",
                "no_free_slot",
                "backoff",
                "inventory_unknown",
                "ledger_unwritable",
                "canary",
            ]
            .contains(&word)
            {
                self.violated(format!("at the end something is still held: {word}"));
            }
        }
    }

    fn check_workload(&mut self, owner: usize) {
        let it = self.owners[owner].clone();
        let id = it.id();
        let decision = self.checks.life.decisions.get(&id).cloned();
        let attempt = self.checks.attempts.get(&it.uid).cloned();
        // Of two without a leader the one may have taken back what the other one's word of it in the store says still; whoever
        // reads that next ends it.
        let without_leader = self.knobs.replicas > 1 && !self.knobs.elects;
        if let Some(attempt) = &attempt
            && attempt.ended.is_none()
            && attempt.stamped.is_some()
            && !it.template.uses.is_empty()
            && !(without_leader && attempt.reverts > 0)
        {
            self.violated(format!(
                "{id}: a rollout has no outcome at the end: {attempt:?}; decided: {decision:?}"
            ));
        }
        let stale: Vec<usize> = (0..self.pods.len())
            .filter(|pod| {
                let pod = &self.pods[*pod];
                pod.owner == owner
                    && pod.is_live()
                    && self.is_stale(pod, &self.counts_for(&it, pod), self.version)
            })
            .collect();
        if stale.is_empty() {
            return;
        }
        if without_leader {
            // Neither knows what the other one saw: such a pair doesn't fight, and that is all it promises.
            self.tally.stale_reason("without_leader");
            return;
        }
        let reason = self.reason(owner, &it, decision.as_ref(), attempt.as_ref());
        if let Some(reason) = reason {
            self.tally.stale_reason(reason);
            return;
        }
        for pod in stale {
            let pod = &self.pods[pod];
            if let Some(limit) = self.unknowable(pod, &self.counts_for(&it, pod)) {
                self.tally.stale_reason(limit);
                continue;
            }
            let (name, born) = (pod.name.clone(), pod.born);
            self.violated(format!(
                "{id}: pod {name} (born at {born}) is stale at the end, decided: {decision:?}, attempt: {attempt:?}"
            ));
            return;
        }
    }

    /// A workload's template with what a pod of it can be stale by: what its own template doesn't consume it can't hold,
    /// and of some Secrets their owner wants nobody to be rolled for them.
    fn counts_for(&self, owner: &Owner, pod: &store::Pod) -> store::Template {
        let is_off = |secret: u8| {
            self.remembered.get(&(owner.namespace, secret)).is_some_and(|secret| secret.mode == 3)
        };
        let uses = owner.template.uses.iter();
        let uses = uses.filter(|one| pod.template.uses.contains(one) && !is_off(one.secret));
        store::Template { uses: uses.copied().collect(), ..(*owner.template).clone() }
    }

    /// Whether a version broke that rollout, and nobody released it.
    fn is_unreleased(&self, namespace: u8, attempt: &Attempt) -> bool {
        let broke = attempt.ended.iter().flat_map(|ended| &ended.broke);
        broke.into_iter().any(|name| {
            let number = (0..3).find(|number| store::secret_name(*number) == *name).unwrap_or_default();
            let version = attempt.versions.get(name).copied().unwrap_or_default();
            let now = self.secrets.get(&(namespace, number)).and_then(|secret| secret.release);
            now != Some(version.0)
        })
    }

    /// The recorded reason why stale pods are left alone, if its cause is true.
    fn reason(
        &self,
        owner: usize,
        it: &Owner,
        decision: Option<&Decision>,
        attempt: Option<&Attempt>,
    ) -> Option<&'static str> {
        let live = || self.pods.iter().filter(|pod| pod.owner == owner && pod.is_live());
        let secret_modes = |mode: &[u8]| {
            it.template.uses.iter().any(|one| {
                self.remembered
                    .get(&(it.namespace, one.secret))
                    .is_some_and(|secret| mode.contains(&secret.mode))
            })
        };
        let namespace_mode = self.namespaces[usize::from(it.namespace)].rollout.as_deref();
        match decision? {
            Decision::Report(ReportOnly::Policy) => (it.mode == 2
                || (it.mode == 0 && matches!(namespace_mode, Some("report" | "TRUE ")))
                || secret_modes(&[2, 4]))
            .then_some("policy_report"),
            Decision::Report(ReportOnly::InvalidAnnotation) => (it.mode == 4).then_some("invalid_annotation"),
            Decision::Skip(Skipped::OptedOut) => {
                (it.mode == 3 || (it.mode == 0 && namespace_mode == Some("off")) || secret_modes(&[3]))
                    .then_some("opted_out")
            }
            Decision::Skip(Skipped::BeingDeleted) => it.deleting.then_some("being_deleted"),
            Decision::Report(ReportOnly::FirstSight) => self
                .checks
                .made(it.namespace)
                .is_some_and(|made| live().any(|pod| pod.born < made))
                .then_some("first_sight_report"),
            // The operator knows what it did, though somebody took its ledger away.
            Decision::Report(ReportOnly::Attempted) if attempt.is_none() => {
                self.checks.ledger_was_deleted.then_some("attempted")
            }
            Decision::Report(ReportOnly::Attempted) => {
                let outcome = &attempt?.ended.as_ref()?.outcome;
                let cause = match outcome {
                    Outcome::Failed(Failure::Reverted(_)) => {
                        it.git_always || self.checks.reverted.contains(&it.uid)
                    }
                    Outcome::Blocked(_) | Outcome::Failed(_) => true,
                    _ => false,
                };
                cause.then_some("attempted")
            }
            Decision::Hold(Held::Undecided) => {
                live().any(|pod| pod.started != [true; 2]).then_some("undecided")
            }
            Decision::Hold(Held::Missing { .. }) => it
                .template
                .uses
                .iter()
                .any(|one| {
                    !one.optional
                        && self.value_at((it.namespace, one.secret, one.key), self.version).is_none()
                })
                .then_some("missing"),
            // Another consumer of the namespace failed with pods that started and never became ready.
            Decision::Hold(Held::BreakerOpen) => self
                .owners
                .iter()
                .enumerate()
                .filter(|(other, its)| *other != owner && its.namespace == it.namespace)
                .filter_map(|(_, its)| self.checks.attempts.get(&its.uid))
                .any(|attempt| self.is_unreleased(it.namespace, attempt))
                .then_some("breaker_open"),
            Decision::Hold(Held::OperatorPaused) => {
                (self.namespaces[2].paused.as_deref() == Some("true")).then_some("operator_paused")
            }
            Decision::Roll => (it.denied || it.stripped).then_some("refused"),
            _ => None,
        }
    }
}

impl Loaded {
    fn see(&mut self, version: u64, at: Ms) {
        if version > self.seen {
            (self.seen, self.seen_at) = (version, at);
        }
    }
}

/// Whether a rollout's account went somewhere it can't go.
fn wrong_turn(before: &Attempt, after: &Attempt) -> Option<&'static str> {
    if after.number < before.number {
        return Some("its number went back");
    }
    if after.number > before.number {
        return None;
    }
    match (&before.ended, &after.ended) {
        (Some(_), None) => Some("its outcome was forgotten"),
        (Some(first), Some(second)) if first != second => {
            let late = second.late
                && !first.late
                && second.outcome == Outcome::Completed
                && matches!(first.outcome, Outcome::Failed(_) | Outcome::Blocked(_));
            (!late).then_some("it has two outcomes")
        }
        _ => None,
    }
}

fn number(namespace: &str) -> Option<u8> {
    (0..2).find(|number| *store::namespace(*number) == *namespace)
}
