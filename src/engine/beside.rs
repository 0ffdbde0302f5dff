//! Takes in what the watches of ServiceAccounts and SecretProviderClasses deliver: what they say is part of what
//! workloads consume.

use super::{Engine, Watched};
use crate::{
    catalog::{
        Inventory, Workload,
        beside::{BesideId, ProviderClassFacts, ServiceAccountFacts},
    },
    facts::WorkloadId,
};

/// The kind, in an Event.
const PROVIDER_CLASS: &str = "SecretProviderClass";

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
            let held: Vec<WorkloadId> =
                self.catalog.workloads().filter(|w| mounts_class(w)).map(|w| w.id.clone()).collect();
            held.iter().for_each(|id| self.look_soon(id));
        }
    }

    pub(super) fn knows_provider_classes(&self) -> bool {
        *self.catalog.provider_class_inventory() == Inventory::Complete
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
