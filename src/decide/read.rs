//! A pod and a ReplicaSet, read from raw objects.

use std::collections::BTreeSet;

use serde_json::Value;

use super::{OwnerFacts, PodFacts, Trouble};
use crate::{
    catalog::read::stamp_of,
    facts::{
        Name, Raw, Uid, Unreadable,
        raw::{elements, text},
    },
};

/// Where a pod's spec keeps containers.
const CONTAINERS: [&str; 3] = ["initContainers", "containers", "ephemeralContainers"];

/// Where its status does.
const STATUSES: [&str; 3] = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];

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
        owner: controller(raw),
        stamp: stamp_of(raw),
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
