//! Takes in what the watches deliver.

use std::collections::BTreeSet;

use super::{Engine, Fault, InventoryFault, Outside, Pending, Stage, Trigger, Watched};
use crate::{
    catalog::{Applied, Inventory, SecretFacts, Workload, namespace::NamespaceFacts},
    facts::{Kind, Namespace, SecretId, Version, WorkloadId},
    ledger::{Digest, History, Moment, Part, Point, Sight, Since, Urgency, Value},
    record::{Effect, Record},
};

impl Engine {
    pub(super) fn take_secrets(&mut self, watched: Watched<SecretFacts, SecretId>) {
        match watched {
            Watched::Broken(fault) => {
                self.sightings.broken();
                self.secrets_fault = Some(fault);
            }
            Watched::Relist => self.sightings.relist(),
            Watched::Apply(facts) => self.secret_applied(facts),
            Watched::Delete(id, version) => {
                let moment = self.sightings.delete(&id, version, self.now.server);
                self.outside.remove(&id);
                self.secret_moved(&id, moment);
            }
            Watched::Complete(version) => self.secrets_complete(version),
            Watched::Progress(version) => self.sightings.progress(version, self.now.server),
        }
    }

    fn secret_applied(&mut self, facts: SecretFacts) {
        let facts = self.as_triggered(facts);
        let known = self.sightings.get(&facts.id).filter(|known| known.present);
        let annotations_changed = known.is_none_or(|known| known.annotations != facts.annotations);
        let is_news = known.is_some_and(|known| known.version != facts.version);
        let id = facts.id.clone();
        let is_set_back = self.united && self.sightings.is_set_back(&facts);
        let moment = self.sightings.apply(&facts, self.now.server);
        self.outside.remove(&id);
        let moved =
            if is_set_back { self.set_back(&id, facts.version) } else { self.secret_moved(&id, moment) };
        if !moved && is_news {
            self.examined(&id, Effect::Unchanged);
        }
        if annotations_changed && self.united && self.catalog.is_referenced(&id) {
            self.tell_secret_problem(&id);
            self.look_at_consumers(&id);
        }
    }

    /// What a Secret held after that version never was. Whether it holds something else now than it did before that.
    pub(super) fn set_back(&mut self, id: &SecretId, version: Version) -> bool {
        self.set_back_to = Some(self.set_back_to.map_or(version, |to| to.min(version)));
        let Some(record) = self.book.secret(id) else { return false };
        let Some(sighting) = self.sightings.get(id) else { return false };
        let to = Point { version, time: self.now.server };
        let mut histories = Vec::new();
        let mut changed = Vec::new();
        for part in record.parts() {
            let Some(mut history) = record.history(&part).cloned() else { continue };
            history.set_back(to, sighting.value(&part));
            if history.version() == version && matches!(history.last().since, Since::Between { .. }) {
                changed.push(part.clone());
            }
            histories.push((part, history));
        }
        let edit = self.edit(Urgency::Settling);
        // A record that exists always has its place.
        let _ = self.book.edit_secret(id, edit, |record| {
            for (part, history) in histories {
                record.begin(&part, history);
            }
        });
        if changed.is_empty() {
            return false;
        }
        self.changed(id, &changed);
        true
    }

    /// A Secret's new version was examined, and this came of it.
    pub(super) fn examined(&mut self, id: &SecretId, effect: Effect) {
        if self.stage == Stage::Standby {
            return;
        }
        let consumed = self.catalog.is_referenced(id);
        self.record(Record::SecretChange { secret: id.clone(), effect, consumed });
    }

    /// With `--trigger resource-version` each version is a value of its own.
    fn as_triggered(&self, mut facts: SecretFacts) -> SecretFacts {
        if self.config.trigger == Trigger::ResourceVersion {
            let digest = Digest(u128::from(facts.version.0));
            facts.all = digest;
            facts.keys.iter_mut().for_each(|key| key.digest = digest);
        }
        facts
    }

    /// Consumed parts learn what was seen. Whether any of them changed.
    fn secret_moved(&mut self, id: &SecretId, moment: Moment) -> bool {
        if !self.united {
            return false;
        }
        let Some(record) = self.book.secret(id) else { return false };
        let mut moved = Vec::new();
        for part in record.parts() {
            let Some(history) = record.history(&part) else { continue };
            if matches!(moment, Moment::Unbroken(point) if is_ahead(history, point.version)) {
                continue;
            }
            let sight = self.sight(id, &part, moment);
            let mut learnt = history.clone();
            if learnt.learn(&sight) {
                moved.push((part, learnt));
            }
        }
        if moved.is_empty() {
            return false;
        }
        let parts: Vec<Part> = differing(&moved);
        let edit = self.edit(Urgency::Settling);
        let _ = self.book.edit_secret(id, edit, |record| {
            for (part, history) in moved {
                record.begin(&part, history);
            }
        });
        self.changed(id, &parts);
        true
    }

    /// Parts of a Secret got another value; none if it is only known that some may have had one meanwhile.
    pub(super) fn changed(&mut self, id: &SecretId, parts: &[Part]) {
        if parts.is_empty() {
            self.look_at_consumers(id);
        } else {
            self.begin_rotation(id, parts);
        }
    }

    fn sight(&self, id: &SecretId, part: &Part, moment: Moment) -> Sight {
        match self.sightings.get(id) {
            Some(sighting) => Sight { value: sighting.value(part), written: sighting.written(part), moment },
            None => Sight { value: Value::Absent, written: None, moment },
        }
    }

    fn secrets_complete(&mut self, version: Version) {
        if self.sightings.is_complete() && version < self.sightings.seen().version {
            self.store_was_set_back(version);
            self.set_back_to = None;
            return;
        }
        let gap = self.sightings.gap();
        let (vanished, moment) = self.sightings.complete(version, self.now.server);
        let recovered = self.secrets_fault.take().is_some();
        for id in vanished {
            self.outside.remove(&id);
            self.secret_moved(&id, moment);
        }
        let gaps: BTreeSet<Point> = gap.into_iter().collect();
        let was_asked = std::mem::take(&mut self.gap_is_lost);
        if was_asked {
            self.forget_gaps(&gaps);
        }
        if let Some(to) = self.set_back_to.take() {
            self.secrets_were_set_back(to, &gaps);
            if !was_asked {
                self.list_anew();
            }
        }
        self.unite();
        if recovered && self.stage == Stage::Ready {
            self.look_at_held();
        }
    }

    /// The store's versions went back: etcd was restored from a backup. What was remembered of it is of another
    /// history; the ledger's entries from above the restored version are first sight.
    fn store_was_set_back(&mut self, version: Version) {
        self.notice(
            true,
            format!("the store was set back to version {version}: what is above it is first sight"),
        );
        let store = Point { version, time: self.now.server };
        // What was written to the restored store was written after the last word of the one before.
        let heard = self.sightings.seen().time;
        self.book.forget_above(store, heard, self.now.mono);
        self.sightings.set_back(store);
        // As at the start: nothing is decided until everything was listed again, and made one with the ledger.
        self.united = false;
        self.rotations.clear();
        self.list_anew();
        self.look_at_all_anew();
    }

    /// Secrets are older than they were, though the store has grown beyond what was seen of it: it was restored from a
    /// backup while nobody watched. Their histories know already; what was proven with versions from above is doubtful
    /// for every Secret, since nothing tells which of those versions are of the restored store.
    /// The gaps that began there began in the store before.
    pub(super) fn secrets_were_set_back(&mut self, to: Version, gaps: &BTreeSet<Point>) {
        self.notice(
            true,
            format!("the store was set back to version {to} or a little above: what was proven since is looked at again"),
        );
        self.book.doubt_above(to, self.now.mono);
        self.forget_gaps(gaps);
        self.look_at_all_anew();
    }

    /// Of gaps that began there, in the store before, only the time counts.
    fn forget_gaps(&mut self, from: &BTreeSet<Point>) {
        self.book.forget_gaps(from, self.now.mono);
        self.sightings.forget_gaps(from);
    }

    pub(super) fn take_workloads(&mut self, kind: &Kind, watched: Watched<Workload, WorkloadId>) {
        match watched {
            Watched::Broken(fault) => self.inventory_broken(kind, fault),
            Watched::Relist => self.catalog.relist(kind),
            Watched::Apply(workload) => {
                self.workloads_set_back |= self.catalog.delivered(&workload);
                self.workload_applied(workload);
            }
            Watched::Delete(id, version) => {
                if self.catalog.get(&id).is_some_and(|known| known.version <= version) {
                    self.workload_gone(&id);
                }
            }
            Watched::Complete(_) => {
                self.kind_complete(kind);
                if std::mem::take(&mut self.workloads_set_back) {
                    self.workloads_were_set_back();
                }
            }
            Watched::Progress(_) => {}
        }
    }

    /// A workload is older than it was: the store was restored from a backup. Fresh lists tell what else is; pods were set
    /// back, too.
    fn workloads_were_set_back(&mut self) {
        self.notice(
            true,
            "a workload is older than it was: the store was set back, everything is looked at again",
        );
        self.ask_anew();
    }

    /// Nothing is proven any more, and fresh lists are to tell what stands.
    pub(super) fn ask_anew(&mut self) {
        self.book.doubt_above(Version(u64::MAX), self.now.mono);
        self.gap_is_lost = true;
        self.list_anew();
        self.look_at_all_anew();
    }

    /// Whatever was watched until now may have been the store before.
    fn list_anew(&mut self) {
        self.catalog.list_anew();
        self.out.relist = true;
    }

    fn inventory_broken(&mut self, kind: &Kind, fault: InventoryFault) {
        self.tell_fault(&kind.to_string(), &fault);
        if fault == InventoryFault::UnknownKind && matches!(kind, Kind::Custom(_)) {
            // A kind that isn't served has no objects.
            self.catalog.relist(kind);
            for workload in self.catalog.complete(kind) {
                self.workload_removed(&workload);
            }
        }
        self.catalog.broken(kind, fault);
    }

    fn kind_complete(&mut self, kind: &Kind) {
        let was_unknown = *self.catalog.inventory(kind) != Inventory::Complete;
        for workload in self.catalog.complete(kind) {
            self.workload_removed(&workload);
        }
        if was_unknown {
            self.faults_told.remove(&kind.to_string());
            let ids: Vec<WorkloadId> =
                self.catalog.workloads().filter(|w| w.id.kind == *kind).map(|w| w.id.clone()).collect();
            for id in ids {
                self.look_soon(&id);
            }
            if self.united {
                self.tell_untold(|told| told == kind);
            }
            // What went while nobody watched is known now.
            self.next_garbage = self.now.mono;
        }
    }

    /// A workload was delivered by the watch, or read.
    pub(super) fn workload_applied(&mut self, workload: Workload) {
        let id = workload.id.clone();
        let before = self.catalog.get(&id).cloned();
        match self.catalog.apply(workload) {
            Applied::Same => return,
            Applied::New(replaced) => {
                if let (Some(_), Some(before)) = (replaced, &before) {
                    self.workload_removed(before);
                }
                self.track(&id);
            }
            Applied::Changed { consumption } => {
                if consumption {
                    self.track(&id);
                }
            }
        }
        self.tell_problems(&id);
        self.watch_progress(&id);
        self.look_soon(&id);
    }

    pub(super) fn workload_gone(&mut self, id: &WorkloadId) {
        if let Some(workload) = self.catalog.remove(id) {
            self.workload_removed(&workload);
        }
    }

    fn workload_removed(&mut self, workload: &Workload) {
        let id = &workload.id;
        self.rollout_gone(id, workload.uid);
        self.book.drop_marks(&id.namespace, workload.uid, self.now.mono);
        self.tasks.remove(id);
        self.intended.remove(id);
        self.queue.remove(id);
        self.stale.remove(id);
        self.first_sight.remove(id);
        self.leave_rotations(id);
        self.release_slot(id);
    }

    pub(super) fn take_namespaces(&mut self, watched: Watched<NamespaceFacts, Namespace>) {
        match watched {
            Watched::Broken(fault) => self.catalog.namespaces_broken(fault),
            Watched::Relist => self.catalog.relist_namespaces(),
            Watched::Apply(facts) => {
                let name = facts.name.clone();
                if self.catalog.apply_namespace(facts) {
                    self.namespace_changed(&name);
                }
            }
            Watched::Delete(name, _) => self.namespace_gone(&name),
            Watched::Complete(_) => {
                for name in self.catalog.namespaces_complete() {
                    self.namespace_gone(&name);
                }
            }
            Watched::Progress(_) => {}
        }
    }

    fn namespace_changed(&mut self, name: &Namespace) {
        self.tell_namespace_problem(name);
        if *name == self.config.own_namespace {
            self.look_at_held();
        }
        let ids: Vec<WorkloadId> =
            self.catalog.in_namespace(name).map(|workload| workload.id.clone()).collect();
        for id in ids {
            self.look_soon(&id);
        }
    }

    fn namespace_gone(&mut self, name: &Namespace) {
        self.catalog.remove_namespace(name);
    }

    /// Whether a Secret that no watch delivered is there after all was asked.
    pub(super) fn outside_read(&mut self, secret: &SecretId, result: &Result<Option<SecretFacts>, Fault>) {
        match result {
            // It is of a type that the watch leaves out, so it never changes as far as Uptake is concerned.
            Ok(Some(_)) if !self.is_seen(secret) => {
                self.outside.insert(secret.clone(), Outside::There);
            }
            Ok(_) => {
                self.outside.insert(secret.clone(), Outside::Gone);
            }
            Err(_) => {
                self.outside.remove(secret);
            }
        }
        self.look_at_consumers(secret);
    }

    fn is_seen(&self, secret: &SecretId) -> bool {
        self.sightings.get(secret).is_some_and(|sighting| sighting.present)
    }

    /// Asks once whether a Secret that no watch delivered is there.
    pub(super) fn ask_outside(&mut self, secret: &SecretId) {
        if !self.outside.contains_key(secret) {
            self.outside.insert(secret.clone(), Outside::Asked);
            self.call(Pending::Outside(secret.clone()), super::Call::GetSecret(secret.clone()));
        }
    }
}

/// Whether the ledger knows a later change than a watch has delivered: the leader before saw it first. The watch
/// will tell of it, and what it tells until then is past.
fn is_ahead(history: &History, delivered: Version) -> bool {
    let last = history.last().since;
    matches!(last, Since::Seen(_) | Since::Between { .. }) && last.version() > delivered
}

/// The parts whose newest value is another than the one before.
pub(super) fn differing(moved: &[(Part, History)]) -> Vec<Part> {
    let differs = |history: &History| match history.entries() {
        [.., before, last] => before.value != last.value,
        _ => true,
    };
    moved.iter().filter(|(_, history)| differs(history)).map(|(part, _)| part.clone()).collect()
}
