//! What the engine shows of itself.

use std::collections::BTreeMap;

use super::{Engine, Stage};
use crate::{
    catalog::Inventory,
    decide::Decision,
    record::{Gauges, Watch},
};

impl Engine {
    /// The state of things, for metrics.
    #[must_use]
    pub fn gauges(&self) -> Gauges {
        let mut held: BTreeMap<&'static str, usize> = BTreeMap::new();
        for task in self.tasks.values() {
            if let Some(Decision::Hold(why)) = &task.decision {
                *held.entry(why.as_str()).or_default() += 1;
            }
        }
        Gauges {
            stale_pods: self.stale.iter().map(|(id, pods)| (id.clone(), *pods)).collect(),
            held: held.into_iter().collect(),
            pending: self.queue.len(),
            in_flight: self
                .catalog
                .workloads()
                .filter(|workload| self.running_attempt(workload).is_some())
                .count(),
            synced: self.synced(),
            ledger: self.ledger_state(),
        }
    }

    /// What is watched, and whether its inventory is complete.
    fn synced(&self) -> Vec<(Watch, Result<(), String>)> {
        let secrets = match &self.secrets_fault {
            Some(fault) => Err(fault.to_string()),
            None if self.sightings.is_complete() => Ok(()),
            None => Err("being listed".to_owned()),
        };
        let kinds = self
            .catalog
            .inventories()
            .iter()
            .map(|(kind, inventory)| (Watch::Workloads(kind.clone()), words(inventory)));
        let namespaces = (Watch::Namespaces, words(self.catalog.namespace_inventory()));
        let accounts = (Watch::ServiceAccounts, words(self.catalog.service_account_inventory()));
        // Where nobody mounts a class, not knowing them is no trouble.
        let classes = [
            (Watch::ProviderClasses, words(self.catalog.provider_class_inventory())),
            (Watch::Mounts, words(self.mounts.inventory())),
        ];
        let matters = self.knows_provider_classes() || self.needs_provider_classes();
        let classes = classes.into_iter().filter(|_| matters);
        [(Watch::Secrets, secrets), namespaces, accounts].into_iter().chain(classes).chain(kinds).collect()
    }

    fn ledger_state(&self) -> Result<(), String> {
        match (&self.findings_fault, self.stage) {
            (Some(fault), _) => Err(fault.clone()),
            // A standby has no need of it yet.
            (None, Stage::Standby) => Ok(()),
            (None, Stage::Ready) if self.recorded => Ok(()),
            // A change from then on is found whatever happens to this process.
            (None, Stage::Ready) => Err("what is consumed is being recorded".to_owned()),
            (None, Stage::New | Stage::Loading) => Err("the ledger is being read".to_owned()),
            (None, Stage::Probing(_)) => Err("the stores are being compared".to_owned()),
        }
    }
}

fn words(inventory: &Inventory) -> Result<(), String> {
    match inventory {
        Inventory::Complete => Ok(()),
        Inventory::Listing => Err("being listed".to_owned()),
        Inventory::Unknown(fault) => Err(fault.to_string()),
    }
}
