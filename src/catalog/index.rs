//! The index: workloads by name, and by the Secrets that they reference.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{
    Effective, Workload,
    beside::{BesideId, ProviderClassFacts, ServiceAccountFacts, Shelf},
    effective,
    namespace::NamespaceFacts,
    policy::{self, Mode},
};
use crate::{
    engine::{InventoryFault, Watched},
    facts::{Kind, Name, Namespace, SecretId, Uid, Version, WorkloadId},
};

/// What is known of a watched kind.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Inventory {
    /// Nothing yet.
    #[default]
    Listing,
    /// All of it.
    Complete,
    /// It can't be had, or not any more: nothing is decided from what was known.
    Unknown(InventoryFault),
}

/// Who consumes what.
#[derive(Debug, Default)]
pub struct Catalog {
    workloads: BTreeMap<WorkloadId, Workload>,
    by_secret: BTreeMap<SecretId, BTreeSet<WorkloadId>>,
    inventories: BTreeMap<Kind, Inventory>,
    /// Of kinds whose fresh list is under way: who was in it so far.
    relisting: BTreeMap<Kind, BTreeSet<WorkloadId>>,
    /// The versions that the watches delivered last.
    delivered: BTreeMap<WorkloadId, Version>,
    namespaces: BTreeMap<Namespace, NamespaceFacts>,
    namespace_inventory: Inventory,
    relisted_namespaces: Option<BTreeSet<Namespace>>,
    service_accounts: Shelf<ServiceAccountFacts>,
    provider_classes: Shelf<ProviderClassFacts>,
}

/// What an applied workload means.
#[derive(Clone, Debug, PartialEq)]
pub enum Applied {
    /// It wasn't known, or another of that name was (whose uid is given).
    New(Option<Uid>),
    /// Its template, references, policy, rollout status or deletion changed.
    Changed {
        /// The references or the policy changed.
        consumption: bool,
    },
    /// Nothing that matters changed, or it is older than what is known.
    Same,
}

impl Catalog {
    /// An empty one, of these kinds.
    #[must_use]
    pub fn new(kinds: &[Kind]) -> Self {
        let inventories = kinds.iter().map(|kind| (kind.clone(), Inventory::Listing)).collect();
        Self { inventories, ..Self::default() }
    }

    /// A workload.
    #[must_use]
    pub fn get(&self, id: &WorkloadId) -> Option<&Workload> {
        self.workloads.get(id)
    }

    /// All workloads.
    pub fn workloads(&self) -> impl Iterator<Item = &Workload> {
        self.workloads.values()
    }

    /// The workloads of a namespace.
    pub fn in_namespace<'a>(&'a self, namespace: &'a str) -> impl Iterator<Item = &'a Workload> + 'a {
        self.workloads.values().filter(move |workload| *workload.id.namespace == *namespace)
    }

    /// The workloads that reference a Secret.
    pub fn consumers<'a>(&'a self, secret: &SecretId) -> impl Iterator<Item = &'a Workload> + 'a {
        self.by_secret.get(secret).into_iter().flatten().filter_map(|id| self.workloads.get(id))
    }

    /// Whether anybody references a Secret.
    #[must_use]
    pub fn is_referenced(&self, secret: &SecretId) -> bool {
        self.by_secret.contains_key(secret)
    }

    /// What is known of a kind.
    #[must_use]
    pub fn inventory(&self, kind: &Kind) -> &Inventory {
        self.inventories.get(kind).unwrap_or(&Inventory::Listing)
    }

    /// What is known of all kinds.
    #[must_use]
    pub fn inventories(&self) -> &BTreeMap<Kind, Inventory> {
        &self.inventories
    }

    /// Whether every kind is known, be it that the API server doesn't serve it.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        let is_known = |inventory: &Inventory| {
            matches!(inventory, Inventory::Complete | Inventory::Unknown(InventoryFault::UnknownKind))
        };
        self.inventories.values().all(is_known)
    }

    /// A kind can't be listed.
    pub fn broken(&mut self, kind: &Kind, fault: InventoryFault) {
        self.relisting.remove(kind);
        self.inventories.insert(kind.clone(), Inventory::Unknown(fault));
    }

    /// A fresh list of a kind starts.
    pub fn relist(&mut self, kind: &Kind) {
        self.relisting.insert(kind.clone(), BTreeSet::new());
    }

    /// The store was set back: nothing is known of a kind until its fresh list is complete, and no version is older than
    /// what was known.
    pub fn list_anew(&mut self) {
        self.delivered.clear();
        self.workloads.values_mut().for_each(|workload| workload.version = Version(0));
        let complete = self.inventories.values_mut().filter(|inventory| **inventory == Inventory::Complete);
        complete.for_each(|inventory| *inventory = Inventory::Listing);
    }

    /// The fresh list is complete: gives the workloads that vanished.
    pub fn complete(&mut self, kind: &Kind) -> Vec<Workload> {
        self.inventories.insert(kind.clone(), Inventory::Complete);
        let Some(named) = self.relisting.remove(kind) else { return Vec::new() };
        let gone: Vec<WorkloadId> =
            self.workloads.keys().filter(|id| id.kind == *kind && !named.contains(*id)).cloned().collect();
        gone.iter().filter_map(|id| self.remove(id)).collect()
    }

    /// Before [`Self::apply`] of what a watch delivered. A fresh list is never older than what the watch before it
    /// delivered, unless the store was restored from a backup: then the known version says nothing any more. Whether that
    /// is so.
    pub fn delivered(&mut self, workload: &Workload) -> bool {
        let before = self.delivered.insert(workload.id.clone(), workload.version);
        let is_older = before.is_some_and(|before| before > workload.version);
        let is_set_back = is_older && self.relisting.contains_key(&workload.id.kind);
        if is_set_back {
            self.doubt(&workload.id);
        }
        is_set_back
    }

    /// What is known of a workload is of a store that was set back since: whatever is delivered or read next is newer.
    pub fn doubt(&mut self, id: &WorkloadId) {
        if let Some(known) = self.workloads.get_mut(id) {
            known.version = Version(0);
        }
    }

    /// A workload was delivered, by a watch or by a read; an older version than the known one says nothing.
    /// Its references are completed by what its ServiceAccount and its SecretProviderClasses say.
    pub fn apply(&mut self, mut workload: Workload) -> Applied {
        if let Some(named) = self.relisting.get_mut(&workload.id.kind) {
            named.insert(workload.id.clone());
        }
        self.complete_references(&mut workload);
        let before = self.workloads.get(&workload.id);
        let applied = match before {
            None => Applied::New(None),
            Some(known) if known.uid != workload.uid => Applied::New(Some(known.uid)),
            Some(known) if known.version >= workload.version => return Applied::Same,
            Some(known) => difference(known, &workload),
        };
        if !matches!(applied, Applied::Same | Applied::Changed { consumption: false }) {
            self.reindex(&workload);
        }
        self.workloads.insert(workload.id.clone(), workload);
        applied
    }

    /// A workload is gone.
    pub fn remove(&mut self, id: &WorkloadId) -> Option<Workload> {
        self.delivered.remove(id);
        let workload = self.workloads.remove(id)?;
        self.unindex(&workload);
        Some(workload)
    }

    fn reindex(&mut self, workload: &Workload) {
        if let Some(known) = self.workloads.get(&workload.id).cloned() {
            self.unindex(&known);
        }
        for reference in workload.references.iter() {
            let secret =
                SecretId { namespace: workload.id.namespace.clone(), name: reference.secret.clone() };
            self.by_secret.entry(secret).or_default().insert(workload.id.clone());
        }
    }

    fn unindex(&mut self, workload: &Workload) {
        for reference in workload.references.iter() {
            let secret =
                SecretId { namespace: workload.id.namespace.clone(), name: reference.secret.clone() };
            if let Some(consumers) = self.by_secret.get_mut(&secret) {
                consumers.remove(&workload.id);
                if consumers.is_empty() {
                    self.by_secret.remove(&secret);
                }
            }
        }
    }

    fn complete_references(&self, workload: &mut Workload) {
        let at = |name: &str| BesideId::new(workload.id.namespace.clone(), name);
        let account = self.service_accounts.get(&at(&workload.service_account));
        let Effective { kept, count } =
            effective(&workload.declared, account, |class| self.provider_classes.get(&at(class)));
        workload.references = kept;
        workload.reference_count = count;
    }

    /// What the watch of ServiceAccounts says; gives the workloads whose references changed by it.
    pub fn take_service_accounts(
        &mut self,
        watched: Watched<ServiceAccountFacts, BesideId>,
    ) -> Vec<WorkloadId> {
        let changed: BTreeSet<BesideId> = self.service_accounts.take(watched).into_iter().collect();
        self.recomplete(&changed, |workload| vec![&workload.service_account])
    }

    /// What the watch of SecretProviderClasses says; gives the workloads whose references changed by it.
    pub fn take_provider_classes(
        &mut self,
        watched: Watched<ProviderClassFacts, BesideId>,
    ) -> Vec<WorkloadId> {
        let changed: BTreeSet<BesideId> = self.provider_classes.take(watched).into_iter().collect();
        self.recomplete(&changed, |workload| {
            workload.declared.provider_classes.iter().map(|class| &class.name).collect()
        })
    }

    /// Completes the references anew of those workloads that name something that changed.
    fn recomplete(
        &mut self,
        changed: &BTreeSet<BesideId>,
        names: impl Fn(&Workload) -> Vec<&Name>,
    ) -> Vec<WorkloadId> {
        if changed.is_empty() {
            return Vec::new();
        }
        let concerned = self.workloads.values().filter(|workload| {
            let mut at = names(workload).into_iter();
            at.any(|name| changed.contains(&BesideId::new(workload.id.namespace.clone(), name.clone())))
        });
        let mut again: Vec<Workload> = concerned.cloned().collect();
        again.retain_mut(|workload| {
            let before = Arc::clone(&workload.references);
            self.complete_references(workload);
            workload.references != before
        });
        let ids = again.iter().map(|workload| workload.id.clone()).collect();
        for workload in again {
            self.reindex(&workload);
            self.workloads.insert(workload.id.clone(), workload);
        }
        ids
    }

    /// What is known of ServiceAccounts.
    #[must_use]
    pub fn service_account_inventory(&self) -> &Inventory {
        self.service_accounts.inventory()
    }

    /// What is known of SecretProviderClasses; an API server that doesn't serve them has none.
    #[must_use]
    pub fn provider_class_inventory(&self) -> &Inventory {
        self.provider_classes.inventory()
    }

    /// What is known of Namespaces.
    #[must_use]
    pub fn namespace_inventory(&self) -> &Inventory {
        &self.namespace_inventory
    }

    /// Namespaces can't be listed.
    pub fn namespaces_broken(&mut self, fault: InventoryFault) {
        self.relisted_namespaces = None;
        self.namespace_inventory = Inventory::Unknown(fault);
    }

    /// A fresh list of Namespaces starts.
    pub fn relist_namespaces(&mut self) {
        self.relisted_namespaces = Some(BTreeSet::new());
    }

    /// The fresh list of Namespaces is complete: gives those that vanished.
    pub fn namespaces_complete(&mut self) -> Vec<Namespace> {
        self.namespace_inventory = Inventory::Complete;
        let Some(named) = self.relisted_namespaces.take() else { return Vec::new() };
        let gone: Vec<Namespace> =
            self.namespaces.keys().filter(|name| !named.contains(*name)).cloned().collect();
        for name in &gone {
            self.namespaces.remove(name);
        }
        gone
    }

    /// A Namespace was delivered. Whether something of it changed that matters.
    pub fn apply_namespace(&mut self, facts: NamespaceFacts) -> bool {
        if let Some(named) = &mut self.relisted_namespaces {
            named.insert(facts.name.clone());
        }
        let before = self.namespaces.get(&facts.name);
        let changed =
            before.is_none_or(|known| known.rollout != facts.rollout || known.paused != facts.paused);
        self.namespaces.insert(facts.name.clone(), facts);
        changed
    }

    /// A Namespace is gone.
    pub fn remove_namespace(&mut self, name: &Namespace) {
        self.namespaces.remove(name);
    }

    /// The names of all namespaces.
    pub fn namespaces(&self) -> impl Iterator<Item = &Namespace> {
        self.namespaces.keys()
    }

    /// A Namespace.
    #[must_use]
    pub fn namespace(&self, name: &str) -> Option<&NamespaceFacts> {
        self.namespaces.get(name)
    }

    /// What a Namespace's annotation says.
    #[must_use]
    pub fn namespace_mode(&self, name: &str) -> Option<Mode> {
        policy::rollout(self.namespaces.get(name)?.rollout.as_deref()).0
    }
}

fn difference(known: &Workload, new: &Workload) -> Applied {
    let consumption = known.references != new.references || known.policy != new.policy;
    let rest = known.template != new.template
        || known.stamp != new.stamp
        || known.rollout != new.rollout
        || known.deleting != new.deleting;
    if consumption || rest { Applied::Changed { consumption } } else { Applied::Same }
}

#[cfg(test)]
mod tests;
