//! What the tests of rotations have in common: a namespace, an installation that watches it, and a witness.

use crate::support::{
    cluster::Cluster,
    objects::Namespace,
    operator::{Install, Operator},
    wait::eventually,
    workload::{Via, Workload},
};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{ListParams, PostParams};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::Stdio;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A few seconds of settling, looking, rolling and proving, on a busy machine.
pub const ROLLED: Duration = Duration::from_secs(120);

/// As `--settle` is when nobody gives it.
pub const DEFAULT_SETTLE: Duration = Duration::from_secs(2);

/// Births have whole seconds, and clocks are held to be two of them apart at most.
const AGED: Duration = Duration::from_secs(4);

/// The Secret that most tests turn on, and a Deployment that reads its `password`.
pub const VALUE: &str = "db/password";

/// A Deployment whose container reads `db.password`.
pub fn reader(name: &str) -> Workload {
    Workload::deployment(name).consumes(Via::env("db", "password"))
}

/// On the cluster that all tests share.
pub type Stage = StageIn<'static>;

/// A test's place: its namespace, watched by an installation of its own.
pub struct StageIn<'a> {
    pub cluster: &'a Cluster,
    pub ns: Namespace<'a>,
    pub install: Install,
    witness: Workload,
    turns: AtomicU32,
}

impl StageIn<'static> {
    /// With the Secret `db`, whose `password` is `one`.
    pub async fn set(prefix: &str) -> Self {
        Self::set_in(Cluster::shared().await, prefix).await
    }
}

impl<'a> StageIn<'a> {
    /// On a test's own cluster.
    pub async fn set_in(cluster: &'a Cluster, prefix: &str) -> Self {
        let ns = Namespace::create(cluster, prefix).await;
        ns.set_secret("db", &[("password", "one")]).await;
        ns.set_secret("witness", &[("turn", "0")]).await;
        let witness = Workload::deployment("witness").consumes(Via::env("witness", "turn"));
        ns.create_workload(&witness).await;
        let install = Install::for_namespaces(cluster, &[&ns.name]).await;
        Self { cluster, ns, install, witness, turns: AtomicU32::new(0) }
    }

    pub async fn run(&self, workloads: &[&Workload]) {
        for workload in workloads {
            self.ns.create_workload(workload).await;
        }
        for workload in workloads {
            self.ns.wait_rolled_out_within(ROLLED, workload).await;
        }
    }

    /// Until its pods are so old that no clock's inaccuracy makes their births doubtful.
    pub async fn wait_aged(&self, workload: &Workload) {
        eventually(ROLLED, || async {
            let births =
                self.ns.pods(workload).await.into_iter().filter_map(|pod| pod.metadata.creation_timestamp);
            let doubtful = births.map(|birth| birth.0 + AGED).any(|aged| aged > Timestamp::now());
            (!doubtful).then_some(()).ok_or("pods are too young")
        })
        .await;
    }

    /// Starts the operator and waits until it is ready.
    pub async fn operator(&self) -> Operator {
        let operator = Operator::start(self.cluster, &self.install);
        operator.wait_ready(ROLLED).await;
        operator
    }

    pub async fn rotate(&self, password: &str) {
        self.ns.set_secret("db", &[("password", password)]).await;
    }

    /// Proves that whatever happened before has had its effect, without waiting for nothing to happen: a change made
    /// now, which the operator sees later and must let settle as long, has rolled its own consumer to the end.
    pub async fn witness(&self) {
        self.ns.wait_rolled_out_within(ROLLED, &self.witness).await;
        let turn = self.turns.fetch_add(1, Ordering::SeqCst) + 1;
        self.ns.set_secret("witness", &[("turn", &turn.to_string())]).await;
        self.wait_values(&self.witness, "witness/turn", &turn.to_string()).await;
        self.wait_outcomes("RolloutCompleted", &self.witness, turn as usize).await;
    }

    /// Until every live pod of a workload holds that value, and its controller is done.
    pub async fn wait_values(&self, workload: &Workload, of: &str, value: &str) {
        eventually(ROLLED, || async {
            let values = self.ns.values_in_pods(workload, of).await;
            let all = !values.is_empty() && values.iter().all(|held| held == value);
            all.then_some(()).ok_or_else(|| format!("pods of {} hold {values:?}", workload.name))
        })
        .await;
        self.ns.wait_rolled_out_within(ROLLED, workload).await;
    }

    /// Until it has been told of so many rollouts' ends with that reason; more of them fail the test.
    pub async fn wait_outcomes(&self, reason: &str, workload: &Workload, count: usize) {
        eventually(ROLLED, || async {
            let told = self.outcomes(reason, workload).await;
            assert!(told <= count, "{told} times {reason} of {}", workload.name);
            (told == count).then_some(()).ok_or_else(|| format!("{told} times {reason} of {}", workload.name))
        })
        .await;
    }

    pub async fn outcomes(&self, reason: &str, workload: &Workload) -> usize {
        let events = self.ns.events_with(reason).await;
        let is_about = |name: Option<&str>| name == Some(&workload.name);
        events
            .iter()
            .filter(|event| {
                is_about(event.regarding.as_ref().and_then(|object| object.name.as_deref()))
                    && event.regarding.as_ref().and_then(|object| object.kind.as_deref())
                        == Some(workload.kind.name())
            })
            .count()
    }

    /// What its template is, and what came of its templates so far: a rollout changes it, nothing else does.
    pub async fn trace(&self, workload: &Workload) -> Trace {
        let object = self.ns.get(workload).await;
        Trace { template: object["spec"]["template"].clone(), revisions: self.ns.revisions(workload).await }
    }

    /// Until a workload was rolled once since `before`: the pods hold the value, one more revision, one more
    /// completed rollout.
    pub async fn wait_rolled_once(&self, workload: &Workload, before: &Trace, value: &str) {
        self.wait_values(workload, VALUE, value).await;
        assert_eq!(self.ns.revisions(workload).await, before.revisions + 1, "{}", workload.name);
    }
}

/// Until the operator's metric has that value.
pub async fn wait_metric(operator: &Operator, name: &str, labels: &[(&str, &str)], value: f64) {
    eventually(ROLLED, || async {
        let is = operator.metric(name, labels).await;
        ((is - value).abs() < f64::EPSILON).then_some(()).ok_or_else(|| format!("{name}{labels:?} is {is}"))
    })
    .await;
}

/// Until so many workloads are held for that reason.
pub async fn wait_held(operator: &Operator, reason: &str, count: f64) {
    wait_metric(operator, "uptake_held_workloads", &[("reason", reason)], count).await;
}

/// See [`StageIn::trace`].
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub template: Value,
    pub revisions: usize,
}

/// Makes a Secret's data exactly this.
pub async fn set_data(ns: &Namespace<'_>, name: &str, data: &[(&str, &str)]) {
    let secrets = ns.api::<Secret>();
    let Some(current) = secrets.get_opt(name).await.expect("a Secret can be read") else {
        ns.set_secret(name, data).await;
        return;
    };
    let wanted: BTreeSet<&str> = data.iter().map(|(key, _)| *key).collect();
    let gone = current.data.iter().flatten().filter(|(key, _)| !wanted.contains(key.as_str()));
    let gone: Map<String, Value> = gone.map(|(key, _)| (key.clone(), Value::Null)).collect();
    let set: Map<String, Value> = data.iter().map(|(key, value)| ((*key).into(), json!(value))).collect();
    let patch = json!({ "data": gone, "stringData": set });
    ns.merge_secret(name, &patch, "test").await.expect("the Secret exists");
}

/// Deletes a Secret and makes it again, as a restore from a backup does: another uid.
pub async fn recreate(ns: &Namespace<'_>, name: &str, data: &[(&str, &str)]) {
    ns.delete_secret(name).await;
    ns.set_secret(name, data).await;
}

/// Makes any object from its manifest.
pub async fn create(ns: &Namespace<'_>, manifest: &Value) {
    let text = |field: &str| manifest[field].as_str().expect("a manifest").to_owned();
    let api = ns.dynamic(&text("apiVersion"), &text("kind"));
    let object = serde_json::from_value(manifest.clone()).expect("an object");
    api.create(&PostParams::default(), &object).await.unwrap_or_else(|error| panic!("{manifest}: {error}"));
}

/// `kubectl` in a namespace, with that on its standard input.
pub fn kubectl(ns: &Namespace<'_>, cluster: &Cluster, arguments: &[&str], input: &str) {
    let mut kubectl = cluster.kubectl(&cluster.admin());
    kubectl.args(arguments).args(["-n", &ns.name]).stdin(Stdio::piped());
    let mut child = kubectl.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it can be run");
    child.stdin.take().expect("a pipe").write_all(input.as_bytes()).expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    let said: String = String::from_utf8_lossy(&output.stderr).chars().take(2000).collect();
    assert!(output.status.success(), "{arguments:?}: {said}");
}

/// The objects of a kind, by name, without what their controllers write.
pub async fn objects(ns: &Namespace<'_>, api_version: &str, kind: &str) -> Vec<(String, Value)> {
    let list = ns.dynamic(api_version, kind).list(&ListParams::default()).await.expect("a list");
    let spec = |object: kube::api::DynamicObject| {
        (object.metadata.name.unwrap_or_default(), object.data["spec"].clone())
    };
    list.into_iter().map(spec).collect()
}
