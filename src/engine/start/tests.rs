//! A hand-over between two engines that watch one cluster in miniature: the leader, and a standby.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};

use crate::{
    catalog::{ReadOptions, Workload, read},
    decide::{OwnerFacts, PodFacts},
    engine::{Answer, Call, CallId, Engine, EngineConfig, Fault, Input, LedgerObject, Watched},
    facts::{Kind, Mono, Now, Time, Uid, Version},
    ledger::{DigestKey, KEY_BYTES},
    record::{Effect, Record},
    watch::secret,
};

/// 2026-12-01T00:00:00Z.
const START: i64 = 1_796_083_200_000;

/// A DaemonSet `web` that reads `password` of `db`, and what is stored of it.
struct Cluster {
    second: u64,
    version: u64,
    generation: u64,
    password: (u64, &'static str),
    stamp: Option<String>,
    pod: PodFacts,
    ledger: BTreeMap<String, (Version, Vec<u8>)>,
    stamps: Vec<String>,
}

/// A process.
struct Replica {
    engine: Engine,
    calls: usize,
    records: Vec<Record>,
}

fn config() -> EngineConfig {
    EngineConfig::sample(vec![Kind::DaemonSet])
}

impl Replica {
    fn new(engine: Engine) -> Self {
        Self { engine, calls: 0, records: Vec::new() }
    }

    fn say(&mut self, cluster: &mut Cluster, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let output = self.engine.step(cluster.now(), input);
            self.records.extend(output.records);
            self.calls += output.calls.len();
            for (id, call) in output.calls {
                inputs.push(cluster.answer(id, call));
            }
        }
    }

    /// Everything is listed as it is now.
    fn list(&mut self, cluster: &mut Cluster) {
        self.say(cluster, Input::Secrets(Watched::Relist));
        self.see_secret(cluster);
        self.say(cluster, Input::Secrets(Watched::Complete(Version(cluster.version))));
        self.say(cluster, Input::Namespaces(Watched::Relist));
        self.say(cluster, Input::Namespaces(Watched::Complete(Version(cluster.version))));
        self.say(cluster, Input::Workloads(Kind::DaemonSet, Watched::Relist));
        self.see_web(cluster);
        self.say(cluster, Input::Workloads(Kind::DaemonSet, Watched::Complete(Version(cluster.version))));
    }

    fn see_secret(&mut self, cluster: &mut Cluster) {
        let (version, password) = cluster.password;
        let object = json!({
            "metadata": {
                "name": "db", "namespace": "demo", "uid": "db", "resourceVersion": version.to_string(),
                "creationTimestamp": Time(START).to_string(),
            },
            "data": {"password": password},
        });
        let key = DigestKey::new([1; KEY_BYTES]);
        let facts = secret::read(object.to_string().as_bytes(), &key).unwrap();
        self.say(cluster, Input::Secrets(Watched::Apply(facts)));
    }

    fn see_web(&mut self, cluster: &mut Cluster) {
        let web = cluster.web();
        self.say(cluster, Input::Workloads(Kind::DaemonSet, Watched::Apply(web)));
    }

    /// What came of Secrets' versions.
    fn effects(&self) -> Vec<Effect> {
        let effect = |record: &Record| match record {
            Record::SecretChange { effect, .. } => Some(*effect),
            _ => None,
        };
        self.records.iter().filter_map(effect).collect()
    }

    fn ticks(&mut self, cluster: &mut Cluster, seconds: u64) {
        for _ in 0..seconds {
            cluster.second += 1;
            self.say(cluster, Input::Tick);
            self.see_web(cluster);
        }
    }
}

impl Cluster {
    fn new() -> Self {
        let mut cluster = Self {
            second: 0,
            version: 10,
            generation: 1,
            password: (5, "b25l"),
            stamp: None,
            pod: PodFacts::sample("web", Uid(1), Time(START), Version(1), None),
            ledger: BTreeMap::new(),
            stamps: Vec::new(),
        };
        cluster.replace_pod();
        cluster
    }

    fn now(&self) -> Now {
        let since = Duration::from_secs(self.second);
        Now { mono: Mono(since), server: Time(START) + since }
    }

    fn replace_pod(&mut self) {
        let owner = OwnerFacts { kind: "DaemonSet".into(), name: "web".into(), uid: self.web().uid };
        self.pod.owner = Some(owner);
        self.pod.uid = Uid(u128::from(self.version));
        self.pod.version = Version(self.version);
        self.pod.born = self.now().server;
        self.pod.stamp = self.stamp.clone().map(Into::into);
    }

    fn rotate(&mut self, password: &'static str) {
        self.version += 1;
        self.password = (self.version, password);
    }

    fn web(&self) -> Workload {
        let annotations: BTreeMap<&str, &String> =
            self.stamp.iter().map(|stamp| ("uptake.dev/secret-version", stamp)).collect();
        let env: Value =
            json!([{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]);
        let object = json!({
            "metadata": {
                "name": "web", "namespace": "demo", "uid": "web", "generation": self.generation,
                "resourceVersion": self.version.to_string(),
            },
            "spec": {"template": {
                "metadata": {"annotations": annotations},
                "spec": {"containers": [{"name": "c", "env": env}]},
            }},
            "status": {
                "observedGeneration": self.generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
                "updatedNumberScheduled": 1, "numberAvailable": 1, "numberReady": 1,
            },
        });
        read::workload(&Kind::DaemonSet, &object, &ReadOptions { roll_volumes: true }).unwrap()
    }

    fn answer(&mut self, id: CallId, call: Call) -> Input {
        self.version += 1;
        let version = Version(self.version);
        let answer = match call {
            Call::ListLedger => Answer::Ledger(Ok(self
                .ledger
                .iter()
                .map(|(name, (version, body))| LedgerObject {
                    name: name.as_str().into(),
                    version: *version,
                    body: body.clone(),
                })
                .collect())),
            Call::WriteLedger { name, over, body } => {
                if self.ledger.get(&name).map(|(version, _)| *version) == over {
                    self.ledger.insert(name, (version, body));
                    Answer::Written(Ok(version))
                } else {
                    Answer::Written(Err(Fault::Conflict))
                }
            }
            Call::ProbePodVersion => Answer::PodListVersion(Ok(version)),
            Call::ListPods(..) => Answer::Pods(Ok(vec![self.pod.clone()])),
            Call::ListPodsAt(..) => Answer::PodUids(Err(Fault::Expired)),
            Call::GetSecret(_) => Answer::Secret(Ok(None)),
            Call::GetWorkload(_) => Answer::Workload(Ok(self.web())),
            Call::Stamp { stamp, .. } => {
                self.stamps.push(stamp.clone());
                self.stamp = Some(stamp);
                self.generation += 1;
                self.replace_pod();
                Answer::Workload(Ok(self.web()))
            }
            Call::DeleteLedger { .. } | Call::Note(_) => Answer::Done(Ok(())),
            Call::ListReplicaSets(..) => Answer::Owners(Ok(BTreeMap::new())),
        };
        Input::Answer(id, answer)
    }
}

/// A leader that has looked at all, and a standby that has listed it too; the pod is a minute old and more.
fn two() -> (Cluster, Replica, Replica) {
    let mut cluster = Cluster::new();
    let mut leader = Replica::new(Engine::new(config()));
    leader.list(&mut cluster);
    leader.ticks(&mut cluster, 100);
    let mut standby = Replica::new(Engine::standby(config()));
    standby.list(&mut cluster);
    standby.ticks(&mut cluster, 2);
    assert!(cluster.stamps.is_empty());
    (cluster, leader, standby)
}

#[test]
fn a_standby_is_ready_and_does_nothing() {
    let (mut cluster, _, mut standby) = two();
    cluster.rotate("dHdv");
    standby.see_secret(&mut cluster);
    standby.ticks(&mut cluster, 2000);
    assert_eq!(standby.calls, 0);
    assert_eq!(standby.engine.gauges().ledger, Ok(()));
    assert!(standby.engine.next_wake().is_some_and(|wake| wake > cluster.now().mono), "it would spin");
    standby.say(&mut cluster, Input::Stop);
    assert!(standby.engine.is_quiet());
    standby.say(&mut cluster, Input::Lead);
    assert_eq!(standby.calls, 0, "a process that ends begins nothing");
}

#[test]
fn a_change_that_only_the_standby_saw_is_rolled_once_when_it_leads() {
    let (mut cluster, leader, mut standby) = two();
    drop(leader);
    cluster.rotate("dHdv");
    let version = cluster.version;
    standby.see_secret(&mut cluster);
    standby.ticks(&mut cluster, 15);
    assert!(cluster.stamps.is_empty());
    standby.say(&mut cluster, Input::Lead);
    standby.ticks(&mut cluster, 120);
    assert_eq!(cluster.stamps, [format!("db@{version}")]);
    assert_eq!(standby.effects(), [Effect::Rolled]);
}

#[test]
fn a_change_that_the_leader_rolled_is_not_rolled_again() {
    for seen_by_standby in ["at once", "late", "with what came before, late"] {
        let (mut cluster, mut leader, mut standby) = two();
        for password in ["dHdv", "dGhyZWU="] {
            cluster.rotate(password);
            leader.see_secret(&mut cluster);
            if seen_by_standby == "at once" {
                standby.see_secret(&mut cluster);
            }
        }
        let last = cluster.password;
        leader.ticks(&mut cluster, 60);
        let stamp = vec![format!("db@{}", last.0)];
        assert_eq!(cluster.stamps, stamp);
        drop(leader);
        standby.say(&mut cluster, Input::Lead);
        standby.ticks(&mut cluster, 10);
        assert_eq!(cluster.stamps, stamp, "{seen_by_standby}");
        if seen_by_standby.starts_with("with") {
            cluster.password = (last.0 - 1, "dHdv");
            standby.see_secret(&mut cluster);
            standby.ticks(&mut cluster, 10);
            cluster.password = last;
        }
        standby.see_secret(&mut cluster);
        standby.ticks(&mut cluster, 300);
        assert_eq!(cluster.stamps, stamp, "{seen_by_standby}");
        assert!(standby.effects().iter().all(|effect| *effect == Effect::Unchanged), "{seen_by_standby}");
        cluster.rotate("Zm91cg==");
        standby.see_secret(&mut cluster);
        standby.ticks(&mut cluster, 60);
        assert_eq!(cluster.stamps.len(), 2, "{seen_by_standby}");
    }
}

#[test]
fn a_change_in_a_gap_of_the_standby_that_the_leader_saw_and_rolled_is_not_rolled_again() {
    let (mut cluster, mut leader, mut standby) = two();
    standby.say(&mut cluster, Input::Secrets(Watched::Relist));
    cluster.rotate("dHdv");
    let (version, password) = cluster.password;
    leader.see_secret(&mut cluster);
    leader.ticks(&mut cluster, 30);
    let stamp = vec![format!("db@{version}")];
    assert_eq!(cluster.stamps, stamp);
    // A label is edited, so that the list doesn't tell the change's version.
    cluster.version += 1;
    cluster.password = (cluster.version, password);
    leader.see_secret(&mut cluster);
    drop(leader);
    standby.see_secret(&mut cluster);
    let listed = Version(cluster.version);
    standby.say(&mut cluster, Input::Secrets(Watched::Complete(listed)));
    standby.say(&mut cluster, Input::Lead);
    standby.ticks(&mut cluster, 300);
    assert_eq!(cluster.stamps, stamp);
    cluster.rotate("dGhyZWU=");
    standby.see_secret(&mut cluster);
    standby.ticks(&mut cluster, 60);
    assert_eq!(cluster.stamps.len(), 2);
}
