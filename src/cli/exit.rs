//! How a verb ends.

use std::process::ExitCode;

/// The exit code. Each means one thing for all verbs, so that scripts can tell them apart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Exit {
    /// It is done, or all is well.
    #[default]
    Done,
    /// `gate` or `check` says no.
    No,
    /// The command line makes no sense.
    Usage,
    /// Pods are stale (`status --exit-code`).
    Stale,
    /// Some of it is done and some isn't.
    Partial,
    /// Nothing of it is done.
    Failed,
    /// It can't be told: no cluster, no rights, an unknown kind, no time left.
    Unknown,
}

impl Exit {
    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::No => 1,
            Self::Usage => 2,
            Self::Stale => 3,
            Self::Partial => 4,
            Self::Failed => 5,
            Self::Unknown => 6,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
