//! A rotation with many consumers, cut short, and taken up while their list still comes in.

use std::{collections::BTreeMap, time::Duration};

use serde_json::json;

use crate::{
    catalog::{ReadOptions, Workload, read},
    decide::{OwnerFacts, PodFacts},
    engine::{Answer, Call, CallId, Engine, EngineConfig, Input, LedgerObject, Watched},
    facts::{Kind, Mono, Now, Time, Uid, Version},
    ledger::{DigestKey, KEY_BYTES},
    record::Reason,
    watch::secret,
};

/// 2026-12-01T00:00:00Z.
const START: i64 = 1_796_083_200_000;
const MANY: usize = 25;
const KIND: Kind = Kind::DaemonSet;

/// DaemonSets that read `password` of `db`; each is done with a stamp at once.
struct Cluster {
    second: u64,
    version: u64,
    password: (u64, &'static str),
    /// By name: its stamp, and when and at which version its pod was born.
    sets: BTreeMap<String, (Option<String>, Time, Version)>,
    ledger: BTreeMap<String, (Version, Vec<u8>)>,
    told: Vec<(Reason, String)>,
}

fn config() -> EngineConfig {
    EngineConfig {
        max_concurrent_rollouts: 5,
        namespaces: vec!["demo".into()],
        ..EngineConfig::sample(vec![KIND])
    }
}

impl Cluster {
    fn new() -> Self {
        let set = |number| (format!("web-{number:02}"), (None, Time(START), Version(1)));
        let sets = (0..MANY).map(set).collect();
        let (ledger, told) = (BTreeMap::new(), Vec::new());
        Self { second: 0, version: 10, password: (5, "b25l"), sets, ledger, told }
    }

    fn now(&self) -> Now {
        let since = Duration::from_secs(self.second);
        Now { mono: Mono(since), server: Time(START) + since }
    }

    fn say(&mut self, engine: &mut Engine, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            for (id, call) in engine.step(self.now(), input).calls {
                inputs.push(self.answer(id, call));
            }
        }
    }

    fn see_secrets(&mut self, engine: &mut Engine) {
        let (version, password) = self.password;
        let object = json!({
            "metadata": {"name": "db", "namespace": "demo", "uid": "db", "resourceVersion": version.to_string(),
                "creationTimestamp": Time(START).to_string()},
            "data": {"password": password},
        });
        let facts = secret::read(object.to_string().as_bytes(), &DigestKey::new([1; KEY_BYTES])).unwrap();
        self.say(engine, Input::Secrets(Watched::Apply(facts)));
    }

    fn see_sets(&mut self, engine: &mut Engine, from: usize, to: usize) {
        let names: Vec<String> = self.sets.keys().skip(from).take(to - from).cloned().collect();
        for name in names {
            let set = self.set(&name);
            self.say(engine, Input::Workloads(KIND, Watched::Apply(set)));
        }
    }

    /// All that comes before the workloads' list ends, with so many of them.
    fn begin_lists(&mut self, engine: &mut Engine, sets: usize) {
        self.say(engine, Input::Workloads(KIND, Watched::Relist));
        self.see_sets(engine, 0, sets);
        self.say(engine, Input::Namespaces(Watched::Relist));
        self.say(engine, Input::Namespaces(Watched::Complete(Version(self.version))));
        self.say(engine, Input::Secrets(Watched::Relist));
        self.see_secrets(engine);
        self.say(engine, Input::Secrets(Watched::Complete(Version(self.version))));
        self.tick(engine);
    }

    fn end_lists(&mut self, engine: &mut Engine, sets: usize) {
        self.see_sets(engine, sets, MANY);
        self.say(engine, Input::Workloads(KIND, Watched::Complete(Version(self.version))));
    }

    fn tick(&mut self, engine: &mut Engine) {
        self.second += 1;
        self.say(engine, Input::Tick);
    }

    fn set(&self, name: &str) -> Workload {
        let (stamp, ..) = &self.sets[name];
        let annotations: BTreeMap<&str, &String> =
            stamp.iter().map(|stamp| ("uptake.dev/secret-version", stamp)).collect();
        let env = json!([{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}]);
        let generation = 1 + i32::from(stamp.is_some());
        let object = json!({
            "metadata": {"name": name, "namespace": "demo", "uid": name, "generation": generation,
                "resourceVersion": self.version.to_string()},
            "spec": {"template": {
                "metadata": {"annotations": annotations}, "spec": {"containers": [{"name": "c", "env": env}]},
            }},
            "status": {"observedGeneration": generation, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
                "updatedNumberScheduled": 1, "numberAvailable": 1, "numberReady": 1},
        });
        read::workload(&KIND, &object, &ReadOptions { roll_volumes: true }).unwrap()
    }

    fn pods(&self) -> Vec<PodFacts> {
        let pod = |(name, (stamp, born, version)): (&String, &(Option<String>, Time, Version))| {
            let owner =
                OwnerFacts { kind: "DaemonSet".into(), name: name.as_str().into(), uid: Uid::parse(name) };
            let uid = Uid::parse(&format!("{name}-{version}"));
            let stamp = stamp.clone().map(Into::into);
            PodFacts { stamp, ..PodFacts::sample(name, uid, *born, *version, Some(owner)) }
        };
        self.sets.iter().map(pod).collect()
    }

    fn stamped(&self) -> usize {
        self.sets.values().filter(|(stamp, ..)| stamp.is_some()).count()
    }

    fn answer(&mut self, id: CallId, call: Call) -> Input {
        self.version += 1;
        let (version, now) = (Version(self.version), self.now().server);
        let answer = match call {
            Call::ListLedger => {
                let object = |(name, (version, body)): (&String, &(Version, Vec<u8>))| LedgerObject {
                    name: name.as_str().into(),
                    version: *version,
                    body: body.clone(),
                };
                Answer::Ledger(Ok(self.ledger.iter().map(object).collect()))
            }
            Call::WriteLedger { name, body, .. } => {
                self.ledger.insert(name, (version, body));
                Answer::Written(Ok(version))
            }
            Call::ProbePodVersion => Answer::PodListVersion(Ok(version)),
            Call::ListPods(..) => Answer::Pods(Ok(self.pods())),
            Call::ListPodsAt(..) => Answer::PodUids(Err(crate::engine::Fault::Expired)),
            Call::GetSecret(_) => Answer::Secret(Ok(None)),
            Call::GetWorkload(id) => Answer::Workload(Ok(self.set(&id.name))),
            Call::Stamp { stamp, id: of, .. } => {
                self.sets.insert(of.name.to_string(), (Some(stamp), now, version));
                Answer::Workload(Ok(self.set(&of.name)))
            }
            Call::Note(note) => {
                self.told.push((note.reason, note.note.clone()));
                Answer::Done(Ok(()))
            }
            Call::DeleteLedger { .. } => Answer::Done(Ok(())),
            Call::ListReplicaSets(..) => Answer::Owners(Ok(BTreeMap::new())),
        };
        Input::Answer(id, answer)
    }
}

#[test]
fn a_rotation_that_is_taken_up_from_half_a_list_has_one_summary_all_the_same() {
    let mut cluster = Cluster::new();
    let mut first = Engine::new(config());
    cluster.begin_lists(&mut first, MANY);
    cluster.end_lists(&mut first, MANY);
    for _ in 0..100 {
        cluster.tick(&mut first);
    }
    cluster.version += 1;
    cluster.password = (cluster.version, "dHdv");
    cluster.see_secrets(&mut first);
    while cluster.stamped() == 0 {
        cluster.tick(&mut first);
    }
    assert!(cluster.stamped() < MANY, "it is cut short");
    drop(first);

    let mut second = Engine::new(config());
    cluster.begin_lists(&mut second, MANY - 2);
    cluster.end_lists(&mut second, MANY - 2);
    for _ in 0..200 {
        cluster.tick(&mut second);
        cluster.see_sets(&mut second, 0, MANY);
    }
    assert_eq!(cluster.stamped(), MANY);
    let [(reason, note)] = cluster.told.as_slice() else { panic!("{:#?}", cluster.told) };
    assert_eq!(*reason, Reason::ConsumersRolled);
    assert!(note.contains("25 consumers rolled, 25 completed"), "{note}");
}
