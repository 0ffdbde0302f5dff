//! A small controller of Rollouts: it makes pods of the template, all at once, and ends old ones when those are ready.

use crate::support::cluster::{Cluster, client};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::{Api, Client, Error, ResourceExt};
use serde_json::{Value, json};
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::time::Duration;
use tokio::task::AbortHandle;

/// Between two looks at everything: it is a level-based controller without a watch.
const TURN: Duration = Duration::from_millis(100);

/// Its pods' own label: of which template they are.
const REVISION: &str = "revision";

pub fn resource() -> ApiResource {
    ApiResource {
        group: "argoproj.io".into(),
        version: "v1alpha1".into(),
        api_version: "argoproj.io/v1alpha1".into(),
        kind: "Rollout".into(),
        plural: "rollouts".into(),
    }
}

/// Runs until it is dropped, beside the test.
pub struct Controller(AbortHandle);

impl Controller {
    pub fn start(cluster: &Cluster, namespace: &str) -> Self {
        let (kubeconfig, namespace) = (cluster.kubeconfig(&cluster.admin()), namespace.to_owned());
        let task = cluster.background().spawn(async move {
            let client = client(&kubeconfig).await.expect("the kubeconfig is our own");
            loop {
                // Whatever failed is done in the next turn; the kind may not even be there.
                let _ = turn(&client, &namespace).await;
                tokio::time::sleep(TURN).await;
            }
        });
        Self(task.abort_handle())
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn turn(client: &Client, namespace: &str) -> Result<(), Error> {
    let rollouts: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource());
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    for rollout in rollouts.list(&ListParams::default()).await? {
        let template = &rollout.data["spec"]["template"];
        if template["spec"]["containers"].is_array() {
            let status = bring_about(&rollout, template, &pods).await?;
            let patch = Patch::Merge(json!({ "status": status }));
            rollouts.patch_status(&rollout.name_any(), &PatchParams::default(), &patch).await?;
        }
    }
    Ok(())
}

/// Makes the pods that are missing, ends those that are too many, and says how it stands.
async fn bring_about(rollout: &DynamicObject, template: &Value, pods: &Api<Pod>) -> Result<Value, Error> {
    let name = rollout.name_any();
    let wanted = usize::try_from(rollout.data["spec"]["replicas"].as_u64().unwrap_or(1)).unwrap_or(1);
    let revision = revision(template);
    let selected = ListParams::default().labels(&format!("app={name}"));
    let mut all = pods.list(&selected).await?.items;
    all.retain(|pod| pod.metadata.deletion_timestamp.is_none());
    let (new, old): (Vec<&Pod>, Vec<&Pod>) =
        all.iter().partition(|pod| pod.labels().get(REVISION) == Some(&revision));
    let ready = |pods: &[&Pod]| pods.iter().filter(|pod| is_ready(pod)).count();
    let paused = rollout.data["spec"]["paused"] == true;
    if !paused {
        for number in new.len()..wanted {
            let pod = pod(rollout, template, &revision, &format!("{name}-{revision}-{number}"));
            match pods.create(&PostParams::default(), &pod).await {
                Err(Error::Api(answer)) if answer.is_already_exists() => {}
                made => drop(made?),
            }
        }
        if ready(&new) >= wanted {
            for pod in &old {
                pods.delete(&pod.name_any(), &DeleteParams::default()).await?;
            }
        }
    }
    let ready = ready(&new) + ready(&old);
    Ok(json!({
        // As Argo writes it.
        "observedGeneration": rollout.metadata.generation.unwrap_or_default().to_string(),
        "replicas": all.len(), "updatedReplicas": new.len(), "readyReplicas": ready, "availableReplicas": ready,
    }))
}

fn revision(template: &Value) -> String {
    let mut hasher = DefaultHasher::new();
    template.to_string().hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.into_iter().flatten().any(|condition| condition.type_ == "Ready" && condition.status == "True")
}

fn pod(rollout: &DynamicObject, template: &Value, revision: &str, name: &str) -> Pod {
    let mut pod = template.clone();
    pod["metadata"]["name"] = json!(name);
    pod["metadata"]["labels"][REVISION] = json!(revision);
    pod["metadata"]["ownerReferences"] = json!([{
        "apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "controller": true,
        "name": rollout.name_any(), "uid": rollout.uid().unwrap_or_default(),
    }]);
    serde_json::from_value(pod).expect("a pod's template")
}
