//! How a rollout ended.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The end of a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", content = "detail")]
pub enum Outcome {
    /// The controller reports the stamped template done, and no live pod is stale for its versions.
    Completed,
    /// It didn't get there.
    Failed(Failure),
    /// It can't get there until somebody acts; pods are still stale.
    Blocked(Block),
    /// The template was changed again by somebody else.
    Superseded,
    /// The API server refused the stamp; its words.
    Refused(String),
    /// The workload, its namespace or its kind was deleted.
    Gone,
}

/// Why a rollout failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "why", content = "detail")]
pub enum Failure {
    /// The controller gave up (`ProgressDeadlineExceeded`); its words.
    DeadlineExceeded(String),
    /// Nothing moved for `rollout-timeout`.
    NoProgress,
    /// Somebody else took the stamp away and the pods are stale; the template's last known writer.
    Reverted(Option<String>),
}

/// What blocks a rollout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "by", content = "detail")]
pub enum Block {
    /// `spec.paused`.
    Paused,
    /// The strategy `OnDelete`: pods are replaced only when somebody deletes them.
    OnDelete,
    /// A StatefulSet's partition leaves pods below that ordinal as they are.
    Partition(i32),
    /// Pods can't be made; the controller's words (quota, admission).
    ReplicaFailure(String),
    /// A broken pod of an old revision is in the way.
    BrokenPod(String),
}

impl Outcome {
    /// The word for it: the label `outcome` of `uptake_rollouts_total`.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Failed(_) => "failed",
            Self::Blocked(_) => "blocked",
            Self::Superseded => "superseded",
            Self::Refused(_) => "refused",
            Self::Gone => "gone",
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DeadlineExceeded(words) => write!(f, "progress deadline exceeded: {words}"),
            Self::NoProgress => f.write_str("no progress"),
            Self::Reverted(Some(writer)) => write!(f, "reverted, the template was last written by {writer}"),
            Self::Reverted(None) => f.write_str("reverted"),
        }
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paused => f.write_str("the workload is paused"),
            Self::OnDelete => f.write_str("strategy OnDelete: pods are replaced when they are deleted"),
            Self::Partition(ordinal) => write!(f, "partition {ordinal}: pods below it are left as they are"),
            Self::ReplicaFailure(words) => write!(f, "pods can't be made: {words}"),
            Self::BrokenPod(pod) => write!(f, "pod {pod} of an old revision isn't ready and is in the way"),
        }
    }
}
