//! Takes in what the watches of ServiceAccounts and SecretProviderClasses deliver: what they say is part of what
//! workloads consume. And what the CSI driver says it mounted of a class: a history like a Secret's.

use super::{Engine, Watched};
use crate::{
    catalog::{
        Inventory, Workload,
        beside::{BesideId, ProviderClassFacts, ServiceAccountFacts},
        mounted::MountFacts,
    },
    decide::Mounted,
    facts::{SecretId, WorkloadId},
    ledger::{Entry, History, Part, Since, Urgency, Value},
};

/// The kind, in an Event.
const PROVIDER_CLASS: &str = "SecretProviderClass";
const MOUNT: &str = "SecretProviderClassPodStatus";

impl Engine {
    /// Pull secrets are listed only: nothing is decided by them, so not knowing them stops nothing and is no Event.
    pub(super) fn take_service_accounts(&mut self, watched: Watched<ServiceAccountFacts, BesideId>) {
        self.catalog.take_service_accounts(watched);
    }

    pub(super) fn take_provider_classes(&mut self, watched: Watched<ProviderClassFacts, BesideId>) {
        let fault = match &watched {
            Watched::Broken(fault) => Some(fault.clone()),
            _ => None,
        };
        let was_known = self.knows_provider_classes();
        let changed = self.catalog.take_provider_classes(watched);
        for id in &changed {
            self.track(id);
            self.look_soon(id);
        }
        match fault {
            Some(fault) if self.needs_provider_classes() => self.tell_fault(PROVIDER_CLASS, &fault),
            _ => {}
        }
        if self.knows_provider_classes() && !was_known {
            self.faults_told.remove(PROVIDER_CLASS);
            self.look_at_class_users();
        }
    }

    /// What the driver mounted says what pods hold.
    pub(super) fn take_mounts(&mut self, watched: Watched<MountFacts, BesideId>) {
        let fault = match &watched {
            Watched::Broken(fault) => Some(fault.clone()),
            _ => None,
        };
        let was_known = self.knows_provider_classes();
        for source in self.mounts.take(watched) {
            self.mounted(&source);
        }
        if let Some(fault) = fault.filter(|_| self.needs_provider_classes()) {
            self.tell_fault(MOUNT, &fault);
        }
        if self.knows_provider_classes() && !was_known {
            self.faults_told.remove(MOUNT);
            self.look_at_class_users();
        }
    }

    /// The history of what a class mounts learns what was mounted last.
    pub(super) fn mounted(&mut self, source: &SecretId) {
        if !self.united {
            return;
        }
        let Some((entry, Some(history))) = self
            .newest_mount(source)
            .map(|entry| (entry, self.book.secret(source).and_then(|record| record.history(&Part::All))))
        else {
            return;
        };
        let last = history.last();
        // What is mounted for the first time, every pod got.
        let first = last.since == Since::Beginning;
        let is_older = entry.since.version() <= history.version();
        if last.value == entry.value || (is_older && !first) {
            return;
        }
        let mut learnt = history.clone();
        if first {
            learnt = History::new(entry);
        } else {
            learnt.push(Entry { since: Since::Seen(entry.since.point()), ..entry });
        }
        let edit = self.edit(Urgency::Settling);
        // A record that exists always has its place.
        let _ = self.book.edit_secret(source, edit, |record| record.begin(&Part::All, learnt));
        if first {
            self.look_at_consumers(source);
        } else {
            self.changed(source, &[Part::All]);
        }
    }

    /// What was mounted of a class last, as a first look tells it.
    pub(super) fn newest_mount(&self, source: &SecretId) -> Option<Entry> {
        let (mount, by) = self.mounts.newest(&source.namespace, source.class()?)?;
        let since = Since::FirstSight { written: Some(by.time), by };
        Some(Entry { value: self.mounted_value(source, mount), since })
    }

    /// What pods were born with of the classes that a workload mounts, where the driver tells.
    pub(super) fn mounted_by(&self, workload: &Workload) -> Mounted {
        let mut mounted = Mounted::new();
        for class in &workload.declared.provider_classes {
            let source = SecretId::of_class(workload.id.namespace.clone(), &class.name);
            for (pod, mount) in self.mounts.births(&source.namespace, &class.name) {
                mounted.insert((source.name.clone(), pod), self.mounted_value(&source, mount));
            }
        }
        mounted
    }

    fn mounted_value(&self, source: &SecretId, mount: &MountFacts) -> Value {
        let objects = mount.objects.iter().map(|(object, version)| (&**object, version.as_bytes()));
        Value::Present(self.config.digest_key.of_all(&source.namespace, &source.name, Some(objects)))
    }

    fn look_at_class_users(&mut self) {
        let users: Vec<WorkloadId> =
            self.catalog.workloads().filter(|w| mounts_class(w)).map(|w| w.id.clone()).collect();
        for id in users {
            self.look_soon(&id);
        }
    }

    /// Whether it is known which classes there are and what was mounted of them.
    pub(super) fn knows_provider_classes(&self) -> bool {
        *self.catalog.provider_class_inventory() == Inventory::Complete
            && *self.mounts.inventory() == Inventory::Complete
    }

    /// Whether any workload mounts a SecretProviderClass.
    pub(super) fn needs_provider_classes(&self) -> bool {
        self.catalog.workloads().any(mounts_class)
    }
}

fn mounts_class(workload: &Workload) -> bool {
    !workload.declared.provider_classes.is_empty()
}

#[cfg(test)]
mod tests;
