//! What is said of each consumer. Pure.

use std::cmp::Reverse;

use super::report::{
    ConsumerReport, HeldReport, OperatorReport, OutcomeReport, PodsReport, PolicyReport, ReferenceReport,
    Report, StalePod, Summary,
};
use crate::{
    catalog::{
        policy::{Mode, Source},
        reference::{Keys, Origin, Reference, Rolls},
    },
    cli::{
        scene::{Consumer, Fate, Look, Meant, Scene},
        target::Target,
    },
    decide::{Decision, Held, Missing, ReportOnly},
    facts::{Name, SecretId, Time},
    rollout::{Outcome, State, state},
};

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
        target: target.map(ToString::to_string),
        ledger: scene.ledger.is_some(),
        operator: operator_report(scene),
        summary: Summary::of(&consumers),
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
        pods: look.as_ref().map_or_else(PodsReport::uncounted, |look| {
            let report = pods_report(look);
            // Without the ReplicaSets, which pods are a Deployment's isn't known.
            let uncounted =
                report.live == 0 && *consumer.kind == *"Deployment" && is_unknown(scene, "ReplicaSet");
            PodsReport { uncounted, ..report }
        }),
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
    PodsReport { live, fresh, stale, undecided, uncounted: false }
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
