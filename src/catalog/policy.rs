//! What annotations ask for, parsed.

use std::time::Duration;

/// `uptake.dev/rollout`: what Uptake may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Roll.
    Auto,
    /// Report what would be rolled.
    Report,
    /// Nothing.
    Off,
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

/// Something in an object that can't be understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The annotation, or the part of the object.
    pub of: &'static str,
    /// What is wrong with it, in words for people; user input in it is cut and made printable.
    pub message: Box<str>,
}
