//! The start: the ledger is loaded, made one with what the watches saw, and versions are found comparable or not.

use std::collections::BTreeSet;

use super::{Call, Engine, Fault, LedgerObject, Pending};
use crate::{
    catalog::Inventory,
    facts::{Kind, SecretId, Version},
    ledger::{Entry, Findings, HEAD, History, Moment, Part, Point, Sight, Since, Urgency, Value},
    record::{LedgerWriteResult, Record},
};

/// How far the start is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing was done yet.
    New,
    /// Somebody else leads: the watches are taken in, and nothing is done.
    Standby,
    /// The ledger is being read.
    Loading,
    /// Its head is written, pods are listed, the head is written again: see [`Probe`].
    Probing(Probe),
    /// Decisions are made.
    Ready,
}

/// Whether Secrets and pods share one history is found out by their versions: of a write, a list of pods and
/// a second write they are in order if they do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Probe {
    First,
    Pods(Version),
    Second(Version, Version),
}

impl Engine {
    /// What the leader before left is loaded, and made one with what was seen meanwhile.
    pub(super) fn lead(&mut self) {
        if self.stage != Stage::Standby || self.stopping {
            return;
        }
        self.load_ledger();
        self.tell_standing_problems();
    }

    pub(super) fn load_ledger(&mut self) {
        self.stage = Stage::Loading;
        self.call(Pending::LoadLedger, Call::ListLedger);
    }

    pub(super) fn ledger_loaded(&mut self, result: Result<Vec<LedgerObject>, Fault>) {
        match result {
            Ok(objects) => {
                self.book.made_now(self.point());
                let mut findings = Findings::default();
                for object in &objects {
                    self.book.read(&object.name, object.version, &object.body, &mut findings);
                }
                self.tell_findings(&findings);
                self.findings = findings;
                self.stage = Stage::Probing(Probe::First);
                self.book.write_head(self.now.mono);
                self.unite();
            }
            Err(fault) => {
                self.findings_fault = Some(format!("the ledger can't be read: {fault}"));
                self.retry_load = Some(self.now.mono + super::keep::RETRY);
            }
        }
    }

    fn tell_findings(&mut self, findings: &Findings) {
        for lost in &findings.lost {
            self.notice(
                true,
                format!("part of the ledger is lost: {lost}; what it told is first sight again"),
            );
        }
        if findings.adopted {
            self.notice(
                true,
                "the ledger's digests are of another key or scheme: they are adopted, nothing is rolled",
            );
        }
        if !findings.known {
            self.notice(false, "no ledger of this cluster: everything is at first sight, nothing is rolled");
        }
    }

    /// After a conflict: somebody else wrote the object. What it knows is joined, and it is written again.
    pub(super) fn ledger_reread(&mut self, result: Result<Vec<LedgerObject>, Fault>) {
        let Ok(objects) = result else {
            self.book.resume(self.now.mono);
            return;
        };
        let has_gone_back =
            objects.iter().any(|object| self.book.has_gone_back(&object.name, object.version));
        let mut findings = Findings::default();
        for object in &objects {
            self.book.read(&object.name, object.version, &object.body, &mut findings);
        }
        self.book.vanish_others(objects.iter().map(|object| &*object.name), self.now.mono);
        self.book.resume(self.now.mono);
        if has_gone_back {
            self.ledger_was_set_back();
        }
        self.tell_lost(&findings);
    }

    /// The ledger itself is older than it was: the store was restored from a backup. Fresh lists tell which Secrets are;
    /// pods were set back too, so that nothing is proven of them any more.
    fn ledger_was_set_back(&mut self) {
        self.notice(
            true,
            "the ledger is older than it was: the store was set back, everything is looked at again",
        );
        self.ask_anew();
    }

    fn tell_lost(&mut self, findings: &Findings) {
        for lost in &findings.lost {
            self.notice(true, format!("part of the ledger was overwritten by somebody: {lost}"));
        }
    }

    pub(super) fn ledger_written(&mut self, name: &str, result: Result<Version, Fault>) {
        let outcome = match result {
            Ok(version) => {
                let failed = self.book.is_failing();
                self.book.written(name, version);
                if name == HEAD {
                    self.head_written(version);
                }
                if failed && !self.book.is_failing() {
                    self.look_at_held();
                }
                LedgerWriteResult::Ok
            }
            Err(Fault::Conflict) => {
                self.book.not_written(name, self.now.mono);
                self.reread_ledger();
                LedgerWriteResult::Conflict
            }
            Err(Fault::NotFound) => {
                self.book.vanished(name, self.now.mono);
                LedgerWriteResult::Conflict
            }
            Err(fault) => {
                self.book.not_written(name, self.now.mono);
                self.findings_fault = Some(format!("the ledger can't be written: {fault}"));
                LedgerWriteResult::Error
            }
        };
        if outcome == LedgerWriteResult::Ok && !self.book.is_failing() {
            self.findings_fault = None;
        }
        self.record(Record::LedgerWrite { name: name.to_owned(), result: outcome });
    }

    fn reread_ledger(&mut self) {
        if !self.calls.values().any(|pending| *pending == Pending::RereadLedger) {
            self.book.hold_back();
            self.call(Pending::RereadLedger, Call::ListLedger);
        }
    }

    fn head_written(&mut self, version: Version) {
        match self.stage {
            Stage::Probing(Probe::First) => {
                self.stage = Stage::Probing(Probe::Pods(version));
                self.call(Pending::ProbePods, Call::ProbePodVersion);
            }
            Stage::Probing(Probe::Second(first, pods)) => {
                self.comparable = first <= pods && pods <= version;
                if !self.comparable {
                    self.notice(
                        true,
                        "Secrets and pods are in separate stores: births are compared by the clock",
                    );
                }
                self.become_ready();
            }
            Stage::New | Stage::Standby | Stage::Loading | Stage::Probing(Probe::Pods(_)) | Stage::Ready => {}
        }
    }

    pub(super) fn pods_probed(&mut self, result: Result<Version, Fault>) {
        let Stage::Probing(Probe::Pods(first)) = self.stage else { return };
        match result {
            Ok(pods) => {
                self.stage = Stage::Probing(Probe::Second(first, pods));
                self.book.write_head(self.now.mono);
            }
            Err(fault) => {
                self.findings_fault = Some(format!("pods can't be listed: {fault}"));
                self.stage = Stage::Probing(Probe::First);
                self.retry_load = Some(self.now.mono + super::keep::RETRY);
            }
        }
    }

    fn become_ready(&mut self) {
        self.stage = Stage::Ready;
        self.next_seen = self.now.mono + super::keep::SEEN_EVERY;
        self.unite();
        self.look_at_all();
    }

    /// Makes the ledger one with what the watches saw, once both are there: what changed while nobody watched,
    /// or while the ledger was being read, is learnt.
    pub(super) fn unite(&mut self) {
        let loaded = matches!(self.stage, Stage::Probing(_) | Stage::Ready);
        if !loaded || !self.sightings.is_complete() || self.united {
            return;
        }
        self.united = true;
        let by = self.sightings.seen();
        let secrets: Vec<SecretId> =
            self.book.secrets().filter(|id| self.is_in_scope(&id.namespace)).collect();
        let gaps: BTreeSet<Point> = secrets.iter().map(|id| self.book.seen_until(&id.namespace)).collect();
        for id in secrets {
            match id.class() {
                Some(_) => self.mounted(&id),
                None => self.unite_secret(&id, by),
            }
        }
        if let Some(to) = self.set_back_to.take() {
            self.secrets_were_set_back(to, &gaps);
        }
        let workloads: Vec<_> = self.catalog.workloads().map(|workload| workload.id.clone()).collect();
        for id in workloads {
            self.track(&id);
        }
        if self.stage == Stage::Ready {
            self.look_at_all();
        }
        // Of kinds whose list isn't complete yet it is told when that is.
        let known: Vec<Kind> = self.known_kinds();
        self.tell_untold(|kind| known.contains(kind));
    }

    pub(super) fn known_kinds(&self) -> Vec<Kind> {
        let all = self.catalog.inventories().iter();
        all.filter(|(_, inventory)| **inventory == Inventory::Complete)
            .map(|(kind, _)| kind.clone())
            .collect()
    }

    fn unite_secret(&mut self, id: &SecretId, by: Point) {
        if let Some(version) = self.older_than_known(id, by) {
            self.set_back(id, version);
            return;
        }
        let after = self.book.seen_until(&id.namespace);
        let Some(record) = self.book.secret(id) else { return };
        let parts: Vec<Part> = record.parts().collect();
        let mut changed = Vec::new();
        for part in parts {
            let Some(history) = record.history(&part) else { continue };
            let mut united = history.clone();
            self.unite_history(&mut united, id, &part, after, by);
            if united != *history {
                changed.push((part, united));
            }
        }
        if !changed.is_empty() {
            let parts = super::intake::differing(&changed);
            let edit = self.edit(Urgency::Soon);
            // A record that exists always has its place.
            let _ = self.book.edit_secret(id, edit, |record| {
                for (part, history) in changed {
                    record.begin(&part, history);
                }
            });
            self.changed(id, &parts);
        }
    }

    /// The version of a Secret that is older than the ledger saw it, though the watch delivered all up to then: the store
    /// was restored from a backup, and whoever wrote the ledger didn't notice it any more.
    fn older_than_known(&self, id: &SecretId, by: Point) -> Option<Version> {
        let version = self.sightings.get(id).filter(|sighting| sighting.present)?.version;
        let record = self.book.secret(id)?;
        let is_newer = |history: &History| match history.last().since {
            Since::Seen(point) | Since::Between { by: point, .. } => {
                version < point.version && point.version <= by.version
            }
            Since::Beginning | Since::FirstSight { .. } => false,
        };
        record.parts().filter_map(|part| record.history(&part)).any(is_newer).then_some(version)
    }

    /// Adds to a part's history what this process saw of it before it had the ledger.
    fn unite_history(&self, history: &mut History, id: &SecretId, part: &Part, after: Point, by: Point) {
        let Some(sighting) = self.sightings.get(id) else {
            let gone = Sight { value: Value::Absent, written: None, moment: Moment::Gap { after, by } };
            history.learn(&gone);
            return;
        };
        let value = sighting.value(part);
        if self.findings.adopted {
            history.adopt(value);
        }
        match sighting.change(part) {
            Some(entry)
                if entry.since.version() > history.version() && !is_known_better(history.last(), &entry) =>
            {
                learn_before(history, sighting.before(part), entry, after);
                history.push(entry);
            }
            _ => {
                let by = Point { version: sighting.version, time: by.time };
                let written = sighting.written(part);
                history.learn(&Sight { value, written, moment: Moment::Gap { after, by } });
            }
        }
    }
}

/// Whether the ledger tells the very change of which this process only knows that it was while it didn't watch. It was
/// another process's to see it, and pods that were born right after it are younger.
fn is_known_better(last: &Entry, entry: &Entry) -> bool {
    let in_the_gap =
        matches!(entry.since, Since::Between { after, .. } if after.version < last.since.version());
    in_the_gap && last.value == entry.value
}

/// What stood between the ledger's last entry and the newest change that was seen.
fn learn_before(history: &mut History, before: Option<Entry>, newest: Entry, after: Point) {
    let sight = |value, by| Sight { value, written: None, moment: Moment::Gap { after, by } };
    match before {
        Some(before)
            if before.since.version() > history.version() || before.value != history.last().value =>
        {
            match before.since {
                // It changed more than once: what stood before the last but one wasn't kept.
                Since::Seen(by) | Since::Between { by, .. } => {
                    history.learn(&sight(Value::Unknown, by));
                    history.push(before);
                }
                Since::FirstSight { by, .. } => {
                    history.learn(&sight(before.value, by));
                }
                Since::Beginning => {
                    history.learn(&sight(before.value, newest.since.point()));
                }
            }
        }
        _ if newest.value == history.last().value && !matches!(newest.since, Since::Between { .. }) => {
            // It changed and changed back: what stood in between wasn't kept.
            history.learn(&sight(Value::Unknown, newest.since.point()));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests;
