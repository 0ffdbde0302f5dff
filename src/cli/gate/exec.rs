//! Asks in containers whether their processes have the expected environment names. Names only: they are compared in the
//! container, and no value leaves it.

use std::{collections::BTreeSet, time::Duration};

use futures::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Pod;
use kube::api::AttachParams;
use serde_json::Value;
use tokio::io::AsyncReadExt as _;

use super::verdict::{Answer, Check, Expected};
use crate::{
    cli::{
        Session,
        scene::{Consumer, Scene},
    },
    cluster::{self, READ_LIMIT, path},
    facts::{
        Namespace,
        raw::{elements, text},
    },
};

/// Containers that are asked at a time.
const ASKED_AT_ONCE: usize = 8;
/// How long a container may take to answer.
const ANSWER_LIMIT: Duration = Duration::from_secs(20);
/// Of a container's answer, names all of them, more isn't read.
const MOST: u64 = 64 * 1024;

/// Says which of the names that it is given the first process has. `$0` is where that process' environment lies.
const SCRIPT: &str = r#"[ -r "$0" ] || exit 3
for name in "$@"; do
  if tr '\0' '\n' < "$0" | grep -q "^$name="; then echo "$name"; fi
done"#;
const ENVIRON: &str = "/proc/1/environ";

/// A question to a container.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Question {
    container: String,
    names: BTreeSet<String>,
    /// Why it can't be asked.
    obstacle: Option<&'static str>,
}

/// Asks in each live pod of each consumer.
pub async fn ask(
    session: &Session,
    namespace: &Namespace,
    scene: &Scene,
    consumers: &[&Consumer],
    expected: &Expected,
) -> Vec<Check> {
    let pods =
        consumers.iter().flat_map(|consumer| scene.live_pods(consumer).map(move |pod| (*consumer, pod)));
    let asked = pods.map(|(consumer, pod)| ask_pod(session, namespace, consumer, &pod.name, expected));
    let answers: Vec<Vec<Check>> =
        stream::iter(asked.collect::<Vec<_>>()).buffered(ASKED_AT_ONCE).collect().await;
    answers.into_iter().flatten().collect()
}

async fn ask_pod(
    session: &Session,
    namespace: &Namespace,
    consumer: &Consumer,
    pod: &str,
    expected: &Expected,
) -> Vec<Check> {
    let request = cluster::get(&format!("{}/{pod}", path::core(Some(namespace), "pods")));
    let object: Value = match session.api.json(request, READ_LIMIT).await {
        Ok(object) => object,
        Err(fault) => {
            let name = format!("the processes of pod {pod} have the expected names");
            return vec![check(consumer, name, Answer::Unknown, cluster::words(&fault))];
        }
    };
    let mut checks = Vec::new();
    for question in questions(&object, expected) {
        let names: Vec<&str> = question.names.iter().map(String::as_str).collect();
        let name = format!("container {} of pod {pod} has {}", question.container, names.join(", "));
        let (answer, detail) = match question.obstacle {
            Some(obstacle) => (Answer::Unknown, obstacle.to_owned()),
            None => judge(&question, exec(session, namespace, pod, &question).await),
        };
        checks.push(check(consumer, name, answer, detail));
    }
    checks
}

fn check(consumer: &Consumer, name: String, answer: Answer, detail: String) -> Check {
    let rolls = consumer.workload.as_ref().map(|_| consumer.to_string());
    Check { name, answer, detail, rolls }
}

/// What is to be asked in a pod: of each container the names that it has from the expected Secrets' keys.
fn questions(pod: &Value, expected: &Expected) -> Vec<Question> {
    let spec = pod.get("spec").unwrap_or(&Value::Null);
    let is_set = |field: &str| spec.get(field).and_then(Value::as_bool).unwrap_or(false);
    let obstacle = (is_set("shareProcessNamespace") || is_set("hostPID"))
        .then_some("its pod shares processes, so which is the container's isn't known");
    let of = |container: &Value| {
        let names: BTreeSet<String> = elements(container, "env")
            .filter(|one| is_expected(one, expected))
            .filter_map(env_name)
            .collect();
        let container = text(container, "name")?.to_owned();
        (!names.is_empty()).then_some(Question { container, names, obstacle })
    };
    elements(spec, "containers").filter_map(of).collect()
}

/// A name that a shell and a pattern can be given as it is; others exist, and aren't asked for.
fn env_name(env: &Value) -> Option<String> {
    let name = text(env, "name")?;
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    plain.then(|| name.to_owned())
}

fn is_expected(env: &Value, expected: &Expected) -> bool {
    let reference = env.get("valueFrom").and_then(|from| from.get("secretKeyRef"));
    reference.is_some_and(|reference| {
        let (secret, key) = (text(reference, "name"), text(reference, "key"));
        let keys = secret.and_then(|secret| expected.get(secret));
        keys.is_some_and(|keys| key.is_some_and(|key| keys.contains(key)))
    })
}

/// The names that a container says it has.
async fn exec(
    session: &Session,
    namespace: &Namespace,
    pod: &str,
    question: &Question,
) -> Result<BTreeSet<String>, String> {
    let pods: kube::Api<Pod> = kube::Api::namespaced(session.client.clone(), namespace);
    let params = AttachParams::default().container(&question.container).stdin(false).stderr(false);
    let names = question.names.iter().map(String::as_str);
    let command = ["sh", "-c", SCRIPT, ENVIRON].into_iter().chain(names);
    let asked = async {
        // What kube says of it isn't quoted at length: an answer may hold anything.
        let mut process = pods.exec(pod, command, &params).await.map_err(|_| "it can't be asked")?;
        let mut said = String::new();
        if let Some(out) = process.stdout() {
            out.take(MOST).read_to_string(&mut said).await.map_err(|_| "its answer can't be read")?;
        }
        let status = match process.take_status() {
            Some(status) => status.await,
            None => None,
        };
        let done = status.and_then(|status| status.status).is_some_and(|status| status == "Success");
        if done { Ok(said) } else { Err("it has no shell with tr and grep, or doesn't show its environment") }
    };
    let said = tokio::time::timeout(ANSWER_LIMIT, asked).await;
    let said = said.map_err(|_| "no answer in time".to_owned())?.map_err(str::to_owned)?;
    Ok(said.lines().map(str::to_owned).collect())
}

fn judge(question: &Question, said: Result<BTreeSet<String>, String>) -> (Answer, String) {
    match said {
        Err(why) => (Answer::Unknown, why),
        Ok(said) => {
            let missing: Vec<&str> = question.names.difference(&said).map(String::as_str).collect();
            if missing.is_empty() {
                (Answer::Passed, String::new())
            } else {
                (Answer::Failed, format!("it hasn't {}", missing.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn expected() -> Expected {
        Expected::from([("db".into(), ["password".into(), "token".into()].into())])
    }

    fn env(name: &str, secret: &str, key: &str) -> Value {
        json!({"name": name, "valueFrom": {"secretKeyRef": {"name": secret, "key": key}}})
    }

    #[test]
    fn names_that_come_of_the_expected_keys_are_asked_for() {
        let containers = json!([
            {"name": "app", "env": [env("PASSWORD", "db", "password"), env("X", "db", "other"), env("Y", "tls", "token"), {"name": "Z", "value": "z"}]},
            {"name": "side", "env": [env("a-b", "db", "token")]},
        ]);
        let of = |pod: Value| questions(&pod, &expected());
        let app = Question { container: "app".into(), names: ["PASSWORD".into()].into(), obstacle: None };
        assert_eq!(of(json!({"spec": {"containers": containers}})), [app]);
        let shared = of(json!({"spec": {"containers": containers, "shareProcessNamespace": true}}));
        assert!(shared[0].obstacle.is_some());
    }

    #[test]
    fn the_script_says_names_and_no_values() {
        let folder = tempfile::tempdir().unwrap();
        let environ = folder.path().join("environ");
        std::fs::write(&environ, "PASSWORD=hunter2\0EMPTY=\0TOKEN_2=x\0").unwrap();
        let run = |environ: &std::path::Path| {
            let mut command = std::process::Command::new("sh");
            command.args(["-c", SCRIPT]).arg(environ).args(["PASSWORD", "EMPTY", "TOKEN"]).output().unwrap()
        };
        let output = run(&environ);
        assert_eq!(String::from_utf8_lossy(&output.stdout), "PASSWORD\nEMPTY\n");
        assert!(!run(&folder.path().join("nothing")).status.success());
    }

    #[test]
    fn who_can_not_be_asked_is_unknown() {
        let question =
            Question { container: "c".into(), names: ["A".into(), "B".into()].into(), obstacle: None };
        let of = |said| judge(&question, said).0;
        assert_eq!(of(Err("no".into())), Answer::Unknown);
        assert_eq!(of(Ok(["A".into(), "B".into()].into())), Answer::Passed);
        assert_eq!(judge(&question, Ok(["A".into()].into())), (Answer::Failed, "it hasn't B".to_owned()));
    }
}
