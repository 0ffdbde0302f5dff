//! Lists the pods that looks ask for, a namespace at a time, and judges them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Call, Engine, Fault, Pending, Phase};
use crate::{
    catalog::{Selection, Workload},
    decide::{
        self, Bench, Births, Consumed, Exact, ExactLists, Held, Judgement, OwnerFacts, Owners, PodFacts,
        Verdict,
    },
    facts::{Mono, Namespace, Uid, Version, WorkloadId},
    ledger::Versions,
};

/// What may stand between a pod and its workload.
const BETWEEN: [&str; 2] = ["ReplicaSet", "ReplicationController"];

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
    exact: ExactLists,
    failures: u32,
}

impl NamespaceLook {
    pub(super) fn is_idle(&self) -> bool {
        self.now.is_empty()
    }

    /// The store was set back: what was listed at its versions was of another history.
    pub(super) fn forget_versions(&mut self) {
        self.exact.clear();
    }
}

impl Engine {
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
}

/// A consumed value of which nothing after these versions counts.
fn limited<'a>(consumed: &Consumed<'a>, upto: Option<&Versions>) -> Consumed<'a> {
    let version = upto.map(|versions| versions.get(&consumed.reference.secret).copied().unwrap_or_default());
    Consumed { upto: version, ..*consumed }
}

/// Everything above, from the nearest on.
fn above(uid: Uid, owners: &Owners) -> Vec<Uid> {
    let nearest = owners.get(&uid).and_then(Option::as_ref);
    decide::upwards(nearest, owners).map(|owner| owner.uid).collect()
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
