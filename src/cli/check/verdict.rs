//! What is said of each pod template that consumes a Secret. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::{Value, json};

use super::{
    templates::{Object, Template},
    yaml::Unreadable,
};
use crate::{
    args::WorkloadArg,
    catalog::{
        beside::{Beside, BesideId, ProviderClassFacts, ServiceAccountFacts},
        effective,
        policy::{Mode, WorkloadPolicy},
        read::consumption,
        reference::{Reference, Rolls},
    },
    cli::{
        gather::READ,
        scene::Fate,
        status::report::{ReferenceReport, reference_report},
    },
    facts::{Raw, raw::text},
};

/// The report of `check`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// All in numbers.
    pub summary: Summary,
    /// Every pod template that consumes a Secret.
    pub consumers: Vec<ConsumerReport>,
    /// What can't be read.
    pub errors: Vec<ErrorReport>,
}

/// All in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Objects that were read.
    pub objects: usize,
    /// Pod templates that consume a Secret.
    pub consumers: usize,
    /// Those that are rolled, or need no rollout.
    pub covered: usize,
    /// Those that opted out and say why.
    pub opted_out: usize,
    /// Those that nothing can roll.
    pub cant_roll: usize,
    /// Those that somebody has to decide about.
    pub pending: usize,
}

/// A pod template that consumes a Secret.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerReport {
    /// The file; `-` is standard input.
    pub file: String,
    /// The line of its object.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The object's API version.
    pub api_version: String,
    /// Its kind.
    pub kind: String,
    /// Its namespace, if it says.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Its name.
    pub name: String,
    /// Where the template lies in it.
    pub template: String,
    /// What it consumes.
    pub references: Vec<ReferenceReport>,
    /// What is to be said of it.
    pub state: State,
    /// Why.
    pub reason: String,
}

/// What is to be said of a template.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Somebody has to decide.
    Pending,
    /// Nothing can roll it.
    CantRoll,
    /// It opted out, and says why.
    OptedOut,
    /// It is rolled, or needs no rollout.
    Covered,
}

/// What can't be read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorReport {
    /// The file.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// Why.
    pub message: String,
}

impl ErrorReport {
    /// Of that file.
    #[must_use]
    pub fn new(file: &str, unreadable: Unreadable) -> Self {
        let Unreadable { place, message } = unreadable;
        Self { file: file.to_owned(), line: place.line, column: place.column, message }
    }
}

/// How it is judged.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// There is no operator.
    pub without_operator: bool,
    /// Custom kinds that the operator rolls.
    pub workloads: Vec<WorkloadArg>,
    /// Those that were examined, if there is a list of them.
    pub examined: Option<BTreeSet<String>>,
}

/// Judges all templates of all objects, each with its file's name.
#[must_use]
pub fn report(objects: &[(String, Object)], errors: Vec<ErrorReport>, options: &Options) -> Report {
    let known = Known::of(objects);
    let mut consumers: Vec<ConsumerReport> = objects
        .iter()
        .flat_map(|(file, object)| object.templates.iter().map(move |template| (file, object, template)))
        .filter_map(|(file, object, template)| consumer(file, object, template, &known, options))
        .collect();
    consumers.sort_by(|a, b| (a.state, &a.file, a.line).cmp(&(b.state, &b.file, b.line)));
    let count = |state: State| consumers.iter().filter(|one| one.state == state).count();
    let summary = Summary {
        objects: objects.len(),
        consumers: consumers.len(),
        covered: count(State::Covered),
        opted_out: count(State::OptedOut),
        cant_roll: count(State::CantRoll),
        pending: count(State::Pending),
    };
    Report { summary, consumers, errors }
}

/// What the manifests say beside their workloads.
struct Known {
    accounts: BTreeMap<BesideId, ServiceAccountFacts>,
    classes: BTreeMap<BesideId, ProviderClassFacts>,
}

impl Known {
    fn of(objects: &[(String, Object)]) -> Self {
        Self { accounts: all(objects, "ServiceAccount"), classes: all(objects, "SecretProviderClass") }
    }
}

fn all<T: Beside>(objects: &[(String, Object)], kind: &str) -> BTreeMap<BesideId, T> {
    let of_kind = objects.iter().filter(|(_, object)| text(&object.value, "kind") == Some(kind));
    let read = of_kind.filter_map(|(_, object)| {
        let mut value = object.value.clone();
        value["metadata"]["namespace"] = json!(namespace(&object.value).unwrap_or(SOME_NAMESPACE));
        T::read(&value).ok()
    });
    read.map(|read| (read.id().clone(), read)).collect()
}

/// Manifests without a namespace are of one, whichever that will be.
const SOME_NAMESPACE: &str = "-";

fn namespace(object: &Value) -> Option<&str> {
    object.get("metadata").and_then(|meta| text(meta, "namespace"))
}

fn consumer(
    file: &str,
    object: &Object,
    template: &Template,
    known: &Known,
    options: &Options,
) -> Option<ConsumerReport> {
    let value = &object.value;
    let consumption = consumption(value, &template.value, &READ);
    let id = |name: &str| BesideId::new(namespace(value).unwrap_or(SOME_NAMESPACE), name);
    let account = known.accounts.get(&id(&consumption.service_account));
    let effective = effective(&consumption.declared, account, |class| known.classes.get(&id(class)));
    let references: Vec<ReferenceReport> =
        effective.kept.iter().map(|reference| reference_report(reference, false)).collect();
    if references.is_empty() {
        return None;
    }
    let kind = text(value, "kind").unwrap_or_default();
    let name =
        value.get("metadata").and_then(|meta| text(meta, "name").or_else(|| text(meta, "generateName")));
    let name = name.unwrap_or_default();
    let subject = Subject {
        api_version: text(value, "apiVersion").unwrap_or_default(),
        kind,
        template,
        policy: &consumption.policy,
        references: &effective.kept,
    };
    let (state, reason) = judge(&subject, options);
    let (state, reason) = match &options.examined {
        Some(examined) if state != State::Pending && !is_among(examined, kind, namespace(value), name) => {
            (State::Pending, "it isn't among those that were examined".to_owned())
        }
        _ => (state, reason),
    };
    Some(ConsumerReport {
        file: file.to_owned(),
        line: object.place.line,
        column: object.place.column,
        api_version: subject.api_version.to_owned(),
        kind: kind.to_owned(),
        namespace: namespace(value).map(ToOwned::to_owned),
        name: name.to_owned(),
        template: template.path.clone(),
        references,
        state,
        reason,
    })
}

fn is_among(examined: &BTreeSet<String>, kind: &str, namespace: Option<&str>, name: &str) -> bool {
    let of_namespace =
        namespace.is_some_and(|namespace| examined.contains(&format!("{kind}/{namespace}/{name}")));
    of_namespace || examined.contains(&format!("{kind}/{name}"))
}

/// A template with all that decides about it.
struct Subject<'a> {
    api_version: &'a str,
    kind: &'a str,
    template: &'a Template,
    policy: &'a WorkloadPolicy,
    references: &'a [Reference],
}

/// The order of the lines is the order of the rules.
fn judge(subject: &Subject<'_>, options: &Options) -> (State, String) {
    if let Some(problem) = subject.policy.problems.first() {
        return (State::Pending, format!("{}: {}", problem.of, problem.message));
    }
    if let Some(opted) = opted_out(subject) {
        return match &subject.policy.reason {
            Some(reason) => (State::OptedOut, format!("{opted}: {reason}")),
            None => (State::Pending, format!("{opted} without a reason: say why in uptake.dev/reason")),
        };
    }
    if let Some(fate) = fate(subject.kind) {
        return (State::CantRoll, fate.to_string());
    }
    if !subject.references.is_empty()
        && subject
            .references
            .iter()
            .all(|one| matches!(one.rolls, Rolls::Reloads | Rolls::KindIsListedOnly | Rolls::Ignored))
    {
        return (State::Covered, "a change needs no rollout".to_owned());
    }
    if options.without_operator {
        return match checksum(&subject.template.value) {
            Some(annotation) => (State::Covered, format!("the template carries {annotation}")),
            None => (
                State::Pending,
                "without the operator nothing rolls it: its template carries no version or checksum annotation"
                    .to_owned(),
            ),
        };
    }
    if rolls(subject, &options.workloads) {
        return (State::Covered, "the operator rolls it".to_owned());
    }
    let reason = format!(
        "the operator doesn't know the kind: tell it --workload {}/{}={}, or opt out with a reason",
        subject.api_version, subject.kind, subject.template.path
    );
    (State::Pending, reason)
}

fn opted_out(subject: &Subject<'_>) -> Option<&'static str> {
    let ignored = !subject.references.is_empty()
        && subject.references.iter().all(|reference| reference.rolls == Rolls::Ignored);
    match subject.policy.rollout {
        Some(Mode::Off) => Some("opted out"),
        Some(Mode::Report) => Some("reported only"),
        Some(Mode::Auto) | None => ignored.then_some("ignores its Secrets"),
    }
}

/// What becomes of the pods of kinds that a template can't roll.
fn fate(kind: &str) -> Option<Fate> {
    Some(match kind {
        "Pod" => Fate::PodStays,
        "ReplicaSet" | "ReplicationController" => Fate::ReplicaSetStays,
        "Job" => Fate::JobGoesOn,
        "CronJob" => Fate::NextRun { suspended: false },
        _ => return None,
    })
}

fn rolls(subject: &Subject<'_>, workloads: &[WorkloadArg]) -> bool {
    let builtin = subject.api_version.starts_with("apps/")
        && matches!(subject.kind, "Deployment" | "StatefulSet" | "DaemonSet");
    builtin
        || workloads.iter().any(|custom| {
            custom.kind == subject.kind
                && subject.api_version.split('/').next() == Some(&custom.group)
                && custom.template.join(".") == subject.template.path
        })
}

/// An annotation that changes with a Secret, as Helm charts and kustomize write one.
fn checksum(template: &Value) -> Option<&str> {
    const WORDS: [&str; 4] = ["checksum", "sha256", "hash", "secret-version"];
    let annotations = Raw(template).annotations()?;
    let mut names =
        annotations.iter().filter(|(_, value)| value.as_str().is_some_and(|text| !text.is_empty()));
    names.find(|(name, _)| WORDS.iter().any(|word| name.contains(word))).map(|(name, _)| name.as_str())
}
