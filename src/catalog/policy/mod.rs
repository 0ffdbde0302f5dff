//! What annotations ask for, parsed.
//!
//! A value that can't be parsed is a [`Problem`] of this object alone: it makes a workload `report` and is told
//! about; it neither rolls nor hides anything, and concerns nobody else.

mod mode;
mod names;
mod workload;

use std::{collections::BTreeSet, time::Duration};

use crate::facts::Name;

pub use mode::{Mode, Source, effective, paused, rollout};
pub use names::MAX_NAMES;
pub use workload::parse;

/// The names of the annotations.
pub mod annotation {
    /// What all of them start with.
    pub const PREFIX: &str = "uptake.dev/";
    /// What Uptake may do; on a workload, a Secret or a Namespace.
    pub const ROLLOUT: &str = "uptake.dev/rollout";
    /// How long a workload's data must have been quiet before it is rolled.
    pub const SETTLE: &str = "uptake.dev/settle";
    /// Why a workload is opted out, in words for people.
    pub const REASON: &str = "uptake.dev/reason";
    /// Secrets that a workload reads from the API by itself.
    pub const SECRETS: &str = "uptake.dev/secrets";
    /// Secrets whose changes don't roll a workload.
    pub const IGNORE_SECRETS: &str = "uptake.dev/ignore-secrets";
    /// Secrets whose mounted files a workload re-reads by itself; `*` for all of them.
    pub const RELOADS: &str = "uptake.dev/reloads";
    /// On Uptake's own namespace: stops all stamping.
    pub const PAUSED: &str = "uptake.dev/paused";
    /// On a Secret: closes the breaker for its version.
    pub const RELEASE: &str = "uptake.dev/release";
}

/// What a workload's annotations ask for, but for those that concern references (they are in these).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WorkloadPolicy {
    /// `uptake.dev/rollout`.
    pub rollout: Option<Mode>,
    /// `uptake.dev/settle`.
    pub settle: Option<Duration>,
    /// `uptake.dev/reason`: why it is opted out, for reports.
    pub reason: Option<Box<str>>,
    /// What can't be parsed, or is too much. Any of them makes the workload `report`.
    pub problems: Box<[Problem]>,
}

/// What a workload's annotations say of its references.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReferenceAnnotations {
    /// `uptake.dev/secrets`.
    pub secrets: BTreeSet<Name>,
    /// `uptake.dev/ignore-secrets`.
    pub ignored: BTreeSet<Name>,
    /// `uptake.dev/reloads`.
    pub reloads: Reloads,
}

/// The Secrets whose mounted files a workload re-reads by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reloads {
    /// All that it mounts.
    All,
    /// These.
    Named(BTreeSet<Name>),
}

impl Default for Reloads {
    fn default() -> Self {
        Self::Named(BTreeSet::new())
    }
}

impl Reloads {
    /// Whether the files of this Secret are among them.
    #[must_use]
    pub fn contain(&self, secret: &str) -> bool {
        match self {
            Self::All => true,
            Self::Named(names) => names.contains(secret),
        }
    }
}

/// Something in an object that can't be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The annotation, or the part of the object.
    pub of: &'static str,
    /// What is wrong with it, in words for people; user input in it is cut and made printable.
    pub message: Box<str>,
}

impl Problem {
    /// A problem of that annotation or part.
    pub fn new(of: &'static str, message: impl Into<Box<str>>) -> Self {
        Self { of, message: message.into() }
    }
}
