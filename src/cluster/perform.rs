//! Performs the engine's calls.

use std::{collections::BTreeMap, future::poll_fn, pin::pin, task::Poll};

use http::Method;
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::Semaphore;

use super::{
    Api, Between,
    api::{self, READ_LIMIT, WRITE_LIMIT},
    discover, event, ledger_object,
    list::List,
    path, stamp,
};
use crate::{
    catalog::{ReadOptions, SecretFacts, Selection, Workload, read as catalog_read},
    decide::{OwnerFacts, PodFacts, read as decide_read},
    engine::{Answer, Call, Fault},
    facts::{Kind, Namespace, SecretId, Uid, Version, WorkloadId},
    leader::Term,
    ledger::DigestKey,
    record::EventNote,
    watch::secret,
};

/// The API server's words for a version above all that its store has.
const FUTURE: &str = "Too large resource version";

/// Stamps in flight. More would only queue at the API server, whose own fairness counts them as one client.
const STAMPS_IN_FLIGHT: usize = 16;
/// Events in flight: they must not crowd out stamps and lists.
const NOTES_IN_FLIGHT: usize = 4;
/// Lists in flight: each holds a page in memory, and the client's buffers of it.
const LISTS_IN_FLIGHT: usize = 4;
/// Pods and ReplicaSets a page; kubectl's and the API server's own number.
const PAGE: u16 = 500;

/// What performing needs to know.
#[derive(Clone)]
pub struct PerformerConfig {
    /// Uptake's own namespace, where the ledger lies.
    pub own_namespace: Namespace,
    /// The watched namespaces; none means all.
    pub namespaces: Vec<Namespace>,
    /// Who writes Events: the pod's name.
    pub instance: String,
    /// Under which Secret values are hashed.
    pub digest_key: DigestKey,
    /// How workloads are read.
    pub read: ReadOptions,
    /// What may stand between pods and workloads.
    pub between: Vec<Between>,
}

/// Performs calls. Each is one task's business: any number run at a time.
pub struct Performer {
    api: Api,
    config: PerformerConfig,
    term: Term,
    stamps: Semaphore,
    notes: Semaphore,
    lists: Semaphore,
}

impl Performer {
    /// Over that client.
    #[must_use]
    pub fn new(api: Api, config: PerformerConfig) -> Self {
        Self {
            api,
            config,
            term: Term::endless(),
            stamps: Semaphore::new(STAMPS_IN_FLIGHT),
            notes: Semaphore::new(NOTES_IN_FLIGHT),
            lists: Semaphore::new(LISTS_IN_FLIGHT),
        }
    }

    /// Writes in that term only.
    #[must_use]
    pub fn in_term(mut self, term: Term) -> Self {
        self.term = term;
        self
    }

    /// Performs a write, if this process may. That is asked whenever the write goes a step on: it may wait for a
    /// connection, and whoever is stopped in the midst of it comes back as somebody else's predecessor.
    async fn in_time<T>(&self, write: impl Future<Output = Result<T, Fault>>) -> Result<T, Fault> {
        let mut write = pin!(write);
        poll_fn(|context| {
            if self.term.is_current() {
                write.as_mut().poll(context)
            } else {
                Poll::Ready(Err(Fault::Unknown("this process doesn't lead any more".to_owned())))
            }
        })
        .await
    }

    /// Performs a call. It always ends: each request in it has its limit.
    pub async fn perform(&self, call: Call) -> Answer {
        match call {
            Call::ListLedger => {
                Answer::Ledger(ledger_object::list(&self.api, &self.config.own_namespace).await)
            }
            Call::WriteLedger { name, over, body } => {
                Answer::Written(self.write_ledger(&name, over, &body).await)
            }
            Call::DeleteLedger { name, over } => Answer::Done(self.delete_ledger(&name, over).await),
            Call::ListPods(namespace, only) => Answer::Pods(self.list_pods(&namespace, &only).await),
            Call::ListPodsAt(namespace, at) => Answer::PodUids(self.list_pods_at(&namespace, at).await),
            Call::ListReplicaSets(namespace, only) => {
                Answer::Owners(self.list_owners(&namespace, &only).await)
            }
            Call::ProbePodVersion => Answer::PodListVersion(self.probe_pod_version().await),
            Call::GetSecret(id) => Answer::Secret(self.get_secret(&id).await),
            Call::GetWorkload(id) => Answer::Workload(self.get_workload(&id).await),
            Call::Stamp { id, uid, over, stamp } => {
                Answer::Workload(self.stamp(&id, uid, over, &stamp).await)
            }
            Call::Note(note) => Answer::Done(self.note(&note).await),
        }
    }

    fn ledger(&self) -> String {
        path::core(Some(&self.config.own_namespace), "secrets")
    }

    async fn write_ledger(&self, name: &str, over: Option<Version>, body: &[u8]) -> Result<Version, Fault> {
        let manifest = ledger_object::manifest(&self.config.own_namespace, name, over, body);
        let request = match over {
            None => api::send(Method::POST, &self.ledger(), &manifest),
            Some(_) => api::send(Method::PUT, &format!("{}/{name}", self.ledger()), &manifest),
        };
        version_of(&self.in_time(self.api.json::<Versioned>(request, WRITE_LIMIT)).await?)
    }

    async fn delete_ledger(&self, name: &str, over: Version) -> Result<(), Fault> {
        let options = json!({
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"resourceVersion": over.to_string()},
        });
        let request = api::send(Method::DELETE, &format!("{}/{name}", self.ledger()), &options);
        self.in_time(self.api.bytes(request, WRITE_LIMIT)).await.map(drop)
    }

    async fn list_pods(&self, namespace: &str, only: &Selection) -> Result<Vec<PodFacts>, Fault> {
        let path = path::core(Some(namespace), "pods");
        let list = Listed { path, at: None, labels: only.to_string(), metadata_only: false };
        // A pod that can't be read could be stale: the list would prove nothing.
        let each = |pods: &mut Vec<PodFacts>, item: &RawValue| {
            pods.push(decide_read::pod(&value(item)?).map_err(|_| api::undecodable())?);
            Ok(())
        };
        self.listed(list, each).await
    }

    async fn list_pods_at(&self, namespace: &str, at: Version) -> Result<Vec<Uid>, Fault> {
        let path = path::core(Some(namespace), "pods");
        let list = Listed { path, at: Some(at), labels: String::new(), metadata_only: true };
        let each = |uids: &mut Vec<Uid>, item: &RawValue| {
            uids.push(Uid::parse(&api::decode::<Versioned>(item.get().as_bytes())?.metadata.uid));
            Ok(())
        };
        let mut uids = match self.listed(list, each).await {
            // A version of a store that was set back since: it is as good as forgotten.
            Err(Fault::Unknown(words)) if words.contains(FUTURE) => return Err(Fault::Expired),
            listed => listed?,
        };
        uids.sort_unstable();
        Ok(uids)
    }

    async fn list_owners(
        &self,
        namespace: &str,
        only: &Selection,
    ) -> Result<BTreeMap<Uid, Option<OwnerFacts>>, Fault> {
        let mut all = BTreeMap::new();
        for Between { group_version, plural, .. } in &self.config.between {
            let path = path::custom(group_version, Some(namespace), plural);
            let list = Listed { path, at: None, labels: only.to_string(), metadata_only: true };
            let each = |owners: &mut BTreeMap<Uid, Option<OwnerFacts>>, item: &RawValue| {
                let (uid, owner) = decide_read::owner(&value(item)?).map_err(|_| api::undecodable())?;
                owners.insert(uid, owner);
                Ok(())
            };
            match self.listed(list, each).await {
                // Its kind isn't there (yet): then nothing of it stands between anything.
                Err(Fault::NotFound) => {}
                owners => all.extend(owners?),
            }
        }
        Ok(all)
    }

    async fn listed<State: Default>(
        &self,
        listed: Listed,
        each: impl FnMut(&mut State, &RawValue) -> Result<(), Fault>,
    ) -> Result<State, Fault> {
        let _turn = self.lists.acquire().await;
        let Listed { path, at, labels, metadata_only } = &listed;
        let query = [("labelSelector", labels.as_str())];
        let query = if labels.is_empty() { &[] } else { &query[..] };
        let list = List { path, query, at: *at, page: PAGE, metadata_only: *metadata_only };
        Ok(list.each(&self.api, State::default, each).await?.0)
    }

    async fn probe_pod_version(&self) -> Result<Version, Fault> {
        // A list's version is the store's, whatever the namespace: where the cluster may not be listed, a
        // watched namespace does as well.
        let pods = path::core(self.config.namespaces.first().map(|namespace| &**namespace), "pods");
        let request = api::get_metadata(&path::with(&pods, &[("limit", "1")]));
        version_of(&self.api.json::<Versioned>(request, READ_LIMIT).await?)
    }

    async fn get_secret(&self, id: &SecretId) -> Result<Option<SecretFacts>, Fault> {
        let request = api::get(&format!("{}/{}", path::core(Some(&id.namespace), "secrets"), id.name));
        let body = match self.api.bytes(request, READ_LIMIT).await {
            Err(Fault::NotFound) => return Ok(None),
            body => body?,
        };
        secret::read(body.as_ref(), &self.config.digest_key).map(Some).ok_or_else(api::undecodable)
    }

    async fn get_workload(&self, id: &WorkloadId) -> Result<Workload, Fault> {
        let object = self.api.json(api::get(&discover::workload(&self.api, id).await?), READ_LIMIT).await?;
        self.read(&id.kind, &object)
    }

    async fn stamp(&self, id: &WorkloadId, uid: Uid, over: Version, stamp: &str) -> Result<Workload, Fault> {
        let _turn = self.stamps.acquire().await;
        let path = path::with(&discover::workload(&self.api, id).await?, &[("fieldManager", "uptake")]);
        let request = api::patch(&path, &stamp::patch(&id.kind, uid, over, stamp));
        let object = self.in_time(self.api.json(request, WRITE_LIMIT)).await?;
        self.read(&id.kind, &object)
    }

    fn read(&self, kind: &Kind, object: &Value) -> Result<Workload, Fault> {
        catalog_read::workload(kind, object, &self.config.read).map_err(|_| api::undecodable())
    }

    async fn note(&self, note: &EventNote) -> Result<(), Fault> {
        let _turn = self.notes.acquire().await;
        let path = path::events(event::namespace(note));
        let request = api::send(Method::POST, &path, &event::manifest(note, &self.config.instance));
        match self.in_time(self.api.bytes(request, WRITE_LIMIT)).await {
            // Written before a crash: the name is the transition's.
            Ok(_) | Err(Fault::Conflict) => Ok(()),
            Err(fault) => Err(fault),
        }
    }
}

struct Listed {
    path: String,
    at: Option<Version>,
    /// The label selector; empty for all.
    labels: String,
    metadata_only: bool,
}

/// An object or a list of which only the identity matters.
#[derive(Deserialize)]
struct Versioned {
    metadata: VersionedMeta,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct VersionedMeta {
    resource_version: String,
    #[serde(default)]
    uid: String,
}

fn version_of(object: &Versioned) -> Result<Version, Fault> {
    object.metadata.resource_version.parse().map_err(|_| api::undecodable())
}

fn value(item: &RawValue) -> Result<Value, Fault> {
    api::decode(item.get().as_bytes())
}

#[cfg(test)]
mod tests;
