//! How a rollout goes, by what its workload says of itself.
//!
//! The order of the checks is that of `kubectl rollout status` (`rollout_status.go` in kubectl
//! `pkg/polymorphichelpers`), with these differences:
//!
//! - What blocks a rollout is told apart from what it waits for, and before the deadline: a paused Deployment keeps the
//!   `ProgressDeadlineExceeded` of an earlier rollout, and one that a quota stops runs into it in the end.
//! - Counts come before the deadline: a rollout that was late and is complete is complete.
//! - A `DaemonSet`'s or `StatefulSet`'s `OnDelete` is an answer and not an error.

use std::fmt;

use super::{Block, RolloutFacts, Strategy};

/// How a rollout goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The controller hasn't seen the newest template yet: its counts are of an older one.
    NotObserved,
    /// It goes on.
    Running(Waiting),
    /// All replicas that there should be are of the newest template and available.
    Done,
    /// The controller gave up; its words.
    DeadlineExceeded(String),
    /// It doesn't go on until somebody acts. For [`Block::ReplicaFailure`] it may be that somebody did already:
    /// the controller tries on, so whoever makes an outcome of it looks at [`progress`] too.
    Blocked(Block),
}

/// What a rollout waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Replicas of the newest template.
    Updated {
        /// As many as there are.
        have: i32,
        /// As many as there should be.
        want: i32,
    },
    /// So many replicas of older templates to end.
    OldPodsTerminating(i32),
    /// Ready replicas.
    Ready {
        /// As many as there are.
        have: i32,
        /// As many as there should be.
        want: i32,
    },
    /// Available replicas: ready for `minReadySeconds`.
    Available {
        /// As many as there are.
        have: i32,
        /// As many as there should be.
        want: i32,
    },
    /// The StatefulSet controller to make the new revision the current one.
    CurrentRevision,
}

/// How far a rollout is: it makes progress when this changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Progress {
    /// Replicas of the newest template.
    pub updated: i32,
    /// Replicas that are ready, of all revisions.
    pub ready: i32,
    /// Replicas that are available, of all revisions.
    pub available: i32,
}

/// How a rollout goes.
#[must_use]
pub fn state(facts: &RolloutFacts) -> State {
    if facts.generation > facts.observed_generation {
        return State::NotObserved;
    }
    let Some(waiting) = waiting(facts) else { return left_as_they_are(facts) };
    if facts.paused {
        return State::Blocked(Block::Paused);
    }
    if facts.strategy == Strategy::OnDelete && facts.updated < facts.desired {
        return State::Blocked(Block::OnDelete);
    }
    if let Some(words) = &facts.replica_failure {
        return State::Blocked(Block::ReplicaFailure(words.to_string()));
    }
    if let Some(words) = &facts.deadline_exceeded {
        return State::DeadlineExceeded(words.to_string());
    }
    State::Running(waiting)
}

/// How far a rollout is.
#[must_use]
pub const fn progress(facts: &RolloutFacts) -> Progress {
    Progress { updated: facts.updated, ready: facts.ready, available: facts.available }
}

/// The first thing that the controller itself has still to do.
fn waiting(facts: &RolloutFacts) -> Option<Waiting> {
    let RolloutFacts { desired, replicas, updated, ready, available, .. } = *facts;
    let want = match facts.strategy {
        Strategy::Partition(ordinal) => desired.saturating_sub(ordinal).max(0),
        Strategy::Automatic | Strategy::OnDelete => desired,
    };
    if updated < want {
        return Some(Waiting::Updated { have: updated, want });
    }
    let left_by_partition = desired.saturating_sub(want);
    let old = replicas.saturating_sub(updated).saturating_sub(left_by_partition);
    if old > 0 {
        return Some(Waiting::OldPodsTerminating(old));
    }
    if ready < desired {
        return Some(Waiting::Ready { have: ready, want: desired });
    }
    if available < desired {
        return Some(Waiting::Available { have: available, want: desired });
    }
    // With a partition, or when people delete the pods, the controller doesn't do this (`completeRollingUpdate` in
    // kubernetes `pkg/controller/statefulset/stateful_set_utils.go`).
    (!facts.revisions_equal && facts.strategy == Strategy::Automatic && desired > 0)
        .then_some(Waiting::CurrentRevision)
}

/// The controller has nothing to do: all is done, or a partition leaves the rest as it is.
fn left_as_they_are(facts: &RolloutFacts) -> State {
    match facts.strategy {
        Strategy::Partition(ordinal) if facts.updated < facts.desired => {
            State::Blocked(Block::Partition(ordinal))
        }
        _ => State::Done,
    }
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Updated { have, want } => write!(f, "{have} of {want} replicas are updated"),
            Self::OldPodsTerminating(1) => f.write_str("1 old pod is still to end"),
            Self::OldPodsTerminating(old) => write!(f, "{old} old pods are still to end"),
            Self::Ready { have, want } => write!(f, "{have} of {want} replicas are ready"),
            Self::Available { have, want } => write!(f, "{have} of {want} replicas are available"),
            Self::CurrentRevision => f.write_str("the new revision isn't the current one yet"),
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotObserved => f.write_str("the controller hasn't seen the change yet"),
            Self::Running(waiting) => waiting.fmt(f),
            Self::Done => f.write_str("done"),
            Self::DeadlineExceeded(words) => write!(f, "progress deadline exceeded: {words}"),
            Self::Blocked(block) => block.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;

    use super::*;
    use crate::rollout::Strategy;

    /// Three replicas, all of the newest template and available.
    fn done() -> RolloutFacts {
        RolloutFacts {
            generation: 2,
            observed_generation: 2,
            desired: 3,
            replicas: 3,
            updated: 3,
            ready: 3,
            available: 3,
            revisions_equal: true,
            ..RolloutFacts::default()
        }
    }

    fn counts(counts: [i32; 5]) -> RolloutFacts {
        let [desired, replicas, updated, ready, available] = counts;
        RolloutFacts { desired, replicas, updated, ready, available, ..done() }
    }

    /// A rollout in the middle: one of three is updated.
    fn half() -> RolloutFacts {
        counts([3, 3, 1, 3, 3])
    }

    // desired, there are, updated, ready, available
    #[rstest]
    #[case::not_updated([1, 1, 0, 1, 1], "0 of 1 replicas are updated")]
    #[case::surge([3, 4, 1, 3, 3], "1 of 3 replicas are updated")]
    #[case::one_old([1, 2, 1, 2, 2], "1 old pod is still to end")]
    #[case::old_ones([3, 5, 3, 5, 5], "2 old pods are still to end")]
    #[case::not_ready([2, 2, 2, 1, 1], "1 of 2 replicas are ready")]
    #[case::not_available([2, 2, 2, 2, 1], "1 of 2 replicas are available")]
    #[case::done([2, 2, 2, 2, 2], "done")]
    #[case::zero([0, 0, 0, 0, 0], "done")]
    #[case::scaling_to_zero([0, 2, 0, 2, 2], "2 old pods are still to end")]
    fn counts_are_checked_in_kubectls_order(#[case] given: [i32; 5], #[case] words: &str) {
        assert_eq!(state(&counts(given)).to_string(), words);
    }

    #[rstest]
    #[case(2, 1, State::NotObserved)]
    #[case(1, 0, State::NotObserved)]
    #[case(2, 2, State::Done)]
    #[case(1, 2, State::Done)]
    fn what_the_controller_has_not_seen_says_nothing(
        #[case] generation: i64,
        #[case] observed_generation: i64,
        #[case] expected: State,
    ) {
        assert_eq!(state(&RolloutFacts { generation, observed_generation, ..done() }), expected);
        let paused = RolloutFacts { generation: 2, observed_generation: 1, paused: true, ..half() };
        assert_eq!(state(&paused), State::NotObserved);
    }

    #[rstest]
    #[case::deadline(
        RolloutFacts { deadline_exceeded: Some("late".into()), ..half() },
        State::DeadlineExceeded("late".to_owned())
    )]
    #[case::done_late(RolloutFacts { deadline_exceeded: Some("late".into()), ..done() }, State::Done)]
    #[case::paused(RolloutFacts { paused: true, ..half() }, State::Blocked(Block::Paused))]
    #[case::paused_when_done(RolloutFacts { paused: true, ..done() }, State::Done)]
    #[case::paused_with_an_old_deadline(
        RolloutFacts { paused: true, deadline_exceeded: Some("late".into()), ..half() },
        State::Blocked(Block::Paused)
    )]
    #[case::quota(
        RolloutFacts { replica_failure: Some("quota".into()), ..half() },
        State::Blocked(Block::ReplicaFailure("quota".to_owned()))
    )]
    #[case::quota_until_the_deadline(
        RolloutFacts { replica_failure: Some("quota".into()), deadline_exceeded: Some("late".into()), ..half() },
        State::Blocked(Block::ReplicaFailure("quota".to_owned()))
    )]
    #[case::quota_when_done(RolloutFacts { replica_failure: Some("quota".into()), ..done() }, State::Done)]
    fn what_blocks_comes_before_what_is_late(#[case] facts: RolloutFacts, #[case] expected: State) {
        assert_eq!(state(&facts), expected);
    }

    #[rstest]
    #[case::nobody_deleted_yet([3, 3, 0, 3, 3], State::Blocked(Block::OnDelete))]
    #[case::some_are_deleted([3, 3, 2, 2, 2], State::Blocked(Block::OnDelete))]
    #[case::the_last_one_starts([3, 3, 3, 2, 2], State::Running(Waiting::Ready { have: 2, want: 3 }))]
    #[case::all_are([3, 3, 3, 3, 3], State::Done)]
    #[case::none_wanted([0, 0, 0, 0, 0], State::Done)]
    fn on_delete_waits_for_people(#[case] given: [i32; 5], #[case] expected: State) {
        // The controller doesn't make the new revision the current one then.
        let facts = RolloutFacts { strategy: Strategy::OnDelete, revisions_equal: false, ..counts(given) };
        assert_eq!(state(&facts), expected);
    }

    #[rstest]
    #[case::not_yet(2, [3, 3, 0, 3, 3], State::Running(Waiting::Updated { have: 0, want: 1 }))]
    #[case::above_it_not_ready(2, [3, 3, 1, 2, 2], State::Running(Waiting::Ready { have: 2, want: 3 }))]
    #[case::above_it(2, [3, 3, 1, 3, 3], State::Blocked(Block::Partition(2)))]
    #[case::scaling_down(2, [3, 4, 1, 4, 4], State::Running(Waiting::OldPodsTerminating(1)))]
    #[case::above_all(5, [3, 3, 0, 3, 3], State::Blocked(Block::Partition(5)))]
    #[case::all_are_new(2, [3, 3, 3, 3, 3], State::Done)]
    #[case::none_wanted(2, [0, 0, 0, 0, 0], State::Done)]
    fn a_partition_leaves_the_rest(#[case] ordinal: i32, #[case] given: [i32; 5], #[case] expected: State) {
        let strategy = Strategy::Partition(ordinal);
        assert_eq!(state(&RolloutFacts { strategy, revisions_equal: false, ..counts(given) }), expected);
    }

    #[test]
    fn a_stateful_set_ends_when_the_new_revision_is_the_current_one() {
        let facts = RolloutFacts { revisions_equal: false, ..done() };
        assert_eq!(state(&facts), State::Running(Waiting::CurrentRevision));
        assert_eq!(state(&RolloutFacts { revisions_equal: false, ..counts([0; 5]) }), State::Done);
    }

    #[test]
    fn it_makes_progress_when_a_count_changes() {
        assert_eq!(progress(&half()), progress(&RolloutFacts { generation: 9, paused: true, ..half() }));
        for (updated, ready, available) in [(2, 3, 3), (1, 2, 3), (1, 3, 2)] {
            assert_ne!(progress(&half()), progress(&RolloutFacts { updated, ready, available, ..half() }));
        }
    }

    proptest! {
        #[test]
        fn no_counts_are_too_odd(given: [i32; 5], ordinal: i32, which in 0..3) {
            let strategy = match which {
                0 => Strategy::Automatic,
                1 => Strategy::OnDelete,
                _ => Strategy::Partition(ordinal),
            };
            let facts = RolloutFacts { strategy, ..counts(given) };
            if state(&facts) == State::Done {
                prop_assert!(facts.updated >= facts.desired && facts.available >= facts.desired);
            }
        }
    }
}
