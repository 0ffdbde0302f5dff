//! Killed again and again in the middle of a large rotation.

use super::{STUCK, note};
use crate::stage::{Stage, reader};
use crate::support::cluster::audit::{Audit, Entry};
use crate::support::operator::Operator;
use crate::support::proxy::{Fault, Proxy, Rule, event_of, write_of};
use crate::support::wait::eventually;
use crate::support::workload::{Via, Workload};
use futures::{StreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::events::v1::Event;
use std::collections::BTreeMap;
use std::time::Duration;

/// Secrets that change in one moment. Of more than 20 consumers of one, only a summary would be told.
const SECRETS: usize = 3;
const CONSUMERS_EACH: usize = 20;
const CONSUMERS: usize = SECRETS * CONSUMERS_EACH;

/// How often it is killed at each moment.
const KILLS: usize = 5;

/// Few enough that no life of the operator gets far: the rotation must outlast all of its deaths.
const LIMIT: &str = "--max-concurrent-rollouts=3";

/// How the API server counts a request whose client is gone.
const TIMED_OUT: u16 = 504;

const ALL: Duration = Duration::from_secs(400);

/// Where in a rollout it is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Moment {
    /// The intent is in the ledger, the stamp isn't on the workload.
    BeforeStamp,
    /// The stamp is on the workload, and the rollout has no end yet.
    AfterStamp,
    /// The outcome is in the ledger, and nobody was told.
    BeforeEvent,
}

impl Moment {
    const ALL: [Self; 3] = [Self::BeforeStamp, Self::AfterStamp, Self::BeforeEvent];

    /// Stops whatever would lead on from here.
    fn stop(self, proxy: &Proxy) -> Rule {
        match self {
            Self::BeforeStamp => proxy.on(write_of("deployments"), Fault::Hold),
            Self::AfterStamp => proxy.on(write_of("deployments"), Fault::Stall),
            Self::BeforeEvent => proxy.on(event_of("RolloutCompleted"), Fault::Hold),
        }
    }

    /// What the API server did in a life that ended so.
    fn check(self, life: &[Entry]) {
        let stamped = names(life, |entry| entry.changed("deployments"));
        let completed = names(life, |entry| is_event(entry, "RolloutCompleted"));
        match self {
            Self::BeforeStamp => {
                assert!(life.iter().any(|entry| entry.changed("secrets")), "no intent was written");
                assert_eq!(stamped, [""; 0], "{self:?}");
            }
            Self::AfterStamp => {
                let unfinished = stamped.iter().filter(|name| !completed.contains(name)).count();
                assert!(unfinished > 0, "{self:?}: {stamped:?} were stamped, {completed:?} were done");
            }
            Self::BeforeEvent => assert_eq!(completed, [""; 0], "{self:?}"),
        }
    }
}

/// An accepted Event with that reason.
fn is_event(entry: &Entry, reason: &str) -> bool {
    asks_for_event(entry, reason) && entry.code < 300
}

fn asks_for_event(entry: &Entry, reason: &str) -> bool {
    entry.verb == "create" && entry.resource == "events" && reason_of(entry) == reason
}

fn reason_of(entry: &Entry) -> &str {
    let reason = entry.request.as_ref().and_then(|event| event["reason"].as_str());
    reason.unwrap_or_default()
}

/// The workloads that such requests are about.
fn names(entries: &[Entry], is_meant: impl Fn(&Entry) -> bool) -> Vec<String> {
    let about = |entry: &Entry| {
        match &*entry.resource {
            "events" => entry.request.as_ref().and_then(|event| event["regarding"]["name"].as_str()),
            _ => Some(&*entry.name),
        }
        .map(ToOwned::to_owned)
    };
    entries.iter().filter(|entry| is_meant(entry)).filter_map(about).collect()
}

/// The workloads of which Events with that reason are there, one by one. The request of a process that was killed meanwhile
/// counts as timed out though the Event was made: the next one finds it.
fn told(entries: &[Entry], reason: &str) -> Vec<String> {
    const EXISTS: u16 = 409;
    let is_there =
        |entry: &&Entry| asks_for_event(entry, reason) && (entry.code < 300 || entry.code == EXISTS);
    let of_it = entries.iter().filter(is_there);
    let events: BTreeMap<&str, String> = of_it
        .filter_map(|entry| {
            let about = entry.request.as_ref()?["regarding"]["name"].as_str()?;
            Some((entry.request.as_ref()?["metadata"]["name"].as_str()?, about.to_owned()))
        })
        .collect();
    events.into_values().collect()
}

/// How often each was named.
fn counts(names: Vec<String>) -> BTreeMap<String, usize> {
    names.into_iter().fold(BTreeMap::new(), |mut counts, name| {
        *counts.entry(name).or_default() += 1;
        counts
    })
}

struct Rotation {
    stage: Stage,
    proxy: Proxy,
    consumers: Vec<Workload>,
    audit: Audit,
    /// All that any operator asked for.
    asked: Vec<Entry>,
}

impl Rotation {
    async fn begin() -> Self {
        let mut stage = Stage::set("killed").await;
        let proxy = Proxy::start(stage.cluster).await;
        stage.install = stage.install.via(&proxy).arg(LIMIT);
        let mut consumers = Vec::new();
        for number in 0..SECRETS {
            let secret = format!("db-{number}");
            stage.ns.set_secret(&secret, &[("password", "one")]).await;
            consumers.extend((0..CONSUMERS_EACH).map(|consumer| {
                Workload::deployment(&format!("web-{number}-{consumer}"))
                    .consumes(Via::env(&secret, "password"))
            }));
        }
        let create = |workload| stage.ns.create_workload(workload);
        stream::iter(&consumers).map(create).buffer_unordered(8).count().await;
        for workload in &consumers {
            stage.ns.wait_rolled_out_within(ALL, workload).await;
        }
        // Whoever begins with the ledger knows what was there before the change.
        let operator = stage.operator().await;
        stage.witness().await;
        operator.kill9();
        let audit = stage.cluster.audit_from_now();
        for number in 0..SECRETS {
            stage.ns.set_secret(&format!("db-{number}"), &[("password", "two")]).await;
        }
        Self { stage, proxy, consumers, audit, asked: Vec::new() }
    }

    /// A life of the operator, up to that moment.
    async fn live_until(&mut self, moment: Moment) {
        let stop = moment.stop(&self.proxy);
        let born = Timestamp::now();
        let operator = Operator::start(self.stage.cluster, &self.stage.install);
        eventually(STUCK, || async {
            (stop.hits() > 0).then_some(()).ok_or_else(|| format!("{moment:?} hasn't come"))
        })
        .await;
        operator.kill9();
        self.proxy.clear();
        let read = self.audit.read_of(&self.stage.install.user);
        // What the one before asked for at its end may be answered only now.
        let life: Vec<Entry> = read.iter().filter(|entry| entry.received >= born).cloned().collect();
        moment.check(&life);
        self.asked.extend(read);
    }

    async fn finish(&mut self) {
        let _operator = Operator::start(self.stage.cluster, &self.stage.install);
        eventually(ALL, || async {
            let told = self.stage.ns.events_with("RolloutCompleted").await.len();
            // The first witness, too.
            (told > CONSUMERS).then_some(()).ok_or_else(|| format!("{told} were told"))
        })
        .await;
        self.stage.witness().await;
        self.asked.extend(self.audit.read_of(&self.stage.install.user));
    }
}

/// One Secret with more consumers than are told of one by one.
#[tokio::test]
async fn a_large_rotation_that_is_cut_short_has_its_one_summary() {
    const MANY: usize = 25;
    let mut stage = Stage::set("cut-short").await;
    let proxy = Proxy::start(stage.cluster).await;
    stage.install = stage.install.via(&proxy).arg("--max-concurrent-rollouts=5");
    let consumers: Vec<Workload> = (0..MANY).map(|number| reader(&format!("web-{number}"))).collect();
    stage.run(&consumers.iter().collect::<Vec<_>>()).await;
    let mut operator = stage.operator().await;
    stage.witness().await;
    let mut audit = stage.cluster.audit_from_now();
    stage.rotate("two").await;
    for few in [2, 7] {
        let mut stamped = 0;
        audit
            .wait(STUCK, |entry| {
                stamped += usize::from(entry.is_by(&stage.install.user) && entry.changed("deployments"));
                stamped >= few
            })
            .await;
        operator.kill9();
        operator = Operator::start(stage.cluster, &stage.install);
    }
    // And once when all is done but for the telling.
    let summary = proxy.on(event_of("ConsumersRolled"), Fault::Hold);
    eventually(ALL, || async { (summary.hits() > 0).then_some(()).ok_or("there is no summary yet") }).await;
    operator.kill9();
    proxy.clear();
    let _operator = stage.operator().await;
    let told = stage.ns.wait_event(STUCK, "ConsumersRolled", "db").await;
    assert!(note(&told).contains("25 consumers rolled, 25 completed"), "{}", note(&told));
    stage.witness().await;
    for reason in ["RolloutStarted", "RolloutCompleted"] {
        let told = stage.ns.events_with(reason).await;
        let about = |event: &Event| event.regarding.as_ref().and_then(|object| object.name.clone());
        let others: Vec<_> = told.iter().filter_map(about).filter(|name| name != "witness").collect();
        assert_eq!(others, [""; 0], "{reason}");
    }
    for workload in &consumers {
        assert_eq!(stage.ns.revisions(workload).await, 2, "{}", workload.name);
    }
}

#[tokio::test]
async fn however_often_it_is_killed_every_workload_rolls_once_and_its_outcome_is_recorded_once() {
    let mut rotation = Rotation::begin().await;
    for _ in 0..KILLS {
        for moment in Moment::ALL {
            rotation.live_until(moment).await;
        }
    }
    rotation.finish().await;

    let asked = &rotation.asked;
    let stamped = counts(names(asked, |entry| entry.changed("deployments")));
    let timed_out = counts(names(asked, |entry| {
        entry.is_write() && entry.resource == "deployments" && entry.code == TIMED_OUT
    }));
    let started = counts(told(asked, "RolloutStarted"));
    let completed = counts(told(asked, "RolloutCompleted"));
    for workload in &rotation.consumers {
        let name = &workload.name;
        for (what, counts) in [("started", &started), ("completed", &completed)] {
            assert_eq!(counts.get(name), Some(&1), "{what} {name}");
        }
        // A stamp whose process was killed meanwhile may count as timed out though it was written: the revision tells.
        let accepted = stamped.get(name).copied().unwrap_or_default();
        assert!(
            accepted == 1 || (accepted == 0 && timed_out.contains_key(name)),
            "stamped {name}: {accepted}"
        );
        assert_eq!(rotation.stage.ns.revisions(workload).await, 2, "{name}");
    }
}
