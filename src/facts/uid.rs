//! The identity of an object across its lifetime.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An object's `metadata.uid`. The API server makes UUIDs; anything else is kept by its hash, so that
/// it still compares equal to itself only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Uid(pub u128);

impl Uid {
    /// Reads a uid as it stands in an object.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        uuid(text).unwrap_or_else(|| hashed(text))
    }
}

fn uuid(text: &str) -> Option<Uid> {
    let hyphens = text.len() == 36 && [8, 13, 18, 23].iter().all(|&at| text.as_bytes()[at] == b'-');
    if !hyphens {
        return None;
    }
    let hex: String = text.chars().filter(|&c| c != '-').collect();
    let plain = hex.len() == 32 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
    plain.then(|| u128::from_str_radix(&hex, 16).ok().map(Uid)).flatten()
}

fn hashed(text: &str) -> Uid {
    use sha2::{Digest, Sha256};
    let hash = Sha256::digest(text.as_bytes());
    Uid(hash.iter().take(16).fold(0, |sum, &byte| sum << 8 | u128::from(byte)))
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = format!("{:032x}", self.0);
        write!(f, "{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
    }
}

impl FromStr for Uid {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(Self::parse(text))
    }
}

impl Serialize for Uid {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Uid {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        String::deserialize(from).map(|text| Self::parse(&text))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_prints_as_it_was_read() {
        let text = "0f9a1b2c-3d4e-5f60-7182-93a4b5c6d7e8";
        assert_eq!(Uid::parse(text).to_string(), text);
    }

    #[test]
    fn other_texts_equal_only_themselves() {
        let texts =
            ["", "x", "0F9A1B2C-3D4E-5F60-7182-93A4B5C6D7E8", "é-------------------------------------"];
        for (i, a) in texts.iter().enumerate() {
            for (j, b) in texts.iter().enumerate() {
                assert_eq!(Uid::parse(a) == Uid::parse(b), i == j, "{a} {b}");
            }
        }
    }
}
