//! What the cluster of the benchmark holds, and an independent watch of what becomes of it.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::{
    apps::v1::{Deployment, ReplicaSet},
    core::v1::{Namespace, Pod, Secret},
};
use kube::{
    Api, Client,
    api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams},
};
use serde_json::{Value, json};

use crate::support::{cluster::Cluster, wait::eventually};

/// How many requests the bench itself has in flight.
const WRITERS: usize = 16;
/// Each Secret has that much beside what is read of it.
const BLOB: usize = 4096;
/// The namespace of those who share one Secret.
pub const FAN: &str = "fan";

/// How much there is.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub namespaces: usize,
    /// Deployments, each with a Secret of its own.
    pub per_namespace: usize,
    /// Deployments that share one Secret.
    pub fanout: usize,
}

impl Size {
    pub fn from_env() -> Self {
        let number = |name: &str, or: usize| {
            std::env::var(name)
                .ok()
                .filter(|text| !text.is_empty())
                .map_or(or, |text| text.parse().expect(name))
        };
        Self {
            namespaces: number("NAMESPACES", 50),
            per_namespace: number("PER_NAMESPACE", 40),
            fanout: number("FANOUT", 300),
        }
    }

    pub fn deployments(self) -> usize {
        self.namespaces * self.per_namespace + self.fanout
    }

    pub fn secrets(self) -> usize {
        self.namespaces * self.per_namespace + 1
    }
}

/// A Deployment's place; its Secret has the same, but for those that share one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    pub namespace: String,
    pub name: String,
}

/// The cluster, and what was seen of its templates.
pub struct Field<'a> {
    pub cluster: &'a Cluster,
    pub client: Client,
    pub size: Size,
    seen: Arc<Seen>,
    turn: AtomicU64,
}

/// Templates as the API server delivers them.
#[derive(Default)]
struct Seen {
    templates: Mutex<HashMap<Place, Template>>,
    rollouts: AtomicU64,
}

struct Template {
    text: String,
    changed: Option<Instant>,
}

impl<'a> Field<'a> {
    pub async fn seed(cluster: &'a Cluster, size: Size) -> Self {
        let client = cluster.admin_client().await;
        let began = Instant::now();
        let names = (0..size.namespaces).map(|n| format!("b{n}")).chain([FAN.to_owned()]);
        stream::iter(names)
            .for_each_concurrent(WRITERS, async |name| {
                let api: Api<Namespace> = Api::all(client.clone());
                create(&api, json!({ "metadata": { "name": name } })).await;
            })
            .await;
        let field = Self { cluster, client, size, seen: Arc::default(), turn: AtomicU64::new(0) };
        let own = (0..size.namespaces * size.per_namespace).map(|n| field.place(n));
        stream::iter(own)
            .for_each_concurrent(WRITERS, async |place| {
                field.create_secret(&place, BLOB).await;
                field.create_consumer(&place, &place.name).await;
            })
            .await;
        field.create_secret(&Place { namespace: FAN.into(), name: "shared".into() }, 0).await;
        stream::iter(0..size.fanout)
            .for_each_concurrent(WRITERS, async |n| {
                let place = Place { namespace: FAN.into(), name: format!("fan-{n}") };
                field.create_consumer(&place, "shared").await;
            })
            .await;
        println!(
            "{} Deployments with a pod each, {} Secrets of {BLOB} bytes, made in {:.0} s",
            size.deployments(),
            size.secrets(),
            began.elapsed().as_secs_f64()
        );
        field.watch().await;
        field
    }

    /// The n-th Deployment with a Secret of its own, spread over the namespaces.
    pub fn place(&self, n: usize) -> Place {
        let n = n % (self.size.namespaces * self.size.per_namespace);
        let spread = n % self.size.namespaces;
        Place { namespace: format!("b{spread}"), name: format!("app-{}", n / self.size.namespaces) }
    }

    async fn create_secret(&self, place: &Place, blob: usize) {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &place.namespace);
        let data = json!({ "password": "v0", "blob": "x".repeat(blob) });
        create(&api, json!({ "metadata": { "name": place.name }, "stringData": data })).await;
    }

    /// A Deployment with what a controller manager and a kubelet would have made of it.
    async fn create_consumer(&self, place: &Place, secret: &str) {
        let labels = json!({ "app": place.name });
        let container = container(secret);
        let template = json!({ "metadata": { "labels": labels }, "spec": { "containers": [container] } });
        let spec = json!({ "replicas": 1, "selector": { "matchLabels": labels }, "template": template });
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &place.namespace);
        let made = create(&deployments, json!({ "metadata": { "name": place.name }, "spec": spec })).await;
        let owner = owned_by("Deployment", &made.metadata);
        let metadata =
            json!({ "name": format!("{}-5d4f", place.name), "labels": labels, "ownerReferences": [owner] });
        let sets: Api<ReplicaSet> = Api::namespaced(self.client.clone(), &place.namespace);
        let set = create(&sets, json!({ "metadata": metadata, "spec": spec })).await;
        let owner = owned_by("ReplicaSet", &set.metadata);
        let metadata = json!({ "labels": labels, "ownerReferences": [owner] });
        let spec = json!({ "nodeName": "n1", "containers": [container] });
        self.run_pod(place, json!({ "metadata": metadata, "spec": spec })).await;
        self.observe(place, 1).await;
    }

    /// Replaces its pod by one of today, as a rollout does.
    pub async fn finish(&self, place: &Place) {
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &place.namespace);
        let of = ListParams::default().labels(&format!("app={}", place.name));
        let old = pods.list(&of).await.expect("a list of pods").items;
        for pod in old {
            let name = pod.metadata.name.as_deref().expect("a pod has a name");
            pods.delete(name, &DeleteParams::default().grace_period(0)).await.expect("a pod can be deleted");
            let metadata =
                json!({ "labels": pod.metadata.labels, "ownerReferences": pod.metadata.owner_references });
            let spec = json!({ "nodeName": "n1", "containers": [container(&place.name)] });
            self.run_pod(place, json!({ "metadata": metadata, "spec": spec })).await;
        }
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &place.namespace);
        let generation = deployments.get(&place.name).await.expect("it is there").metadata.generation;
        self.observe(place, generation.unwrap_or_default()).await;
    }

    /// A pod that runs from now on.
    async fn run_pod(&self, place: &Place, mut pod: Value) {
        let name = format!("{}-5d4f-{}", place.name, self.turn.fetch_add(1, Ordering::Relaxed));
        pod["metadata"]["name"] = name.clone().into();
        let pods: Api<Pod> = Api::namespaced(self.client.clone(), &place.namespace);
        create(&pods, pod).await;
        let now = jiff::Timestamp::now().to_string();
        let running = json!({ "running": { "startedAt": now } });
        let status = json!({ "status": {
            "phase": "Running",
            "conditions": [{ "type": "Ready", "status": "True", "lastTransitionTime": now }],
            "containerStatuses": [{
                "name": "app", "image": "registry.local/app:1", "imageID": "", "restartCount": 0,
                "ready": true, "started": true, "state": running,
            }],
        }});
        pods.patch_status(&name, &PatchParams::default(), &Patch::Merge(status))
            .await
            .expect("a pod's status");
    }

    /// A Deployment's status says that all of it is of that generation.
    async fn observe(&self, place: &Place, generation: i64) {
        let status = json!({ "status": {
            "observedGeneration": generation,
            "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1,
            "conditions": [{ "type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable" }],
        }});
        let patch = Patch::Merge(status);
        let deployments: Api<Deployment> = Api::namespaced(self.client.clone(), &place.namespace);
        deployments.patch_status(&place.name, &PatchParams::default(), &patch).await.expect("a status");
    }

    /// Follows every template from now on.
    async fn watch(&self) {
        let api: Api<Deployment> = Api::all(self.client.clone());
        let list = api.list(&ListParams::default()).await.expect("a list");
        for deployment in &list.items {
            self.seen.take(deployment, None);
        }
        let mut version = list.metadata.resource_version.expect("a list has a version");
        let seen = Arc::clone(&self.seen);
        self.cluster.background().spawn(async move {
            loop {
                let Ok(events) = api.watch(&WatchParams::default(), &version).await else { continue };
                let mut events = events.boxed();
                while let Ok(Some(event)) = events.try_next().await {
                    if let WatchEvent::Added(object) | WatchEvent::Modified(object) = event {
                        seen.take(&object, Some(Instant::now()));
                        version = object.metadata.resource_version.unwrap_or(version);
                    }
                }
            }
        });
    }

    /// Changes a Secret's value.
    pub async fn change(&self, place: &Place) {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let api: Api<Secret> = Api::namespaced(self.client.clone(), &place.namespace);
        let patch = Patch::Merge(json!({ "stringData": { "password": format!("v{turn}") } }));
        api.patch(&place.name, &PatchParams::default(), &patch).await.expect("a Secret can be changed");
    }

    /// Changes many, with as many requests in flight as the bench has.
    pub async fn change_all(&self, places: Vec<Place>) {
        stream::iter(places).for_each_concurrent(WRITERS, async |place| self.change(&place).await).await;
    }

    /// Changes a Secret's label and nothing else.
    pub async fn relabel(&self, places: Vec<Place>) {
        stream::iter(places)
            .for_each_concurrent(WRITERS, async |place| {
                let turn = self.turn.fetch_add(1, Ordering::Relaxed);
                let api: Api<Secret> = Api::namespaced(self.client.clone(), &place.namespace);
                let patch =
                    Patch::Merge(json!({ "metadata": { "labels": { "touched": format!("t{turn}") } } }));
                api.patch(&place.name, &PatchParams::default(), &patch).await.expect("a label");
            })
            .await;
    }

    /// Changes of templates seen since the start.
    pub fn rollouts(&self) -> u64 {
        self.seen.rollouts.load(Ordering::SeqCst)
    }

    /// Waits until so many rollouts were seen in all.
    pub async fn wait_rollouts(&self, deadline: Duration, count: u64) {
        eventually(deadline, || async {
            let seen = self.rollouts();
            (seen >= count).then_some(()).ok_or_else(|| format!("{seen} rollouts of {count}"))
        })
        .await;
    }

    /// When a template was seen changed after that moment, polled as finely as it is measured.
    pub async fn changed_after(&self, place: &Place, after: Instant, deadline: Duration) -> Option<Instant> {
        let mut tick = tokio::time::interval(Duration::from_micros(200));
        while after.elapsed() < deadline {
            let changed =
                self.seen.templates.lock().unwrap().get(place).and_then(|template| template.changed);
            if changed.is_some_and(|changed| changed > after) {
                return changed;
            }
            tick.tick().await;
        }
        None
    }

    /// When the last template was seen changed.
    pub fn last_change(&self) -> Option<Instant> {
        self.seen.templates.lock().unwrap().values().filter_map(|template| template.changed).max()
    }
}

impl Seen {
    fn take(&self, deployment: &Deployment, at: Option<Instant>) {
        let place = Place {
            namespace: deployment.metadata.namespace.clone().unwrap_or_default(),
            name: deployment.metadata.name.clone().unwrap_or_default(),
        };
        let template = deployment.spec.as_ref().map(|spec| &spec.template);
        let text = serde_json::to_string(&template).expect("a template is JSON");
        let mut templates = self.templates.lock().unwrap();
        let known = templates.entry(place).or_insert_with(|| Template { text: text.clone(), changed: None });
        if known.text != text {
            *known = Template { text, changed: at };
            self.rollouts.fetch_add(1, Ordering::SeqCst);
        }
    }
}

/// What consumes a Secret.
fn container(secret: &str) -> Value {
    json!({
        "name": "app", "image": "registry.local/app:1",
        "envFrom": [{ "secretRef": { "name": secret } }],
    })
}

fn owned_by(kind: &str, owner: &k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta) -> Value {
    json!({ "apiVersion": "apps/v1", "kind": kind, "name": owner.name, "uid": owner.uid, "controller": true })
}

async fn create<K>(api: &Api<K>, manifest: Value) -> K
where
    K: Clone + std::fmt::Debug + serde::Serialize + serde::de::DeserializeOwned,
{
    let object = serde_json::from_value(manifest).expect("a manifest");
    api.create(&PostParams::default(), &object).await.expect("it can be made")
}
