//! Somebody who watches Deployments and counts rollouts by what their own controller says, not by what Uptake does.

use crate::support::cluster::Cluster;
use futures::StreamExt;
use k8s_openapi::api::apps::v1::Deployment;
use kube::{Api, ResourceExt};
use kube_runtime::watcher::{self, Event, watcher};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

/// What was seen so far.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    /// Each Deployment's stamps, in the order in which they came.
    pub stamps: BTreeMap<(String, String), Vec<String>>,
    /// The Deployments whose stamped template isn't rolled out.
    unfinished: BTreeSet<(String, String)>,
    /// As many as were unfinished at one time.
    pub most_unfinished: usize,
    /// Those that were stamped anew before they were done.
    pub overlapped: BTreeSet<(String, String)>,
    /// Those that were stamped, in the order in which their first stamp came.
    pub order: Vec<(String, String)>,
}

impl Seen {
    fn take(&mut self, deployment: &Deployment) {
        let id = (deployment.namespace().unwrap_or_default(), deployment.name_any());
        let Some(stamp) = stamp(deployment) else { return };
        let stamps = self.stamps.entry(id.clone()).or_default();
        if stamps.is_empty() {
            self.order.push(id.clone());
        }
        if stamps.last() != Some(&stamp) {
            stamps.push(stamp);
            if self.unfinished.contains(&id) {
                self.overlapped.insert(id.clone());
            }
        }
        if is_done(deployment) {
            self.unfinished.remove(&id);
        } else {
            self.unfinished.insert(id);
        }
        self.most_unfinished = self.most_unfinished.max(self.unfinished.len());
    }

    /// How many Deployments were stamped and are done.
    pub fn done(&self) -> usize {
        self.stamps.len() - self.unfinished.len()
    }
}

fn stamp(deployment: &Deployment) -> Option<String> {
    let template = deployment.spec.as_ref()?.template.metadata.as_ref()?;
    template.annotations.as_ref()?.get("uptake.dev/secret-version").cloned()
}

fn is_done(deployment: &Deployment) -> bool {
    let Some((spec, status)) = deployment.spec.as_ref().zip(deployment.status.as_ref()) else { return false };
    let wanted = spec.replicas.unwrap_or(1);
    let counts = [status.updated_replicas, status.replicas, status.available_replicas];
    status.observed_generation >= deployment.metadata.generation
        && counts.iter().all(|count| count.unwrap_or_default() == wanted)
}

/// Watches until it is dropped, beside the test.
pub struct Onlooker {
    seen: Arc<Mutex<Seen>>,
    task: AbortHandle,
}

impl Onlooker {
    /// Watches the whole cluster or one namespace; sees all that happens after this.
    pub async fn start(cluster: &Cluster, namespace: Option<&str>) -> Self {
        let kubeconfig = cluster.kubeconfig(&cluster.admin());
        let namespace = namespace.map(ToOwned::to_owned);
        let seen = Arc::<Mutex<Seen>>::default();
        let (ready, begun) = oneshot::channel();
        let task = cluster.background().spawn(watch(kubeconfig, namespace, Arc::clone(&seen), ready));
        begun.await.expect("the Deployments can be listed");
        Self { seen, task: task.abort_handle() }
    }

    pub fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }
}

impl Drop for Onlooker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn watch(
    kubeconfig: PathBuf,
    namespace: Option<String>,
    seen: Arc<Mutex<Seen>>,
    ready: oneshot::Sender<()>,
) {
    let client = crate::support::cluster::client(&kubeconfig).await.expect("the kubeconfig is our own");
    let api: Api<Deployment> = match namespace {
        Some(namespace) => Api::namespaced(client, &namespace),
        None => Api::all(client),
    };
    let mut events = watcher(api, watcher::Config::default()).boxed();
    let mut ready = Some(ready);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(deployment) | Event::InitApply(deployment)) => {
                seen.lock().unwrap().take(&deployment);
            }
            Ok(Event::InitDone) => {
                if let Some(ready) = ready.take() {
                    let _ = ready.send(());
                }
            }
            // A busy API server: the watcher goes on by itself.
            Ok(Event::Init | Event::Delete(_)) | Err(_) => {}
        }
    }
}
