//! Lists what a scene is made of, all kinds at once, with the caller's rights. Nothing is decided here.

mod beside;
mod standing;

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use futures::{StreamExt as _, stream};
use serde_json::{Value, value::RawValue};

pub use beside::{beside, mounts};
use standing::{batch, others_between, replica_sets};

use super::{
    Class, CliError, Session,
    scene::{Consumer, Fate, Gathered, Ledger, Scene, SeenPod, Told, Unknown, nobodys_key},
};
use crate::{
    catalog::{
        ReadOptions, SecretFacts,
        policy::{self, Mode, ReferenceAnnotations, annotation},
        reference::Reference,
        references::references,
    },
    cluster::{self, Api, List, READ_LIMIT, digest_key, ledger_object, path, words},
    decide::{Exact, Owners, PodFacts, read as decide_read},
    engine::Fault,
    facts::{KNATIVE, Kind, Name, Namespace, Raw, Uid, Version, WorkloadId},
    ledger::{DigestKey, HEAD, Head, Point, Settings},
    watch::{secret, start::SECRET_FIELDS, workload::is_of_knative},
};

/// kubectl's and the API server's own number.
const PAGE: u16 = 500;
/// Secrets a page: they may be large.
const SECRET_PAGE: u16 = 50;
const APPS: &str = "/apis/apps/v1";
/// Kinds that are listed at a time.
const KINDS_IN_FLIGHT: usize = 4;
/// As the operator reads workloads by default.
pub const READ: ReadOptions = ReadOptions { roll_volumes: true };

/// What is wanted.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// One Secret only; none: all.
    pub secret: Option<Name>,
}

/// Gathers a scene: lists, then the lists that close births need.
///
/// # Errors
/// Nothing at all can be listed.
pub async fn scene(session: &Session, wanted: &Wanted) -> Result<Scene, CliError> {
    // All those lists under way at once are large.
    let mut scene = Scene::assemble(Box::pin(gather(session, wanted)).await?);
    decide_births(session, &mut scene).await;
    Ok(scene)
}

/// Asks for the pods at the versions near which pods were born.
async fn decide_births(session: &Session, scene: &mut Scene) {
    loop {
        let mut asked: BTreeSet<(Namespace, Version)> = BTreeSet::new();
        for consumer in &scene.consumers {
            if let Err(versions) = scene.look(consumer, &|_| true) {
                asked.extend(versions.into_iter().map(|version| (consumer.namespace.clone(), version)));
            }
        }
        if asked.is_empty() {
            return;
        }
        for (namespace, version) in asked {
            let exact = match pods_at(&session.api, &namespace, version).await {
                Ok(pods) => Exact::Pods(pods),
                // Whatever the reason: the clocks decide.
                Err(_) => Exact::Unavailable,
            };
            scene.exact.entry(namespace).or_default().insert(version, exact);
        }
    }
}

async fn pods_at(api: &Api, namespace: &str, at: Version) -> Result<Box<[Uid]>, Fault> {
    let path = path::core(Some(namespace), "pods");
    let list = List { path: &path, query: &[], at: Some(at), page: PAGE, metadata_only: true };
    let each = |uids: &mut Vec<Uid>, item: &RawValue| {
        let object: Value = cluster::decode(item.get().as_bytes())?;
        uids.push(Raw(&object).uid().map_err(|_| cluster::undecodable())?);
        Ok(())
    };
    let (mut uids, _) = list.each(api, Vec::new, each).await?;
    uids.sort_unstable();
    Ok(uids.into())
}

async fn gather(session: &Session, wanted: &Wanted) -> Result<Gathered, CliError> {
    let (ledger, key) = Box::pin(ledger(session)).await;
    let settings = ledger.as_ref().and_then(|ledger| ledger.settings.as_ref());
    let (kinds, read) = (session.kinds(settings).await, read_as(settings));
    let (namespace, key) = (session.namespace.as_deref(), key.unwrap_or_else(nobodys_key));
    let (secrets, workloads, batch, pods, sets, between, beside, mounts, namespaces, paused, told) = futures::join!(
        secrets(session, wanted, &key),
        Box::pin(workloads(session, &kinds, &read)),
        Box::pin(batch(session, &read)),
        Box::pin(pods(session, &read)),
        Box::pin(replica_sets(session, &read)),
        Box::pin(others_between(session, &kinds)),
        Box::pin(beside(session)),
        mounts(session),
        namespaces(session),
        paused(session),
        told(session, ledger.is_some()),
    );
    let mut gathered = Gathered {
        namespace: session.namespace.clone(),
        operator_namespace: session.operator_namespace.clone(),
        namespaces,
        paused,
        ledger,
        told,
        ..Gathered::default()
    };
    let mut missing = Missing::default();
    let (classes, accounts) = beside;
    gathered.accounts = missing.take("ServiceAccount", accounts);
    gathered.classes = missing.take("SecretProviderClass", classes);
    gathered.mounts = missing.take("SecretProviderClassPodStatus", mounts);
    gathered.digest_key = Some(key);
    let mut none_listed = pods.is_err();
    for (kind, listed) in kinds.iter().zip(workloads) {
        none_listed &= listed.is_err();
        gathered.consumers.extend(missing.take(kind.as_str(), listed));
    }
    let (cron_jobs, jobs) = batch;
    gathered.consumers.extend(missing.take("CronJob", cron_jobs));
    let (jobs, job_owners) = missing.take("Job", jobs);
    gathered.consumers.extend(jobs);
    gathered.owners = job_owners;
    let (sets, set_owners) = missing.take("ReplicaSet", sets);
    gathered.consumers.extend(sets);
    gathered.owners.extend(set_owners);
    for (kind, owners) in between {
        gathered.owners.extend(missing.take(kind, owners));
    }
    let (pods, bare, pods_version) = missing.take("Pod", pods);
    gathered.consumers.extend(bare);
    gathered.pods = pods;
    let now = session.now();
    match secrets {
        Ok((secrets, version)) => {
            gathered.at = Point { version, time: now };
            gathered.secrets = Some(secrets);
            gathered.comparable = comparable(session, namespace, version, pods_version).await;
        }
        Err(fault) => {
            gathered.at = Point { version: Version::default(), time: now };
            missing.note("Secret", &fault);
        }
    }
    if none_listed {
        let first = missing.0.iter().find(|unknown| unknown.kind == "Pod").or(missing.0.first());
        let why = first.map(|unknown| unknown.message.clone()).unwrap_or_default();
        return Err(CliError::unknown(format!("nothing can be listed at {}: {why}", session.server)));
    }
    gathered.unknown = missing.0;
    Ok(gathered)
}

/// What couldn't be listed.
#[derive(Default)]
struct Missing(Vec<Unknown>);

impl Missing {
    fn take<T: Default>(&mut self, kind: &str, listed: Result<T, Fault>) -> T {
        listed.unwrap_or_else(|fault| {
            self.note(kind, &fault);
            T::default()
        })
    }

    fn note(&mut self, kind: &str, fault: &Fault) {
        let message = words(fault);
        self.0.push(Unknown { kind: kind.to_owned(), reason: Class::of_list(fault), message });
    }
}

/// Whether the versions of Secrets and pods are of one store: a list of the one, the other, and the one again are in
/// order then. Separate stores would have to stand at the same number.
async fn comparable(session: &Session, namespace: Option<&str>, secrets: Version, pods: Version) -> bool {
    let path = path::core(namespace, "secrets");
    let probe = List {
        path: &path,
        query: &[("fieldSelector", SECRET_FIELDS)],
        at: None,
        page: 1,
        metadata_only: true,
    };
    let again: Result<Version, Fault> = async {
        let page = probe.page(&session.api, "").await?;
        let page: cluster::Page<'_> = cluster::decode(page.as_ref())?;
        page.metadata.version()
    }
    .await;
    pods.0 > 0 && again.is_ok_and(|again| secrets.min(pods) <= again && pods <= again)
}

/// Lists a collection, object by object.
async fn list<T>(
    session: &Session,
    path: &str,
    query: &[(&str, &str)],
    metadata_only: bool,
    mut read: impl FnMut(&mut T, &Value) -> Option<()>,
) -> Result<(T, Version), Fault>
where
    T: Default,
{
    let list = List { path, query, at: None, page: PAGE, metadata_only };
    let each = |listed: &mut T, item: &RawValue| {
        let object: Value = cluster::decode(item.get().as_bytes())?;
        // One that can't be read could be what matters.
        read(listed, &object).ok_or_else(cluster::undecodable)
    };
    list.each(&session.api, T::default, each).await
}

/// What the operator was told, as its ledger has it; none if that can't be read.
pub async fn settings(session: &Session) -> Option<Settings> {
    let own = &session.operator_namespace;
    let place = format!("{}/{HEAD}", path::core(Some(own), "secrets"));
    let stored: ledger_object::Stored = session.api.json(cluster::get(&place), READ_LIMIT).await.ok()?;
    let head: Head = serde_json::from_slice(&stored.read()?.body).ok()?;
    serde_json::from_value(head.settings).ok()
}

async fn ledger(session: &Session) -> (Option<Ledger>, Option<DigestKey>) {
    let own = &session.operator_namespace;
    let identity = async {
        let request = cluster::get(&format!("{}/{own}", path::core(None, "namespaces")));
        let object: Value = session.api.json(request, READ_LIMIT).await.ok()?;
        Raw(&object).uid().ok()
    };
    let (objects, key, identity) =
        futures::join!(ledger_object::list(&session.api, own), digest_key::find(&session.api, own), identity);
    let key = key.ok().flatten();
    let ledger = objects.ok().and_then(|objects| Ledger::read(&objects, key.as_ref(), identity));
    (ledger, key)
}

async fn secrets(
    session: &Session,
    wanted: &Wanted,
    key: &DigestKey,
) -> Result<(Vec<SecretFacts>, Version), Fault> {
    let path = path::core(session.namespace.as_deref(), "secrets");
    let named = wanted.secret.as_ref().map(|name| format!("metadata.name={name}"));
    let fields = named.as_deref().unwrap_or(SECRET_FIELDS);
    let list = List {
        path: &path,
        query: &[("fieldSelector", fields)],
        at: None,
        page: SECRET_PAGE,
        metadata_only: false,
    };
    let each = |secrets: &mut Vec<SecretFacts>, item: &RawValue| {
        secrets.push(secret::read(item.get().as_bytes(), key).ok_or_else(cluster::undecodable)?);
        Ok(())
    };
    list.each(&session.api, Vec::new, each).await
}

/// How the operator reads workloads, as far as is known.
fn read_as(settings: Option<&Settings>) -> ReadOptions {
    settings.map_or(READ, |settings| ReadOptions { roll_volumes: settings.roll_volumes })
}

/// The workloads of each kind.
async fn workloads(
    session: &Session,
    kinds: &[Kind],
    options: &ReadOptions,
) -> Vec<Result<Vec<Consumer>, Fault>> {
    let knative = kinds.iter().any(|kind| kind.group() == KNATIVE);
    let of_kind = |kind| workloads_of(session, kind, options, knative);
    stream::iter(kinds).map(of_kind).buffered(KINDS_IN_FLIGHT).collect().await
}

async fn workloads_of(
    session: &Session,
    kind: &Kind,
    options: &ReadOptions,
    knative: bool,
) -> Result<Vec<Consumer>, Fault> {
    let path = cluster::collection(&session.api, kind, session.namespace.as_deref()).await?;
    let read = |listed: &mut Vec<Consumer>, object: &Value| {
        // As for the operator: what a Knative Service made is rolled by it.
        if knative && is_of_knative(kind, Raw(object)) {
            return Some(());
        }
        // A custom object without a template has no pods of its own.
        listed.extend(Consumer::workload(kind, object, options).ok());
        Some(())
    };
    Ok(list(session, &path, &[], false, read).await?.0)
}

/// A workload as it is now.
///
/// # Errors
/// It isn't there, or can't be read.
pub async fn workload(session: &Session, id: &WorkloadId) -> Result<Value, Fault> {
    session.api.json(cluster::get(&cluster::workload(&session.api, id).await?), READ_LIMIT).await
}

type Pods = (Vec<SeenPod>, Vec<Consumer>, Version);

async fn pods(session: &Session, options: &ReadOptions) -> Result<Pods, Fault> {
    let path = path::core(session.namespace.as_deref(), "pods");
    let mut sets: BTreeSet<Arc<[Reference]>> = BTreeSet::new();
    let read = |listed: &mut (Vec<SeenPod>, Vec<Consumer>), object: &Value| {
        let facts = decide_read::pod(object).ok()?;
        let found: Arc<[Reference]> = references(object, &ReferenceAnnotations::default(), true).kept.into();
        // Most pods are like others.
        let references = sets.get(&found).cloned().unwrap_or_else(|| {
            sets.insert(Arc::clone(&found));
            found
        });
        if facts.owner.is_none() {
            listed.1.push(Consumer::standing("Pod", object, object, Fate::PodStays, options).ok()?);
        }
        listed.0.push(SeenPod { namespace: Raw(object).namespace().ok()?, facts, references });
        Some(())
    };
    let ((pods, bare), version) = list(session, &path, &[], false, read).await?;
    Ok((pods, bare, version))
}

/// The pods of a namespace.
///
/// # Errors
/// They can't be listed.
pub async fn pods_of(session: &Session, namespace: &Namespace) -> Result<Vec<PodFacts>, Fault> {
    let read = |listed: &mut Vec<PodFacts>, object: &Value| {
        listed.push(decide_read::pod(object).ok()?);
        Some(())
    };
    Ok(list(session, &path::core(Some(namespace), "pods"), &[], false, read).await?.0)
}

/// Who owns what may stand between a namespace's pods and workloads of these kinds.
///
/// # Errors
/// They can't be listed.
pub async fn owners_of(session: &Session, namespace: &Namespace, kinds: &[Kind]) -> Result<Owners, Fault> {
    let mut owners = Owners::new();
    for between in cluster::between(kinds) {
        owners.extend(standing::owners(session, &between, Some(namespace)).await?);
    }
    Ok(owners)
}

/// What Namespaces say. Who may not read them takes the default: it is said of each policy where it comes from.
async fn namespaces(session: &Session) -> BTreeMap<Namespace, Option<Mode>> {
    let mode = |object: &Value| policy::rollout(Raw(object).annotation(annotation::ROLLOUT)).0;
    if let Some(namespace) = &session.namespace {
        let request = cluster::get(&format!("{}/{namespace}", path::core(None, "namespaces")));
        let object = session.api.json::<Value>(request, READ_LIMIT).await;
        return object.map(|object| (namespace.clone(), mode(&object))).into_iter().collect();
    }
    let read = |listed: &mut BTreeMap<Namespace, Option<Mode>>, object: &Value| {
        let name = Raw(object).name().ok()?;
        listed.insert(name, mode(object));
        Some(())
    };
    let listed = list(session, &path::core(None, "namespaces"), &[], false, read).await;
    listed.map(|(listed, _)| listed).unwrap_or_default()
}

async fn paused(session: &Session) -> bool {
    let own = format!("{}/{}", path::core(None, "namespaces"), session.operator_namespace);
    let Ok(object) = session.api.json::<Value>(cluster::get(&own), READ_LIMIT).await else { return false };
    let text = Raw(&object).annotation(annotation::PAUSED);
    // What can't be parsed pauses, as for the operator.
    text.is_some_and(|text| policy::paused(text).unwrap_or(true))
}

/// Uptake's Events: only where the ledger doesn't tell more.
async fn told(session: &Session, ledger: bool) -> Told {
    if ledger {
        return Told::default();
    }
    let path = path::custom("/apis/events.k8s.io/v1", session.namespace.as_deref(), "events");
    let read = |told: &mut Told, event: &Value| {
        told.take(event);
        Some(())
    };
    let query = [("labelSelector", "uptake.dev/secret")];
    list(session, &path, &query, false, read).await.map(|(told, _)| told).unwrap_or_default()
}

#[cfg(test)]
mod tests;
