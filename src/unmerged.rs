//! STUB, to be deleted on merge: what `catalog::read`, `decide::read` and `rollout::stamp` of branch h2 will be.
//!
//! To merge: delete this file, and in its four users write
//! `use crate::{catalog::read::{ReadOptions, workload as read_workload}, decide::read::{owner as read_owner, pod as read_pod}}`.

use serde_json::Value;

use crate::{
    catalog::{TemplateHash, Workload, policy::WorkloadPolicy},
    decide::{OwnerFacts, PodFacts},
    facts::{Kind, Time, Uid, WorkloadId},
    rollout::RolloutFacts,
};

/// `catalog::read::ReadOptions`.
#[derive(Clone, Copy, Debug)]
pub struct ReadOptions {
    /// `--roll-volumes`.
    pub roll_volumes: bool,
}

/// `catalog::read::Unreadable`.
#[derive(Debug)]
pub struct Unreadable;

fn text<'a>(object: &'a Value, pointer: &str) -> Option<&'a str> {
    object.pointer(pointer).and_then(Value::as_str)
}

/// `catalog::read::workload`.
///
/// # Errors
/// It is no workload.
pub fn read_workload(kind: &Kind, object: &Value, _options: &ReadOptions) -> Result<Workload, Unreadable> {
    let required = |pointer| text(object, pointer).ok_or(Unreadable);
    Ok(Workload {
        id: WorkloadId::new(kind.clone(), required("/metadata/namespace")?, required("/metadata/name")?),
        uid: Uid::parse(required("/metadata/uid")?),
        version: required("/metadata/resourceVersion")?.parse().map_err(|_| Unreadable)?,
        deleting: text(object, "/metadata/deletionTimestamp").is_some(),
        references: [].into(),
        reference_count: 0,
        policy: WorkloadPolicy::default(),
        template: TemplateHash::default(),
        stamp: text(object, "/spec/template/metadata/annotations/uptake.dev~1secret-version").map(Into::into),
        service_account: "default".into(),
        rollout: RolloutFacts::default(),
        last_writer: None,
    })
}

/// `decide::read::pod`.
///
/// # Errors
/// It is no pod.
pub fn read_pod(object: &Value) -> Result<PodFacts, Unreadable> {
    let required = |pointer| text(object, pointer).ok_or(Unreadable);
    Ok(PodFacts {
        name: required("/metadata/name")?.into(),
        uid: Uid::parse(required("/metadata/uid")?),
        born: Time::parse(required("/metadata/creationTimestamp")?).ok_or(Unreadable)?,
        owner: controller(object),
        stamp: None,
        ended: false,
        deleting: false,
        ready: false,
        not_started: [].into(),
        trouble: None,
    })
}

/// `decide::read::owner`.
///
/// # Errors
/// It has no uid.
pub fn read_owner(object: &Value) -> Result<(Uid, Option<OwnerFacts>), Unreadable> {
    let uid = text(object, "/metadata/uid").ok_or(Unreadable)?;
    Ok((Uid::parse(uid), controller(object)))
}

fn controller(object: &Value) -> Option<OwnerFacts> {
    let owners = object.pointer("/metadata/ownerReferences")?.as_array()?;
    let owner = owners.iter().find(|owner| owner["controller"] == true)?;
    Some(OwnerFacts {
        kind: text(owner, "/kind")?.into(),
        name: text(owner, "/name")?.into(),
        uid: Uid::parse(text(owner, "/uid")?),
    })
}
