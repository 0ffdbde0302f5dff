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
