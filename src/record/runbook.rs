//! The runbook has a heading for each word that people get to see.

use rstest::rstest;

use super::{Metrics, Reason};
use crate::{
    decide::Held,
    rollout::{Block, Failure, Outcome},
};

const RUNBOOK: &str = include_str!("../../docs/runbook.md");

fn reasons() -> Vec<String> {
    let all = [
        Reason::RolloutStarted,
        Reason::RolloutCompleted,
        Reason::RolloutFailed,
        Reason::RolloutBlocked,
        Reason::RolloutSuperseded,
        Reason::RolloutRefused,
        Reason::RolloutHeld,
        Reason::WouldRoll,
        Reason::NothingToDo,
        Reason::ConsumersRolled,
        Reason::BreakerOpen,
        Reason::ChangesTooFast,
        Reason::InvalidAnnotation,
        Reason::InventoryUnknown,
        Reason::StaleAtFirstSight,
    ];
    // Whoever adds one comes by here, and adds it above.
    let is_above = |reason: &Reason| match reason {
        Reason::RolloutStarted
        | Reason::RolloutCompleted
        | Reason::RolloutFailed
        | Reason::RolloutBlocked
        | Reason::RolloutSuperseded
        | Reason::RolloutRefused
        | Reason::RolloutHeld
        | Reason::WouldRoll
        | Reason::NothingToDo
        | Reason::ConsumersRolled
        | Reason::BreakerOpen
        | Reason::ChangesTooFast
        | Reason::InvalidAnnotation
        | Reason::InventoryUnknown
        | Reason::StaleAtFirstSight => true,
    };
    all.iter().filter(|reason| is_above(reason)).map(ToString::to_string).collect()
}

fn outcomes() -> Vec<String> {
    let all = [
        Outcome::Completed,
        Outcome::Failed(Failure::NoProgress),
        Outcome::Blocked(Block::Paused),
        Outcome::Superseded,
        Outcome::Refused(String::new()),
        Outcome::Gone,
    ];
    let is_above = |outcome: &Outcome| match outcome {
        Outcome::Completed
        | Outcome::Failed(_)
        | Outcome::Blocked(_)
        | Outcome::Superseded
        | Outcome::Refused(_)
        | Outcome::Gone => true,
    };
    all.iter().filter(|outcome| is_above(outcome)).map(|outcome| outcome.as_str().to_owned()).collect()
}

fn holds() -> Vec<String> {
    let all = [
        Held::Settling,
        Held::RolloutRunning,
        Held::Undecided,
        Held::NoFreeSlot,
        Held::BreakerOpen,
        Held::Canary,
        Held::Missing { secret: "s".into(), key: None },
        Held::OperatorPaused,
        Held::LedgerUnwritable,
        Held::InventoryUnknown,
        Held::Backoff,
    ];
    let is_above = |held: &Held| match held {
        Held::Settling
        | Held::RolloutRunning
        | Held::Undecided
        | Held::NoFreeSlot
        | Held::BreakerOpen
        | Held::Canary
        | Held::Missing { .. }
        | Held::OperatorPaused
        | Held::LedgerUnwritable
        | Held::InventoryUnknown
        | Held::Backoff => true,
    };
    all.iter().filter(|held| is_above(held)).map(|held| held.as_str().to_owned()).collect()
}

fn metrics() -> Vec<String> {
    Metrics::new().unwrap().names()
}

/// The headings of a section, in their order.
fn headings(section: &str) -> Vec<&'static str> {
    let lines = RUNBOOK.lines().skip_while(|line| line.strip_prefix("## ") != Some(section)).skip(1);
    lines.take_while(|line| !line.starts_with("## ")).filter_map(|line| line.strip_prefix("### ")).collect()
}

#[rstest]
#[case::events("Events", reasons())]
#[case::outcomes("Outcomes", outcomes())]
#[case::holds("What holds a rollout", holds())]
#[case::metrics("Metrics", metrics())]
fn each_word_has_its_heading_and_each_heading_its_word(
    #[case] section: &str,
    #[case] mut words: Vec<String>,
) {
    let mut headings = headings(section);
    words.sort();
    headings.sort_unstable();
    assert_eq!(headings, words);
}

#[test]
fn its_own_links_lead_somewhere() {
    let anchors: Vec<String> = RUNBOOK
        .lines()
        .filter_map(|line| line.split_once("# ").filter(|(marks, _)| marks.chars().all(|c| c == '#')))
        .map(|(_, heading)| heading.to_lowercase().replace(' ', "-"))
        .collect();
    let links =
        RUNBOOK.split("](#").skip(1).filter_map(|rest| rest.split_once(')')).map(|(anchor, _)| anchor);
    let dead: Vec<&str> = links.filter(|link| !anchors.iter().any(|anchor| anchor == link)).collect();
    assert!(dead.is_empty(), "{dead:?}");
}
