//! A test's own namespace and the objects in it.

use super::cluster::Cluster;
use super::wait::eventually;
use super::workload::{Kind, Workload};
use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{self as core, Pod, Secret, ServiceAccount};
use k8s_openapi::api::events::v1::Event;
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, NamespaceResourceScope};
use kube::{Api, Client, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// For what the cluster itself does: a rollout of ready pods takes a second or two.
pub const SOON: Duration = Duration::from_secs(30);

/// A name that nothing else in this process has.
pub fn unique(prefix: &str) -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    format!("{prefix}-{}", NUMBER.fetch_add(1, Ordering::Relaxed))
}

/// Removed when dropped, by the cluster's own runtime; after a panic it stays for a look.
pub struct Namespace<'a> {
    pub name: String,
    /// The test's admin client.
    pub client: Client,
    cluster: &'a Cluster,
    kubeconfig: PathBuf,
}

impl<'a> Namespace<'a> {
    /// Ready for pods: its default ServiceAccount is there.
    pub async fn create(cluster: &'a Cluster, prefix: &str) -> Self {
        Self::create_with(cluster, prefix, json!({})).await
    }

    /// With labels or annotations: `metadata` is the object's, but for the name.
    pub async fn create_with(cluster: &'a Cluster, prefix: &str, mut metadata: Value) -> Self {
        let client = cluster.admin_client().await;
        let name = unique(prefix);
        metadata["name"] = json!(name);
        let namespace = serde_json::from_value(json!({ "metadata": metadata })).expect("metadata");
        let api: Api<core::Namespace> = Api::all(client.clone());
        api.create(&PostParams::default(), &namespace).await.expect("a namespace can be made");
        let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), &name);
        eventually(SOON, || accounts.get("default")).await;
        Self { name, client, cluster, kubeconfig: cluster.kubeconfig(&cluster.admin()) }
    }

    pub fn api<K>(&self) -> Api<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Any kind, by its plain JSON: nothing that our types don't know gets lost.
    pub fn dynamic(&self, api_version: &str, kind: &str) -> Api<DynamicObject> {
        let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.name, &resource)
    }

    async fn list<K>(&self, parameters: &ListParams) -> Vec<K>
    where
        K: Resource<Scope = NamespaceResourceScope, DynamicType = ()>
            + Clone
            + DeserializeOwned
            + std::fmt::Debug,
    {
        self.api::<K>().list(parameters).await.expect("a list").items
    }
}

impl Drop for Namespace<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        let (kubeconfig, name) = (self.kubeconfig.clone(), self.name.clone());
        self.cluster.background().spawn(async move {
            // A test may have left the cluster in no state to answer: its end removes everything anyway.
            if let Ok(client) = super::cluster::client(&kubeconfig).await {
                let api: Api<core::Namespace> = Api::all(client);
                let _ = api.delete(&name, &DeleteParams::background()).await;
            }
        });
    }
}

/// Secrets.
impl Namespace<'_> {
    /// Makes it or changes these keys, as the manager `test`; other keys stay.
    pub async fn set_secret(&self, name: &str, data: &[(&str, &str)]) -> Secret {
        let data: BTreeMap<_, _> = data.iter().copied().collect();
        let patch = json!({ "stringData": data });
        if let Some(secret) = self.merge_secret(name, &patch, "test").await {
            return secret;
        }
        let secret = serde_json::from_value(json!({ "metadata": { "name": name }, "stringData": data }))
            .expect("a Secret");
        let parameters = PostParams { field_manager: Some("test".into()), ..PostParams::default() };
        self.api().create(&parameters, &secret).await.expect("a Secret can be made")
    }

    /// A merge patch under a manager's name; None if there is no such Secret.
    pub async fn merge_secret(&self, name: &str, patch: &Value, manager: &str) -> Option<Secret> {
        let parameters = PatchParams { field_manager: Some(manager.into()), ..PatchParams::default() };
        match self.api::<Secret>().patch(name, &parameters, &Patch::Merge(patch)).await {
            Ok(secret) => Some(secret),
            Err(kube::Error::Api(answer)) if answer.is_not_found() => None,
            Err(error) => panic!("Secret {name} can't be patched: {error}"),
        }
    }

    /// `kubectl apply --server-side --force-conflicts` of these fields by a manager.
    pub async fn apply_secret(&self, name: &str, fields: &Value, manager: &str) -> Secret {
        let mut secret = fields.clone();
        secret["apiVersion"] = json!("v1");
        secret["kind"] = json!("Secret");
        secret["metadata"]["name"] = json!(name);
        let parameters = PatchParams::apply(manager).force();
        self.api().patch(name, &parameters, &Patch::Apply(&secret)).await.expect("a Secret can be applied")
    }

    pub async fn remove_key(&self, name: &str, key: &str) {
        self.merge_secret(name, &json!({ "data": { key: null } }), "test").await.expect("the Secret exists");
    }

    pub async fn delete_secret(&self, name: &str) {
        self.api::<Secret>().delete(name, &DeleteParams::default()).await.expect("a Secret can be deleted");
    }
}

/// Workloads.
impl Namespace<'_> {
    pub async fn create_workload(&self, workload: &Workload) -> DynamicObject {
        let object = serde_json::from_value(workload.manifest().clone()).expect("an object");
        let parameters = PostParams { field_manager: Some("test".into()), ..PostParams::default() };
        let api = self.workloads(workload.kind);
        api.create(&parameters, &object).await.unwrap_or_else(|error| panic!("{}: {error}", workload.name))
    }

    /// Makes it and waits until its pods are ready.
    pub async fn run(&self, workload: &Workload) -> DynamicObject {
        self.create_workload(workload).await;
        self.wait_rolled_out(workload).await
    }

    pub fn workloads(&self, kind: Kind) -> Api<DynamicObject> {
        self.dynamic("apps/v1", kind.name())
    }

    /// As it is now, in plain JSON.
    pub async fn get(&self, workload: &Workload) -> Value {
        let object = self.workloads(workload.kind).get(&workload.name).await;
        serde_json::to_value(object.unwrap_or_else(|error| panic!("{}: {error}", workload.name)))
            .expect("JSON")
    }

    pub async fn merge(&self, workload: &Workload, patch: &Value) -> DynamicObject {
        let parameters = PatchParams { field_manager: Some("test".into()), ..PatchParams::default() };
        let api = self.workloads(workload.kind);
        let patched = api.patch(&workload.name, &parameters, &Patch::Merge(patch)).await;
        patched.unwrap_or_else(|error| panic!("{}: {error}", workload.name))
    }

    pub async fn scale(&self, workload: &Workload, replicas: u32) {
        self.merge(workload, &json!({ "spec": { "replicas": replicas } })).await;
    }

    pub async fn delete(&self, workload: &Workload) {
        let api = self.workloads(workload.kind);
        api.delete(&workload.name, &DeleteParams::background()).await.expect("a workload can be deleted");
    }

    pub async fn wait_rolled_out(&self, workload: &Workload) -> DynamicObject {
        self.wait_rolled_out_within(SOON, workload).await
    }

    /// Until the controller has seen the newest template and all pods have it and are available.
    pub async fn wait_rolled_out_within(&self, deadline: Duration, workload: &Workload) -> DynamicObject {
        let api = &self.workloads(workload.kind);
        eventually(deadline, || async move {
            let object = api.get(&workload.name).await.map_err(|error| error.to_string())?;
            match unfinished(workload.kind, &object) {
                None => Ok(object),
                Some(why) => Err(format!("{} {}: {why}", workload.kind.name(), workload.name)),
            }
        })
        .await
    }

    /// How often a workload's template came to life: its `ReplicaSets` or `ControllerRevisions`.
    pub async fn revisions(&self, workload: &Workload) -> usize {
        let selected = ListParams::default().labels(&format!("app={}", workload.name));
        match workload.kind {
            Kind::Deployment => self.list::<ReplicaSet>(&selected).await.len(),
            Kind::StatefulSet | Kind::DaemonSet => self.list::<ControllerRevision>(&selected).await.len(),
        }
    }

    /// Its `ReplicaSets`, oldest first.
    pub async fn replica_sets(&self, workload: &Workload) -> Vec<ReplicaSet> {
        let selected = ListParams::default().labels(&format!("app={}", workload.name));
        let mut sets = self.list::<ReplicaSet>(&selected).await;
        sets.sort_by_key(|set| {
            set.annotations()
                .get("deployment.kubernetes.io/revision")
                .and_then(|number| number.parse::<u32>().ok())
        });
        sets
    }

    pub async fn deployment(&self, name: &str) -> Deployment {
        self.api().get(name).await.unwrap_or_else(|error| panic!("Deployment {name}: {error}"))
    }

    /// All its pods, those being deleted included.
    pub async fn pods(&self, workload: &Workload) -> Vec<Pod> {
        self.list(&ListParams::default().labels(&format!("app={}", workload.name))).await
    }

    /// What the processes of its live pods hold of `secret/key`, one entry a pod that has started.
    pub async fn values_in_pods(&self, workload: &Workload, of: &str) -> Vec<String> {
        let pods = self.pods(workload).await;
        let live = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none());
        live.filter_map(|pod| self.cluster.values_at_start(&pod.uid()?)?.remove(of)).collect()
    }
}

/// Events.
impl Namespace<'_> {
    /// Of `events.k8s.io/v1`, oldest first; those of Kubernetes' own controllers are here too.
    pub async fn events(&self) -> Vec<Event> {
        let mut events = self.list::<Event>(&ListParams::default()).await;
        events.sort_by_key(|event| event.metadata.creation_timestamp.as_ref().map(|time| time.0));
        events
    }

    pub async fn events_with(&self, reason: &str) -> Vec<Event> {
        let is_meant = |event: &Event| event.reason.as_deref() == Some(reason);
        self.events().await.into_iter().filter(is_meant).collect()
    }

    /// Waits for an Event about an object.
    pub async fn wait_event(&self, deadline: Duration, reason: &str, about: &str) -> Event {
        eventually(deadline, || async {
            let is_about = |event: &Event| {
                event.regarding.as_ref().and_then(|object| object.name.as_deref()) == Some(about)
            };
            self.events_with(reason)
                .await
                .into_iter()
                .find(is_about)
                .ok_or(format!("no Event {reason} about {about}"))
        })
        .await
    }
}

/// Why a rollout isn't done, by the controller's own account; None if it is.
fn unfinished(kind: Kind, object: &DynamicObject) -> Option<String> {
    let number = |pointer: &str| object.data.pointer(pointer).and_then(Value::as_i64).unwrap_or_default();
    if object.metadata.generation.unwrap_or_default() > number("/status/observedGeneration") {
        return Some("the newest template is not observed yet".into());
    }
    let (wanted, counts) = match kind {
        Kind::DaemonSet => (
            number("/status/desiredNumberScheduled"),
            ["updatedNumberScheduled", "numberAvailable", "currentNumberScheduled"],
        ),
        Kind::Deployment | Kind::StatefulSet => {
            (number("/spec/replicas"), ["updatedReplicas", "availableReplicas", "replicas"])
        }
    };
    let wrong = counts.iter().find(|count| number(&format!("/status/{count}")) != wanted)?;
    Some(format!("{wrong} is {} of {wanted}", number(&format!("/status/{wrong}"))))
}
