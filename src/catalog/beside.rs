//! Objects beside a workload that say what its pods consume: its ServiceAccount, its SecretProviderClasses.

use std::{collections::BTreeMap, sync::Arc};

use serde_json::Value;

use super::{index::Inventory, reference::Keys};
use crate::{
    engine::Watched,
    facts::{
        Name, Namespace, Raw, Unreadable,
        raw::{elements, text},
    },
};

/// The place of an object beside a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BesideId {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its name.
    pub name: Name,
}

impl BesideId {
    /// The object of that name in that namespace.
    pub fn new(namespace: impl Into<Namespace>, name: impl Into<Name>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }

    fn of(object: &Value) -> Result<Self, Unreadable> {
        Ok(Self { namespace: Raw(object).namespace()?, name: Raw(object).name()? })
    }
}

/// What is kept of an object beside a workload.
pub trait Beside: PartialEq + Sized {
    /// Reads it.
    ///
    /// # Errors
    /// It lacks something that every object has.
    fn read(object: &Value) -> Result<Self, Unreadable>;

    /// Where it is.
    fn id(&self) -> &BesideId;

    /// Whether it names any Secret; if not, nothing of it is kept.
    fn names_any(&self) -> bool;
}

/// A ServiceAccount.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccountFacts {
    /// Where it is.
    pub id: BesideId,
    /// The names in its `imagePullSecrets`. Its `secrets` are not among them: no pod gets those by it since
    /// Kubernetes 1.24 (`LegacyServiceAccountTokenNoAutoGeneration`).
    pub pull_secrets: Arc<[Name]>,
}

impl Beside for ServiceAccountFacts {
    fn read(object: &Value) -> Result<Self, Unreadable> {
        let names = elements(object, "imagePullSecrets").filter_map(|secret| text(secret, "name"));
        let names: std::collections::BTreeSet<Name> = names.map(Name::from).collect();
        Ok(Self { id: BesideId::of(object)?, pull_secrets: names.into_iter().collect() })
    }

    fn id(&self) -> &BesideId {
        &self.id
    }

    fn names_any(&self) -> bool {
        !self.pull_secrets.is_empty()
    }
}

/// A SecretProviderClass of the Secrets Store CSI driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderClassFacts {
    /// Where it is.
    pub id: BesideId,
    /// The Secrets that the driver syncs from it, each once.
    pub synced: Arc<[SyncedSecret]>,
}

/// A Secret that the driver syncs from a class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SyncedSecret {
    /// Its name; it lies in the class's own namespace.
    pub name: Name,
    /// The keys that the driver writes.
    pub keys: Keys,
}

impl Beside for ProviderClassFacts {
    /// `spec.secretObjects[]`: `secretName` and `data[].key` (`SecretObject` in secrets-store-csi-driver
    /// `apis/v1/secretproviderclass_types.go`).
    fn read(object: &Value) -> Result<Self, Unreadable> {
        let mut keys: BTreeMap<Name, Vec<Name>> = BTreeMap::new();
        let spec = object.get("spec").unwrap_or(&Value::Null);
        for synced in elements(spec, "secretObjects") {
            let Some(secret) = text(synced, "secretName") else { continue };
            let named = elements(synced, "data").filter_map(|data| text(data, "key")).map(Name::from);
            keys.entry(secret.into()).or_default().extend(named);
        }
        let synced = keys
            .into_iter()
            .filter(|(_, keys)| !keys.is_empty())
            .map(|(name, keys)| SyncedSecret { name, keys: Keys::named(keys) });
        Ok(Self { id: BesideId::of(object)?, synced: synced.collect() })
    }

    fn id(&self) -> &BesideId {
        &self.id
    }

    fn names_any(&self) -> bool {
        !self.synced.is_empty()
    }
}

/// All objects of a kind beside workloads, as a watch says. Those that name no Secret aren't kept.
#[derive(Debug)]
pub struct Shelf<T> {
    inventory: Inventory,
    kept: BTreeMap<BesideId, T>,
    /// Of a fresh list that is under way: what it named so far.
    relisting: Option<BTreeMap<BesideId, T>>,
}

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self { inventory: Inventory::default(), kept: BTreeMap::new(), relisting: None }
    }
}

impl<T: Beside> Shelf<T> {
    /// What is known of the kind.
    #[must_use]
    pub fn inventory(&self) -> &Inventory {
        &self.inventory
    }

    /// An object; none if there is none or it names no Secret.
    #[must_use]
    pub fn get(&self, id: &BesideId) -> Option<&T> {
        self.kept.get(id)
    }

    /// The objects of a namespace.
    pub fn in_namespace<'a>(&'a self, namespace: &Namespace) -> impl Iterator<Item = &'a T> + use<'a, T> {
        let first = BesideId::new(namespace.clone(), "");
        let namespace = namespace.clone();
        self.kept
            .range(first..)
            .take_while(move |(id, _)| id.namespace == namespace)
            .map(|(_, object)| object)
    }

    /// Takes in what the watch says: gives the objects that say something else now. A fresh list counts when
    /// it is complete, so that it costs one look at the workloads and not one an object.
    pub fn take(&mut self, watched: Watched<T, BesideId>) -> Vec<BesideId> {
        match watched {
            Watched::Broken(fault) => {
                self.relisting = None;
                self.inventory = Inventory::Unknown(fault);
                Vec::new()
            }
            Watched::Relist => {
                self.relisting = Some(BTreeMap::new());
                Vec::new()
            }
            Watched::Apply(object) => self.apply(object),
            Watched::Delete(id, _) => match &mut self.relisting {
                Some(listed) => listed.remove(&id).map(|_| Vec::new()).unwrap_or_default(),
                None => self.kept.remove(&id).map(|_| id).into_iter().collect(),
            },
            Watched::Complete(_) => self.complete(),
            Watched::Progress(_) => Vec::new(),
        }
    }

    fn apply(&mut self, object: T) -> Vec<BesideId> {
        let id = object.id().clone();
        if let Some(listed) = &mut self.relisting {
            if object.names_any() {
                listed.insert(id, object);
            }
            return Vec::new();
        }
        if self.kept.get(&id) == Some(&object) {
            return Vec::new();
        }
        let changed = if object.names_any() {
            self.kept.insert(id.clone(), object);
            true
        } else {
            self.kept.remove(&id).is_some()
        };
        changed.then_some(id).into_iter().collect()
    }

    fn complete(&mut self) -> Vec<BesideId> {
        self.inventory = Inventory::Complete;
        let Some(listed) = self.relisting.take() else { return Vec::new() };
        let before = std::mem::replace(&mut self.kept, listed);
        let gone = before.keys().filter(|id| !self.kept.contains_key(*id));
        let changed = self.kept.iter().filter(|(id, object)| before.get(*id) != Some(*object));
        gone.chain(changed.map(|(id, _)| id)).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{engine::InventoryFault, facts::Version};

    fn account(name: &str, secrets: &[&str]) -> ServiceAccountFacts {
        let secrets: Vec<Value> = secrets.iter().map(|name| json!({"name": name})).collect();
        let metadata = json!({"name": name, "namespace": "demo"});
        ServiceAccountFacts::read(&json!({"metadata": metadata, "imagePullSecrets": secrets})).unwrap()
    }

    fn class(secret_objects: &Value) -> ProviderClassFacts {
        let metadata = json!({"name": "vault", "namespace": "demo"});
        let spec = json!({"provider": "vault", "secretObjects": secret_objects});
        ProviderClassFacts::read(&json!({"metadata": metadata, "spec": spec})).unwrap()
    }

    fn id(name: &str) -> BesideId {
        BesideId::new("demo", name)
    }

    #[test]
    fn of_an_account_its_pull_secrets_are_kept() {
        assert_eq!(*account("a", &["b", "", "a", "b"]).pull_secrets, ["a".into(), "b".into()]);
        let tokens =
            json!({"metadata": {"name": "a", "namespace": "demo"}, "secrets": [{"name": "a-token"}]});
        assert!(!ServiceAccountFacts::read(&tokens).unwrap().names_any());
    }

    #[test]
    fn of_a_class_the_synced_secrets_are_kept_each_once() {
        let class = class(&json!([
            {"secretName": "db", "type": "Opaque", "data": [{"objectName": "o", "key": "password"}]},
            {"secretName": "db", "data": [{"objectName": "p", "key": "user"}, {"objectName": "q"}]},
            {"secretName": "empty", "data": []},
            {"secretName": "", "data": [{"objectName": "o", "key": "k"}]},
            {"data": [{"objectName": "o", "key": "k"}]},
            null,
        ]));
        let keys = Keys::named(["password".into(), "user".into()]);
        assert_eq!(*class.synced, [SyncedSecret { name: "db".into(), keys }]);
    }

    #[test]
    fn a_class_of_an_odd_shape_syncs_nothing() {
        for odd in [Value::Null, json!("x"), json!({"secretName": "db"}), json!([[]])] {
            assert!(!class(&odd).names_any());
        }
    }

    #[test]
    fn a_fresh_list_counts_when_it_is_complete() {
        let mut shelf = Shelf::default();
        assert_eq!(*shelf.inventory(), Inventory::Listing);
        assert!(shelf.take(Watched::Relist).is_empty());
        for object in [account("a", &["x"]), account("b", &["x"]), account("none", &[])] {
            assert!(shelf.take(Watched::Apply(object)).is_empty());
        }
        assert_eq!(shelf.take(Watched::Complete(Version(5))), [id("a"), id("b")]);
        assert_eq!(*shelf.inventory(), Inventory::Complete);

        assert!(shelf.take(Watched::Relist).is_empty());
        assert!(shelf.get(&id("a")).is_some(), "what is known stays known meanwhile");
        for object in [account("b", &["y"]), account("c", &["x"])] {
            assert!(shelf.take(Watched::Apply(object)).is_empty());
        }
        assert_eq!(shelf.take(Watched::Complete(Version(9))), [id("a"), id("b"), id("c")]);
        assert!(shelf.get(&id("a")).is_none());
    }

    #[test]
    fn only_what_says_something_else_is_given() {
        let mut shelf = Shelf::default();
        shelf.take(Watched::Relist);
        shelf.take(Watched::Complete(Version(1)));
        assert_eq!(shelf.take(Watched::Apply(account("a", &["x"]))), [id("a")]);
        assert!(shelf.take(Watched::Apply(account("a", &["x"]))).is_empty());
        assert!(shelf.take(Watched::Apply(account("b", &[]))).is_empty());
        assert_eq!(shelf.take(Watched::Apply(account("a", &[]))), [id("a")]);
        assert!(shelf.take(Watched::Delete(id("a"), Version(2))).is_empty());
    }

    #[test]
    fn a_broken_list_forgets_nothing() {
        let mut shelf = Shelf::default();
        shelf.take(Watched::Apply(account("a", &["x"])));
        shelf.take(Watched::Relist);
        let fault = InventoryFault::Forbidden("no".to_owned());
        assert!(shelf.take(Watched::Broken(fault.clone())).is_empty());
        assert_eq!(*shelf.inventory(), Inventory::Unknown(fault));
        assert!(shelf.get(&id("a")).is_some());
    }
}
