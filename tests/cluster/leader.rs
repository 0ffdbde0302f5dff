//! Several replicas, one leader: who acts, and what happens when that one goes.

use crate::stage::{DEFAULT_SETTLE, ROLLED, Stage, reader};
use crate::support::cluster::audit::{Audit, Entry};
use crate::support::operator::{Install, Operator};
use crate::support::rules;
use crate::support::wait::eventually;
use crate::support::workload::Workload;
use jiff::Timestamp;
use kube::Api;
use kube::api::DynamicObject;
use serde_json::json;
use std::time::{Duration, Instant};

/// A foreign claim is respected for 16 s; then comes a look, and a busy machine.
const TAKEN_OVER: Duration = Duration::from_secs(25);

/// A Lease that was given back is seen at the next look, a second later at most.
const HANDED_OVER: Duration = Duration::from_secs(4);

const SECONDS: Duration = Duration::from_secs(10);

/// A leader and a standby, both ready, and a Deployment that nobody has rolled.
struct Two {
    stage: Stage,
    leader: Operator,
    standby: Operator,
    /// Of each.
    installs: [Install; 2],
    audit: Audit,
    web: Workload,
}

impl Two {
    async fn start(prefix: &str) -> Self {
        let mut stage = Stage::set(prefix).await;
        stage.install = stage.install.arg("--leader-elect").settle(DEFAULT_SETTLE);
        let installs = [stage.install.clone(), stage.install.replica(stage.cluster).await];
        let web = reader("web");
        stage.run(&[&web]).await;
        let leader = Operator::start(stage.cluster, &installs[0]);
        wait_leads(&leader, TAKEN_OVER).await;
        leader.wait_ready(ROLLED).await;
        let audit = stage.cluster.audit_from_now();
        let standby = Operator::start(stage.cluster, &installs[1]);
        standby.wait_ready(ROLLED).await;
        let two = Self { stage, leader, standby, installs, audit, web };
        two.stage.witness().await;
        assert!(!leads(&two.standby).await);
        two
    }

    async fn holder(&self) -> String {
        let lease = self.lease().await;
        lease.data["spec"]["holderIdentity"].as_str().unwrap_or_default().to_owned()
    }

    async fn lease(&self) -> DynamicObject {
        let resource = kube::api::ApiResource {
            group: "coordination.k8s.io".into(),
            version: "v1".into(),
            api_version: "coordination.k8s.io/v1".into(),
            kind: "Lease".into(),
            plural: "leases".into(),
        };
        let client = self.stage.cluster.admin_client().await;
        let api: Api<DynamicObject> =
            Api::namespaced_with(client, &self.stage.install.own_namespace, &resource);
        api.get("uptake").await.expect("there is a Lease")
    }
}

async fn leads(operator: &Operator) -> bool {
    operator.metric("uptake_leader", &[]).await > 0.5
}

async fn wait_leads(operator: &Operator, deadline: Duration) {
    eventually(deadline, || async {
        match operator.metrics().await {
            Ok(samples) if samples.iter().any(|s| s.name == "uptake_leader" && s.value > 0.5) => Ok(()),
            Ok(_) => Err(format!("it doesn't lead: {}", operator.log())),
            Err(error) => Err(format!("no metrics ({error}): {}", operator.log())),
        }
    })
    .await;
}

#[tokio::test]
async fn of_two_replicas_one_acts() {
    let mut two = Two::start("one-leader").await;
    let before = two.stage.trace(&two.web).await;
    two.stage.rotate("two").await;
    two.stage.wait_rolled_once(&two.web, &before, "two").await;
    two.stage.witness().await;
    let entries = two.audit.read();
    let [leader, standby] = &two.installs;
    let written = entries.iter().filter(|entry| entry.is_by(&standby.user) && entry.is_write());
    let written: Vec<_> = written.map(|entry| (&entry.verb, &entry.resource, &entry.name)).collect();
    assert!(written.is_empty(), "the standby wrote {written:?}");
    assert!(entries.iter().any(|entry| entry.is_by(&leader.user) && entry.changed("deployments")));
    assert!(leads(&two.leader).await && !leads(&two.standby).await);
}

#[tokio::test]
async fn a_change_after_the_leaders_death_is_rolled_once_by_the_next() {
    let two = Two::start("dead-leader").await;
    let before = two.stage.trace(&two.web).await;
    two.leader.kill9();
    two.stage.rotate("two").await;
    wait_leads(&two.standby, TAKEN_OVER).await;
    two.stage.wait_rolled_once(&two.web, &before, "two").await;
    two.stage.wait_outcomes("RolloutCompleted", &two.web, 1).await;
    two.stage.witness().await;
    assert_eq!(two.stage.ns.revisions(&two.web).await, before.revisions + 1);
}

#[tokio::test]
async fn a_leader_that_is_asked_to_end_hands_over_at_once() {
    let two = Two::start("asked-leader").await;
    let before = two.stage.trace(&two.web).await;
    let holder = two.holder().await;
    // It has settled neither before the end nor before the hand-over.
    two.stage.rotate("two").await;
    let asked = Instant::now();
    two.leader.sigterm();
    let status = two.leader.wait_exit(SECONDS).await;
    assert_eq!(status.code(), Some(0), "{}", two.leader.log());
    wait_leads(&two.standby, HANDED_OVER.saturating_sub(asked.elapsed())).await;
    assert_ne!(two.holder().await, holder);
    two.stage.wait_rolled_once(&two.web, &before, "two").await;
    two.stage.wait_outcomes("RolloutCompleted", &two.web, 1).await;
    // And back again.
    let next = Operator::start(two.stage.cluster, &two.installs[0]);
    next.wait_ready(ROLLED).await;
    two.standby.sigterm();
    assert_eq!(two.standby.wait_exit(SECONDS).await.code(), Some(0));
    wait_leads(&next, HANDED_OVER).await;
    two.stage.witness().await;
    assert_eq!(two.stage.ns.revisions(&two.web).await, before.revisions + 1);
}

/// Three verbs on Leases in its own namespace: these are enough, and whoever can't even begin says so and ends.
#[tokio::test]
async fn a_candidate_needs_three_rights_in_its_own_namespace() {
    let mut stage = Stage::set("lease-rights").await;
    stage.install = stage.install.arg("--leader-elect");
    let own = stage.install.own_namespace.clone();
    let rights = |verbs: &[&str]| {
        json!([
            { "apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "update", "delete"] },
            { "apiGroups": [""], "resources": ["namespaces"], "resourceNames": [own], "verbs": ["get"] },
            { "apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": verbs },
        ])
    };
    let verbs = ["get", "create", "update"];
    // Without `update` it would lead as long as the claim is good that it created.
    for missing in ["get", "create"] {
        let user = stage.cluster.user();
        let few: Vec<&str> = verbs.into_iter().filter(|verb| *verb != missing).collect();
        stage.cluster.grant(&user, rules::cluster_wide()).await;
        stage.cluster.grant_in(&own, &user, rights(&few)).await;
        let mut install = stage.install.clone();
        install.user = user;
        let operator = Operator::start(stage.cluster, &install);
        assert_eq!(operator.wait_exit(ROLLED).await.code(), Some(1), "without {missing}: {}", operator.log());
        assert!(operator.log().contains("leases"), "without {missing}: {}", operator.log());
    }

    let user = stage.cluster.user();
    stage.cluster.grant(&user, rules::cluster_wide()).await;
    stage.cluster.grant_in(&own, &user, rights(&verbs)).await;
    stage.install.user = user.clone();
    let mut audit = stage.cluster.audit_from_now();
    let operator = Operator::start(stage.cluster, &stage.install);
    wait_leads(&operator, TAKEN_OVER).await;
    operator.wait_ready(ROLLED).await;
    let renewed = |entry: &Entry| entry.is_by(&user) && entry.resource == "leases" && entry.verb == "update";
    let mut asked = Vec::new();
    for _ in 0..2 {
        asked.push(audit.wait(TAKEN_OVER, renewed).await);
    }
    asked.extend(audit.read_of(&user));
    let of_leases = asked.iter().filter(|entry| entry.resource == "leases");
    for entry in of_leases {
        assert!(verbs.contains(&&*entry.verb) && entry.namespace == own && entry.code != 403, "{entry:?}");
    }
}

/// Case 27.
async fn a_leader_that_stood_still(prefix: &str, changed_before: bool) {
    let mut two = Two::start(prefix).await;
    let before = two.stage.trace(&two.web).await;
    if changed_before {
        // It is about to roll: in two seconds.
        two.stage.rotate("two").await;
        tokio::time::sleep(DEFAULT_SETTLE / 2).await;
    }
    two.leader.sigstop();
    if !changed_before {
        two.stage.rotate("two").await;
    }
    wait_leads(&two.standby, TAKEN_OVER).await;
    two.stage.wait_rolled_once(&two.web, &before, "two").await;
    two.stage.wait_outcomes("RolloutCompleted", &two.web, 1).await;
    let went_on = Timestamp::now();
    two.leader.sigcont();
    let status = two.leader.wait_exit(SECONDS).await;
    assert_eq!(status.code(), Some(1), "{}", two.leader.log());
    let log = two.leader.log();
    let errors: Vec<_> = log.lines().filter(|line| line.starts_with("error: ")).collect();
    assert_eq!(errors.len(), 1, "{log}");
    assert!(errors[0].contains("the leadership is lost"), "{log}");
    two.stage.witness().await;
    assert_eq!(two.stage.ns.revisions(&two.web).await, before.revisions + 1);
    let entries = two.audit.read();
    let late = entries
        .iter()
        .filter(|entry| entry.is_by(&two.installs[0].user) && entry.is_write() && entry.received >= went_on);
    let late: Vec<_> = late.map(|entry| (&entry.verb, &entry.resource, &entry.name)).collect();
    assert!(late.is_empty(), "it came back and wrote {late:?}");
}

#[tokio::test]
async fn a_leader_that_stood_still_comes_back_as_nobody() {
    a_leader_that_stood_still("still-leader", false).await;
}

#[tokio::test]
async fn a_leader_that_stood_still_before_its_stamp_does_not_write_it() {
    a_leader_that_stood_still("still-settling", true).await;
}
