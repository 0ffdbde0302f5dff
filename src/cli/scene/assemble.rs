//! Puts together what was listed.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use super::{Consumer, Fate, Known, Ledger, Scene, Told, Unknown};
use crate::{
    catalog::{
        Declared, SecretFacts,
        beside::{BesideId, ProviderClassFacts, ServiceAccountFacts},
        effective,
        mounted::{MountFacts, Mounts},
        policy::{Mode, WorkloadPolicy},
        reference::Reference,
    },
    decide::{OwnerFacts, Owners, PodFacts, parts, upwards},
    engine::Watched,
    facts::{Namespace, SecretId, Uid},
    ledger::{DigestKey, Entry, History, Moment, Part, Point, Sight, Sightings, Since, Value},
};

/// What was listed.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The namespace that was looked at; none if all were.
    pub namespace: Option<Namespace>,
    /// Where the operator's ledger was looked for.
    pub operator_namespace: Namespace,
    /// The version of the Secrets' list, and the server's time of it.
    pub at: Point,
    /// Whether versions of Secrets and pods can be compared.
    pub comparable: bool,
    /// The Secrets; none if they couldn't be listed.
    pub secrets: Option<Vec<SecretFacts>>,
    /// All that have a pod template.
    pub consumers: Vec<Consumer>,
    /// ServiceAccounts that name Secrets.
    pub accounts: Vec<ServiceAccountFacts>,
    /// SecretProviderClasses.
    pub classes: Vec<ProviderClassFacts>,
    /// What the CSI driver mounted into pods.
    pub mounts: Vec<MountFacts>,
    /// Under which values were hashed; none: under nobody's.
    pub digest_key: Option<DigestKey>,
    /// All pods.
    pub pods: Vec<SeenPod>,
    /// Of what may stand between a pod and its consumer (ReplicaSets, Jobs, Revisions of Knative): its owner.
    pub owners: Owners,
    /// What Namespaces say.
    pub namespaces: BTreeMap<Namespace, Option<Mode>>,
    /// Whether the operator is paused.
    pub paused: bool,
    /// The operator's ledger.
    pub ledger: Option<Ledger>,
    /// Its Events.
    pub told: Told,
    /// What couldn't be listed.
    pub unknown: Vec<Unknown>,
}

/// A pod as it was listed.
#[derive(Clone, Debug)]
pub struct SeenPod {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its facts.
    pub facts: PodFacts,
    /// The Secrets that it names itself.
    pub references: Arc<[Reference]>,
}

impl Scene {
    /// Puts it together.
    #[must_use]
    pub fn assemble(gathered: Gathered) -> Self {
        let Gathered {
            namespace,
            operator_namespace,
            at,
            comparable,
            secrets,
            mut consumers,
            accounts,
            classes,
            mounts,
            digest_key,
            pods,
            owners,
            namespaces,
            paused,
            ledger,
            told,
            unknown,
        } = gathered;
        complete_references(&mut consumers, &accounts, &classes);
        let pods = attach(&mut consumers, pods, &owners, &unknown);
        let secrets: Option<BTreeMap<SecretId, SecretFacts>> =
            secrets.map(|secrets| secrets.into_iter().map(|secret| (secret.id.clone(), secret)).collect());
        let mut scene = Self {
            namespace,
            operator_namespace,
            at,
            consumers,
            classes,
            ledger,
            told,
            paused,
            unknown,
            exact: BTreeMap::new(),
            comparable,
            digest_key: digest_key.unwrap_or_else(super::nobodys_key),
            mounts: known_mounts(mounts, at),
            secrets,
            pods,
            namespaces,
            histories: BTreeMap::new(),
        };
        scene.histories = scene.tell_histories();
        scene
    }

    /// What every consumed part of every Secret held since when, as far as it is known.
    fn tell_histories(&self) -> BTreeMap<SecretId, BTreeMap<Part, Known>> {
        let mut sightings = Sightings::default();
        sightings.relist();
        for secret in self.secrets.iter().flat_map(BTreeMap::values) {
            sightings.apply(secret, self.at.time);
        }
        let mut histories: BTreeMap<SecretId, BTreeMap<Part, Known>> = BTreeMap::new();
        for consumer in &self.consumers {
            for reference in consumer.references.iter() {
                let id = SecretId::new(consumer.namespace.clone(), reference.secret.clone());
                for part in parts(reference) {
                    if histories.get(&id).is_some_and(|known| known.contains_key(&part)) {
                        continue;
                    }
                    if let Some(known) = self.tell_history(&id, &part, &sightings) {
                        histories.entry(id.clone()).or_default().insert(part, known);
                    }
                }
            }
        }
        histories
    }

    /// What was mounted of a class since when: what the ledger says, or else what was mounted last.
    fn tell_mounts(&self, id: &SecretId, part: &Part, class: &str) -> Known {
        let newest = self.mounts.newest(&id.namespace, class);
        let recorded = self.ledger.as_ref().and_then(|ledger| {
            let mut history = ledger.book.secret(id)?.history(part)?.clone();
            if let Some((mount, by)) = newest.filter(|_| ledger.compares_data()) {
                let after = ledger.book.seen_until(&id.namespace);
                let (value, moment) = (self.mounted_value(id, mount), Moment::Gap { after, by });
                history.learn(&Sight { value, written: None, moment });
            }
            Some(Known { history, recorded: true })
        });
        recorded.unwrap_or_else(|| {
            let entry =
                newest.map_or(Entry { value: Value::Absent, since: Since::Beginning }, |(mount, by)| {
                    let since = Since::FirstSight { written: Some(by.time), by };
                    Entry { value: self.mounted_value(id, mount), since }
                });
            Known { history: History::new(entry), recorded: false }
        })
    }

    fn tell_history(&self, id: &SecretId, part: &Part, sightings: &Sightings) -> Option<Known> {
        if let Some(class) = id.class() {
            return Some(self.tell_mounts(id, part, class));
        }
        let now = self.secret(id);
        let recorded = self.ledger.as_ref().and_then(|ledger| {
            let recorded = ledger.book.secret(id)?.history(part)?;
            // What may not be read now was still seen by the operator.
            let history = if self.knows_secrets() {
                ledger.history(&id.namespace, recorded, part, now, self.at)
            } else {
                recorded.clone()
            };
            Some(Known { history, recorded: true })
        });
        recorded.or_else(|| {
            self.secrets.as_ref()?;
            let history = match sightings.get(id) {
                Some(sighting) => sighting.history(part),
                None => History::new(Entry { value: Value::Absent, since: Since::Beginning }),
            };
            Some(Known { history, recorded: false })
        })
    }
}

/// What is mounted, as a watch would have told it.
fn known_mounts(mounts: Vec<MountFacts>, at: Point) -> Mounts {
    let mut known = Mounts::default();
    known.take(Watched::Relist);
    for mount in mounts {
        known.take(Watched::Apply(mount));
    }
    known.take(Watched::Complete(at.version));
    known
}

fn complete_references(
    consumers: &mut [Consumer],
    accounts: &[ServiceAccountFacts],
    classes: &[ProviderClassFacts],
) {
    let accounts: BTreeMap<&BesideId, &ServiceAccountFacts> =
        accounts.iter().map(|account| (&account.id, account)).collect();
    let classes: BTreeMap<&BesideId, &ProviderClassFacts> =
        classes.iter().map(|class| (&class.id, class)).collect();
    for consumer in consumers {
        let account = BesideId::new(consumer.namespace.clone(), consumer.service_account.clone());
        let class = |name: &str| classes.get(&BesideId::new(consumer.namespace.clone(), name)).copied();
        let effective = effective(&consumer.declared, accounts.get(&account).copied(), class);
        consumer.references = effective.kept;
        consumer.reference_count = effective.count;
    }
}

/// Gives each pod to its consumer. Pods whose controller isn't known are consumers' of their own making.
fn attach(
    consumers: &mut Vec<Consumer>,
    pods: Vec<SeenPod>,
    owners: &Owners,
    unknown: &[Unknown],
) -> BTreeMap<Uid, Vec<PodFacts>> {
    let mut places: BTreeMap<Uid, usize> =
        consumers.iter().enumerate().map(|(place, consumer)| (consumer.uid, place)).collect();
    let mut attached: BTreeMap<Uid, Vec<PodFacts>> = BTreeMap::new();
    for pod in pods {
        let top = top(&pod.facts, owners, |uid| places.contains_key(uid));
        let uid = top.as_ref().map_or(pod.facts.uid, |owner| owner.uid);
        let place = *places.entry(uid).or_insert_with(|| {
            consumers.push(stranger(&pod, top, unknown));
            consumers.len() - 1
        });
        inject(&mut consumers[place], &pod);
        attached.entry(uid).or_default().push(pod.facts);
    }
    attached
}

/// Who controls a pod, through what stands between: the first that is a consumer, or else the uppermost.
fn top(pod: &PodFacts, owners: &Owners, is_consumer: impl Fn(&Uid) -> bool) -> Option<OwnerFacts> {
    let mut top = None;
    for owner in controllers(pod, owners) {
        top = Some(owner);
        if is_consumer(&owner.uid) {
            break;
        }
    }
    top.cloned()
}

/// Who controls a pod, and who controls that, and so on up.
pub fn controllers<'a>(pod: &'a PodFacts, owners: &'a Owners) -> impl Iterator<Item = &'a OwnerFacts> {
    upwards(pod.owner.as_ref(), owners)
}

/// A consumer of which only the pods are known.
fn stranger(pod: &SeenPod, owner: Option<OwnerFacts>, unknown: &[Unknown]) -> Consumer {
    let is_unknown = |kind: &str| unknown.iter().any(|unknown| *unknown.kind == *kind);
    let (kind, name, uid, fate) = match owner {
        Some(owner) => {
            let fate = if is_unknown(&owner.kind) { Fate::NotListed } else { Fate::NotTold };
            (owner.kind, owner.name, owner.uid, fate)
        }
        None => ("Pod".into(), pod.facts.name.clone(), pod.facts.uid, Fate::PodStays),
    };
    Consumer {
        namespace: pod.namespace.clone(),
        kind,
        name,
        uid,
        declared: Arc::new(Declared::default()),
        references: Arc::clone(&pod.references),
        reference_count: pod.references.len(),
        injected: BTreeSet::new(),
        service_account: "default".into(),
        policy: WorkloadPolicy::default(),
        fate,
        workload: None,
    }
}

/// Notes what a pod names and its template doesn't.
fn inject(consumer: &mut Consumer, pod: &SeenPod) {
    if Arc::ptr_eq(&consumer.references, &pod.references) || !crate::decide::is_live(&pod.facts) {
        return;
    }
    for reference in pod.references.iter() {
        let known = consumer.references.iter().any(|known| known.secret == reference.secret);
        if !known && !consumer.injected.contains(reference) {
            consumer.injected.insert(reference.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::decide::MOST_ABOVE;
    use crate::facts::{Time, Version};

    fn owner(kind: &str, uid: u128) -> OwnerFacts {
        OwnerFacts { kind: kind.into(), name: kind.to_lowercase().into(), uid: Uid(uid) }
    }

    fn pod_of(owner: Option<OwnerFacts>) -> PodFacts {
        PodFacts::sample("pod", Uid(99), Time::default(), Version(1), owner)
    }

    /// As Knative has it: a Pod's ReplicaSet, its Deployment, its Revision, its Configuration, its Service.
    fn knative() -> Owners {
        let chain = ["ReplicaSet", "Deployment", "Revision", "Configuration", "Service"];
        (0..chain.len())
            .map(|at| (Uid(at as u128), chain.get(at + 1).map(|kind| owner(kind, at as u128 + 1))))
            .collect()
    }

    #[rstest]
    #[case::known_to_the_top(&[4], "Service")]
    #[case::the_first_that_is_a_consumer(&[1, 4], "Deployment")]
    #[case::nobody_named_any(&[], "Service")]
    fn a_pod_is_its_first_known_controllers_or_the_uppermost(#[case] consumers: &[u128], #[case] kind: &str) {
        let pod = pod_of(Some(owner("ReplicaSet", 0)));
        let top = top(&pod, &knative(), |uid| consumers.contains(&uid.0)).unwrap();
        assert_eq!(&*top.kind, kind);
    }

    #[test]
    fn owners_that_own_each_other_have_an_end() {
        let owners = Owners::from([(Uid(0), Some(owner("A", 1))), (Uid(1), Some(owner("B", 0)))]);
        assert_eq!(controllers(&pod_of(Some(owner("B", 0))), &owners).count(), MOST_ABOVE);
        assert!(controllers(&pod_of(None), &owners).next().is_none());
    }
}
