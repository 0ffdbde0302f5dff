//! Looks at workloads: lists and judges pods, a namespace at a time, and decides.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{
    Call, Engine, Fault, LOOK_EVERY, Outside, Pending, Phase, STALLED, Stage,
    consumption::{references_hash, rolling},
};
use crate::{
    catalog::{Inventory, Selection, Workload},
    decide::{
        self, Bench, Births, Consumed, Decision, Exact, ExactLists, Facts, Held, Judgement, OwnerFacts,
        PodFacts, Step, Verdict,
    },
    facts::{Mono, Name, Namespace, SecretId, Uid, Version, WorkloadId},
    ledger::{Marks, Urgency, Versions},
    record::Record,
    rollout::{State, state},
};

/// Looks that nothing presses are made together within this time: one list of pods serves them all.
const LOOK_GROUP: Duration = Duration::from_millis(200);

/// The pods are listed and judged so long before the settle time ends, so that the stamp can follow at once.
const AHEAD: Duration = Duration::from_millis(250);

/// What may stand between a pod and its workload.
const BETWEEN: [&str; 2] = ["ReplicaSet", "ReplicationController"];

/// A Knative Service is four levels above a ReplicaSet; owners that own each other have no end.
const MOST_ABOVE: usize = 8;

/// A namespace's look in progress.
#[derive(Debug, Default)]
pub(super) struct NamespaceLook {
    /// Whom the lists under way are for.
    now: BTreeSet<WorkloadId>,
    /// What those lists hold.
    selection: Selection,
    /// Who asked since they began.
    next: BTreeSet<WorkloadId>,
    /// Answers that are still to come.
    awaited: usize,
    pods: Vec<PodFacts>,
    listed: Mono,
    /// Of what controls pods, by its uid: what controls that, and so on up. A ReplicaSet that isn't there has none.
    owners: BTreeMap<Uid, Vec<Uid>>,
    owners_read: bool,
    /// Pods at versions.
    pub(super) exact: ExactLists,
    failures: u32,
}

impl NamespaceLook {
    pub(super) fn is_idle(&self) -> bool {
        self.now.is_empty()
    }
}

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
        for look in self.looks.values_mut() {
            look.exact.clear();
        }
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
        let marks = self.book.marks(&workload.id.namespace, workload.uid);
        marks
            .and_then(|marks| marks.attempt.as_ref())
            .is_some_and(|attempt| attempt.has_failed_for(&versions))
    }

    /// Asks for the pods of a workload.
    pub(super) fn list_for(&mut self, id: &WorkloadId) {
        self.tasks.entry(id.clone()).or_default().phase = Phase::Looking;
        self.looks.entry(id.namespace.clone()).or_default().next.insert(id.clone());
        self.asked.insert(id.namespace.clone());
    }

    /// Begins the lists that were asked for since the last ones: one serves all who asked in a namespace.
    pub(super) fn pump_looks(&mut self) {
        for namespace in std::mem::take(&mut self.asked) {
            if self.looks.get(&namespace).is_some_and(NamespaceLook::is_idle) {
                self.list_pods(&namespace);
            }
        }
    }

    fn list_pods(&mut self, namespace: &Namespace) {
        let Some(look) = self.looks.get_mut(namespace) else { return };
        look.now = std::mem::take(&mut look.next);
        let asking = look.now.iter().filter_map(|id| self.catalog.get(id));
        look.selection = Selection::of(asking.map(|workload| &workload.selector));
        look.awaited = 1;
        look.owners_read = false;
        let call = Call::ListPods(namespace.clone(), look.selection.clone());
        self.call(Pending::Pods(namespace.clone()), call);
    }

    pub(super) fn pods_listed(&mut self, namespace: &Namespace, result: Result<Vec<PodFacts>, Fault>) {
        let Some(look) = self.looks.get_mut(namespace) else { return };
        look.awaited = look.awaited.saturating_sub(1);
        match result {
            Ok(pods) => {
                let owned: BTreeSet<Uid> =
                    pods.iter().filter_map(|pod| pod.owner.as_ref().map(|owner| owner.uid)).collect();
                look.owners.retain(|uid, _| owned.contains(uid));
                look.pods = pods;
                look.listed = self.now.mono;
                look.failures = 0;
                self.conclude_look(namespace);
            }
            Err(fault) => self.look_failed(namespace, &fault),
        }
    }

    pub(super) fn pods_at_listed(
        &mut self,
        namespace: &Namespace,
        version: Version,
        result: Result<Vec<Uid>, Fault>,
    ) {
        let Some(look) = self.looks.get_mut(namespace) else { return };
        look.awaited = look.awaited.saturating_sub(1);
        match result {
            Ok(pods) => {
                look.exact.insert(version, Exact::Pods(pods.into()));
            }
            // Too old to be known, or the API server won't say: the clocks decide.
            Err(Fault::Expired | Fault::Refused(_) | Fault::NotFound) => {
                look.exact.insert(version, Exact::Unavailable);
            }
            Err(fault) => {
                self.look_failed(namespace, &fault);
                return;
            }
        }
        self.conclude_look(namespace);
    }

    pub(super) fn owners_listed(
        &mut self,
        namespace: &Namespace,
        result: Result<BTreeMap<Uid, Option<OwnerFacts>>, Fault>,
    ) {
        let Some(look) = self.looks.get_mut(namespace) else { return };
        look.awaited = look.awaited.saturating_sub(1);
        match result {
            Ok(owners) => {
                let wanted: BTreeSet<Uid> =
                    look.pods.iter().filter_map(|pod| pod.owner.as_ref().map(|owner| owner.uid)).collect();
                look.owners = wanted.into_iter().map(|uid| (uid, above(uid, &owners))).collect();
                look.owners_read = true;
                self.conclude_look(namespace);
            }
            Err(fault) => self.look_failed(namespace, &fault),
        }
    }

    fn look_failed(&mut self, namespace: &Namespace, fault: &Fault) {
        let Some(look) = self.looks.get_mut(namespace) else { return };
        if look.awaited > 0 {
            return;
        }
        let delay = Duration::from_secs(1 << look.failures.min(5));
        look.failures = look.failures.saturating_add(1);
        let failed: BTreeSet<WorkloadId> =
            std::mem::take(&mut look.now).into_iter().chain(std::mem::take(&mut look.next)).collect();
        self.notice(
            true,
            format!("pods of namespace {namespace} can't be listed, trying again in {delay:?}: {fault}"),
        );
        for id in failed {
            self.hold(&id, Held::Backoff, delay);
        }
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

    /// When all lists that were asked for are in: judges, and asks for what is missing, or concludes.
    fn conclude_look(&mut self, namespace: &Namespace) {
        let Some(look) = self.looks.get(namespace) else { return };
        if look.awaited > 0 {
            return;
        }
        let mut versions = BTreeSet::new();
        let mut owners = false;
        let mut verdicts = Vec::new();
        for id in look.now.clone() {
            match self.judge(&id, look) {
                Some(Judged::Verdict(verdict)) => verdicts.push((id, verdict)),
                Some(Judged::AskVersions(asked)) => versions.extend(asked),
                Some(Judged::AskOwners) => owners = true,
                None => {}
            }
        }
        let listed = look.listed;
        if versions.is_empty() && !owners {
            self.finish_look(namespace, verdicts, listed);
            return;
        }
        let Some(look) = self.looks.get_mut(namespace) else { return };
        look.awaited = versions.len() + usize::from(owners);
        if owners {
            let selection = look.selection.clone();
            self.call(
                Pending::Owners(namespace.clone()),
                Call::ListReplicaSets(namespace.clone(), selection),
            );
        }
        for version in versions {
            self.call(
                Pending::PodsAt(namespace.clone(), version),
                Call::ListPodsAt(namespace.clone(), version),
            );
        }
    }

    fn finish_look(&mut self, namespace: &Namespace, verdicts: Vec<(WorkloadId, Verdict)>, listed: Mono) {
        if let Some(look) = self.looks.get_mut(namespace) {
            look.pods = Vec::new();
            look.now.clear();
        }
        for (id, verdict) in verdicts {
            if let Some(task) = self.tasks.get_mut(&id)
                && matches!(task.phase, Phase::Looking)
            {
                task.phase = Phase::Idle;
                self.judged(&id, verdict, listed);
            }
        }
        let Some(look) = self.looks.get_mut(namespace) else { return };
        look.trim();
        if !look.next.is_empty() {
            self.asked.insert(namespace.clone());
        }
    }

    /// A workload's pods were judged.
    fn judged(&mut self, id: &WorkloadId, verdict: Verdict, listed: Mono) {
        let Some(workload) = self.catalog.get(id) else { return };
        if self.running_attempt(workload).is_some() && self.conclude(id, &verdict) {
            return;
        }
        match self.decide(id, Some(&verdict)) {
            Some(Step::Decided(decision)) => self.decided(id, decision, Some((verdict, listed))),
            Some(Step::NeedsPods) | None => {}
        }
    }

    /// Judges the pods of a workload: by the versions of its running rollout, or by the newest.
    fn judge<'a>(&'a self, id: &WorkloadId, look: &'a NamespaceLook) -> Option<Judged> {
        let workload = self.catalog.get(id)?;
        let marks = self.book.marks(&id.namespace, workload.uid);
        let upto = self
            .running_attempt(workload)
            .filter(|_| self.waits_for_end(id))
            .map(|attempt| &attempt.versions);
        let consumption = self.consumption(workload);
        let limit =
            |all: &[Consumed<'a>]| all.iter().map(|consumed| limited(consumed, upto)).collect::<Vec<_>>();
        let (rolling, reported) = (limit(&consumption.rolling), limit(&consumption.reported));
        let mounted = self.mounted_by(workload);
        let bench = Bench {
            mounted: &mounted,
            consumed: &rolling,
            reported: &reported,
            births: Births { exact: &look.exact, comparable: self.comparable },
            marks,
            made: self.book.made(&id.namespace).time,
        };
        Some(look.judge(workload, &bench))
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

/// A consumed value of which nothing after these versions counts.
fn limited<'a>(consumed: &Consumed<'a>, upto: Option<&Versions>) -> Consumed<'a> {
    let version = upto.map(|versions| versions.get(&consumed.reference.secret).copied().unwrap_or_default());
    Consumed { upto: version, ..*consumed }
}

/// Everything above, from the nearest on.
fn above(uid: Uid, owners: &BTreeMap<Uid, Option<OwnerFacts>>) -> Vec<Uid> {
    let up = |uid: &Uid| owners.get(uid).and_then(Option::as_ref).map(|owner| owner.uid);
    std::iter::successors(up(&uid), up).take(MOST_ABOVE).collect()
}

/// The judgement of a workload's pods, or what it still needs.
enum Judged {
    Verdict(Verdict),
    AskVersions(BTreeSet<Version>),
    AskOwners,
}

impl NamespaceLook {
    /// Judges the live pods that a workload controls. Whose a ReplicaSet is needs to be known only where a pod of
    /// it isn't fresh.
    fn judge(&self, workload: &Workload, bench: &Bench<'_>) -> Judged {
        let (certain, open): (Vec<&PodFacts>, Vec<&PodFacts>) = self
            .pods
            .iter()
            .filter(|pod| self.may_be_of(pod, workload))
            .partition(|pod| self.is_of(pod, workload));
        let all = certain.iter().chain(&open).copied();
        match decide::judge(all, bench) {
            Judgement::Ask(versions) => Judged::AskVersions(versions),
            Judgement::Verdict(verdict) => {
                let fresh = verdict.is_clean();
                if open.is_empty() || fresh { Judged::Verdict(verdict) } else { Judged::AskOwners }
            }
        }
    }

    fn is_of(&self, pod: &PodFacts, workload: &Workload) -> bool {
        let Some(owner) = &pod.owner else { return false };
        let above = self.owners.get(&owner.uid);
        owner.uid == workload.uid || above.is_some_and(|above| above.contains(&workload.uid))
    }

    /// Whether a pod is the workload's, or may be until its ReplicaSet's owner is known.
    fn may_be_of(&self, pod: &PodFacts, workload: &Workload) -> bool {
        let Some(owner) = &pod.owner else { return false };
        let open = BETWEEN.contains(&&*owner.kind)
            && !self.owners_read
            && !self.owners.contains_key(&owner.uid)
            && owner.name.starts_with(&*workload.id.name);
        open || self.is_of(pod, workload)
    }

    /// Keeps the exact lists of the newest versions: earlier ones are of changes that were dealt with.
    fn trim(&mut self) {
        while self.exact.len() > 8 {
            self.exact.pop_first();
        }
    }
}
