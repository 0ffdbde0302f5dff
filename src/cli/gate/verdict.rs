//! What a gate asks, and the answers. Pure.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::{
    catalog::{
        policy::Mode,
        reference::{Keys, Reference, Rolls},
    },
    cli::{
        Exit,
        scene::{Consumer, Scene},
        status::render::counted,
        target::Target,
    },
    facts::{Name, SecretId, class_source},
};

/// The report of `gate`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// What the gate is about.
    pub target: String,
    /// The namespace.
    pub namespace: String,
    /// All in one word.
    pub status: Answer,
    /// How many consumers there are.
    pub consumers: usize,
    /// Whether the consumers were rolled.
    pub restarted: bool,
    /// What was asked, and the answers.
    pub checks: Vec<Check>,
    /// All in words.
    pub message: String,
}

/// A question and its answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Check {
    /// What is asked.
    pub name: String,
    /// The answer.
    pub answer: Answer,
    /// More of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// The consumer that it is about, if it can be rolled.
    #[serde(skip)]
    pub rolls: Option<String>,
}

/// An answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// It is so.
    Passed,
    /// It isn't asked: its owner opted out.
    Skipped,
    /// It can't be told now, but soon: a pod starts.
    Pending,
    /// It can't be told.
    Unknown,
    /// It isn't so.
    Failed,
}

/// What the target expects: the keys of each Secret.
pub type Expected = BTreeMap<Name, BTreeSet<Name>>;

/// Which consumers the target is about, and what it expects.
#[must_use]
pub fn expected(scene: &Scene, target: &Target) -> Expected {
    let mut expected = Expected::new();
    match target {
        Target::Secret(name) => {
            let keys = expected.entry(name.clone()).or_default();
            for consumer in consumers(scene, target) {
                let required = consumer.references.iter().filter(|one| one.secret == *name && !one.optional);
                keys.extend(required.flat_map(named));
            }
        }
        Target::ProviderClass(name) => {
            for class in scene.classes.iter().filter(|class| class.id.name == *name) {
                for synced in class.synced.iter() {
                    let keys = expected.entry(synced.name.clone()).or_default();
                    if let Keys::Named(named) = &synced.keys {
                        keys.extend(named.iter().cloned());
                    }
                }
            }
        }
        Target::Consumer(_) => {}
    }
    expected
}

fn named(reference: &Reference) -> Vec<Name> {
    match &reference.keys {
        Keys::All => Vec::new(),
        Keys::Named(keys) => keys.to_vec(),
    }
}

/// The consumers that the target is about.
pub fn consumers<'a>(scene: &'a Scene, target: &'a Target) -> impl Iterator<Item = &'a Consumer> {
    scene.consumers.iter().filter(move |consumer| match target {
        Target::Secret(name) => consumer.names(name),
        Target::ProviderClass(name) => {
            consumer.declared.provider_classes.iter().any(|mounted| mounted.name == *name)
        }
        Target::Consumer(_) => false,
    })
}

/// Asks everything.
#[must_use]
pub fn checks(scene: &Scene, namespace: &str, target: &Target) -> Vec<Check> {
    let expected = expected(scene, target);
    let mut checks: Vec<Check> = scene
        .unknown
        .iter()
        .filter(|unknown| unknown.kind != "ServiceAccount")
        .map(|unknown| asked(format!("{} can be listed", unknown.kind), Answer::Unknown, &unknown.message))
        .collect();
    if matches!(target, Target::ProviderClass(name) if !scene.classes.iter().any(|class| class.id.name == *name))
    {
        checks.push(asked(
            format!("{target} exists"),
            Answer::Failed,
            "there is no such class, or it names no Secret",
        ));
    }
    if scene.knows_secrets() {
        for (secret, keys) in &expected {
            checks.extend(keys_there(scene, namespace, secret, keys));
        }
    }
    checks.extend(consumers(scene, target).map(|consumer| pods(scene, consumer, target, &expected)));
    checks
}

fn asked(name: impl Into<String>, answer: Answer, detail: impl Into<String>) -> Check {
    Check { name: name.into(), answer, detail: detail.into(), rolls: None }
}

fn keys_there(scene: &Scene, namespace: &str, secret: &Name, keys: &BTreeSet<Name>) -> Vec<Check> {
    let Some(facts) = scene.secret(&SecretId::new(namespace, secret.clone())) else {
        return vec![asked(format!("Secret {secret} exists"), Answer::Failed, "it doesn't")];
    };
    let mut checks = vec![asked(format!("Secret {secret} exists"), Answer::Passed, "")];
    checks.extend(keys.iter().map(|key| {
        let name = format!("Secret {secret} has the key {key}");
        match facts.key(key) {
            Some(_) => asked(name, Answer::Passed, ""),
            None => asked(name, Answer::Failed, "it doesn't"),
        }
    }));
    checks
}

fn pods(scene: &Scene, consumer: &Consumer, target: &Target, expected: &Expected) -> Check {
    let name = format!("pods of {consumer} are younger than the values they use");
    // What a class mounts stands among Secrets under a name of its own.
    let class = if let Target::ProviderClass(name) = target { Some(class_source(name)) } else { None };
    let mine = |reference: &Reference| {
        expected.contains_key(&reference.secret) || class.as_ref() == Some(&reference.secret)
    };
    let opted_out = consumer.policy.rollout == Some(Mode::Off)
        || consumer
            .references
            .iter()
            .filter(|one| mine(one))
            .all(|reference| reference.rolls == Rolls::Ignored);
    if opted_out {
        let reason = consumer.policy.reason.as_deref().unwrap_or("without a reason");
        return asked(name, Answer::Skipped, format!("opted out: {reason}"));
    }
    let Ok(look) = scene.look(consumer, &mine) else {
        return asked(name, Answer::Unknown, "births can't be compared");
    };
    let rolls = consumer.workload.as_ref().map(|_| consumer.to_string());
    let (answer, detail) = if !look.stale.is_empty() {
        let names: Vec<&str> = look.stale.iter().map(|stale| &*stale.pod.name).collect();
        let fate = if rolls.is_none() { format!("; {}", consumer.fate) } else { String::new() };
        (Answer::Failed, format!("stale: {}{fate}", names.join(", ")))
    } else if look.consumption.untracked {
        (Answer::Unknown, "what it consumes can't be read".to_owned())
    } else if let Some(pod) = look.undecided.first() {
        (Answer::Pending, format!("{} hasn't started", pod.name))
    } else {
        (Answer::Passed, counted(look.verdict.live, "pod"))
    };
    Check { name, answer, detail, rolls }
}

/// All in one: the worst of them.
#[must_use]
pub fn overall(checks: &[Check]) -> Answer {
    let worst = checks.iter().map(|check| check.answer).max().unwrap_or(Answer::Passed);
    if worst == Answer::Skipped { Answer::Passed } else { worst }
}

impl Report {
    /// How the verb ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self.status {
            Answer::Passed | Answer::Skipped => Exit::Done,
            Answer::Failed => Exit::No,
            Answer::Pending | Answer::Unknown => Exit::Unknown,
        }
    }
}
