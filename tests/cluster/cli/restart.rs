//! `restart`: rolls the consumers of a Secret now.

use serde_json::{Value, json};

use super::{Person, looking_but_at, rights, settings};
use crate::stage::{ROLLED, Stage, reader};
use crate::support::cluster::Cluster;
use crate::support::objects::Namespace;
use crate::support::proxy::{Fault, Proxy, list_of, write_of};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};

const STAMP: &str = "uptake.dev/secret-version";

fn pulling(name: &str) -> Workload {
    Workload::deployment(name).set("/spec/template/spec/imagePullSecrets", json!([{ "name": "db" }]))
}

fn stamp(object: &Value) -> String {
    object["spec"]["template"]["metadata"]["annotations"][STAMP].as_str().unwrap_or_default().to_owned()
}

/// What nobody waited for takes its controller a moment.
async fn wait_revisions(ns: &Namespace<'_>, workload: &Workload, revisions: usize) {
    eventually(ROLLED, || async {
        let is = ns.revisions(workload).await;
        (is == revisions).then_some(()).ok_or_else(|| format!("{} has {is} revisions", workload.name))
    })
    .await;
}

#[tokio::test]
async fn every_consumer_is_rolled_to_the_end_and_nobody_else() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "restart").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let (web, pulls) = (&reader("web"), &pulling("pulls"));
    let database = &Workload::stateful_set("database").consumes(Via::volume("db"));
    let off = &reader("off").annotation("uptake.dev/rollout", "off");
    let other = &Workload::deployment("other").consumes(Via::optional_env("else", "key"));
    let all = [web, pulls, database, off, other];
    for workload in all {
        ns.create_workload(workload).await;
    }
    for workload in all {
        ns.wait_rolled_out_within(ROLLED, workload).await;
    }
    let person = Person::admin(cluster, ns);
    let dry = person.runs(&["restart", "secret/db", "--dry-run"]).await.ended(0);
    settings(ns).bind(|| insta::assert_snapshot!("restart_dry_run", dry.out));
    for workload in all {
        assert_eq!(ns.revisions(workload).await, 1, "{}", workload.name);
    }

    let said = person.runs(&["restart", "secret/db", "--wait", "--timeout", "100s"]).await.ended(0);
    settings(ns).bind(|| insta::assert_snapshot!("restart_waited", said.out));
    let rolled = [(web, 2), (pulls, 2), (database, 2), (off, 1), (other, 1)];
    for (workload, revisions) in rolled {
        assert_eq!(ns.revisions(workload).await, revisions, "{}", workload.name);
    }
    let object = ns.get(web).await;
    assert!(stamp(&object).starts_with("db@") && stamp(&object).contains(" +20"), "{}", stamp(&object));
    let managers = object["metadata"]["managedFields"].as_array().unwrap();
    assert!(managers.iter().any(|entry| entry["manager"] == "uptake"), "{managers:?}");

    // A misspelt name isn't good news, nor is one of somebody who has nothing to do with it.
    for nobody in ["deploy/absent", "deploy/other"] {
        let said =
            person.runs(&["restart", "secret/db", "--only", nobody, "-o", "json"]).await.ended(5).json();
        assert_eq!((&said["status"], &said["failures"][0]["reason"]), (&json!("failed"), &json!("gone")));
    }
    let only =
        person.runs(&["restart", "secret/db", "--only", "deploy/off", "-o", "json"]).await.ended(0).json();
    assert_eq!((&only["status"], &only["requested"][0]["name"]), (&json!("requested"), &json!("off")));
    settings(ns).bind(
        || insta::assert_json_snapshot!("restart_json", only, { ".requested[].generation" => "GENERATION" }),
    );
    wait_revisions(ns, off, 2).await;
}

#[tokio::test]
async fn the_operator_does_not_roll_again() {
    let mut stage = Stage::set("once").await;
    let web = &reader("web");
    stage.run(&[web]).await;
    // Long enough for a person to come first.
    stage.install = stage.install.clone().arg("--settle-max=60s");
    stage.install.settle = std::time::Duration::from_secs(5);
    let operator = stage.operator().await;
    stage.wait_aged(web).await;
    stage.rotate("two").await;
    let person = Person::admin(stage.cluster, &stage.ns);
    person.runs(&["restart", "secret/db", "--wait", "--only", "deployment/web"]).await.ended(0);
    stage.wait_values(web, crate::stage::VALUE, "two").await;
    stage.ns.wait_event(ROLLED, "NothingToDo", "db").await;
    // A restart without any change concerns it even less.
    person.runs(&["restart", "secret/db", "--wait", "--only", "deployment/web"]).await.ended(0);
    stage.witness().await;
    assert_eq!(stage.ns.revisions(web).await, 3);
    assert_eq!(stage.outcomes("RolloutStarted", web).await, 0);
    drop(operator);
    // Nor does one that starts later.
    let operator = stage.operator().await;
    stage.witness().await;
    assert_eq!(stage.ns.revisions(web).await, 3);
    drop(operator);
}

#[tokio::test]
async fn a_kind_that_may_not_be_listed_stops_no_other() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "partial").await;
    ns.set_secret("db", &[("password", "one")]).await;
    ns.run(&reader("web")).await;
    let user = cluster.user();
    let mut rules = looking_but_at("statefulsets");
    rules.as_array_mut().unwrap().push(rights(&["deployments"], &["patch"]));
    cluster.grant_in(&ns.name, &user, rules).await;
    let said = Person::user(cluster, ns, &user).runs(&["restart", "secret/db", "-o", "json"]).await.ended(4);
    let report = said.json();
    assert_eq!(report["status"], "partial");
    assert_eq!(report["requested"][0]["name"], "web");
    let failure = &report["discoveryFailures"][0];
    assert_eq!((&failure["kind"], &failure["reason"]), (&json!("StatefulSet"), &json!("forbidden")));

    // Who may look and not touch is told so of each.
    let user = cluster.user();
    cluster.grant_in(&ns.name, &user, looking_but_at("nothing")).await;
    let report =
        Person::user(cluster, ns, &user).runs(&["restart", "secret/db", "-o", "json"]).await.ended(5).json();
    assert_eq!(
        (&report["status"], &report["failures"][0]["reason"]),
        (&json!("failed"), &json!("forbidden"))
    );
    // Who may nothing learns nothing.
    let nobody = Person::user(cluster, ns, &cluster.user());
    let report = nobody.runs(&["restart", "secret/db", "-o", "json"]).await.ended(6).json();
    assert_eq!((&report["status"], &report["requested"]), (&json!("failed"), &json!([])));
}

#[tokio::test]
async fn each_failure_is_called_by_its_name() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "failures").await;
    ns.set_secret("db", &[("password", "one")]).await;
    ns.set_secret("lonely", &[("a", "b")]).await;
    let web = &reader("web");
    ns.run(web).await;
    let proxy = Proxy::start(cluster).await;
    let person = Person::behind(&proxy, cluster, ns, &cluster.admin());
    let restart = || async { person.runs(&["restart", "secret/db", "-o", "json"]).await };

    let rule = proxy.on(write_of("deployments"), Fault::Answer { status: 409, retry_after: None });
    let report = restart().await.ended(5).json();
    assert_eq!(report["failures"][0]["reason"], "conflict");
    assert_eq!(rule.hits(), 5, "it is read and tried again, and not for ever");
    rule.remove();

    // Somebody else's write in between costs a second look, and nothing else.
    let rule = proxy.on(write_of("deployments"), Fault::Answer { status: 409, retry_after: None }).times(1);
    assert_eq!(restart().await.ended(0).json()["requested"][0]["name"], "web");
    assert_eq!(rule.hits(), 1);
    wait_revisions(ns, web, 2).await;

    // An answer that is lost on its way is found out, and the patch isn't sent twice.
    let rule = proxy.on(write_of("deployments"), Fault::LoseAnswer).times(1);
    assert_eq!(restart().await.ended(0).json()["requested"][0]["name"], "web");
    wait_revisions(ns, web, 3).await;
    assert_eq!(rule.hits(), 1);

    let rule = proxy.on(write_of("deployments"), Fault::Refuse);
    assert_eq!(restart().await.ended(5).json()["failures"][0]["reason"], "unavailable");
    rule.remove();
    let rule = proxy.on(write_of("deployments"), Fault::Delay(super::PATIENCE));
    let late = person.runs(&["restart", "secret/db", "-o", "json", "--request-timeout", "1s"]).await.ended(5);
    assert_eq!(late.json()["failures"][0]["reason"], "timeout");
    rule.remove();

    // Not to know of any is no reason to say that there are none.
    let busy = || Fault::Answer { status: 503, retry_after: None };
    let rules = ["deployments", "statefulsets", "daemonsets"].map(|kind| proxy.on(list_of(kind), busy()));
    let report = restart().await.ended(5).json();
    assert_eq!((&report["status"], &report["matched"]), (&json!("failed"), &json!(0)));
    assert_eq!(report["discoveryFailures"].as_array().unwrap().len(), 3);
    rules.iter().for_each(crate::support::proxy::Rule::remove);

    assert_eq!(ns.revisions(web).await, 3, "nothing of this rolled anything");
    let report = person.runs(&["restart", "secret/lonely", "-o", "json"]).await.ended(0).json();
    assert_eq!(report["status"], "no_targets");
    let report = person.runs(&["restart", "secret/absent", "-o", "json"]).await.ended(5).json();
    assert_eq!(report["status"], "failed");
    person.runs(&["restart", "deployment/web"]).await.ended(2);
    let [port] = crate::support::cluster::free_ports().unwrap();
    let nowhere = cluster.kubeconfig_at(&cluster.admin(), &format!("https://127.0.0.1:{port}"));
    Person::new(nowhere, &ns.name).runs(&["restart", "secret/db"]).await.ended(6);
}

#[tokio::test]
async fn waiting_ends_by_the_outcomes() {
    let cluster = Cluster::shared().await;
    let ns = &Namespace::create(cluster, "waits").await;
    ns.set_secret("db", &[("password", "one")]).await;
    let ready_if = "test.uptake.dev/ready-if";
    let slow = &reader("slow").template_annotation(ready_if, "db/password=one");
    let hasty = &reader("hasty")
        .template_annotation(ready_if, "db/password=one")
        .set("/spec/progressDeadlineSeconds", json!(1));
    ns.run(slow).await;
    ns.run(hasty).await;
    ns.set_secret("db", &[("password", "two")]).await;
    let person = Person::admin(cluster, ns);
    let wait = |only: &'static str, timeout: &'static str| {
        let person = &person;
        async move {
            let arguments =
                ["restart", "secret/db", "-o", "json", "--wait", "--only", only, "--timeout", timeout];
            person.runs(&arguments).await
        }
    };
    let report = wait("deployment/hasty", "100s").await.ended(5).json();
    assert_eq!(report["outcomes"][0]["outcome"], "failed", "{report:#}");
    let report = wait("deployment/slow", "1s").await.ended(6).json();
    assert_eq!(report["outcomes"][0]["outcome"], "unfinished", "{report:#}");
}
