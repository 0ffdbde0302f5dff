use std::collections::{BTreeMap, BTreeSet};

use proptest::{collection::vec, prelude::*};

use super::*;
use crate::{
    catalog::{
        Declared, Selector, TemplateHash,
        policy::WorkloadPolicy,
        reference::{Containers, Keys, Origin, Reference, Rolls, Via},
    },
    rollout::RolloutFacts,
};

/// What can be told of a few workloads and Secrets.
#[derive(Clone, Debug)]
enum Told {
    Applied { place: u8, uid: u8, version: u64, secrets: BTreeSet<u8> },
    Gone(u8),
    Relist(Vec<(u8, u8, u64, BTreeSet<u8>)>),
}

fn told() -> impl Strategy<Value = Told> {
    let secrets = || proptest::collection::btree_set(0..3_u8, 0..3);
    prop_oneof![
        4 => (0..6_u8, 0..2_u8, 1..9_u64, secrets())
            .prop_map(|(place, uid, version, secrets)| Told::Applied { place, uid, version, secrets }),
        1 => (0..6_u8).prop_map(Told::Gone),
        1 => vec((0..6_u8, 0..2_u8, 1..9_u64, secrets()), 0..5).prop_map(Told::Relist),
    ]
}

/// Three names in two namespaces.
fn id(place: u8) -> WorkloadId {
    WorkloadId::new(Kind::Deployment, if place < 3 { "a" } else { "b" }, format!("w{}", place % 3))
}

fn workload(place: u8, uid: u8, version: u64, secrets: &BTreeSet<u8>) -> Workload {
    let reference = |secret: &u8| Reference {
        secret: format!("s{secret}").into(),
        keys: Keys::All,
        via: Via::EnvFrom,
        optional: false,
        containers: Containers::All,
        rolls: Rolls::Yes,
        from: Origin::Workload,
        synced: false,
    };
    let references: Arc<[Reference]> = secrets.iter().map(reference).collect();
    let count = references.len();
    Workload {
        id: id(place),
        uid: Uid(uid.into()),
        version: Version(version),
        deleting: false,
        declared: Arc::new(Declared { references: references.clone(), count, ..Declared::default() }),
        references,
        reference_count: count,
        policy: WorkloadPolicy::default(),
        template: TemplateHash(0),
        stamp: None,
        selector: Selector::default(),
        service_account: "default".into(),
        rollout: RolloutFacts::default(),
        last_writer: None,
    }
}

/// Who is there, and what they name: found by looking at each.
#[derive(Default)]
struct Scan(BTreeMap<u8, (u8, u64, BTreeSet<u8>)>);

impl Scan {
    fn apply(&mut self, place: u8, uid: u8, version: u64, secrets: &BTreeSet<u8>) {
        let is_old = self.0.get(&place).is_some_and(|known| known.0 == uid && known.1 >= version);
        if !is_old {
            self.0.insert(place, (uid, version, secrets.clone()));
        }
    }

    fn consumers(&self, namespace: &str, secret: u8) -> BTreeSet<WorkloadId> {
        let named = self.0.iter().filter(|(_, (_, _, secrets))| secrets.contains(&secret));
        named.map(|(place, _)| id(*place)).filter(|id| *id.namespace == *namespace).collect()
    }
}

proptest! {
    #[test]
    fn the_index_finds_whom_a_scan_finds(story in vec(told(), 0..30)) {
        let mut catalog = Catalog::new(&[Kind::Deployment]);
        let mut scan = Scan::default();
        for told in story {
            match told {
                Told::Applied { place, uid, version, secrets } => {
                    catalog.apply(workload(place, uid, version, &secrets));
                    scan.apply(place, uid, version, &secrets);
                }
                Told::Gone(place) => {
                    catalog.remove(&id(place));
                    scan.0.remove(&place);
                }
                Told::Relist(list) => {
                    catalog.relist(&Kind::Deployment);
                    for (place, uid, version, secrets) in &list {
                        catalog.apply(workload(*place, *uid, *version, secrets));
                        scan.apply(*place, *uid, *version, secrets);
                    }
                    catalog.complete(&Kind::Deployment);
                    scan.0.retain(|place, _| list.iter().any(|(named, ..)| named == place));
                }
            }
            for namespace in ["a", "b"] {
                for secret in 0..3 {
                    let at = SecretId { namespace: namespace.into(), name: format!("s{secret}").into() };
                    let found: Vec<WorkloadId> = catalog.consumers(&at).map(|w| w.id.clone()).collect();
                    let expected = scan.consumers(namespace, secret);
                    prop_assert_eq!(catalog.is_referenced(&at), !expected.is_empty());
                    prop_assert_eq!(found.len(), expected.len(), "each once");
                    prop_assert_eq!(found.into_iter().collect::<BTreeSet<_>>(), expected);
                }
            }
        }
    }
}
