//! Others who put a template back as they wrote it.

use super::{create_by, note, stamp, wait_stale};
use crate::stage::{ROLLED, Stage, VALUE, reader};
use crate::support::cluster::Cluster;
use crate::support::workload::Workload;
use kube::api::{DynamicObject, PostParams};
use kube::{Api, Client};
use std::time::Duration;
use tokio::task::AbortHandle;

/// The stamp is put back twice, after 5 s and after 30 s; then it is given up.
const GIVEN_UP: Duration = Duration::from_secs(180);

/// How often a stamp is written in such a fight at most.
const STAMPS: usize = 3;

/// Somebody who replaces a Deployment by its manifest, whole, so long after each change of its template. Ends with this.
struct Owner(AbortHandle);

impl Owner {
    async fn start(stage: &Stage, manager: &'static str, workload: &Workload, after: Duration) -> Self {
        create_by(stage, manager, workload).await;
        let (kubeconfig, namespace) =
            (stage.cluster.kubeconfig(&stage.cluster.admin()), stage.ns.name.clone());
        let workload = workload.clone();
        let cluster: &Cluster = stage.cluster;
        let task = cluster.background().spawn(async move {
            let client =
                crate::support::cluster::client(&kubeconfig).await.expect("the kubeconfig is our own");
            put_back(client, &namespace, manager, &workload, after).await;
        });
        Self(task.abort_handle())
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn put_back(client: Client, namespace: &str, manager: &str, workload: &Workload, after: Duration) {
    let resource = kube::api::ApiResource {
        group: "apps".into(),
        version: "v1".into(),
        api_version: "apps/v1".into(),
        kind: workload.kind.name().into(),
        plural: workload.kind.plural().into(),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
    let written: DynamicObject = serde_json::from_value(workload.manifest().clone()).unwrap();
    let by = PostParams { field_manager: Some(manager.into()), ..PostParams::default() };
    loop {
        let current = api.get(&workload.name).await;
        let stamped = current.is_ok_and(|object| {
            object.data.pointer("/spec/template/metadata/annotations/uptake.dev~1secret-version").is_some()
        });
        if stamped {
            tokio::time::sleep(after).await;
            // A conflict with the Deployment's own controller: the next turn does it.
            let _ = api.replace(&workload.name, &by, &written).await;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn is_given_up(stage: &Stage, workload: &Workload, writer: &str) {
    let failed = stage.ns.wait_event(GIVEN_UP, "RolloutFailed", &workload.name).await;
    let words = note(&failed);
    assert!(words.contains("reverted") && words.contains(writer) && words.contains("still stale"), "{words}");
    assert_eq!(stage.outcomes("RolloutCompleted", workload).await, 0);
    assert_eq!(stage.ns.values_in_pods(workload, VALUE).await, ["one"]);
}

/// Cases 3 and 4.
#[tokio::test]
async fn who_takes_the_stamp_away_wins_in_the_end_and_is_named() {
    let stage = Stage::set("fights").await;
    let slow =
        |name: &str| reader(name).template_annotation("test.uptake.dev/ready-if", &format!("{VALUE}=one"));
    let (quick, from_git, owned) = (reader("quick"), slow("from-git"), slow("owned"));
    let three = Duration::from_secs(3);
    let _owners = [
        Owner::start(&stage, "git-sync", &quick, three).await,
        Owner::start(&stage, "git-sync", &from_git, three).await,
        Owner::start(&stage, "db-operator", &owned, Duration::ZERO).await,
    ];
    for workload in [&quick, &from_git, &owned] {
        stage.ns.wait_rolled_out_within(ROLLED, workload).await;
    }
    let operator = stage.operator().await;
    let mut audit = stage.cluster.audit_from_now();
    stage.rotate("two").await;

    // Its pods were replaced before the template was, or by that: both are good.
    stage.wait_values(&quick, VALUE, "two").await;
    stage.wait_outcomes("RolloutCompleted", &quick, 1).await;
    is_given_up(&stage, &from_git, "git-sync").await;
    is_given_up(&stage, &owned, "db-operator").await;
    stage.witness().await;
    for workload in [&quick, &from_git, &owned] {
        stage.wait_outcomes("RolloutStarted", workload, 1).await;
    }
    let patched = audit.read_of(&stage.install.user);
    for workload in [&from_git, &owned] {
        let stamps =
            patched.iter().filter(|entry| entry.changed("deployments") && entry.name == workload.name);
        assert_eq!(stamps.count(), STAMPS, "{}", workload.name);
        assert!(stamp(&stage, workload).await.is_null());
        wait_stale(&operator, &stage, workload, 1.0).await;
    }
}
