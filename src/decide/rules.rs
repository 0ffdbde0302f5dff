//! The decision: an ordered list of rules, the first that applies wins.

use super::{Decision, Held, Nothing, ReportOnly, Skipped, Verdict};
use crate::{catalog::policy::Mode, engine::FirstSight, facts::Name};

/// All that a decision of a workload is made from.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools)] // Each is a question of its own, asked by one rule.
pub struct Facts<'a> {
    /// The inventories of Secrets and of this kind, and the ledger, are in.
    pub known: bool,
    /// The workload is being deleted.
    pub deleting: bool,
    /// It has references that roll it.
    pub consumes: bool,
    /// What it consumes changed after it was last proven clean.
    pub candidate: bool,
    /// What policy says, and why if it says report.
    pub mode: Mode,
    /// Why the mode is report, when it is.
    pub report: ReportOnly,
    /// What is missing that its pods require.
    pub missing: Option<Missing>,
    /// What it consumes changed just now.
    pub settling: bool,
    /// A rollout of it is running, anybody's, and it makes progress.
    pub running: bool,
    /// Its live pods; none while they haven't been listed.
    pub pods: Option<&'a Verdict>,
    /// What is done about the installed base.
    pub first_sight: FirstSight,
    /// These versions were attempted already, and failed or are blocked.
    pub attempted: bool,
    /// Uptake is paused.
    pub paused: bool,
    /// The ledger can't be written.
    pub ledger_unwritable: bool,
    /// These versions broke another consumer.
    pub breaker: bool,
    /// Another consumer of the Secret is rolled first, alone.
    pub canary: bool,
    /// A slot is free for it.
    pub slot: bool,
}

/// A required Secret or key that is missing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// The Secret.
    pub secret: Name,
    /// The key; none if the whole Secret is missing.
    pub key: Option<Name>,
}

/// A decision, or what it still needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// It is decided.
    Decided(Decision),
    /// The live pods have to be listed and judged first.
    NeedsPods,
}

/// Decides. The order of the rules is the order of the lines.
#[must_use]
pub fn decide(facts: &Facts<'_>) -> Step {
    use Step::{Decided, NeedsPods};
    match before_pods(facts) {
        Some(decision) => Decided(decision),
        None => facts.pods.map_or(NeedsPods, |pods| Decided(with_pods(facts, pods))),
    }
}

fn before_pods(facts: &Facts<'_>) -> Option<Decision> {
    if facts.deleting {
        return Some(Decision::Skip(Skipped::BeingDeleted));
    }
    if !facts.consumes {
        return Some(Decision::UpToDate);
    }
    if !facts.known {
        return Some(Decision::Hold(Held::InventoryUnknown));
    }
    if !facts.candidate {
        return Some(Decision::UpToDate);
    }
    if facts.mode == Mode::Off {
        return Some(Decision::Skip(Skipped::OptedOut));
    }
    if let Some(Missing { secret, key }) = &facts.missing {
        return Some(Decision::Hold(Held::Missing { secret: secret.clone(), key: key.clone() }));
    }
    if facts.settling {
        return Some(Decision::Hold(Held::Settling));
    }
    facts.running.then_some(Decision::Hold(Held::RolloutRunning))
}

fn with_pods(facts: &Facts<'_>, pods: &Verdict) -> Decision {
    if pods.live == 0 {
        return Decision::NothingToDo(Nothing::NoPods);
    }
    let installed_base = !pods.first_sight.is_empty() && facts.first_sight != FirstSight::Trust;
    if pods.stale.is_empty() && !installed_base {
        return if pods.undecided > 0 {
            Decision::Hold(Held::Undecided)
        } else if !pods.reported.is_empty() {
            Decision::Report(ReportOnly::Policy)
        } else if !pods.first_sight_reported.is_empty() && facts.first_sight != FirstSight::Trust {
            Decision::Report(ReportOnly::FirstSight)
        } else {
            Decision::NothingToDo(Nothing::NoStalePod)
        };
    }
    // Before policy's word: of the installed base nobody is told on its own objects, whatever they say.
    if pods.stale.is_empty() && facts.first_sight == FirstSight::Report {
        return Decision::Report(ReportOnly::FirstSight);
    }
    if facts.mode == Mode::Report {
        return Decision::Report(facts.report);
    }
    if facts.attempted {
        return Decision::Report(ReportOnly::Attempted);
    }
    may_roll(facts)
}

fn may_roll(facts: &Facts<'_>) -> Decision {
    if facts.paused {
        Decision::Hold(Held::OperatorPaused)
    } else if facts.ledger_unwritable {
        Decision::Hold(Held::LedgerUnwritable)
    } else if facts.breaker {
        Decision::Hold(Held::BreakerOpen)
    } else if facts.canary {
        Decision::Hold(Held::Canary)
    } else if !facts.slot {
        Decision::Hold(Held::NoFreeSlot)
    } else {
        Decision::Roll
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stale() -> Verdict {
        Verdict { live: 2, stale: vec!["p".into()], ..Verdict::default() }
    }

    fn facts(pods: Option<&Verdict>) -> Facts<'_> {
        Facts {
            known: true,
            deleting: false,
            consumes: true,
            candidate: true,
            mode: Mode::Auto,
            report: ReportOnly::Policy,
            missing: None,
            settling: false,
            running: false,
            pods,
            first_sight: FirstSight::Report,
            attempted: false,
            paused: false,
            ledger_unwritable: false,
            breaker: false,
            canary: false,
            slot: true,
        }
    }

    fn decided(facts: &Facts<'_>) -> Decision {
        match decide(facts) {
            Step::Decided(decision) => decision,
            Step::NeedsPods => panic!("needs pods"),
        }
    }

    #[test]
    fn a_stale_pod_rolls_and_nothing_else_does() {
        let pods = stale();
        assert_eq!(decided(&facts(Some(&pods))), Decision::Roll);
        let fresh = Verdict { live: 2, ..Verdict::default() };
        assert_eq!(decided(&facts(Some(&fresh))), Decision::NothingToDo(Nothing::NoStalePod));
        let none = Verdict::default();
        assert_eq!(decided(&facts(Some(&none))), Decision::NothingToDo(Nothing::NoPods));
        assert_eq!(decide(&facts(None)), Step::NeedsPods);
    }

    #[test]
    fn undecided_pods_are_never_proof() {
        let pods = Verdict { live: 2, undecided: 1, ..Verdict::default() };
        assert_eq!(decided(&facts(Some(&pods))), Decision::Hold(Held::Undecided));
        let pods = Verdict { undecided: 1, ..stale() };
        assert_eq!(decided(&facts(Some(&pods))), Decision::Roll);
    }

    #[test]
    fn the_installed_base_is_reported_rolled_or_trusted() {
        let pods = Verdict { live: 1, first_sight: vec!["p".into()], ..Verdict::default() };
        for (policy, decision) in [
            (FirstSight::Report, Decision::Report(ReportOnly::FirstSight)),
            (FirstSight::Roll, Decision::Roll),
            (FirstSight::Trust, Decision::NothingToDo(Nothing::NoStalePod)),
        ] {
            assert_eq!(decided(&Facts { first_sight: policy, ..facts(Some(&pods)) }), decision);
        }
    }

    /// Lifts one thing that holds.
    type Lift = fn(&mut Facts<'_>);

    #[test]
    fn the_installed_base_is_first_sight_whatever_policy_says() {
        let pods = Verdict { live: 1, first_sight: vec!["p".into()], ..Verdict::default() };
        let report = Facts { mode: Mode::Report, ..facts(Some(&pods)) };
        assert_eq!(decided(&report), Decision::Report(ReportOnly::FirstSight));
        let pods = Verdict { live: 1, first_sight_reported: vec!["p".into()], ..Verdict::default() };
        assert_eq!(decided(&facts(Some(&pods))), Decision::Report(ReportOnly::FirstSight));
        let roll = Facts { first_sight: FirstSight::Roll, ..facts(Some(&pods)) };
        assert_eq!(decided(&roll), Decision::Report(ReportOnly::FirstSight), "its Secret says report");
    }

    #[test]
    fn what_holds_is_asked_in_order() {
        let pods = stale();
        let mut all = Facts {
            known: false,
            deleting: true,
            mode: Mode::Off,
            missing: Some(Missing { secret: "s".into(), key: None }),
            settling: true,
            running: true,
            attempted: true,
            paused: true,
            ledger_unwritable: true,
            breaker: true,
            canary: true,
            slot: false,
            ..facts(Some(&pods))
        };
        let order: [(Lift, Decision); 12] = [
            (|f| f.deleting = false, Decision::Skip(Skipped::BeingDeleted)),
            (|f| f.known = true, Decision::Hold(Held::InventoryUnknown)),
            (|f| f.mode = Mode::Auto, Decision::Skip(Skipped::OptedOut)),
            (|f| f.missing = None, Decision::Hold(Held::Missing { secret: "s".into(), key: None })),
            (|f| f.settling = false, Decision::Hold(Held::Settling)),
            (|f| f.running = false, Decision::Hold(Held::RolloutRunning)),
            (|f| f.attempted = false, Decision::Report(ReportOnly::Attempted)),
            (|f| f.paused = false, Decision::Hold(Held::OperatorPaused)),
            (|f| f.ledger_unwritable = false, Decision::Hold(Held::LedgerUnwritable)),
            (|f| f.breaker = false, Decision::Hold(Held::BreakerOpen)),
            (|f| f.canary = false, Decision::Hold(Held::Canary)),
            (|f| f.slot = true, Decision::Hold(Held::NoFreeSlot)),
        ];
        for (lift, decision) in order {
            assert_eq!(decided(&all), decision);
            lift(&mut all);
        }
        assert_eq!(decided(&all), Decision::Roll);
    }
}
