//! The resourceVersion of an object, as a number that can be compared.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

/// A resourceVersion. Kubernetes promises that those of one kind in one store are ordered decimals
/// (KEP-5504); comparing them across kinds needs the check that the engine makes at its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Version(pub u64);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A resourceVersion that isn't a decimal number.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("resourceVersion isn't a decimal number")]
pub struct NotAVersion;

impl FromStr for Version {
    type Err = NotAVersion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // `u64::from_str` takes a leading plus sign, which no API server writes.
        if !text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(NotAVersion);
        }
        text.parse().map(Self).map_err(|_| NotAVersion)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_versions_and_nothing_else_is() {
        assert_eq!("48213".parse(), Ok(Version(48_213)));
        for bad in ["", "+1", "-1", "1a", "99999999999999999999999"] {
            assert_eq!(bad.parse::<Version>(), Err(NotAVersion), "{bad}");
        }
    }
}
