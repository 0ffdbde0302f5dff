//! A pod and a ReplicaSet, read from raw objects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{OwnerFacts, PodFacts, Trouble};
use crate::{
    facts::{
        Name, Raw, Uid, Unreadable,
        raw::{elements, text},
    },
    rollout::stamp,
};

/// Where a pod's spec keeps the containers that its template has. Ephemeral ones aren't read: they come from a
/// person who debugs, no template names them, and one that can't start would keep its pod undecided for ever.
const CONTAINERS: [&str; 2] = ["initContainers", "containers"];

/// Where its status does.
const STATUSES: [&str; 2] = ["initContainerStatuses", "containerStatuses"];

/// Why a container waits, as the kubelet says (kubernetes `pkg/kubelet/images/types.go`, the container runtime
/// interface's `errors.go`, and `pkg/kubelet/kuberuntime/kuberuntime_container.go`).
const WAITING: [(&str, Trouble); 8] = [
    ("ErrImagePull", Trouble::ImagePull),
    ("ImagePullBackOff", Trouble::ImagePull),
    ("InvalidImageName", Trouble::ImagePull),
    ("ErrImageNeverPull", Trouble::ImagePull),
    ("ImageInspectError", Trouble::ImagePull),
    ("RegistryUnavailable", Trouble::ImagePull),
    ("SignatureValidationFailed", Trouble::ImagePull),
    ("CreateContainerConfigError", Trouble::Config),
];

/// Reads a pod.
///
/// # Errors
/// It lacks something that every pod has.
pub fn pod(object: &Value) -> Result<PodFacts, Unreadable> {
    let raw = Raw(object);
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let status = object.get("status").unwrap_or(&Value::Null);
    Ok(PodFacts {
        name: raw.name()?,
        uid: raw.uid()?,
        born: raw.created()?,
        version: raw.version()?,
        owner: controller(raw),
        stamp: stamp::found_on(raw),
        ended: matches!(text(status, "phase"), Some("Succeeded" | "Failed")),
        deleting: raw.deleting(),
        ready: condition(status, "Ready").is_some_and(|ready| text(ready, "status") == Some("True")),
        not_started: not_started(spec, status),
        trouble: trouble(status),
    })
}

/// Reads an object's own identity and its controller's: a ReplicaSet stands between a pod and its Deployment.
///
/// # Errors
/// It has no identity.
pub fn owner(object: &Value) -> Result<(Uid, Option<OwnerFacts>), Unreadable> {
    let raw = Raw(object);
    Ok((raw.uid()?, controller(raw)))
}

/// The owner reference that says `controller: true`; there is at most one.
fn controller(raw: Raw<'_>) -> Option<OwnerFacts> {
    let owners = raw.meta("ownerReferences").and_then(Value::as_array)?;
    let owner = owners.iter().find(|owner| owner.get("controller") == Some(&Value::Bool(true)))?;
    Some(OwnerFacts {
        kind: text(owner, "kind")?.into(),
        name: text(owner, "name")?.into(),
        uid: Uid::parse(text(owner, "uid")?),
    })
}

/// The containers of which no status shows that they ever ran. One that is restarting did: what it was started with
/// the first time is what its pod was born with.
fn not_started(spec: &Value, status: &Value) -> Box<[Name]> {
    let started: BTreeSet<&str> = statuses(status)
        .filter(|status| has_started(status))
        .filter_map(|status| text(status, "name"))
        .collect();
    let containers = CONTAINERS.into_iter().flat_map(|list| elements(spec, list));
    let names = containers.filter_map(|container| text(container, "name"));
    let missing: BTreeSet<Name> = names.filter(|name| !started.contains(name)).map(Name::from).collect();
    missing.into_iter().collect()
}

fn has_started(status: &Value) -> bool {
    let has = |state: &str, what: &str| {
        status.get(state).and_then(|state| state.get(what)).is_some_and(Value::is_object)
    };
    has("state", "running")
        || has("state", "terminated")
        || has("lastState", "terminated")
        || status.get("restartCount").and_then(Value::as_i64).is_some_and(|restarts| restarts > 0)
}

fn trouble(status: &Value) -> Option<Trouble> {
    let scheduled = condition(status, "PodScheduled").filter(|is| text(is, "status") == Some("False"));
    if matches!(scheduled.and_then(|is| text(is, "reason")), Some("Unschedulable" | "SchedulingGated")) {
        return Some(Trouble::Unschedulable);
    }
    let reasons = statuses(status)
        .filter_map(|status| status.get("state")?.get("waiting"))
        .filter_map(|waiting| text(waiting, "reason"));
    reasons
        .filter_map(|reason| WAITING.iter().find(|(word, _)| *word == reason))
        .map(|(_, trouble)| *trouble)
        .next()
}

fn statuses(status: &Value) -> impl Iterator<Item = &Value> {
    STATUSES.into_iter().flat_map(|list| elements(status, list))
}

fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    elements(status, "conditions").find(|condition| text(condition, "type") == Some(name))
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a literal reads better without a borrow")]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::facts::{Time, Version};

    fn with(spec: Value, status: Value) -> PodFacts {
        let meta = json!({
            "name": "web-1", "uid": "u", "resourceVersion": "9", "creationTimestamp": "2026-12-01T03:21:07Z",
        });
        pod(&json!({"metadata": meta, "spec": spec, "status": status})).unwrap()
    }

    #[test]
    fn a_pod_is_read_whole() {
        let object = json!({
            "metadata": {
                "name": "web-1",
                "uid": "u",
                "resourceVersion": "9",
                "creationTimestamp": "2026-12-01T03:21:07Z",
                "deletionTimestamp": "2026-12-01T03:22:07Z",
                "annotations": {"uptake.dev/secret-version": "db@7"},
                "ownerReferences": [
                    {"kind": "App", "name": "a", "uid": "x"},
                    {"kind": "ReplicaSet", "name": "web", "uid": "r", "controller": true},
                ],
            },
            "spec": {"containers": [{"name": "c"}]},
            "status": {
                "phase": "Running",
                "conditions": [{"type": "Ready", "status": "True"}],
                "containerStatuses": [{"name": "c", "state": {"running": {"startedAt": "2026-12-01T03:21:09Z"}}}],
            },
        });
        assert_eq!(
            pod(&object),
            Ok(PodFacts {
                name: "web-1".into(),
                uid: Uid::parse("u"),
                born: Time::parse("2026-12-01T03:21:07Z").unwrap(),
                version: Version(9),
                owner: Some(OwnerFacts {
                    kind: "ReplicaSet".into(),
                    name: "web".into(),
                    uid: Uid::parse("r")
                }),
                stamp: Some("db@7".into()),
                ended: false,
                deleting: true,
                ready: true,
                not_started: [].into(),
                trouble: None,
            })
        );
    }

    #[rstest]
    #[case("Pending", false)]
    #[case("Running", false)]
    #[case("Succeeded", true)]
    #[case("Failed", true)]
    #[case("Unknown", false)]
    fn a_pod_has_ended_in_two_phases(#[case] phase: &str, #[case] ended: bool) {
        assert_eq!(with(json!({}), json!({"phase": phase})).ended, ended);
    }

    #[rstest]
    #[case::no_status(json!(null), false)]
    #[case::waiting(json!({"state": {"waiting": {"reason": "ContainerCreating"}}, "restartCount": 0}), false)]
    #[case::running(json!({"state": {"running": {}}}), true)]
    #[case::ended(json!({"state": {"terminated": {"exitCode": 0}}}), true)]
    #[case::waiting_again(json!({"state": {"waiting": {}}, "lastState": {"terminated": {}}}), true)]
    #[case::restarted(json!({"state": {"waiting": {}}, "restartCount": 1}), true)]
    #[case::nothing_ran_before(json!({"state": {"waiting": {}}, "lastState": {}}), false)]
    #[case::null(json!({"state": {"running": null}}), false)]
    fn a_container_has_started_when_anything_shows_that_it_ran(#[case] status: Value, #[case] started: bool) {
        for (list, statuses) in CONTAINERS.into_iter().zip(STATUSES) {
            let mut status = status.clone();
            if status.is_object() {
                status["name"] = json!("c");
            }
            let facts = with(json!({list: [{"name": "c"}]}), json!({statuses: [status]}));
            assert_eq!(facts.not_started.is_empty(), started, "{list}");
        }
    }

    #[test]
    fn containers_that_have_not_started_are_named_in_order() {
        let facts = with(
            json!({"containers": [{"name": "z"}, {"name": "b"}], "initContainers": [{"name": "i"}, {"name": "a"}]}),
            json!({"initContainerStatuses": [{"name": "i", "state": {"terminated": {}}}]}),
        );
        assert_eq!(facts.not_started.iter().map(AsRef::as_ref).collect::<Vec<&str>>(), ["a", "b", "z"]);
    }

    #[test]
    fn a_debugging_container_says_nothing_of_its_pod() {
        let facts = with(
            json!({"ephemeralContainers": [{"name": "debug"}]}),
            json!({"ephemeralContainerStatuses": [
                {"name": "debug", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
            ]}),
        );
        assert_eq!((facts.not_started.len(), facts.trouble), (0, None));
    }

    #[rstest]
    #[case("ErrImagePull", Some(Trouble::ImagePull))]
    #[case("ImagePullBackOff", Some(Trouble::ImagePull))]
    #[case("InvalidImageName", Some(Trouble::ImagePull))]
    #[case("ErrImageNeverPull", Some(Trouble::ImagePull))]
    #[case("CreateContainerConfigError", Some(Trouble::Config))]
    #[case("ContainerCreating", None)]
    #[case("CrashLoopBackOff", None)]
    fn a_waiting_container_tells_the_trouble(#[case] reason: &str, #[case] trouble: Option<Trouble>) {
        let waiting = json!([{"name": "x"}, {"name": "c", "state": {"waiting": {"reason": reason}}}]);
        for statuses in STATUSES {
            assert_eq!(with(json!({}), json!({statuses: waiting})).trouble, trouble);
        }
    }

    #[rstest]
    #[case("False", "Unschedulable", Some(Trouble::Unschedulable))]
    #[case("False", "SchedulingGated", Some(Trouble::Unschedulable))]
    #[case("False", "SchedulerError", None)]
    #[case("True", "Unschedulable", None)]
    fn a_pod_that_no_node_takes(#[case] is: &str, #[case] reason: &str, #[case] trouble: Option<Trouble>) {
        let conditions = json!([{"type": "PodScheduled", "status": is, "reason": reason}]);
        assert_eq!(with(json!({}), json!({"conditions": conditions})).trouble, trouble);
    }

    #[rstest]
    #[case(json!({}), "metadata.name is missing")]
    #[case(json!({"metadata": {"name": "n"}}), "metadata.uid is missing")]
    #[case(json!({"metadata": {"name": "n", "uid": "u"}}), "metadata.creationTimestamp is missing")]
    #[case(
        json!({"metadata": {"name": "n", "uid": "u", "creationTimestamp": "now"}}),
        "metadata.creationTimestamp isn't a time: \"now\""
    )]
    fn what_makes_it_unreadable_is_named(#[case] object: Value, #[case] words: &str) {
        assert_eq!(pod(&object).unwrap_err().to_string(), words);
    }

    #[rstest]
    #[case::none(json!(null))]
    #[case::not_controlling(json!([{"kind": "K", "name": "n", "uid": "u", "controller": false}]))]
    #[case::without_uid(json!([{"kind": "K", "name": "n", "controller": true}]))]
    #[case::odd(json!([null, 1, {"controller": "true"}]))]
    fn an_object_may_have_no_controller(#[case] owners: Value) {
        let object = json!({"metadata": {"uid": "u", "ownerReferences": owners}});
        assert_eq!(owner(&object), Ok((Uid::parse("u"), None)));
    }

    #[test]
    fn a_replica_set_belongs_to_its_deployment() {
        let owners = json!([{"kind": "Deployment", "name": "web", "uid": "d", "controller": true}]);
        let object = json!({"metadata": {"uid": "r", "ownerReferences": owners}});
        let deployment = OwnerFacts { kind: "Deployment".into(), name: "web".into(), uid: Uid::parse("d") };
        assert_eq!(owner(&object), Ok((Uid::parse("r"), Some(deployment))));
    }

    #[test]
    fn odd_specs_and_statuses_say_nothing() {
        for odd in [
            json!(null),
            json!("x"),
            json!({"containers": [null, {"name": 1}], "conditions": {}, "phase": []}),
        ] {
            let facts = with(odd.clone(), odd);
            assert_eq!(
                (facts.not_started.len(), facts.ended, facts.ready, facts.trouble),
                (0, false, false, None)
            );
        }
    }
}
