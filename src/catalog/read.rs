//! A workload, read from a raw object.
//!
//! Each object is read by itself, so that one that can't be read is told about and costs its list nothing else.

use std::sync::Arc;

use serde_json::Value;

use super::{
    Declared, Selector, Workload,
    policy::{self, ReferenceAnnotations, WorkloadPolicy},
    references::{references, service_account},
    template,
};
use crate::{
    facts::{
        Kind, Name, Raw, Time, Unreadable, WorkloadId,
        raw::{elements, text},
        text::printable,
    },
    rollout::{read, stamp},
};

/// The field manager of Uptake's own writes.
pub const MANAGER: &str = "uptake";

/// As long as a name can be.
const MAX_NAME: usize = 253;

/// How workloads are read in this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReadOptions {
    /// `--roll-volumes`: whether a change of mounted files rolls workloads that don't say that they re-read them.
    pub roll_volumes: bool,
}

/// What a workload's text says of the Secrets it consumes, whether an API server served it or a manifest wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Consumption {
    /// What it says of references.
    pub declared: Declared,
    /// What its annotations ask for; the references' problems are among its own.
    pub policy: WorkloadPolicy,
    /// The ServiceAccount its pods run as, whose pull secrets they inherit.
    pub service_account: Name,
}

/// Reads a workload that the API server served.
///
/// # Errors
/// It lacks something that every workload has.
pub fn workload(kind: &Kind, object: &Value, options: &ReadOptions) -> Result<Workload, Unreadable> {
    let raw = Raw(object);
    let (id, uid, version) =
        (WorkloadId::new(kind.clone(), raw.namespace()?, raw.name()?), raw.uid()?, raw.version()?);
    let template = template_of(kind, object)?;
    let Consumption { declared, policy, service_account } = consumption(object, template, options);
    Ok(Workload {
        id,
        uid,
        version,
        deleting: raw.deleting(),
        references: Arc::clone(&declared.references),
        reference_count: declared.count,
        declared: Arc::new(declared),
        policy,
        template: template::hash(template),
        stamp: stamp::found_on(Raw(template)),
        selector: Selector::of(kind, object),
        service_account,
        rollout: read::facts(kind, object),
        last_writer: last_writer(raw, &kind.template_path()).map(Name::from),
    })
}

/// Reads what a workload consumes, of its pod template as [`template_of`] finds it. No object is too odd for it.
#[must_use]
pub fn consumption(object: &Value, template: &Value, options: &ReadOptions) -> Consumption {
    let (mut policy, annotations) = policy::parse(Raw(object).annotations());
    let references = references(template, &annotations, options.roll_volumes);
    if !references.problems.is_empty() {
        policy.problems = policy.problems.iter().chain(&references.problems).cloned().collect();
    }
    let mounts_classes = !references.provider_classes.is_empty();
    let declared = Declared {
        references: references.kept.into(),
        count: references.count,
        provider_classes: references.provider_classes.into(),
        annotations: if mounts_classes { annotations } else { ReferenceAnnotations::default() },
        roll_volumes: options.roll_volumes,
    };
    Consumption { declared, policy, service_account: service_account(template) }
}

/// The pod template of a workload.
///
/// # Errors
/// There is none where the kind says it lies, or it isn't one.
pub fn template_of<'a>(kind: &Kind, object: &'a Value) -> Result<&'a Value, Unreadable> {
    let path = kind.template_path();
    let found = path.iter().try_fold(object, |at, field| at.get(field)).filter(|found| !found.is_null());
    let Some(template) = found else {
        return Err(elsewhere(object).unwrap_or_else(|| Unreadable::NoTemplate(path.join("."))));
    };
    if !template.is_object() {
        return Err(Unreadable::TemplateNotAnObject(path.join(".")));
    }
    // The API server sees to it of its own kinds; a custom kind's schema may allow anything.
    let empty = || template.get("spec").is_none_or(|spec| elements(spec, "containers").next().is_none());
    if matches!(kind, Kind::Custom(_)) && empty() {
        let nowhere = || Unreadable::TemplateWithoutContainers(path.join("."));
        return Err(elsewhere(object).unwrap_or_else(nowhere));
    }
    Ok(template)
}

/// An Argo Rollout may have the template of a Deployment that it refers to.
fn elsewhere(object: &Value) -> Option<Unreadable> {
    let to = object.get("spec")?.get("workloadRef").filter(|to| to.is_object())?;
    let part = |field| printable(text(to, field).unwrap_or_default(), MAX_NAME);
    Some(Unreadable::TemplateElsewhere(format!("{} \"{}\"", part("kind"), part("name"))))
}

/// The manager that last wrote the template, other than Uptake: of the `managedFields` entries that own any of it
/// the latest, or else the latest of all that wrote the object itself and not a subresource. It is what is known
/// and no proof: removing a field leaves no entry, and anybody may call himself anything.
fn last_writer<'a>(raw: Raw<'a>, template: &[&str]) -> Option<&'a str> {
    let entries = || {
        let all = raw.meta("managedFields").and_then(Value::as_array).into_iter().flatten();
        all.filter(|entry| text(entry, "subresource").is_none())
            .filter(|entry| text(entry, "manager").is_some_and(|manager| manager != MANAGER))
    };
    let owns = |entry: &&Value| {
        let fields = template.iter().try_fold(entry.get("fieldsV1")?, |at, step| at.get(format!("f:{step}")));
        fields.map(|_| ())
    };
    let latest = |entry: &&Value| text(entry, "time").and_then(Time::parse);
    let owner = entries().filter(|entry| owns(entry).is_some()).max_by_key(latest);
    owner.or_else(|| entries().max_by_key(latest)).and_then(|entry| text(entry, "manager"))
}

#[cfg(test)]
mod tests;
