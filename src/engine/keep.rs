//! What is done from time to time.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Call, Engine, Pending, Stage};
use crate::{
    catalog::Inventory,
    facts::{Kind, Mono, Namespace, SecretId, Time, Uid, WorkloadId},
    ledger::{Urgency, kind_id},
};

/// How often it is written up to where Secrets were watched, so that a blind interval is known.
pub(super) const SEEN_EVERY: Duration = Duration::from_secs(60);

/// How often garbage is looked for.
const GARBAGE_EVERY: Duration = Duration::from_secs(600);

/// How long a Secret's history is kept after its last reference.
const UNUSED_KEPT: Duration = Duration::from_secs(24 * 3600);

/// How long a failed step of the start waits.
pub(super) const RETRY: Duration = Duration::from_secs(5);

impl Engine {
    pub(super) fn next_keeping(&self) -> Option<Mono> {
        if self.stopping {
            return self.next_note();
        }
        let regular = match self.stage {
            Stage::Ready => Some(self.next_seen.min(self.next_garbage)),
            Stage::Standby => Some(self.next_garbage),
            Stage::New | Stage::Loading | Stage::Probing(_) => None,
        };
        [regular, self.retry_load, self.next_note()].into_iter().flatten().min()
    }

    pub(super) fn keep(&mut self) {
        let now = self.now.mono;
        if self.retry_load.is_some_and(|at| at <= now) {
            self.retry_load = None;
            match self.stage {
                Stage::New | Stage::Loading => self.load_ledger(),
                Stage::Probing(_) => self.book.write_head(now),
                Stage::Ready | Stage::Standby => {}
            }
        }
        if self.stage == Stage::Standby && self.next_garbage <= now {
            self.next_garbage = now + GARBAGE_EVERY;
            self.sightings.forget_removed(self.now.server);
        }
        if self.stage != Stage::Ready || self.stopping {
            return;
        }
        if self.next_seen <= now {
            self.next_seen = now + SEEN_EVERY;
            self.write_seen();
        }
        // What was due before everything was known is done as soon as it is.
        if self.next_garbage <= now || self.garbage_due {
            self.next_garbage = now + GARBAGE_EVERY;
            self.garbage_due = !self.collect_garbage();
        }
        self.look_over_first_sight();
    }

    /// Up to where every change is in the ledger: only while the watch is unbroken and nothing waits to be written.
    fn write_seen(&mut self) {
        if self.sightings.is_complete() && !self.sightings.is_relisting() && self.book.is_all_durable() {
            self.book.see_until(self.sightings.seen(), self.now.mono);
        }
    }

    /// When every workload was looked at once, what was stale before Uptake came is told.
    fn look_over_first_sight(&mut self) {
        let listing = !self.asked.is_empty() || self.looks.values().any(|look| !look.is_idle());
        let looking = listing || !self.catalog.is_complete();
        let due = self.queue.next().is_some_and(|next| next <= self.now.mono + Duration::from_secs(1));
        if self.first_sight_told || looking || due || !self.united || self.first_sight.is_empty() {
            return;
        }
        self.first_sight_told = true;
        if self.config.first_sight == super::FirstSight::Report {
            self.tell_first_sight();
        }
    }

    /// Whether everything is known that it takes.
    fn collect_garbage(&mut self) -> bool {
        let all_known = self.catalog.is_complete()
            && self.sightings.is_complete()
            && self.secrets_fault.is_none()
            && (self.knows_provider_classes() || !self.needs_provider_classes());
        if !all_known {
            return false;
        }
        self.sightings.forget_removed(self.now.server);
        self.drop_gone_workloads();
        self.drop_unused_secrets();
        self.drop_gone_namespaces();
        true
    }

    fn drop_gone_workloads(&mut self) {
        let kinds: BTreeMap<String, Kind> =
            self.config.kinds.iter().map(|kind| (kind_id(kind), kind.clone())).collect();
        let live: BTreeSet<Uid> = self.catalog.workloads().map(|workload| workload.uid).collect();
        let gone: Vec<(WorkloadId, Uid)> = self
            .book
            .workloads()
            .filter(|(namespace, uid, _)| self.is_in_scope(namespace) && !live.contains(uid))
            .filter_map(|(namespace, uid, marks)| {
                let (kind, name) = (kinds.get(&marks.kind)?.clone(), marks.name.clone());
                Some((WorkloadId { kind, namespace: namespace.clone(), name }, uid))
            })
            .collect();
        for (id, uid) in gone {
            // It went while nobody watched: the end of its rollout is recorded with its marks' removal, once.
            self.rollout_gone(&id, uid);
            self.book.drop_marks(&id.namespace, uid, self.now.mono);
        }
    }

    fn drop_unused_secrets(&mut self) {
        let now = self.now.server;
        let secrets: Vec<SecretId> =
            self.book.secrets().filter(|id| self.is_in_scope(&id.namespace)).collect();
        for id in secrets {
            let used = self.catalog.is_referenced(&id);
            let since: Option<Time> = self.book.secret(&id).and_then(|record| record.unused);
            match (used, since) {
                (false, Some(since)) if now.since(since) >= UNUSED_KEPT => {
                    self.book.drop_secret(&id, self.now.mono);
                }
                (false, None) | (true, Some(_)) => {
                    let edit = self.edit(Urgency::WithNext);
                    let _ = self.book.edit_secret(&id, edit, |record| record.unused = (!used).then_some(now));
                }
                (true, None) | (false, Some(_)) => {}
            }
        }
    }

    fn drop_gone_namespaces(&mut self) {
        if *self.catalog.namespace_inventory() != Inventory::Complete || !self.config.namespaces.is_empty() {
            return;
        }
        let gone: Vec<Namespace> = self
            .book
            .namespaces()
            .filter(|name| self.catalog.namespace(name).is_none() && !self.is_ignored(name))
            // One that was just made may be known by what is in it first.
            .filter(|name| !self.catalog.workloads().any(|workload| workload.id.namespace == **name))
            .cloned()
            .collect();
        for namespace in gone {
            for (name, over) in self.book.drop_namespace(&namespace) {
                self.call(Pending::DeleteLedger, Call::DeleteLedger { name, over });
            }
            self.looks.remove(&namespace);
        }
    }
}
