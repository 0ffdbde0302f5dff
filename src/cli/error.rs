//! Why a verb can't do what it was asked for.

use super::Exit;
use crate::{
    cluster::{ConnectError, is_timeout, words},
    engine::Fault,
};

/// An error that ends a verb: said once, in one line, on standard error.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct CliError {
    /// How the verb ends.
    pub exit: Exit,
    message: String,
}

impl CliError {
    /// The command line makes no sense.
    pub fn usage(message: impl Into<String>) -> Self {
        Self { exit: Exit::Usage, message: message.into() }
    }

    /// It is not done.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { exit: Exit::Failed, message: message.into() }
    }

    /// It can't be told.
    pub fn unknown(message: impl Into<String>) -> Self {
        Self { exit: Exit::Unknown, message: message.into() }
    }

    /// A step got no answer, or not the one it needs.
    #[must_use]
    pub fn of_fault(step: &str, fault: &Fault) -> Self {
        let message = format!("failed to {step}: {}", words(fault));
        match fault {
            Fault::Refused(_) | Fault::Conflict => Self::failed(message),
            _ => Self::unknown(message),
        }
    }
}

impl From<ConnectError> for CliError {
    fn from(error: ConnectError) -> Self {
        Self::unknown(error.to_string())
    }
}

/// What kind of failure it was, for programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// Somebody else changes it all the time.
    Conflict,
    /// The rights are missing.
    Forbidden,
    /// It isn't there any more, or is another one of the same name.
    Gone,
    /// No answer in time.
    Timeout,
    /// The API server, a quota or a webhook says no to this very request.
    Refused,
    /// The API server can't be reached or can't answer.
    Unavailable,
    /// The API server doesn't know the kind.
    UnknownKind,
}

impl Class {
    /// The class of a fault.
    #[must_use]
    pub fn of(fault: &Fault) -> Self {
        match fault {
            Fault::Conflict => Self::Conflict,
            Fault::Forbidden(_) => Self::Forbidden,
            Fault::NotFound => Self::Gone,
            Fault::Refused(_) => Self::Refused,
            fault if is_timeout(fault) => Self::Timeout,
            // Who isn't known has no rights.
            Fault::Unknown(words) if words.starts_with("HTTP 401") => Self::Forbidden,
            Fault::Unknown(_) | Fault::Expired | Fault::Throttled => Self::Unavailable,
        }
    }

    /// The class of a fault of a list: a kind that isn't served is none.
    #[must_use]
    pub fn of_list(fault: &Fault) -> Self {
        match fault {
            Fault::NotFound => Self::UnknownKind,
            fault => Self::of(fault),
        }
    }

    /// The word for it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Conflict => "conflict",
            Self::Forbidden => "forbidden",
            Self::Gone => "gone",
            Self::Timeout => "timeout",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::UnknownKind => "unknown_kind",
        }
    }
}
