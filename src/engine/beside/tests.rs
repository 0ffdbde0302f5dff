//! What ServiceAccounts and SecretProviderClasses add to what the engine does. A cluster in miniature answers its calls.

use std::time::Duration;

use serde_json::{Value, json};

use crate::{
    catalog::{
        ReadOptions,
        beside::{Beside as _, BesideId, ProviderClassFacts, ServiceAccountFacts},
        mounted::{self, MountFacts},
        read,
        reference::{Origin, Via},
    },
    decide::{OwnerFacts, PodFacts},
    engine::{Answer, Call, Engine, EngineConfig, Input, InventoryFault, Watched},
    facts::{Kind, Mono, Name, Now, SecretId, Time, Uid, Version, WorkloadId},
    ledger::{DigestKey, KEY_BYTES},
    record::{Record, Watch},
    watch::secret,
};

/// 2026-12-01T00:00:00Z.
const START: i64 = 1_796_083_200_000;

struct Miniature {
    engine: Engine,
    /// Seconds since the start.
    second: u64,
    version: u64,
    pods: Vec<PodFacts>,
    stamps: Vec<String>,
    records: Vec<Record>,
}

fn engine() -> Engine {
    Engine::new(EngineConfig::sample(vec![Kind::DaemonSet]))
}

fn key() -> DigestKey {
    DigestKey::new([1; KEY_BYTES])
}

impl Miniature {
    /// All that is watched is known and empty, but for SecretProviderClasses.
    fn start() -> Self {
        let mut miniature =
            Self { engine: engine(), second: 0, version: 1, pods: vec![], stamps: vec![], records: vec![] };
        miniature.say(Input::Secrets(Watched::Relist));
        miniature.say(Input::Secrets(Watched::Complete(Version(1))));
        miniature.say(Input::Workloads(Kind::DaemonSet, Watched::Relist));
        miniature.say(Input::Workloads(Kind::DaemonSet, Watched::Complete(Version(1))));
        miniature.say(Input::Namespaces(Watched::Relist));
        miniature.say(Input::Namespaces(Watched::Complete(Version(1))));
        miniature
    }

    /// As `start`, and the classes are listed.
    fn with_classes(classes: &[Value]) -> Self {
        let mut miniature = Self::start();
        miniature.classes(classes);
        miniature
    }

    fn mounted(&mut self, pod: &str, object_version: &str) {
        self.version += 1;
        let time = (Time(START) + Duration::from_secs(self.second)).to_string();
        let object = mounted::status(pod, "vault", self.version, &time, &[("db", object_version)]);
        self.say(Input::Mounts(Watched::Apply(MountFacts::read(&object).unwrap())));
    }

    fn classes(&mut self, classes: &[Value]) {
        self.say(Input::Mounts(Watched::Relist));
        self.say(Input::Mounts(Watched::Complete(Version(1))));
        self.say(Input::ProviderClasses(Watched::Relist));
        for class in classes {
            self.class(class);
        }
        self.say(Input::ProviderClasses(Watched::Complete(Version(1))));
    }

    fn class(&mut self, class: &Value) {
        self.say(Input::ProviderClasses(Watched::Apply(ProviderClassFacts::read(class).unwrap())));
    }

    fn say(&mut self, input: Input) {
        let mut inputs = vec![input];
        while let Some(input) = inputs.pop() {
            let now = Now {
                mono: Mono(Duration::from_secs(self.second)),
                server: Time(START) + Duration::from_secs(self.second),
            };
            let output = self.engine.step(now, input);
            self.records.extend(output.records);
            for (id, call) in output.calls {
                inputs.push(Input::Answer(id, self.answer(call)));
            }
        }
    }

    fn answer(&mut self, call: Call) -> Answer {
        self.version += 1;
        let version = Version(self.version);
        match call {
            Call::ListLedger => Answer::Ledger(Ok(Vec::new())),
            Call::WriteLedger { .. } => Answer::Written(Ok(version)),
            Call::ProbePodVersion => Answer::PodListVersion(Ok(version)),
            Call::ListPods(..) => Answer::Pods(Ok(self.pods.clone())),
            Call::ListPodsAt(..) => Answer::PodUids(Err(crate::engine::Fault::Expired)),
            Call::GetSecret(_) => Answer::Secret(Ok(None)),
            Call::Stamp { stamp, .. } => {
                // It is tried again and again; one is enough to be seen.
                if self.stamps.last() != Some(&stamp) {
                    self.stamps.push(stamp);
                }
                Answer::Workload(Err(crate::engine::Fault::Throttled))
            }
            Call::DeleteLedger { .. } | Call::Note(_) => Answer::Done(Ok(())),
            Call::ListReplicaSets(..) | Call::GetWorkload(_) => panic!("nobody needs it here"),
        }
    }

    fn pass(&mut self, seconds: u64) {
        for _ in 0..seconds {
            self.second += 1;
            self.say(Input::Tick);
        }
    }

    fn secret(&mut self, name: &str, data: &[(&str, &str)]) {
        self.version += 1;
        let data: serde_json::Map<String, Value> =
            data.iter().map(|&(key, base64)| (key.to_owned(), json!(base64))).collect();
        let object = json!({
            "metadata": {
                "name": name, "namespace": "demo", "uid": name, "resourceVersion": self.version.to_string(),
                "creationTimestamp": (Time(START) + Duration::from_secs(self.second)).to_string(),
            },
            "data": data,
        });
        let facts = secret::read(object.to_string().as_bytes(), &key()).unwrap();
        self.say(Input::Secrets(Watched::Apply(facts)));
    }

    fn no_secret(&mut self, name: &str) {
        self.version += 1;
        let version = Version(self.version);
        self.say(Input::Secrets(Watched::Delete(SecretId::new("demo", name), version)));
    }

    /// A DaemonSet with one pod, born now and started.
    fn workload(&mut self, spec: &Value) {
        self.version += 1;
        let object = json!({
            "metadata": {
                "name": "web", "namespace": "demo", "uid": "web", "generation": 1,
                "resourceVersion": self.version.to_string(),
            },
            "spec": {"template": {"spec": spec}},
            "status": {
                "observedGeneration": 1, "desiredNumberScheduled": 1, "currentNumberScheduled": 1,
                "updatedNumberScheduled": 1, "numberAvailable": 1, "numberReady": 1,
            },
        });
        let options = ReadOptions { roll_volumes: true };
        let workload = read::workload(&Kind::DaemonSet, &object, &options).unwrap();
        let owner = OwnerFacts { kind: "DaemonSet".into(), name: "web".into(), uid: workload.uid };
        let born = Time(START) + Duration::from_secs(self.second);
        let uid = Uid::parse("web-1");
        self.pods = vec![PodFacts::sample("web-1", uid, born, Version(u64::MAX), Some(owner))];
        self.say(Input::Workloads(Kind::DaemonSet, Watched::Apply(workload)));
    }

    fn web(&self) -> &crate::catalog::Workload {
        self.engine.catalog.get(&WorkloadId::new(Kind::DaemonSet, "demo", "web")).unwrap()
    }

    fn warnings(&self) -> Vec<&Record> {
        self.records.iter().filter(|record| matches!(record, Record::Notice { warning: true, .. })).collect()
    }

    fn synced(&self, of: &Watch) -> Option<bool> {
        let gauges = self.engine.gauges();
        gauges.synced.iter().find(|(watch, _)| watch == of).map(|(_, synced)| synced.is_ok())
    }
}

/// A pod that mounts the class `vault`, and reads the key `password` of `db` into its environment too.
fn mounting() -> Value {
    json!({
        "containers": [{
            "name": "c",
            "volumeMounts": [{"name": "v", "mountPath": "/v"}],
            "env": [{"name": "P", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}],
        }],
        "volumes": [{"name": "v", "csi": {
            "driver": "secrets-store.csi.k8s.io",
            "volumeAttributes": {"secretProviderClass": "vault"},
        }}],
    })
}

/// A pod that mounts the class `vault` and nothing else.
fn mounting_only() -> Value {
    let mut pod = mounting();
    pod["containers"][0]["env"] = json!([]);
    pod
}

/// The class `vault`, which syncs these keys of `db`.
fn vault(keys: &[&str]) -> Value {
    let data: Vec<Value> = keys.iter().map(|key| json!({"objectName": key, "key": key})).collect();
    json!({
        "metadata": {"name": "vault", "namespace": "demo"},
        "spec": {"provider": "x", "secretObjects": [{"secretName": "db", "type": "Opaque", "data": data}]},
    })
}

fn account(secrets: &[&str]) -> Input {
    let secrets: Vec<Value> = secrets.iter().map(|name| json!({"name": name})).collect();
    let metadata = json!({"name": "default", "namespace": "demo"});
    let object = json!({"metadata": metadata, "imagePullSecrets": secrets});
    Input::ServiceAccounts(Watched::Apply(ServiceAccountFacts::read(&object).unwrap()))
}

#[test]
fn a_synced_secret_rolls_its_consumer_when_it_rotates() {
    let mut mini = Miniature::with_classes(&[vault(&["password", "user"])]);
    mini.workload(&mounting());
    mini.pass(5);
    mini.secret("db", &[("password", "YQ=="), ("user", "YQ==")]);
    mini.pass(200);
    assert!(mini.stamps.is_empty(), "the first pod itself brought it: {:?}", mini.stamps);

    mini.secret("db", &[("password", "YQ=="), ("user", "Yg==")]);
    let version = mini.version;
    mini.pass(4);
    assert_eq!(mini.stamps, [format!("db@{version}")]);
}

#[test]
fn its_absence_holds_nothing_and_rolls_nothing() {
    let mut mini = Miniature::with_classes(&[vault(&["password", "user"])]);
    mini.workload(&mounting());
    mini.pass(5);
    assert!(mini.engine.gauges().held.is_empty(), "{:?}", mini.engine.gauges().held);
    mini.secret("db", &[("password", "YQ=="), ("user", "YQ==")]);
    mini.pass(200);
    mini.no_secret("db");
    mini.pass(20);
    assert!(mini.engine.gauges().held.is_empty(), "{:?}", mini.engine.gauges().held);
    mini.secret("db", &[("password", "YQ=="), ("user", "YQ==")]);
    mini.pass(200);
    assert!(mini.stamps.is_empty(), "{:?}", mini.stamps);

    mini.no_secret("db");
    mini.pass(20);
    mini.secret("db", &[("password", "Yg=="), ("user", "YQ==")]);
    mini.pass(10);
    assert!(!mini.stamps.is_empty(), "it came back with another value");
}

#[test]
fn a_key_that_a_class_gains_is_followed_from_then_on() {
    let mut mini = Miniature::with_classes(&[vault(&["password"])]);
    mini.workload(&mounting());
    mini.secret("db", &[("password", "YQ=="), ("token", "YQ==")]);
    mini.pass(200);
    mini.secret("db", &[("password", "YQ=="), ("token", "Yg==")]);
    mini.pass(10);
    mini.class(&vault(&["password", "token"]));
    mini.pass(200);
    mini.stamps.clear();
    mini.secret("db", &[("password", "YQ=="), ("token", "Yw==")]);
    let version = mini.version;
    mini.pass(4);
    assert_eq!(mini.stamps, [format!("db@{version}")]);

    mini.class(&vault(&["password"]));
    mini.pass(10);
    mini.stamps.clear();
    mini.secret("db", &[("password", "YQ=="), ("token", "ZA==")]);
    mini.pass(200);
    assert!(mini.stamps.is_empty(), "the class doesn't name it any more: {:?}", mini.stamps);
}

#[test]
fn nothing_is_decided_of_who_mounts_classes_before_they_are_known() {
    let mut mini = Miniature::start();
    assert_eq!(mini.synced(&Watch::ProviderClasses), None, "nobody mounts one");
    mini.secret("db", &[("password", "YQ==")]);
    mini.workload(&mounting());
    mini.pass(200);
    mini.secret("db", &[("password", "Yg==")]);
    mini.pass(20);
    assert!(mini.stamps.is_empty());
    assert_eq!(mini.engine.gauges().held, [("inventory_unknown", 1)]);
    assert_eq!(mini.synced(&Watch::ProviderClasses), Some(false));

    mini.say(Input::ProviderClasses(Watched::Broken(InventoryFault::Forbidden("no".into()))));
    mini.say(Input::ProviderClasses(Watched::Broken(InventoryFault::Forbidden("no".into()))));
    assert_eq!(mini.warnings().len(), 1, "{:?}", mini.warnings());

    mini.classes(&[]);
    mini.pass(5);
    assert!(!mini.stamps.is_empty());
    assert_eq!(mini.synced(&Watch::ProviderClasses), Some(true));
}

#[test]
fn another_version_of_a_mounted_object_rolls_who_was_born_with_the_one_before() {
    let mut mini = Miniature::with_classes(&[vault(&[])]);
    mini.workload(&mounting_only());
    mini.mounted("web-1", "1");
    mini.pass(200);
    assert!(mini.stamps.is_empty(), "the first pod got it: {:?}", mini.stamps);
    mini.mounted("web-1", "1");
    mini.pass(200);
    assert!(mini.stamps.is_empty(), "nothing changed: {:?}", mini.stamps);

    // Another pod of the class, of another workload.
    mini.mounted("other-1", "2");
    let version = mini.version;
    mini.pass(4);
    assert_eq!(mini.stamps, [format!("secretproviderclass/vault@{version}")]);
}

#[test]
fn who_was_born_with_the_newest_version_is_fresh_though_it_brought_it() {
    let mut mini = Miniature::with_classes(&[vault(&[])]);
    mini.workload(&mounting_only());
    mini.mounted("other-1", "1");
    mini.pass(200);
    mini.mounted("web-1", "2");
    mini.pass(200);
    assert!(mini.stamps.is_empty(), "{:?}", mini.stamps);
}

#[test]
fn at_first_sight_no_mounted_version_rolls_anybody() {
    let mut mini = Miniature::with_classes(&[vault(&[])]);
    mini.mounted("web-1", "1");
    mini.pass(100);
    mini.mounted("other-1", "2");
    mini.pass(100);
    mini.workload(&mounting_only());
    mini.pods[0].born = Time(START);
    mini.pass(200);
    assert!(mini.stamps.is_empty(), "{:?}", mini.stamps);
}

#[test]
fn inherited_pull_secrets_are_known_and_roll_nothing() {
    let mut mini = Miniature::with_classes(&[]);
    mini.secret("reg", &[("k", "YQ==")]);
    mini.workload(&json!({"containers": [{"name": "c"}]}));
    mini.say(Input::ServiceAccounts(Watched::Relist));
    mini.say(account(&["reg"]));
    mini.say(Input::ServiceAccounts(Watched::Complete(Version(1))));
    mini.pass(200);
    mini.secret("reg", &[("k", "Yg==")]);
    mini.pass(200);
    assert!(mini.stamps.is_empty());
    let from = |reference: &crate::catalog::reference::Reference| (reference.via, reference.from.clone());
    let known: Vec<(Via, Origin)> = mini.web().references.iter().map(from).collect();
    assert_eq!(known, [(Via::Pull, Origin::ServiceAccount("default".into()))]);
    let consumers = |name: &str| mini.engine.catalog.consumers(&SecretId::new("demo", name)).count();
    assert_eq!((consumers("reg"), consumers("other")), (1, 0));

    mini.say(account(&["other"]));
    let consumers = |name: &str| mini.engine.catalog.consumers(&SecretId::new("demo", name)).count();
    assert_eq!((consumers("reg"), consumers("other")), (0, 1));
    let place = BesideId::new("demo", Name::from("default"));
    mini.say(Input::ServiceAccounts(Watched::Delete(place, Version(9))));
    assert!(mini.web().references.is_empty());
}

#[test]
fn not_knowing_service_accounts_stops_nothing() {
    let mut mini = Miniature::with_classes(&[]);
    mini.say(Input::ServiceAccounts(Watched::Broken(InventoryFault::Forbidden("no".into()))));
    mini.secret("db", &[("password", "YQ==")]);
    mini.workload(&mounting());
    mini.pass(200);
    mini.secret("db", &[("password", "Yg==")]);
    mini.pass(4);
    assert_eq!(mini.stamps.len(), 1);
    assert_eq!(mini.synced(&Watch::ServiceAccounts), Some(false));
    assert!(!Watch::ServiceAccounts.is_needed());
    assert!(mini.warnings().is_empty(), "{:?}", mini.warnings());
}
