//! `status`: who consumes what, which pods hold an old value.

use std::time::Duration;

use serde_json::{Value, json};

use super::{Person, looking_but_at, settings};
use crate::stage::{ROLLED, Stage, create, reader};
use crate::support::cluster::Cluster;
use crate::support::objects::Namespace;
use crate::support::operator::Operator;
use crate::support::proxy::{Fault, Proxy, list_of};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};

fn pod_spec() -> Value {
    let from = json!({ "secretKeyRef": { "name": "db", "key": "password" } });
    json!({
        "terminationGracePeriodSeconds": 0,
        "restartPolicy": "Never",
        "containers": [{ "name": "app", "image": "app:1", "env": [{ "name": "PASSWORD", "valueFrom": from }] }],
    })
}

fn object(api_version: &str, kind: &str, name: &str, spec: &Value) -> Value {
    json!({ "apiVersion": api_version, "kind": kind, "metadata": { "name": name }, "spec": spec })
}

/// Everybody who can consume a Secret, rolled or not.
async fn populate(ns: &Namespace<'_>) -> Vec<Workload> {
    ns.set_secret("db", &[("password", "one"), ("user", "shop")]).await;
    ns.set_secret("registry", &[("token", "t")]).await;
    let workloads = vec![
        reader("web").replicas(2),
        Workload::deployment("files").consumes(Via::volume("db")).consumes(Via::env("db", "user")),
        Workload::deployment("pulls")
            .set("/spec/template/spec/imagePullSecrets", json!([{ "name": "registry" }]))
            .replicas(0),
        reader("by-hand")
            .annotation("uptake.dev/rollout", "off")
            .annotation("uptake.dev/reason", "owned by the DBAs")
            .replicas(0),
        Workload::stateful_set("database").consumes(Via::sub_path("db", "password")).replicas(0),
    ];
    for workload in &workloads {
        ns.create_workload(workload).await;
    }
    create(ns, &object("v1", "Pod", "alone", &pod_spec())).await;
    let template = json!({ "spec": pod_spec() });
    let job = json!({ "template": template });
    let cron = json!({ "schedule": "0 0 1 1 *", "suspend": true, "jobTemplate": { "spec": job } });
    create(ns, &object("batch/v1", "CronJob", "nightly", &cron)).await;
    for workload in &workloads {
        ns.wait_rolled_out_within(ROLLED, workload).await;
    }
    workloads
}

#[tokio::test]
async fn everybody_is_listed_and_those_first_that_need_attention() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "status").await;
    let workloads = populate(ns).await;
    let person = Person::admin(cluster, ns);
    eventually(ROLLED, || async {
        let report = person.runs(&["status", "-o", "json"]).await.ended(0).json();
        let summary = &report["summary"];
        (summary["fresh"] == 4).then_some(()).ok_or_else(|| summary.to_string())
    })
    .await;
    let said = person.runs(&["status", "--exit-code"]).await.ended(0);
    settings(ns).bind(|| insta::assert_snapshot!("status", said.out));

    // Without the operator's ledger, whoever is older than the Secret's last writing is probably stale.
    let stage = Aged(ns);
    stage.wait(&workloads[0]).await;
    stage.wait(&workloads[1]).await;
    ns.set_secret("db", &[("password", "two")]).await;
    let said = person.runs(&["status", "secret/db", "--exit-code"]).await.ended(3);
    settings(ns).bind(|| insta::assert_snapshot!("status_stale", said.out));
    let report = person.runs(&["status", "deployment/web", "-o", "json"]).await.ended(0).json();
    settings(ns).bind(|| insta::assert_json_snapshot!("status_json", report));
    let yaml = person.runs(&["status", "deploy/web", "-o", "yaml"]).await.ended(0);
    assert!(yaml.out.contains("\nconsumers:\n"), "{}", yaml.out);
    let all = person.types(&["status", "-A", "-o", "wide"]).await.ended(0);
    assert!(all.out.starts_with("NAMESPACE") && all.out.contains(&ns.name), "{}", all.out);
}

/// Waits until pods are so old that no clock makes their births doubtful.
struct Aged<'a>(&'a Namespace<'a>);

impl Aged<'_> {
    async fn wait(&self, workload: &Workload) {
        eventually(ROLLED, || async {
            let pods = self.0.pods(workload).await;
            let births = pods.into_iter().filter_map(|pod| pod.metadata.creation_timestamp);
            let young = births
                .map(|birth| birth.0 + Duration::from_secs(4))
                .any(|aged| aged > jiff::Timestamp::now());
            (!young).then_some(()).ok_or("pods are too young")
        })
        .await;
    }
}

#[tokio::test]
async fn it_agrees_with_the_operator() {
    let stage = Stage::set("agrees").await;
    let report = |name: &str| reader(name).annotation("uptake.dev/rollout", "report");
    let (two, one) = (&report("two").replicas(2), &report("one"));
    let other = &Workload::deployment("other").consumes(Via::optional_env("db", "else"));
    stage.run(&[two, one, other]).await;
    let operator = stage.operator().await;
    let person = Person::admin(stage.cluster, &stage.ns);
    let status = || async {
        let arguments =
            ["status", "secret/db", "-o", "json", "--operator-namespace", &stage.install.own_namespace];
        person.runs(&arguments).await.ended(0).json()
    };
    // What the ledger knows of the beginning.
    eventually(ROLLED, || async {
        let report = status().await;
        let fresh = report["ledger"] == true && report["summary"]["fresh"] == 4;
        fresh.then_some(()).ok_or_else(|| report["summary"].to_string())
    })
    .await;
    stage.rotate("two").await;
    crate::stage::wait_metric(&operator, "uptake_stale_pods", &[("name", "two")], 2.0).await;
    crate::stage::wait_metric(&operator, "uptake_stale_pods", &[("name", "one")], 1.0).await;
    agree(&operator, &stage, &status().await).await;
    // And back: whoever was born under the first value is fresh again.
    stage.rotate("one").await;
    crate::stage::wait_metric(&operator, "uptake_stale_pods", &[("namespace", &stage.ns.name)], 0.0).await;
    agree(&operator, &stage, &status().await).await;
    drop(operator);
    // What changed while the operator is down is seen all the same: the digests differ.
    stage.rotate("three").await;
    let report = status().await;
    assert_eq!(report["summary"]["stale"], 3, "{report:#}");
    let operator = stage.operator().await;
    crate::stage::wait_metric(&operator, "uptake_stale_pods", &[("name", "two")], 2.0).await;
    agree(&operator, &stage, &report).await;
}

async fn agree(operator: &Operator, stage: &Stage, report: &Value) {
    for consumer in report["consumers"].as_array().unwrap() {
        let name = consumer["name"].as_str().unwrap();
        let labels = [("namespace", stage.ns.name.as_str()), ("name", name)];
        let old = consumer["pods"]["stale"].as_array().unwrap();
        assert!(old.iter().all(|pod| pod["state"] == "stale"), "{consumer:#}");
        let metric = operator.metric("uptake_stale_pods", &labels).await;
        assert!((metric - f64::from(u32::try_from(old.len()).unwrap())).abs() < 0.5, "{metric} {consumer:#}");
    }
}

/// Where the ledger can be read it says what the operator was told; else its defaults are taken for granted, and that is said.
#[tokio::test]
async fn the_operators_own_settings_are_taken_from_its_ledger() {
    let mut stage = Stage::set("settings").await;
    let web = &reader("web");
    let files = &Workload::deployment("files").consumes(Via::volume("db"));
    stage.run(&[web, files]).await;
    stage.install = stage.install.clone().arg("--default-rollout=report").arg("--roll-volumes=false");
    let own = stage.install.own_namespace.clone();
    let status = |ns: String| {
        let (person, own) = (Person::new(stage.cluster.kubeconfig(&stage.cluster.admin()), &ns), own.clone());
        async move {
            let arguments = ["status", "-o", "json", "--operator-namespace", &own];
            person.runs(&arguments).await.ended(0).json()
        }
    };
    let said = |report: &Value, name: &str| {
        let all = report["consumers"].as_array().unwrap();
        let consumer = all.iter().find(|consumer| consumer["name"] == name).unwrap();
        let policy = [&consumer["policy"]["mode"], &consumer["policy"]["from"]];
        (policy.map(|word| word.as_str().unwrap().to_owned()), consumer["references"][0]["rolls"].clone())
    };
    let policy = |mode: &str, from: &str| [mode.to_owned(), from.to_owned()];
    let assumed = status(stage.ns.name.clone()).await;
    assert_eq!(
        assumed["operator"],
        json!({ "from": "defaults", "namespace": own, "defaultRollout": "auto", "rollVolumes": true })
    );
    assert_eq!(said(&assumed, "files"), (policy("auto", "default"), json!("yes")));

    let _operator = stage.operator().await;
    let told = eventually(ROLLED, || async {
        let report = status(stage.ns.name.clone()).await;
        (report["operator"]["from"] == "ledger").then_some(report).ok_or("the ledger says nothing of it")
    })
    .await;
    assert_eq!(
        told["operator"],
        json!({ "from": "ledger", "namespace": own, "defaultRollout": "report", "rollVolumes": false })
    );
    assert_eq!(said(&told, "files"), (policy("report", "default"), json!("reloads")));
    assert_eq!(said(&told, "web"), (policy("report", "default"), json!("yes")));

    let elsewhere = Namespace::create(stage.cluster, "elsewhere").await;
    elsewhere.set_secret("db", &[("password", "one")]).await;
    elsewhere.create_workload(web).await;
    let report = status(elsewhere.name.clone()).await;
    assert_eq!(said(&report, "web").0, policy("off", "not watched"));
}

#[tokio::test]
async fn what_cannot_be_listed_is_unknown_and_stops_nothing_else() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "unknown").await;
    ns.set_secret("db", &[("password", "one")]).await;
    ns.run(&reader("web")).await;
    ns.run(&Workload::stateful_set("database").consumes(Via::env("db", "password"))).await;
    let user = cluster.user();
    cluster.grant_in(&ns.name, &user, looking_but_at("statefulsets")).await;
    let person = Person::user(cluster, ns, &user);
    let report = person.runs(&["status", "-o", "json"]).await.ended(0).json();
    // Its pods tell of it; what would be done with it, they don't.
    let database = &report["consumers"][0];
    assert_eq!((&database["name"], &database["policy"]["mode"]), (&json!("database"), &json!("unknown")));
    assert_eq!(report["consumers"][1]["name"], "web");
    assert_eq!(
        (&report["unknown"][0]["kind"], &report["unknown"][0]["reason"]),
        (&json!("StatefulSet"), &json!("forbidden"))
    );
    person.runs(&["status", "--exit-code"]).await.ended(6);

    let proxy = Proxy::start(cluster).await;
    let slow = Person::behind(&proxy, cluster, ns, &cluster.admin());
    let rule = proxy.on(list_of("pods"), Fault::Stall);
    let report = slow.runs(&["status", "-o", "json", "--request-timeout", "500ms"]).await.ended(0).json();
    assert_eq!(
        (&report["unknown"][0]["kind"], &report["unknown"][0]["reason"]),
        (&json!("Pod"), &json!("timeout"))
    );
    assert_eq!(report["consumers"][0]["pods"]["fresh"], Value::Null);
    rule.remove();
}

#[tokio::test]
async fn each_way_not_to_know_has_its_exit_code() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "codes").await;
    ns.set_secret("lonely", &[("a", "b")]).await;
    let person = Person::admin(cluster, ns);
    person.runs(&["status", "secret/lonely"]).await.ended(0);
    let absent = person.runs(&["status", "secret/absent"]).await.ended(5);
    assert!(absent.err.contains("neither exists"), "{}", absent.err);
    person.runs(&["status", "deployment/absent"]).await.ended(5);
    person.runs(&["status", "gadget/absent"]).await.ended(6);
    let nowhere = Person::new(cluster.kubeconfig(&cluster.admin()), "no-such-namespace");
    let said = nowhere.runs(&["status", "--exit-code"]).await.ended(5);
    assert!(said.err.contains("there is no namespace no-such-namespace"), "{}", said.err);
    person.runs(&["status", "nonsense"]).await.ended(2);
    person.runs(&["status", "--nonsense"]).await.ended(2);
    let nobody = Person::user(cluster, ns, &cluster.user());
    let said = nobody.runs(&["status"]).await.ended(6);
    assert!(said.err.contains("nothing can be listed") && said.err.contains("cannot list"), "{}", said.err);
    let [port] = crate::support::cluster::free_ports().unwrap();
    let nowhere = cluster.kubeconfig_at(&cluster.admin(), &format!("https://127.0.0.1:{port}"));
    let said = Person::new(nowhere, &ns.name).runs(&["status"]).await.ended(6);
    assert!(said.err.contains(&format!("https://127.0.0.1:{port}")), "{}", said.err);
    Person::new("/nonexistent".into(), &ns.name)
        .runs(&["status", "--kubeconfig", "/nonexistent"])
        .await
        .ended(6);
}
