//! Events: what is told, to whom, once.

use std::time::Duration;

use super::{Call, Engine, Fault, InventoryFault, Pending, Stage, rotation::Rotation};
use crate::{
    catalog::{
        Inventory,
        policy::{self, Problem},
    },
    decide::{ReportOnly, Verdict},
    facts::{Kind, Mono, Name, Namespace, SecretId, Time, Uid, WorkloadId, class_of},
    ledger::{Attempt, Ended, Marks, Part, Ticket, Untold, Urgency, Value, Versions, short_hash},
    record::{EventNote, ObjectRef, Reason},
    rollout::{Outcome, Stamp},
};

/// Events older than this aren't told any more after a crash: the API server keeps Events for an hour by default,
/// so the same Event could have been told, and forgotten.
pub(super) const TELL_WITHIN: Duration = Duration::from_secs(3000);

/// Events wait so long: nobody reads them within it, and they would stand in the way of the next stamps.
const AFTER: Duration = Duration::from_millis(250);

/// How long an Event that couldn't be written waits.
const RETRY: Duration = Duration::from_secs(10);

/// An Event that waits to be written.
#[derive(Debug)]
pub(super) struct Telling {
    /// What has to be durable first.
    ticket: Option<Ticket>,
    /// Not before.
    at: Mono,
    told: Told,
}

/// An Event and where it is noted that it was told.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Told {
    note: EventNote,
    /// Of a summary, all rollouts that it tells of.
    of: Vec<(Namespace, Uid, u32, Untold)>,
}

impl Engine {
    pub(super) fn pump_notes(&mut self) {
        if self.stage == Stage::Standby {
            self.telling.clear();
            return;
        }
        let now = self.now.mono;
        let waiting = std::mem::take(&mut self.telling);
        for telling in waiting {
            let durable = telling.ticket.as_ref().is_none_or(|ticket| self.book.is_durable(ticket));
            if durable && telling.at <= now {
                let note = telling.told.note.clone();
                self.call(Pending::Note(Box::new(telling.told)), Call::Note(Box::new(note)));
            } else {
                self.telling.push(telling);
            }
        }
    }

    pub(super) fn next_note(&self) -> Option<Mono> {
        let open = self
            .telling
            .iter()
            .filter(|t| t.ticket.as_ref().is_none_or(|ticket| self.book.is_durable(ticket)));
        open.map(|telling| telling.at).min()
    }

    pub(super) fn note_written(&mut self, told: &Told, result: &Result<(), Fault>) {
        match result {
            // No rights, no namespace any more, or unfit: told to nobody, and not tried for ever.
            Ok(())
            | Err(
                Fault::Conflict | Fault::NotFound | Fault::Forbidden(_) | Fault::Refused(_) | Fault::Expired,
            ) => {
                for (namespace, uid, number, which) in &told.of {
                    self.mark_told(namespace, *uid, *number, *which);
                }
                if let Err(fault @ (Fault::Forbidden(_) | Fault::Refused(_))) = result {
                    self.notice(true, format!("an Event can't be written ({}): {fault}", told.note.reason));
                }
            }
            Err(Fault::Throttled | Fault::Unknown(_)) => {
                self.telling.push(Telling { ticket: None, at: self.now.mono + RETRY, told: told.clone() });
            }
        }
    }

    fn mark_told(&mut self, namespace: &Namespace, uid: Uid, number: u32, which: Untold) {
        let open = self.book.marks(namespace, uid).and_then(|marks| marks.attempt.as_ref());
        if !open.is_some_and(|attempt| attempt.number == number && attempt.untold.contains(&which)) {
            return;
        }
        let edit = self.edit(Urgency::WithNext);
        let _ = self.book.edit_marks(namespace, uid, edit, Marks::default, |marks| {
            if let Some(attempt) = &mut marks.attempt {
                attempt.untold.retain(|untold| *untold != which);
            }
        });
    }

    /// After a crash: Events of rollouts that were not acknowledged are told again, under the same names.
    pub(super) fn tell_untold(&mut self, is_meant: impl Fn(&Kind) -> bool) {
        let left_to_summary = self.resume_rotations();
        let open: Vec<(WorkloadId, Uid, Attempt)> = self
            .catalog
            .workloads()
            .filter(|workload| is_meant(&workload.id.kind))
            .filter_map(|workload| {
                let attempt = self.book.marks(&workload.id.namespace, workload.uid)?.attempt.clone()?;
                (!attempt.untold.is_empty()).then(|| (workload.id.clone(), workload.uid, attempt))
            })
            .collect();
        for (id, uid, attempt) in open {
            for which in &attempt.untold {
                let at = attempt.ended.as_ref().map_or(attempt.at, |ended| ended.at);
                if self.now.server.since(at) > TELL_WITHIN {
                    self.mark_told(&id.namespace, uid, attempt.number, *which);
                    continue;
                }
                if *which == Untold::Ended && left_to_summary.contains(&id) {
                    continue;
                }
                match (which, &attempt.ended) {
                    (Untold::Started, _) => self.tell_started(&id, &attempt),
                    (Untold::Ended, Some(ended)) => self.tell_ended(&id, &attempt, &ended.clone(), None),
                    (Untold::Ended, None) => {}
                }
            }
        }
    }

    /// While its kind's list comes in nobody knows how many consumers a rotation has: it stays untold in the ledger until the
    /// list is complete.
    fn is_told_later(&self, id: &WorkloadId) -> bool {
        *self.catalog.inventory(&id.kind) != Inventory::Complete
    }

    pub(super) fn tell_started(&mut self, id: &WorkloadId, attempt: &Attempt) {
        let Some(uid) = self.uid(id) else { return };
        if self.is_told_later(id) {
            return;
        }
        if self.is_summarised(id) {
            self.mark_told(&id.namespace, uid, attempt.number, Untold::Started);
            return;
        }
        let because = self.because(id, &attempt.versions);
        let note = format!("{because}: {} stale, rolling", counted(attempt.stale, "pod is", "pods are"));
        self.tell_attempt(id, uid, attempt, Untold::Started, Reason::RolloutStarted, note, None);
    }

    pub(super) fn tell_ended(
        &mut self,
        id: &WorkloadId,
        attempt: &Attempt,
        ended: &Ended,
        ticket: Option<Ticket>,
    ) {
        let Some(uid) = self.uid(id) else { return };
        self.tell_breaker(id, attempt, ended, ticket.as_ref());
        if self.is_told_later(id) {
            return;
        }
        let stamp: Stamp = attempt.versions.clone().into_iter().collect();
        let took = humantime::format_duration(Duration::from_secs(attempt.took(ended.at).as_secs()));
        let still = counted(ended.stale, "pod is", "pods are");
        let (reason, note) = match &ended.outcome {
            Outcome::Completed if self.is_summarised(id) => {
                self.leave_unsaid(id, uid, attempt.number);
                return;
            }
            Outcome::Completed if ended.late => (
                Reason::RolloutCompleted,
                format!("Completed late for {stamp}: no live pod is stale any more"),
            ),
            Outcome::Completed => (
                Reason::RolloutCompleted,
                format!(
                    "Rolled for {stamp} in {took}: no live pod is stale, {} before",
                    counted(attempt.stale, "was", "were")
                ),
            ),
            Outcome::Failed(why) => {
                (Reason::RolloutFailed, format!("Rollout for {stamp} failed: {why}; {still} still stale"))
            }
            Outcome::Blocked(by) => {
                (Reason::RolloutBlocked, format!("Rollout for {stamp} is blocked: {by}; {still} still stale"))
            }
            Outcome::Superseded => (
                Reason::RolloutSuperseded,
                format!("The template was changed again during the rollout for {stamp}"),
            ),
            Outcome::Refused(words) => (
                Reason::RolloutRefused,
                format!("The API server refused to roll it for {stamp}: {words}; {still} stale"),
            ),
            Outcome::Gone => return,
        };
        self.tell_attempt(id, uid, attempt, Untold::Ended, reason, note, ticket);
    }

    #[allow(clippy::too_many_arguments)] // What an Event of an attempt consists of; it has two callers.
    fn tell_attempt(
        &mut self,
        id: &WorkloadId,
        uid: Uid,
        attempt: &Attempt,
        which: Untold,
        reason: Reason,
        note: String,
        ticket: Option<Ticket>,
    ) {
        let secret = newest(&attempt.versions);
        let note = EventNote {
            name: event_name(&id.name, &[&uid.to_string(), &attempt.number.to_string(), reason.as_str()]),
            regarding: ObjectRef::workload(id, uid),
            related: secret.as_ref().map(|name| self.secret_ref(&id.namespace, name)),
            reason,
            note,
            at: self.now.server,
            secret,
        };
        let of = vec![(id.namespace.clone(), uid, attempt.number, which)];
        self.tell(ticket, Told { note, of });
    }

    fn tell(&mut self, ticket: Option<Ticket>, told: Told) {
        self.telling.push(Telling { ticket, at: self.now.mono + AFTER, told });
    }

    fn tell_once(&mut self, note: EventNote) {
        self.tell_after(None, note);
    }

    fn tell_after(&mut self, ticket: Option<Ticket>, note: EventNote) {
        self.tell(ticket, Told { note, of: Vec::new() });
    }

    fn secret_ref(&self, namespace: &Namespace, name: &Name) -> ObjectRef {
        let id = SecretId { namespace: namespace.clone(), name: name.clone() };
        let uid = self.sightings.get(&id).map(|sighting| sighting.uid);
        ObjectRef::secret(&id, uid)
    }

    /// Why a workload is rolled, in words.
    fn because(&self, id: &WorkloadId, versions: &Versions) -> String {
        let Some(secret) = newest(versions) else { return "Data that it consumes changed".to_owned() };
        let secret_id = SecretId { namespace: id.namespace.clone(), name: secret.clone() };
        let keys = self.rotations.get(&secret_id).map(keys_text).unwrap_or_default();
        let version = versions.get(&secret).copied().unwrap_or_default();
        match class_of(&secret) {
            Some(class) => format!("What SecretProviderClass {class} mounts changed (version {version})"),
            None => format!("Secret {secret} changed{keys} (version {version})"),
        }
    }

    pub(super) fn tell_nothing(&mut self, id: &SecretId) {
        let Some(rotation) = self.rotations.get(id) else { return };
        let consumers = counted(rotation.nothing, "consumer has", "consumers have");
        let note = format!(
            "Nothing to do for version {}{}: {consumers} no stale pod",
            rotation.version,
            keys_text(rotation)
        );
        let version = rotation.version.to_string();
        self.tell_of_secret(id, Reason::NothingToDo, &version, note, None);
    }

    /// Says on a Secret which of its consumers something holds that concerns them all alike.
    pub(super) fn tell_held(&mut self, id: &SecretId) {
        let Some(rotation) = self.rotations.get(id) else { return };
        let (held, reasons) = rotation.held_untold();
        if held.is_empty() {
            return;
        }
        let names = named(held.iter().map(|held| format!("{}/{}", held.kind, held.name)));
        let reasons: Vec<&str> = reasons.into_iter().collect();
        let note = format!(
            "Version {}{} waits, held by {}: {names}",
            rotation.version,
            keys_text(rotation),
            reasons.join(", ")
        );
        let version = rotation.version.to_string();
        self.tell_of_secret(id, Reason::RolloutHeld, &version, note, None);
    }

    pub(super) fn tell_rotation(&mut self, id: &SecretId) {
        let Some(rotation) = self.rotations.get(id) else { return };
        if rotation.consumers <= super::rotation::MANY {
            return;
        }
        let Rotation { version, rolled, completed, failed, nothing, unsaid, held, .. } = rotation;
        if *rolled == 0 {
            return;
        }
        let of =
            unsaid.iter().map(|(told, (uid, number))| (told.namespace.clone(), *uid, *number, Untold::Ended));
        let of: Vec<_> = of.collect();
        let held = match held.len() {
            0 => String::new(),
            held => format!("; {held} held"),
        };
        let note = format!(
            "Version {version}: {rolled} consumers rolled, {completed} completed, {failed} not; {nothing} had no stale pod{held}"
        );
        let version = version.to_string();
        let note = self.note_of_secret(id, Reason::ConsumersRolled, &version, note);
        self.tell(None, Told { note, of });
    }

    /// Tells of a Secret, once what the ticket stands for is in the ledger.
    pub(super) fn tell_of_secret(
        &mut self,
        id: &SecretId,
        reason: Reason,
        what: &str,
        note: String,
        ticket: Option<Ticket>,
    ) {
        let note = self.note_of_secret(id, reason, what, note);
        self.tell_after(ticket, note);
    }

    fn note_of_secret(&self, id: &SecretId, reason: Reason, what: &str, note: String) -> EventNote {
        let regarding = self.secret_ref(&id.namespace, &id.name);
        let uid = regarding.uid.map(|uid| uid.to_string()).unwrap_or_default();
        EventNote {
            name: event_name(&id.name, &[&uid, what, reason.as_str()]),
            regarding,
            related: None,
            reason,
            note,
            at: self.now.server,
            secret: Some(id.name.clone()),
        }
    }

    pub(super) fn tell_too_fast(&mut self, id: &WorkloadId) {
        let Some(uid) = self.uid(id) else { return };
        let Some(attempt) = self.book.marks(&id.namespace, uid).and_then(|marks| marks.attempt.clone())
        else {
            return;
        };
        let settle = self.tasks.get(id).map(|task| task.settle.grown(self.config.settle)).unwrap_or_default();
        let note = format!(
            "What it consumes changes faster than it can be rolled: from now on it waits until it has been quiet for {}",
            humantime::format_duration(settle)
        );
        let secret = newest(&attempt.versions);
        self.tell_of_workload(id, uid, Reason::ChangesTooFast, &attempt.number.to_string(), note, secret);
    }

    fn tell_of_workload(
        &mut self,
        id: &WorkloadId,
        uid: Uid,
        reason: Reason,
        what: &str,
        note: String,
        secret: Option<Name>,
    ) {
        self.tell_once(EventNote {
            name: event_name(&id.name, &[&uid.to_string(), what, reason.as_str()]),
            regarding: ObjectRef::workload(id, uid),
            related: secret.as_ref().map(|name| self.secret_ref(&id.namespace, name)),
            reason,
            note,
            at: self.now.server,
            secret,
        });
    }

    /// Says something of a workload that isn't a rollout's, unless it was the last thing said of it.
    fn say(&mut self, id: &WorkloadId, reason: Reason, what: &str, note: String, secret: Option<Name>) {
        let Some(uid) = self.uid(id) else { return };
        let said = format!("{reason} {what}");
        if self.book.marks(&id.namespace, uid).and_then(|marks| marks.said.as_ref()) == Some(&said) {
            return;
        }
        let edit = self.edit(Urgency::Soon);
        let new = || Marks::new(&id.kind, id.name.clone());
        let _ = self.book.edit_marks(&id.namespace, uid, edit, new, |marks| marks.said = Some(said));
        self.tell_of_workload(id, uid, reason, what, note, secret);
    }

    pub(super) fn tell_missing(&mut self, id: &WorkloadId, secret: &Name, key: Option<&Name>) {
        let secret_id = SecretId { namespace: id.namespace.clone(), name: secret.clone() };
        let Some(record) = self.book.secret(&secret_id) else { return };
        // A Secret that never was there is a workload that waits for its first start, as Kubernetes itself says.
        let is_it = |part: &Part| key.is_none_or(|key| *part == Part::Key(key.clone()));
        let was_there =
            record.parts().filter(is_it).filter_map(|part| record.history(&part)).any(|history| {
                history.entries().iter().any(|entry| matches!(entry.value, Value::Present(_)))
            });
        if !was_there {
            return;
        }
        let what =
            key.map_or_else(|| format!("Secret {secret}"), |key| format!("key {key} of Secret {secret}"));
        let note = format!(
            "Its pods require {what}, which is missing: new pods would not start, so it isn't rolled until that is back"
        );
        let version = record
            .parts()
            .filter_map(|part| record.history(&part))
            .map(crate::ledger::History::version)
            .max();
        let version = version.unwrap_or_default();
        self.say(id, Reason::RolloutHeld, &format!("missing {what} {version}"), note, Some(secret.clone()));
    }

    pub(super) fn tell_report(&mut self, id: &WorkloadId, why: ReportOnly, verdict: &Verdict) {
        let Some(workload) = self.catalog.get(id) else { return };
        let versions = self.versions(workload);
        let stamp: Stamp = versions.clone().into_iter().collect();
        let because = match why {
            ReportOnly::Policy => "policy says report",
            ReportOnly::InvalidAnnotation => "an annotation of it can't be understood",
            ReportOnly::TooMany => "it has more references, or its namespace more records, than are kept",
            // These are told of otherwise: in one Event for the cluster, and as the rollout's outcome.
            ReportOnly::FirstSight | ReportOnly::Attempted => return,
        };
        let stale = verdict.stale.len() + verdict.first_sight.len() + verdict.reported.len();
        let note = format!(
            "Would be rolled for {stamp}: {} stale, and {because}",
            counted(stale, "pod is", "pods are")
        );
        self.say(id, Reason::WouldRoll, &format!("{because} {stamp}"), note, newest(&versions));
    }

    pub(super) fn tell_problems(&mut self, id: &WorkloadId) {
        let Some(workload) = self.catalog.get(id) else { return };
        let (uid, problems) = (workload.uid, workload.policy.problems.clone());
        for Problem { of, message } in problems {
            let note = format!("{of}: {message}. It is reported only, until that is mended");
            let name = event_name(&id.name, &[&uid.to_string(), &note]);
            if self.problems_told.insert(name) {
                self.tell_of_workload(id, uid, Reason::InvalidAnnotation, &note.clone(), note, None);
            }
        }
    }

    pub(super) fn tell_secret_problem(&mut self, id: &SecretId) {
        let Some(sighting) = self.sightings.get(id) else { return };
        let (_, problem) = policy::rollout(sighting.annotations.rollout.as_deref());
        if let Some(Problem { of, message }) = problem {
            let note = format!("{of}: {message}. Its consumers are reported only, until that is mended");
            if self.problems_told.insert(event_name(&id.name, &[&id.namespace, &note])) {
                self.tell_of_secret(id, Reason::InvalidAnnotation, &note.clone(), note, None);
            }
        }
    }

    pub(super) fn tell_namespace_problem(&mut self, name: &Namespace) {
        let Some(facts) = self.catalog.namespace(name) else { return };
        let (_, problem) = policy::rollout(facts.rollout.as_deref());
        let paused = (*name == self.config.own_namespace)
            .then(|| facts.paused.as_deref().and_then(|text| policy::paused(text).err()))
            .flatten();
        let uid = facts.uid;
        for Problem { of, message } in problem.into_iter().chain(paused) {
            let note = format!("{of}: {message}");
            let event = event_name(name, &[&uid.to_string(), &note]);
            if self.problems_told.insert(event.clone()) {
                self.tell_once(EventNote {
                    name: event,
                    regarding: ObjectRef::namespace(name, Some(uid)),
                    related: None,
                    reason: Reason::InvalidAnnotation,
                    note,
                    at: self.now.server,
                    secret: None,
                });
            }
        }
    }

    /// Tells what the process saw as a standby, and what is still so.
    pub(super) fn tell_standing_problems(&mut self) {
        self.problems_told.clear();
        self.faults_told.clear();
        let workloads: Vec<WorkloadId> =
            self.catalog.workloads().map(|workload| workload.id.clone()).collect();
        for id in workloads {
            self.tell_problems(&id);
        }
        let namespaces: Vec<Namespace> = self.catalog.namespaces().cloned().collect();
        for name in namespaces {
            self.tell_namespace_problem(&name);
        }
        let faults: Vec<(String, InventoryFault)> = self
            .catalog
            .inventories()
            .iter()
            .filter_map(|(kind, inventory)| match inventory {
                Inventory::Unknown(fault) => Some((kind.to_string(), fault.clone())),
                Inventory::Complete | Inventory::Listing => None,
            })
            .collect();
        for (kind, fault) in faults {
            self.tell_fault(&kind, &fault);
        }
    }

    /// Says once that a kind can't be watched.
    pub(super) fn tell_fault(&mut self, what: &str, fault: &InventoryFault) {
        if !self.faults_told.insert(what.to_owned()) {
            return;
        }
        let note = match fault {
            InventoryFault::UnknownKind => {
                format!("{what} is waited for, and the other kinds go on: {fault}")
            }
            InventoryFault::Forbidden(_) | InventoryFault::Unavailable(_) => {
                format!("{what} can't be watched, nothing is decided that needs it: {fault}")
            }
        };
        self.notice(true, note.clone());
        self.tell_of_own_namespace(Reason::InventoryUnknown, what, note);
    }

    fn tell_of_own_namespace(&mut self, reason: Reason, what: &str, note: String) {
        let own = self.config.own_namespace.clone();
        let uid = self.config.own_namespace_uid;
        self.tell_once(EventNote {
            name: event_name(&own, &[&uid.to_string(), what, reason.as_str(), &self.now.server.to_string()]),
            regarding: ObjectRef::namespace(&own, Some(uid)),
            related: None,
            reason,
            note,
            at: self.now.server,
            secret: None,
        });
    }

    /// Says once a ledger which pods were probably stale before Uptake was installed.
    pub(super) fn tell_first_sight(&mut self) {
        let pods: usize = self.first_sight.values().map(Vec::len).sum();
        let names: Vec<String> = self.first_sight.keys().take(20).map(ToString::to_string).collect();
        let more = self.first_sight.len().saturating_sub(names.len());
        let more = if more > 0 { format!(" and {more} more") } else { String::new() };
        let note = format!(
            "{} older than their Secret's last change, so probably stale since before Uptake: {}{more}",
            counted(pods, "pod is", "pods are"),
            names.join(", ")
        );
        let own = self.config.own_namespace.clone();
        let made: Time = self.book.made(&own).time;
        self.tell_once(EventNote {
            name: event_name(&own, &[&made.0.to_string(), Reason::StaleAtFirstSight.as_str()]),
            regarding: ObjectRef::namespace(&own, Some(self.config.own_namespace_uid)),
            related: None,
            reason: Reason::StaleAtFirstSight,
            note,
            at: self.now.server,
            secret: None,
        });
    }
}

/// The Secret whose version is the newest.
fn newest(versions: &Versions) -> Option<Name> {
    versions.iter().max_by_key(|(_, version)| **version).map(|(name, _)| name.clone())
}

/// How many held workloads an Event names.
const NAMED: usize = 10;

/// Workloads, as many as an Event has room for.
pub(super) fn named(workloads: impl IntoIterator<Item = String>) -> String {
    let all: Vec<String> = workloads.into_iter().collect();
    let more = all.len().saturating_sub(NAMED);
    let some = all.into_iter().take(NAMED).collect::<Vec<_>>().join(", ");
    if more > 0 { format!("{some} and {more} more") } else { some }
}

fn keys_text(rotation: &Rotation) -> String {
    let keys: Vec<&str> = rotation.keys.iter().map(|key| &**key).take(5).collect();
    match (keys.is_empty(), rotation.keys.len() > 5) {
        (true, _) => String::new(),
        (false, false) => format!(", {} {}", if keys.len() == 1 { "key" } else { "keys" }, keys.join(", ")),
        (false, true) => format!(", keys {} and {} more", keys.join(", "), rotation.keys.len() - 5),
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// An Event's name: of its object's, as much as fits, and what makes it this Event.
fn event_name(object: &str, what: &[&str]) -> String {
    let hash = short_hash(what);
    // Names of objects are ASCII; 253 characters are allowed.
    let object: String = object.chars().take(200).collect();
    format!("{}.{hash}", object.trim_end_matches(['.', '-']))
}
