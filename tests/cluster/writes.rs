//! What the operator writes, by the API server's own account.

use crate::stage::{ROLLED, Stage, VALUE, reader};
use crate::support::cluster::audit::Entry;
use crate::support::objects::Namespace;
use crate::support::operator::{Install, Operator};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use serde_json::json;
use std::collections::BTreeMap;

fn writes(entries: Vec<Entry>) -> Vec<Entry> {
    entries.into_iter().filter(Entry::is_write).collect()
}

/// Ten of several kinds, each with a Secret of its own or a shared one.
async fn populate(ns: &Namespace<'_>) -> Vec<Workload> {
    let workload = |number: usize| {
        let name = format!("app-{number}");
        let workload = match number % 3 {
            0 => Workload::deployment(&name),
            1 => Workload::stateful_set(&name),
            _ => Workload::daemon_set(&name),
        };
        workload.consumes(Via::env(&format!("secret-{}", number % 7), "password"))
    };
    for number in 0..10 {
        ns.set_secret(&format!("secret-{number}"), &[("password", "one")]).await;
    }
    let workloads: Vec<_> = (0..10).map(workload).collect();
    for workload in &workloads {
        ns.create_workload(workload).await;
    }
    workloads
}

#[tokio::test]
async fn installing_writes_to_nothing_but_its_own_namespace() {
    let stage = Stage::set("install-a").await;
    let others = [
        Namespace::create(stage.cluster, "install-b").await,
        Namespace::create(stage.cluster, "install-c").await,
    ];
    let mut workloads = Vec::new();
    for ns in [&stage.ns, &others[0], &others[1]] {
        workloads.push((ns, populate(ns).await));
    }
    for (ns, workloads) in &workloads {
        for workload in workloads {
            ns.wait_rolled_out_within(ROLLED, workload).await;
        }
    }
    let names = [&*stage.ns.name, &*others[0].name, &*others[1].name];
    let install = Install::for_namespaces(stage.cluster, &names).await;
    let mut audit = stage.cluster.audit_from_now();
    let operator = Operator::start(stage.cluster, &install);
    operator.wait_ready(ROLLED).await;
    // Every workload has been looked at when nothing waits for a look any more.
    eventually(ROLLED, || async {
        let pending = operator.metric("uptake_pending_workloads", &[]).await;
        (pending == 0.0).then_some(()).ok_or(format!("{pending} are pending"))
    })
    .await;
    operator.sigterm();
    operator.wait_exit(ROLLED).await;
    let writes = writes(audit.read_of(&install.user));
    assert!(!writes.is_empty(), "not even its ledger");
    for write in writes {
        assert_eq!((&*write.namespace, &*write.resource), (&*install.own_namespace, "secrets"), "{write:?}");
    }
}

#[tokio::test]
async fn a_rotation_writes_ledger_stamps_and_events_and_nothing_else() {
    let stage = Stage::set("rotation").await;
    let consumers = [
        reader("web"),
        Workload::stateful_set("state").consumes(Via::env_from("db")),
        Workload::daemon_set("agent").consumes(Via::volume("db")),
    ];
    let idle = Workload::deployment("idle");
    let refs: Vec<_> = consumers.iter().chain([&idle]).collect();
    stage.run(&refs).await;
    let _operator = stage.operator().await;
    let mut before = BTreeMap::new();
    for consumer in &consumers {
        before.insert(consumer.name.clone(), stage.ns.get(consumer).await);
    }
    let mut audit = stage.cluster.audit_from_now();
    stage.rotate("two").await;
    for consumer in &consumers {
        stage.wait_values(consumer, VALUE, "two").await;
        stage.wait_outcomes("RolloutCompleted", consumer, 1).await;
    }
    let writes = writes(audit.read_of(&stage.install.user));
    assert!(writes.iter().all(|write| write.code < 300), "{writes:?}");
    let of = |resource: &str| writes.iter().filter(|write| write.resource == resource).collect::<Vec<_>>();
    let (ledger, events) = (of("secrets"), of("events"));
    assert!(
        ledger.iter().all(|write| write.namespace == stage.install.own_namespace && write.verb != "patch")
    );
    // The change, the intents, the outcomes, and what was told: each grouped.
    assert!(ledger.len() <= 4 * (1 + consumers.len()), "{} ledger writes", ledger.len());
    assert!(events.iter().all(|write| write.namespace == stage.ns.name && write.verb == "create"));
    assert_eq!(events.len(), 2 * consumers.len(), "{events:?}");
    for consumer in &consumers {
        let stamps = of(consumer.kind.plural());
        let [stamp] = *stamps else { panic!("{stamps:?}") };
        let metadata = &before[&consumer.name]["metadata"];
        let request = stamp.request.as_ref().unwrap();
        let version =
            request["spec"]["template"]["metadata"]["annotations"]["uptake.dev/secret-version"].clone();
        assert!(version.as_str().is_some_and(|version| version.starts_with("db@")), "{request}");
        let annotations = json!({ "uptake.dev/secret-version": version });
        let wanted = json!({
            "metadata": { "uid": metadata["uid"], "resourceVersion": metadata["resourceVersion"] },
            "spec": { "template": { "metadata": { "annotations": annotations } } },
        });
        assert_eq!(*request, wanted);
        assert_eq!((&*stamp.verb, &*stamp.name, &*stamp.subresource), ("patch", &*consumer.name, ""));
        assert!(stamp.uri.contains("fieldManager=uptake"), "{}", stamp.uri);
    }
    assert_eq!(writes.len(), ledger.len() + events.len() + consumers.len(), "{writes:?}");
}
