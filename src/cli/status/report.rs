//! What is said of each consumer. Pure.

use std::cmp::Reverse;

use serde::Serialize;

use crate::{
    catalog::{
        policy::{Mode, Source},
        reference::{Keys, Origin, Reference, Rolls},
    },
    cli::{
        scene::{Consumer, Fate, Look, Meant, Scene, Unknown},
        target::Target,
    },
    decide::{Decision, Held, Missing, ReportOnly},
    facts::{Name, Namespace, SecretId, Time},
    rollout::{Outcome, State, state},
};

/// The report of `status`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// When it was made, by the API server's clock.
    pub at: String,
    /// The namespace that it is about; none if all are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Namespace>,
    /// Whether the operator's ledger was read: without it, staleness is only probable.
    pub ledger: bool,
    /// What the operator is taken to have been told.
    pub operator: OperatorReport,
    /// All in numbers.
    pub summary: Summary,
    /// The consumers, those first that need attention.
    pub consumers: Vec<ConsumerReport>,
    /// What couldn't be listed.
    pub unknown: Vec<Unknown>,
}

/// What the operator is taken to have been told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OperatorReport {
    /// `ledger` if it says so itself, or `defaults`.
    pub from: &'static str,
    /// Where its ledger was looked for.
    pub namespace: Namespace,
    /// Its mode where no annotation says otherwise.
    pub default_rollout: &'static str,
    /// Whether a change of a mounted Secret rolls.
    pub roll_volumes: bool,
}

/// All in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Consumers.
    pub consumers: usize,
    /// Those that somebody should look at.
    pub attention: usize,
    /// Live pods.
    pub pods: usize,
    /// Pods with the current values.
    pub fresh: usize,
    /// Pods with an old value.
    pub stale: usize,
    /// Pods that are older than their Secret's last writing.
    pub probably_stale: usize,
    /// Pods of which a consuming container hasn't started.
    pub undecided: usize,
    /// Pods of which nothing is known.
    pub unknown: usize,
}

/// What is said of one consumer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConsumerReport {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its kind.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// How it references Secrets.
    pub references: Vec<ReferenceReport>,
    /// Its live pods.
    pub pods: PodsReport,
    /// How its last rollout by Uptake ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_outcome: Option<OutcomeReport>,
    /// What keeps it from being rolled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held: Option<HeldReport>,
    /// What Uptake may do with it.
    pub policy: PolicyReport,
    /// What becomes of its pods when a Secret changes, if it can't be rolled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fate: Option<String>,
    /// Whether only a person can replace its stale pods.
    #[serde(skip)]
    needs_a_person: bool,
    /// Whether nothing of it is known but its pods.
    #[serde(skip)]
    not_listed: bool,
}

/// How a Secret is referenced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReferenceReport {
    /// The Secret.
    pub secret: Name,
    /// How.
    pub via: &'static str,
    /// Which keys; none: all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keys: Option<Vec<Name>>,
    /// Whether pods start without.
    pub optional: bool,
    /// Where it stands, if not in the workload itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    /// Whether a change rolls the workload, and why not if not.
    pub rolls: &'static str,
}

/// A consumer's live pods.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodsReport {
    /// How many there are.
    pub live: usize,
    /// How many hold the current values; none if that can't be told.
    pub fresh: Option<usize>,
    /// Those that don't.
    pub stale: Vec<StalePod>,
    /// Those of which a consuming container hasn't started.
    pub undecided: Vec<Name>,
}

/// A pod with an old value.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StalePod {
    /// Its name.
    pub name: Name,
    /// `stale`, or `probably_stale` without a ledger that knows.
    pub state: &'static str,
    /// When it was born.
    pub born: String,
    /// Since when it is stale.
    pub since: String,
    /// Of which values: `SECRET/KEY`, or the Secret for all of it.
    pub of: Vec<String>,
    /// The same as a time, for ages.
    #[serde(skip)]
    pub since_time: Time,
}

/// How a rollout ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeReport {
    /// The word for it.
    pub outcome: String,
    /// More of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// When.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    /// Who says so: `ledger` or `event`; nobody if it is unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<&'static str>,
    /// The same as a time, for ages.
    #[serde(skip)]
    pub time: Option<Time>,
}

/// What keeps a workload from being rolled.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct HeldReport {
    /// The word for it.
    pub reason: String,
    /// In words for people.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// What Uptake may do with a consumer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReport {
    /// `auto`, `report` or `off`; `unknown` if its kind couldn't be listed.
    pub mode: &'static str,
    /// Whose word that is.
    pub from: &'static str,
    /// The reason that was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What can't be understood of its annotations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub problems: Vec<String>,
}

/// Reports on the consumers that the target is about; on all without one.
#[must_use]
pub fn report(scene: &Scene, target: Option<&Target>) -> Report {
    let mut consumers: Vec<ConsumerReport> = scene
        .consumers
        .iter()
        .filter(|consumer| is_meant(consumer, target))
        .map(|consumer| consumer_report(scene, consumer, target))
        .collect();
    consumers.sort_by(|a, b| {
        let key = |one: &ConsumerReport| {
            (Reverse(one.attention()), one.namespace.clone(), one.kind.clone(), one.name.clone())
        };
        key(a).cmp(&key(b))
    });
    Report {
        at: scene.at.time.to_string(),
        namespace: scene.namespace.clone(),
        ledger: scene.ledger.is_some(),
        operator: operator_report(scene),
        summary: summary(&consumers),
        consumers,
        unknown: scene.unknown.clone(),
    }
}

fn operator_report(scene: &Scene) -> OperatorReport {
    let settings = scene.settings();
    OperatorReport {
        from: if settings.is_some() { "ledger" } else { "defaults" },
        namespace: scene.operator_namespace.clone(),
        default_rollout: Mode::as_str(scene.default_rollout()),
        roll_volumes: settings.is_none_or(|settings| settings.roll_volumes),
    }
}

fn is_meant(consumer: &Consumer, target: Option<&Target>) -> bool {
    match target {
        None => !consumer.references.is_empty() || !consumer.injected.is_empty(),
        Some(Target::Secret(name)) => consumer.names(name),
        Some(Target::ProviderClass(name)) => mounts(consumer, name),
        Some(Target::Consumer(target)) => target.is(&consumer.kind, &consumer.name),
    }
}

fn mounts(consumer: &Consumer, class: &str) -> bool {
    consumer.declared.provider_classes.iter().any(|mounted| *mounted.name == *class)
}

fn consumer_report(scene: &Scene, consumer: &Consumer, target: Option<&Target>) -> ConsumerReport {
    let meant: Meant<'_> = &|reference: &Reference| match target {
        Some(Target::Secret(name)) => *reference.secret == **name,
        Some(Target::ProviderClass(name)) => {
            reference.from == Origin::ProviderClass(name.clone()) || reference.synced
        }
        Some(Target::Consumer(_)) | None => true,
    };
    let own = consumer.references.iter().map(|reference| reference_report(reference, false));
    let injected = consumer.injected.iter().map(|reference| reference_report(reference, true));
    let named =
        |one: &ReferenceReport| !matches!(target, Some(Target::Secret(name)) if *one.secret != **name);
    // What is asked for could not be asked for in the first place: then nothing is known.
    let look = scene.look(consumer, meant).ok().filter(|_| !is_unknown(scene, "Pod"));
    ConsumerReport {
        namespace: consumer.namespace.clone(),
        kind: consumer.kind.clone(),
        name: consumer.name.clone(),
        references: own.chain(injected).filter(named).collect(),
        pods: look.as_ref().map(pods_report).unwrap_or_default(),
        last_outcome: last_outcome(scene, consumer),
        held: look.as_ref().and_then(|look| held(scene, consumer, look)),
        policy: policy_report(scene, consumer, target),
        fate: (consumer.fate != Fate::Rolls).then(|| consumer.fate.to_string()),
        needs_a_person: consumer.fate.needs_a_person(),
        not_listed: consumer.fate == Fate::NotListed,
    }
}

fn is_unknown(scene: &Scene, kind: &str) -> bool {
    scene.unknown.iter().any(|unknown| unknown.kind == kind)
}

/// How a reference is told of.
#[must_use]
pub fn reference_report(reference: &Reference, injected: bool) -> ReferenceReport {
    ReferenceReport {
        secret: reference.secret.clone(),
        via: reference.via.as_str(),
        keys: match &reference.keys {
            Keys::All => None,
            Keys::Named(keys) => Some(keys.to_vec()),
        },
        optional: reference.optional,
        from: match &reference.from {
            _ if injected => Some("injected into the live pods".to_owned()),
            Origin::Workload => None,
            from => Some(from.to_string()),
        },
        rolls: match reference.rolls {
            _ if injected => "injected",
            Rolls::Yes => "yes",
            Rolls::KindIsListedOnly => "listed_only",
            Rolls::Reloads => "reloads",
            Rolls::Ignored => "ignored",
        },
    }
}

fn pods_report(look: &Look<'_>) -> PodsReport {
    let live = look.verdict.live;
    let stale: Vec<StalePod> = look
        .stale
        .iter()
        .map(|stale| {
            let since = stale.of.values().min().copied().unwrap_or_default();
            StalePod {
                name: stale.pod.name.clone(),
                state: if stale.certain { "stale" } else { "probably_stale" },
                born: stale.pod.born.to_string(),
                since: since.to_string(),
                of: stale.of.keys().cloned().collect(),
                since_time: since,
            }
        })
        .collect();
    let undecided: Vec<Name> = look.undecided.iter().map(|pod| pod.name.clone()).collect();
    let known = !look.consumption.untracked;
    let fresh = known.then(|| live.saturating_sub(stale.len() + undecided.len()));
    PodsReport { live, fresh, stale, undecided }
}

/// Of the ledger where it can be read, else of Events; without any of them it is unknown.
fn last_outcome(scene: &Scene, consumer: &Consumer) -> Option<OutcomeReport> {
    consumer.workload.as_ref()?;
    let said = |outcome: &str, detail: String, time: Time, from: &'static str| {
        let (outcome, at) = (outcome.to_owned(), Some(time.to_string()));
        Some(OutcomeReport { outcome, detail, at, from: Some(from), time: Some(time) })
    };
    if let Some(ledger) = &scene.ledger {
        let attempt = ledger.attempt(&consumer.namespace, consumer.uid)?;
        return match &attempt.ended {
            None => said("running", String::new(), attempt.stamped.unwrap_or(attempt.at), "ledger"),
            Some(ended) => said(ended.outcome.as_str(), detail(&ended.outcome), ended.at, "ledger"),
        };
    }
    let Some(told) = scene.told.outcome(&consumer.namespace, &consumer.kind, &consumer.name) else {
        let outcome = "unknown".to_owned();
        return Some(OutcomeReport { outcome, detail: String::new(), at: None, from: None, time: None });
    };
    let word = told.reason.as_str().trim_start_matches("Rollout").to_lowercase();
    said(if word == "started" { "running" } else { &word }, told.note.clone(), told.at, "event")
}

fn detail(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed | Outcome::Superseded | Outcome::Gone => String::new(),
        Outcome::Failed(failure) => failure.to_string(),
        Outcome::Blocked(block) => block.to_string(),
        Outcome::Refused(words) => words.clone(),
    }
}

fn held(scene: &Scene, consumer: &Consumer, look: &Look<'_>) -> Option<HeldReport> {
    let decision = scene.decision(consumer, look)?;
    let (_, reason) = decision.words();
    let said = |detail: String| Some(HeldReport { reason: reason.to_owned(), detail });
    let told = || scene.told.hold(&consumer.namespace, &consumer.kind, &consumer.name);
    match &decision {
        Decision::Hold(Held::Missing { secret, key }) => said(missing(secret, key.as_ref())),
        Decision::Hold(Held::BreakerOpen) => {
            let broke = scene.breaker(consumer, &look.consumption);
            said(broke.map_or_else(String::new, |(secret, version)| {
                format!("version {version} of Secret {} broke another consumer", secret.name)
            }))
        }
        Decision::Hold(Held::RolloutRunning) => said(running(consumer)),
        Decision::Hold(Held::OperatorPaused) => said("the operator is paused".to_owned()),
        Decision::Hold(Held::InventoryUnknown) => said("what it consumes isn't known".to_owned()),
        Decision::Report(ReportOnly::Attempted) => said("this version was tried already".to_owned()),
        Decision::Report(ReportOnly::InvalidAnnotation) => said(
            consumer.policy.problems.first().map(|problem| problem.message.to_string()).unwrap_or_default(),
        ),
        // Where there is no ledger, nobody reports anything.
        Decision::Report(ReportOnly::FirstSight) if scene.ledger.is_none() => None,
        Decision::Hold(_) | Decision::Report(_) => said(String::new()),
        Decision::Skip(_) if !look.stale.is_empty() => said(String::new()),
        Decision::Roll => {
            told().map(|told| HeldReport { reason: "told".to_owned(), detail: told.note.clone() })
        }
        Decision::Skip(_) | Decision::UpToDate | Decision::NothingToDo(_) => None,
    }
}

fn missing(secret: &str, key: Option<&Name>) -> String {
    let Missing { secret, key } = Missing { secret: secret.into(), key: key.cloned() };
    match key {
        Some(key) => format!("key {key} of Secret {secret} is missing: new pods would not start"),
        None => format!("Secret {secret} is missing: new pods would not start"),
    }
}

fn running(consumer: &Consumer) -> String {
    match consumer.workload.as_ref().map(|workload| state(&workload.rollout)) {
        Some(State::NotObserved) => "its controller hasn't seen the newest template yet".to_owned(),
        Some(State::Running(waiting)) => waiting.to_string(),
        _ => String::new(),
    }
}

fn policy_report(scene: &Scene, consumer: &Consumer, target: Option<&Target>) -> PolicyReport {
    let secret = match target {
        Some(Target::Secret(name)) => Some(SecretId::new(consumer.namespace.clone(), name.clone())),
        _ => None,
    };
    let (mode, source) = scene.policy(consumer, secret.as_ref());
    let listed = consumer.fate != Fate::NotListed;
    PolicyReport {
        mode: if listed { Mode::as_str(mode) } else { "unknown" },
        from: match source {
            _ if !listed => "not listed",
            Source::Workload => "workload",
            Source::Problem => "problem",
            Source::Secret => "secret",
            Source::Namespace => "namespace",
            Source::Default if !scene.is_watched(&consumer.namespace) => "not watched",
            Source::Default => "default",
        },
        reason: consumer.policy.reason.as_ref().map(ToString::to_string),
        problems: consumer.policy.problems.iter().map(|one| format!("{}: {}", one.of, one.message)).collect(),
    }
}

fn summary(consumers: &[ConsumerReport]) -> Summary {
    let mut summary = Summary { consumers: consumers.len(), ..Summary::default() };
    for consumer in consumers {
        let PodsReport { live, fresh, stale, undecided } = &consumer.pods;
        let certain = stale.iter().filter(|pod| pod.state == "stale").count();
        summary.attention += usize::from(consumer.attention() > Attention::None);
        summary.pods += live;
        summary.fresh += fresh.unwrap_or(0);
        summary.stale += certain;
        summary.probably_stale += stale.len() - certain;
        summary.undecided += undecided.len();
        summary.unknown += if fresh.is_none() { live - stale.len() - undecided.len() } else { 0 };
    }
    summary
}

/// How much a consumer needs somebody's attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Attention {
    /// It doesn't.
    None,
    /// Something of it isn't known.
    Unknown,
    /// Something holds it.
    Held,
    /// Pods are stale, and something will replace them.
    Stale,
    /// Pods are stale, and nothing will replace them by itself.
    Stuck,
}

impl ConsumerReport {
    /// Whether nothing of it is known but its pods, for its kind couldn't be listed.
    #[must_use]
    pub fn is_not_listed(&self) -> bool {
        self.not_listed
    }

    /// How much it needs somebody's attention.
    #[must_use]
    pub fn attention(&self) -> Attention {
        let failed = self
            .last_outcome
            .as_ref()
            .is_some_and(|last| matches!(last.outcome.as_str(), "failed" | "blocked" | "refused"));
        let nobody = self.needs_a_person || matches!(self.policy.mode, "report" | "off") || failed;
        match (self.pods.stale.is_empty(), nobody) {
            (false, true) => Attention::Stuck,
            (false, false) => Attention::Stale,
            (true, _) if self.held.is_some() => Attention::Held,
            (true, _) if self.not_listed => Attention::Unknown,
            (true, _) if self.pods.live > 0 && self.pods.fresh.is_none() => Attention::Unknown,
            (true, _) => Attention::None,
        }
    }
}
