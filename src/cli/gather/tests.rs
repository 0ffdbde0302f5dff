//! Many pods.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

use super::*;
use crate::{
    cli::status::report,
    cluster::fake::{Fake, Reply, page},
    watch::secret::read as read_secret,
};

const PODS: usize = 10_000;
const DEPLOYMENTS: usize = 500;
/// What the issue allows the whole of it, of which this is the part that isn't the API server's.
const LIMIT: Duration = Duration::from_secs(5);

/// What this thread has worked so far: others may keep the machine busy.
fn worked() -> Duration {
    let worked = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(worked.tv_sec.try_into().unwrap(), worked.tv_nsec.try_into().unwrap())
}

fn uid(what: &str, number: usize) -> String {
    let group = if what == "pod" { 1 } else { 2 };
    format!("00000000-0000-0000-000{group}-{number:012}")
}

/// As large as a small real one.
fn pod(number: usize) -> Value {
    let from = json!({"secretKeyRef": {"name": "db", "key": "password"}});
    let owner = number % DEPLOYMENTS;
    let condition =
        |kind: &str| json!({"type": kind, "status": "True", "lastTransitionTime": "2026-01-01T00:00:01Z"});
    json!({
        "metadata": {
            "name": format!("web-{owner}-{number}"), "namespace": "a", "uid": uid("pod", number),
            "resourceVersion": "5", "creationTimestamp": if number.is_multiple_of(2) { "2026-01-01T00:00:00Z" } else { "2026-01-03T00:00:00Z" },
            "labels": {"app": format!("web-{owner}"), "pod-template-hash": "d494d548d"},
            "ownerReferences": [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": format!("web-{owner}"), "uid": uid("owner", owner), "controller": true}],
            "managedFields": [{"manager": "kube-controller-manager", "operation": "Update", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:app": {}}}, "f:spec": {"f:containers": {"k:{\"name\":\"app\"}": {".": {}, "f:env": {}, "f:image": {}}}}}}],
        },
        "spec": {
            "containers": [{"name": "app", "image": "app:1", "env": [{"name": "PASSWORD", "valueFrom": from}],
                "volumeMounts": [{"name": "token", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}]}],
            "volumes": [{"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}, {"configMap": {"name": "ca"}}]}}],
            "tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}],
            "nodeName": "node-1", "serviceAccountName": "default", "schedulerName": "default-scheduler",
        },
        "status": {
            "phase": "Running", "podIP": "10.0.0.1", "conditions": [condition("Ready"), condition("PodScheduled"), condition("Initialized")],
            "containerStatuses": [{"name": "app", "ready": true, "started": true, "restartCount": 0, "image": "app:1",
                "state": {"running": {"startedAt": "2026-01-01T00:00:01Z"}}}],
        },
    })
}

fn workload(number: usize) -> Value {
    let from = json!({"secretKeyRef": {"name": "db", "key": "password"}});
    let env = json!([{"name": "PASSWORD", "valueFrom": from}]);
    json!({
        "metadata": {"name": format!("web-{number}"), "namespace": "a", "uid": uid("owner", number), "resourceVersion": "4", "generation": 1},
        "spec": {"template": {"spec": {"containers": [{"name": "app", "env": env}]}}},
        "status": {"observedGeneration": 1, "desiredNumberScheduled": 20, "currentNumberScheduled": 20,
            "updatedNumberScheduled": 20, "numberReady": 20, "numberAvailable": 20},
    })
}

fn secret() -> SecretFacts {
    let fields = json!({"f:data": {"f:password": {}}});
    let object = json!({
        "metadata": {
            "name": "db", "namespace": "a", "uid": "s", "resourceVersion": "7", "creationTimestamp": "2025-12-01T00:00:00Z",
            "managedFields": [{"manager": "m", "time": "2026-01-02T00:00:00Z", "fieldsV1": fields}],
        },
        "data": {"password": "YQ=="},
    });
    read_secret(object.to_string().as_bytes(), &nobodys_key()).unwrap()
}

#[tokio::test]
async fn ten_thousand_pods_are_read_page_by_page_and_judged_in_time() {
    let pods: Vec<Value> = (0..PODS).map(pod).collect();
    let size = usize::from(PAGE);
    let last = PODS / size - 1;
    let pages: Vec<Reply> = pods
        .chunks(size)
        .enumerate()
        .map(|(number, pods)| page(pods, 9, if number == last { "" } else { "more" }))
        .collect();
    drop(pods);
    let (fake, client) = Fake::client(pages);
    let session = Session::over(client, "a");
    let began = worked();
    let (pods, bare, version) = super::pods(&session, &READ).await.unwrap();
    assert_eq!((pods.len(), bare.len(), version, fake.count()), (PODS, 0, Version(9), PODS / size));
    let consumers = (0..DEPLOYMENTS)
        .map(|number| Consumer::workload(&Kind::DaemonSet, &workload(number), &READ).unwrap());
    let at = Point { version: Version(9), time: crate::facts::Time::parse("2026-01-04T00:00:00Z").unwrap() };
    let gathered = Gathered {
        at,
        consumers: consumers.collect(),
        pods,
        secrets: Some(vec![secret()]),
        ..Gathered::default()
    };
    let report = report::report(&Scene::assemble(gathered), None);
    let took = worked().saturating_sub(began);
    let summary = report.summary;
    assert_eq!((summary.consumers, summary.pods), (DEPLOYMENTS, PODS));
    assert_eq!((summary.probably_stale, summary.fresh), (PODS / 2, PODS / 2));
    assert!(took < LIMIT, "{took:?}");
    eprintln!("{PODS} pods in {took:?}");
}
