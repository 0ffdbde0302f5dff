//! Values as keyed digests: what is remembered of a Secret, never the value.
//!
//! A digest is the first 128 bits of an HMAC-SHA-256 over a length-prefixed encoding of namespace,
//! Secret, key (or "all"), presence and value, so that no two different facts share an encoding and
//! no digest can be compared across Secrets or keys. Who holds the digest key could test guesses of a
//! value; it lies in Uptake's own namespace only.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::Sha256;
use zeroize::Zeroizing;

/// The name of the encoding and hash described above. A ledger written under another one is adopted,
/// not compared.
pub const SCHEME: &str = "hmac-sha256-128.1";

/// How many bytes a digest key has.
pub const KEY_BYTES: usize = 32;

/// The digest of one value, or of all of a Secret's data, or of an absence.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub u128);

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Digest({self})")
    }
}

impl Serialize for Digest {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Digest {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        u128::from_str_radix(&text, 16).map(Self).map_err(|_| de::Error::custom("not a digest"))
    }
}

/// The secret under which digests are made.
#[derive(Clone)]
pub struct DigestKey(Zeroizing<[u8; KEY_BYTES]>);

impl fmt::Debug for DigestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("DigestKey(..)")
    }
}

impl DigestKey {
    /// The key of these bytes.
    #[must_use]
    pub fn new(bytes: [u8; KEY_BYTES]) -> Self {
        Self(Zeroizing::new(bytes))
    }

    /// The key of these bytes, if there are as many as a key has.
    #[must_use]
    pub fn from_slice(bytes: &[u8]) -> Option<Self> {
        bytes.try_into().ok().map(Self::new)
    }

    /// The key's own name, which tells nothing of it: digests under different keys can't be compared.
    #[must_use]
    pub fn id(&self) -> String {
        let digest = self.of_key("", "", "key", None).to_string();
        digest.chars().take(8).collect()
    }

    /// The digest of one key's value, or of its absence.
    #[must_use]
    pub fn of_key(&self, namespace: &str, secret: &str, key: &str, value: Option<&[u8]>) -> Digest {
        let mut mac = self.start(b'k', namespace, secret);
        field(&mut mac, key.as_bytes());
        presence(&mut mac, value);
        finish(mac)
    }

    /// The digest of all of a Secret's data, or of the Secret's absence. `data` comes sorted by key.
    pub fn of_all<'a, V: AsRef<[u8]> + 'a>(
        &self,
        namespace: &str,
        secret: &str,
        data: Option<impl Iterator<Item = (&'a str, V)>>,
    ) -> Digest {
        let mut mac = self.start(b'a', namespace, secret);
        match data {
            None => presence(&mut mac, None),
            Some(entries) => {
                mac.update(&[1]);
                for (key, value) in entries {
                    field(&mut mac, key.as_bytes());
                    field(&mut mac, value.as_ref());
                }
            }
        }
        finish(mac)
    }

    #[allow(clippy::expect_used)] // HMAC takes a key of any length.
    fn start(&self, what: u8, namespace: &str, secret: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0[..]).expect("HMAC takes any key");
        mac.update(&[what]);
        field(&mut mac, namespace.as_bytes());
        field(&mut mac, secret.as_bytes());
        mac
    }
}

fn presence(mac: &mut Hmac<Sha256>, value: Option<&[u8]>) {
    match value {
        None => mac.update(&[0]),
        Some(value) => {
            mac.update(&[1]);
            field(mac, value);
        }
    }
}

fn field(mac: &mut Hmac<Sha256>, bytes: &[u8]) {
    mac.update(&(bytes.len() as u64).to_be_bytes());
    mac.update(bytes);
}

fn finish(mac: Hmac<Sha256>) -> Digest {
    let bytes = mac.finalize().into_bytes();
    Digest(bytes.iter().take(16).fold(0, |sum, &byte| sum << 8 | u128::from(byte)))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    fn key() -> DigestKey {
        DigestKey::new([7; KEY_BYTES])
    }

    fn all(data: &BTreeMap<String, Vec<u8>>) -> Digest {
        key().of_all("ns", "s", Some(data.iter().map(|(k, v)| (k.as_str(), v))))
    }

    fn map(entries: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        entries.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect()
    }

    #[test]
    fn data_that_only_looks_alike_differs() {
        assert_ne!(all(&map(&[("a", "1;b=2")])), all(&map(&[("a", "1"), ("b", "2")])));
        assert_ne!(all(&map(&[("ab", "c")])), all(&map(&[("a", "bc")])));
        assert_ne!(all(&map(&[("a", "")])), all(&map(&[])));
        assert_ne!(all(&map(&[])), key().of_all::<&[u8]>("ns", "s", None::<std::iter::Empty<_>>));
    }

    #[test]
    fn absent_empty_and_present_differ() {
        let of = |value| key().of_key("ns", "s", "k", value);
        assert_ne!(of(None), of(Some(b"".as_slice())));
        assert_ne!(of(Some(b"".as_slice())), of(Some(b"\0".as_slice())));
    }

    #[test]
    fn a_digest_says_nothing_across_places_or_keys() {
        let value = Some(b"hunter2".as_slice());
        let one = key().of_key("ns", "s", "k", value);
        assert_ne!(one, key().of_key("ns", "s", "l", value));
        assert_ne!(one, key().of_key("ns", "t", "k", value));
        assert_ne!(one, key().of_key("nss", "", "k", value));
        assert_ne!(one, DigestKey::new([8; KEY_BYTES]).of_key("ns", "s", "k", value));
    }

    #[test]
    fn the_scheme_is_pinned() {
        // A changed encoding needs a new scheme name, or every cluster would see every value change.
        assert_eq!(key().of_key("ns", "s", "k", Some(b"v")).to_string().len(), 32);
        assert_eq!(key().of_key("ns", "s", "k", Some(b"v")), key().of_key("ns", "s", "k", Some(b"v")));
    }

    #[test]
    fn no_key_is_printed() {
        assert_eq!(format!("{:?}", key()), "DigestKey(..)");
    }

    proptest! {
        #[test]
        fn different_data_has_different_digests(
            a in proptest::collection::btree_map("[a-c]{0,3}", proptest::collection::vec(any::<u8>(), 0..4), 0..4),
            b in proptest::collection::btree_map("[a-c]{0,3}", proptest::collection::vec(any::<u8>(), 0..4), 0..4),
        ) {
            prop_assert_eq!(all(&a) == all(&b), a == b);
        }

        #[test]
        fn what_a_digest_is_of_never_runs_together(
            a in ("[a-b]{0,2}", "[a-b]{0,2}", "[a-b]{0,2}", proptest::option::of("[a-b]{0,2}")),
            b in ("[a-b]{0,2}", "[a-b]{0,2}", "[a-b]{0,2}", proptest::option::of("[a-b]{0,2}")),
        ) {
            let of = |(namespace, secret, name, value): &(String, String, String, Option<String>)| {
                key().of_key(namespace, secret, name, value.as_deref().map(str::as_bytes))
            };
            prop_assert_eq!(of(&a) == of(&b), a == b);
        }

        #[test]
        fn a_digest_reads_as_it_prints(bits in any::<u128>()) {
            let text = serde_json::to_string(&Digest(bits)).unwrap();
            prop_assert_eq!(serde_json::from_str::<Digest>(&text).unwrap(), Digest(bits));
        }
    }
}
