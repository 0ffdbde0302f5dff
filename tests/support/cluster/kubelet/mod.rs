//! The part of a kubelet that matters here: a pod starts when, and only when, its Secrets are there.
//!
//! One task watches pods and the names of changed Secrets, and each pod has a task of its own that brings it to
//! its end state. Secrets are read at the moment a container starts, as a kubelet reads them. kwok does the rest:
//! nodes, leases, deletion.

pub mod behaviour;
mod needs;
mod status;

use behaviour::Behaviour;
use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, Secret};
use kube::api::{Patch, PatchParams};
use kube::core::PartialObjectMeta;
use kube::{Api, Client, ResourceExt};
use kube_runtime::watcher;
use kube_runtime::watcher::Event;
use needs::{Secrets, Values};
use serde_json::Value;
use status::{Progress, Reached};
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::runtime::Handle;
use tokio::sync::broadcast::{self, error::RecvError};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

/// Between tries while the API server is away.
const RETRY: Duration = Duration::from_millis(100);

/// A held pod looks again by itself after this, as a kubelet does, should a watch have missed something.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// Changes of Secrets that a waiting pod's task may lag behind; more, and it looks without knowing what changed.
const CHANGES: usize = 1024;

/// Ends with its owner.
pub struct Kubelet {
    task: AbortHandle,
    started: Arc<Mutex<HashMap<String, Values>>>,
}

impl Kubelet {
    pub fn start(runtime: &Handle, kubeconfig: PathBuf, ready_after: Duration) -> Self {
        let started = Arc::default();
        let node = (Arc::clone(&started), ready_after);
        let task = runtime.spawn(async move {
            // The client belongs to this runtime: a test's own ends before the cluster does.
            let client = super::client(&kubeconfig).await.expect("the kubeconfig is our own");
            let (started, ready_after) = node;
            let changes = broadcast::channel(CHANGES).0;
            run(Arc::new(Node { client, started, ready_after, changes })).await;
        });
        Self { task: task.abort_handle(), started }
    }

    pub fn values_at_start(&self, pod_uid: &str) -> Option<Values> {
        self.started.lock().ok()?.get(pod_uid).cloned()
    }
}

impl Drop for Kubelet {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// What all pods' tasks share.
struct Node {
    client: Client,
    /// What each pod started with, by uid: for tests to compare.
    started: Arc<Mutex<HashMap<String, Values>>>,
    ready_after: Duration,
    /// Namespace and name of each Secret that changed.
    changes: broadcast::Sender<(String, String)>,
}

async fn run(node: Arc<Node>) {
    let assigned = watcher::Config::default().fields("spec.nodeName!=");
    let mut pods = watcher(Api::<Pod>::all(node.client.clone()), assigned).boxed();
    let secrets = Api::<PartialObjectMeta<Secret>>::all(node.client.clone());
    let mut secrets = watcher(secrets, watcher::Config::default()).boxed();
    let mut work =
        Work { node: Arc::clone(&node), pods: HashMap::new(), listed: HashSet::new(), tasks: JoinSet::new() };
    loop {
        tokio::select! {
            Some(event) = pods.next() => match event {
                Ok(event) => work.take(event),
                Err(_) => sleep(RETRY).await,
            },
            Some(event) = secrets.next() => match event {
                Ok(Event::Apply(secret) | Event::InitApply(secret)) => {
                    // An error means that no pod is waiting.
                    let _ = node.changes.send((secret.namespace().unwrap_or_default(), secret.name_any()));
                }
                Ok(_) => {}
                Err(_) => sleep(RETRY).await,
            },
            Some(_) = work.tasks.join_next() => {}
        }
    }
}

/// The pods that are being brought to life, and those that were.
struct Work {
    node: Arc<Node>,
    /// By uid, until the pod is gone.
    pods: HashMap<String, AbortHandle>,
    /// Uids of the list that is being received.
    listed: HashSet<String>,
    /// Aborted with this struct.
    tasks: JoinSet<()>,
}

impl Work {
    fn take(&mut self, event: Event<Pod>) {
        match event {
            Event::Init => self.listed.clear(),
            Event::InitApply(pod) => {
                self.listed.extend(pod.uid());
                self.update(pod);
            }
            Event::InitDone => {
                let gone: Vec<_> =
                    self.pods.keys().filter(|uid| !self.listed.contains(*uid)).cloned().collect();
                for uid in gone {
                    self.forget(&uid);
                }
            }
            Event::Apply(pod) => self.update(pod),
            Event::Delete(pod) => self.forget(&pod.uid().unwrap_or_default()),
        }
    }

    fn update(&mut self, pod: Pod) {
        let uid = pod.uid().unwrap_or_default();
        if pod.metadata.deletion_timestamp.is_some() {
            self.forget(&uid);
        } else if !self.pods.contains_key(&uid) && !is_settled(&pod) {
            let task = self.tasks.spawn(bring_up(Arc::clone(&self.node), pod));
            self.pods.insert(uid, task);
        }
    }

    fn forget(&mut self, uid: &str) {
        if let Some(task) = self.pods.remove(uid) {
            task.abort();
        }
    }
}

/// A pod that needs nothing more: ready before this agent started, or at its end.
fn is_settled(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return false };
    matches!(status.phase.as_deref(), Some("Succeeded" | "Failed"))
        || status
            .conditions
            .iter()
            .flatten()
            .any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

/// From "assigned to a node" to the end of what the pod can become; its task is aborted when the pod goes.
async fn bring_up(node: Arc<Node>, pod: Pod) {
    let Some(spec) = &pod.spec else { return };
    let namespace = pod.namespace().unwrap_or_default();
    let needs = needs::of_pod(spec);
    let names = needs::names(&needs);
    let asked = Behaviour::of(&pod, node.ready_after);
    let mut progress = Progress::default();
    loop {
        // Before the look, so that no change falls between the two.
        let mut changes = node.changes.subscribe();
        let secrets = node.read(&namespace, names.iter().copied()).await;
        let status = progress.advance(&pod, &asked, &secrets, Timestamp::now());
        node.remember(&pod, &progress.values);
        if !node.write(&pod, &status).await {
            return;
        }
        if progress.reached != Reached::Held {
            break;
        }
        let change = async {
            loop {
                match changes.recv().await {
                    Ok((at, name)) if at == namespace && names.contains(&*name) => break,
                    Err(RecvError::Lagged(_) | RecvError::Closed) => break,
                    Ok(_) => {}
                }
            }
        };
        // Looking again without a change is harmless.
        let _ = timeout(LOOK_AGAIN, change).await;
    }
    let Ok(asked_for) = &asked else { return };
    let fails = asked_for.ready_if.as_ref().is_some_and(|condition| !condition.holds(&progress.values));
    if progress.reached == Reached::Running && !asked_for.never_ready && !fails {
        sleep(asked_for.ready_after).await;
        progress.ready = true;
        let status = progress.advance(&pod, &asked, &Secrets::new(), Timestamp::now());
        node.write(&pod, &status).await;
    }
}

impl Node {
    /// The Secrets of these names that exist now.
    async fn read(&self, namespace: &str, names: impl Iterator<Item = &str>) -> Secrets {
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let mut secrets = Secrets::new();
        for name in names {
            loop {
                match api.get_opt(name).await {
                    Ok(found) => {
                        secrets.extend(found.map(|secret| (name.to_owned(), secret)));
                        break;
                    }
                    Err(_) => sleep(RETRY).await,
                }
            }
        }
        secrets
    }

    /// Until it is written; false if the pod is no longer the same.
    async fn write(&self, pod: &Pod, status: &Value) -> bool {
        let api: Api<Pod> = Api::namespaced(self.client.clone(), &pod.namespace().unwrap_or_default());
        let parameters = PatchParams { field_manager: Some("kubelet".into()), ..PatchParams::default() };
        loop {
            match api.patch_status(&pod.name_any(), &parameters, &Patch::Strategic(status)).await {
                Ok(_) => return true,
                Err(kube::Error::Api(answer)) if answer.code < 429 => {
                    if !answer.is_not_found() && !answer.is_conflict() {
                        eprintln!("kubelet: a pod's status was refused: {}", answer.message);
                    }
                    return false;
                }
                Err(_) => sleep(RETRY).await,
            }
        }
    }

    fn remember(&self, pod: &Pod, values: &Values) {
        if let (Some(uid), Ok(mut started)) = (pod.uid(), self.started.lock()) {
            started.insert(uid, values.clone());
        }
    }
}
