//! The report as people read it.

use std::time::Duration;

use super::report::{Attention, ConsumerReport, OutcomeReport, PodsReport, ReferenceReport, Report};
use crate::{
    cli::{
        output::{Paint, Tone},
        table::{Cell, Table},
    },
    facts::Time,
};

/// How much of what a consumer uses a narrow table shows.
const USES: usize = 60;
/// As many consumers have a note of their own, though it is the same.
const MANY: usize = 3;
/// How many stale pods a narrow table names.
const PODS: usize = 20;

/// The table, what it can't say, and a summary.
#[must_use]
pub fn render(report: &Report, paint: Paint, wide: bool, all_namespaces: bool) -> String {
    let mut text = String::new();
    if !report.consumers.is_empty() {
        text += &table(report, wide, all_namespaces).render(paint);
    }
    text += &stale_pods(report, paint, wide);
    text += &notes(report, paint, wide);
    for unknown in &report.unknown {
        let line = format!("unknown: {} ({}): {}\n", unknown.kind, unknown.reason.as_str(), unknown.message);
        text += &paint.paint(Tone::Warning, &line);
    }
    text + &summary(report, paint)
}

fn table(report: &Report, wide: bool, all_namespaces: bool) -> Table {
    let mut headings = vec!["CONSUMER", "USES", "PODS", "SINCE", "LAST OUTCOME", "HELD BY", "POLICY"];
    if all_namespaces {
        headings.insert(0, "NAMESPACE");
    }
    let mut table = Table::new(&headings);
    let now = Time::parse(&report.at).unwrap_or_default();
    for consumer in &report.consumers {
        let mut row = row(consumer, now, wide);
        if all_namespaces {
            row.insert(0, (&*consumer.namespace).into());
        }
        table.row(row);
    }
    table
}

fn row(consumer: &ConsumerReport, now: Time, wide: bool) -> Vec<Cell> {
    let uses: Vec<String> = consumer.references.iter().map(uses).collect();
    let uses = uses.join(", ");
    let since = consumer.pods.stale.iter().map(|pod| pod.since_time).min();
    let last = consumer.last_outcome.as_ref();
    let tone = match consumer.attention() {
        Attention::Stuck | Attention::Stale => Tone::Bad,
        Attention::Held | Attention::Unknown => Tone::Warning,
        Attention::None => Tone::Good,
    };
    let outcome_tone = match last.map(|last| last.outcome.as_str()) {
        Some("failed" | "blocked" | "refused") => Tone::Bad,
        _ => Tone::Plain,
    };
    let held = consumer.held.as_ref().map(|held| held.reason.replace('_', " ")).unwrap_or_default();
    vec![
        format!("{}/{}", consumer.kind, consumer.name).into(),
        if wide { uses } else { cut(&uses, USES) }.into(),
        Cell::toned(tone, pods(&consumer.pods)),
        since.map(|since| age(now.since(since))).unwrap_or_default().into(),
        Cell::toned(outcome_tone, last.map(|last| outcome(last, now)).unwrap_or_default()),
        held.into(),
        policy(consumer).into(),
    ]
}

fn outcome(last: &OutcomeReport, now: Time) -> String {
    let ago = last.time.map(|time| format!(" {} ago", age(now.since(time)))).unwrap_or_default();
    format!("{}{ago}", last.outcome)
}

fn policy(consumer: &ConsumerReport) -> String {
    if consumer.is_not_listed() {
        return "unknown".to_owned();
    }
    if consumer.fate.is_some() {
        return "can't be rolled".to_owned();
    }
    format!("{} ({})", consumer.policy.mode, consumer.policy.from)
}

/// A reference as people say it: `db (env password)`.
#[must_use]
pub fn uses(reference: &ReferenceReport) -> String {
    let keys = reference.keys.as_ref().map(|keys| format!(" {}", keys.join(" "))).unwrap_or_default();
    let from = reference.from.as_ref().map(|from| format!(", {from}")).unwrap_or_default();
    let rolls = match reference.rolls {
        "reloads" => ", re-read",
        "ignored" => ", ignored",
        _ => "",
    };
    format!("{} ({}{keys}{from}{rolls})", reference.secret, reference.via)
}

fn pods(pods: &PodsReport) -> String {
    if pods.uncounted {
        return "unknown".to_owned();
    }
    let certain = pods.stale.iter().filter(|pod| pod.state == "stale").count();
    let probable = pods.stale.len() - certain;
    let mut said: Vec<String> =
        [(certain, "stale"), (probable, "probably stale"), (pods.undecided.len(), "undecided")]
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, word)| format!("{count} {word}"))
            .collect();
    match pods.fresh {
        None if pods.live > 0 => {
            said.push(format!("{} unknown", pods.live - pods.stale.len() - pods.undecided.len()));
        }
        Some(fresh) if fresh > 0 => said.push(format!("{fresh} fresh")),
        _ => {}
    }
    if said.is_empty() { "none".to_owned() } else { said.join(", ") }
}

fn stale_pods(report: &Report, paint: Paint, wide: bool) -> String {
    let now = Time::parse(&report.at).unwrap_or_default();
    let lines: Vec<String> = report
        .consumers
        .iter()
        .flat_map(|consumer| consumer.pods.stale.iter().map(move |pod| (consumer, pod)))
        .map(|(consumer, pod)| {
            format!(
                "  {} of {}/{}: {} changed {} ago\n",
                pod.name,
                consumer.kind,
                consumer.name,
                pod.of.join(", "),
                age(now.since(pod.since_time))
            )
        })
        .collect();
    if lines.is_empty() {
        return String::new();
    }
    let shown = if wide { lines.len() } else { lines.len().min(PODS) };
    let more = lines.len() - shown;
    let more = if more > 0 { format!("  and {more} more: -o wide\n") } else { String::new() };
    let heading = if report.ledger { "Stale pods:" } else { "Probably stale pods:" };
    format!("\n{}\n{}{more}", paint.paint(Tone::Strong, heading), lines[..shown].concat())
}

/// What holds, why an outcome is what it is, what becomes of what can't be rolled.
fn notes(report: &Report, paint: Paint, wide: bool) -> String {
    let notes: Vec<(String, String)> = report
        .consumers
        .iter()
        .flat_map(|consumer| {
            let of = format!("{}/{}", consumer.kind, consumer.name);
            notes_of(consumer, wide).into_iter().map(move |note| (of.clone(), note))
        })
        .collect();
    if notes.is_empty() {
        return String::new();
    }
    format!("\n{}\n{}", paint.paint(Tone::Strong, "Notes:"), together(&notes))
}

fn notes_of(consumer: &ConsumerReport, wide: bool) -> Vec<String> {
    let attention = consumer.attention() > Attention::None;
    let held = consumer.held.iter().filter(|held| !held.detail.is_empty());
    let last = consumer.last_outcome.iter().filter(|last| !last.detail.is_empty() && (wide || attention));
    let reason = consumer.policy.reason.iter();
    held.map(|held| held.detail.clone())
        .chain(last.map(|last| format!("{}: {}", last.outcome, last.detail)))
        .chain(consumer.fate.clone())
        .chain(reason.map(|reason| format!("{}: {reason}", consumer.policy.mode)))
        .chain(consumer.policy.problems.iter().cloned())
        .collect()
}

/// What is to be said of many is said once.
fn together(notes: &[(String, String)]) -> String {
    let line = |(place, (of, text)): (usize, &(String, String))| {
        let alike = notes.iter().filter(|(_, other)| other == text).count();
        if alike <= MANY {
            return format!("  {of}: {text}\n");
        }
        let is_first = notes[..place].iter().all(|(_, other)| other != text);
        if is_first { format!("  {}: {text}\n", counted(alike, "consumer")) } else { String::new() }
    };
    notes.iter().enumerate().map(line).collect()
}

fn nobody(report: &Report) -> String {
    let what = report.target.as_deref().unwrap_or("a Secret");
    match &report.namespace {
        Some(namespace) => format!("Nobody consumes {what} in namespace {namespace} (-A looks at all).\n"),
        None => format!("Nobody consumes {what}.\n"),
    }
}

fn summary(report: &Report, paint: Paint) -> String {
    let all = report.summary;
    if all.consumers == 0 {
        return nobody(report);
    }
    let pods = [
        (all.stale, "stale"),
        (all.probably_stale, "probably stale"),
        (all.undecided, "undecided"),
        (all.unknown, "unknown"),
        (all.fresh, "fresh"),
    ];
    let pods: Vec<String> = pods
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    let pods = if pods.is_empty() { "no pods".to_owned() } else { format!("pods: {}", pods.join(", ")) };
    let tone = if all.attention > 0 { Tone::Warning } else { Tone::Good };
    let need = if all.attention == 1 || all.consumers == 1 { "needs" } else { "need" };
    let consumers = counted(all.consumers, "consumer");
    let line = format!("{} of {consumers} {need} attention; {pods}", all.attention);
    let ledger = if report.ledger {
        String::new()
    } else {
        format!(
            "\nThere is no ledger to read in namespace {} (--operator-namespace): what is stale is told by managedFields\n\
             times only, and what would be done about it by the operator's default settings.",
            report.operator.namespace
        )
    };
    format!("\n{}{ledger}\n", paint.paint(tone, &line))
}

/// `1 pod`, `2 pods`.
#[must_use]
pub fn counted(count: usize, word: &str) -> String {
    if count == 1 { format!("{count} {word}") } else { format!("{count} {word}s") }
}

/// A span as kubectl shows ages.
#[must_use]
pub fn age(span: Duration) -> String {
    let seconds = span.as_secs();
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86_400),
    }
}

fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_owned();
    }
    text.chars().take(most - 1).chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::{
        scene::{Gathered, Scene},
        status::report,
        target::Target,
    };

    #[test]
    fn pods_that_can_not_be_found_are_not_said_to_be_none() {
        assert_eq!(pods(&PodsReport::uncounted()), "unknown");
        assert_eq!(pods(&PodsReport::default()), "none");
        assert_eq!(pods(&PodsReport { live: 1, ..PodsReport::default() }), "1 unknown");
    }

    #[test]
    fn who_asks_about_one_secret_is_told_that_nobody_consumes_that_one() {
        let scene = Scene::assemble(Gathered { namespace: Some("a".into()), ..Gathered::default() });
        let said = |target: Option<&str>| {
            let target: Option<Target> = target.map(|target| target.parse().unwrap());
            render(&report::report(&scene, target.as_ref()), Paint::PLAIN, false, false)
        };
        assert!(said(None).starts_with("Nobody consumes a Secret in namespace a "));
        assert!(said(Some("secret/db")).starts_with("Nobody consumes secret/db in namespace a "));
    }
}
