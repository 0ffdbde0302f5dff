//! The stamp: the Secrets' versions that a pod template was rolled for, as one annotation on it.
//!
//! Kubernetes copies it to each pod, so it tells what a pod was born with. Anybody can write it, so a stamp found
//! is compared with those that the ledger knows ([`Stamp::matches`]), never believed.

use std::{collections::BTreeMap, fmt};

use sha2::{Digest, Sha256};

use crate::facts::{Name, Raw, Time, Version, is_source};

/// The annotation on pod templates and pods.
pub const STAMP_ANNOTATION: &str = "uptake.dev/secret-version";

/// The longest list that is written out. Annotations of an object have 256 KiB together, and each pod has a copy.
const MAX_LIST: usize = 4096;

/// The longest text that can be a stamp: a whole list and a restart's time. Longer texts aren't kept.
pub const MAX_TEXT: usize = MAX_LIST + 64;

/// The text of the stamp on a pod template or a pod. What is longer than any stamp is none, and isn't kept.
#[must_use]
pub fn found_on(object: Raw<'_>) -> Option<Box<str>> {
    object.annotation(STAMP_ANNOTATION).filter(|text| text.len() <= MAX_TEXT).map(Box::from)
}

/// Secrets and the versions that a template was rolled for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stamp(BTreeMap<Name, Version>);

impl Stamp {
    /// Reads a stamp that lists its versions, with or without the time that `restart` adds.
    ///
    /// Exactly what [`Stamp`] prints is read: `None` for text of other origin, and for the short form of a long
    /// stamp, which names nothing (see [`Stamp::matches`]).
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let list = without_restart(text);
        let stamp: Self = list
            .split(' ')
            .map(|item| {
                let (name, version) = item.split_once('@')?;
                Some((Name::from(name), version.parse::<Version>().ok()?))
            })
            .collect::<Option<_>>()?;
        // Printing it again finds out all that reading took lightly: order, repetition, leading zeros.
        let names = stamp.0.keys().all(|name| is_source(name));
        (names && stamp.to_string() == list).then_some(stamp)
    }

    /// Whether this text is this stamp, with or without the time that `restart` adds. It is how the short form,
    /// which can't be read, is recognised.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        !self.0.is_empty() && self.to_string() == without_restart(text)
    }

    /// The text that `restart` writes: with its time, so that it differs from what stands there already.
    #[must_use]
    pub fn restarted(&self, at: Time) -> String {
        format!("{self} +{at}")
    }

    /// The version of one Secret.
    #[must_use]
    pub fn get(&self, secret: &str) -> Option<Version> {
        self.0.get(secret).copied()
    }

    /// Secrets and versions, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = (&Name, Version)> {
        self.0.iter().map(|(name, version)| (name, *version))
    }

    /// Whether it names no Secret.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl FromIterator<(Name, Version)> for Stamp {
    fn from_iter<I: IntoIterator<Item = (Name, Version)>>(items: I) -> Self {
        Self(items.into_iter().collect())
    }
}

/// `db@48213 tls@9917`, sorted by name; above 4 KiB `sha256:HEX COUNT` with the hash of that list.
impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let items: Vec<String> = self.0.iter().map(|(name, version)| format!("{name}@{version}")).collect();
        let list = items.join(" ");
        if list.len() <= MAX_LIST {
            return f.write_str(&list);
        }
        f.write_str("sha256:")?;
        for byte in Sha256::digest(list.as_bytes()) {
            write!(f, "{byte:02x}")?;
        }
        write!(f, " {}", items.len())
    }
}

/// The stamp without the time that `restart` adds.
fn without_restart(text: &str) -> &str {
    text.rsplit_once(" +").filter(|(_, time)| Time::parse(time).is_some()).map_or(text, |(stamp, _)| stamp)
}

#[cfg(test)]
mod tests {
    use proptest::{collection::btree_map, prelude::*};
    use rstest::rstest;

    use super::*;

    fn stamp(items: &[(&str, u64)]) -> Stamp {
        items.iter().map(|&(name, version)| (Name::from(name), Version(version))).collect()
    }

    fn long() -> Stamp {
        (0..1000).map(|n| (Name::from(format!("secret-{n}")), Version(n))).collect()
    }

    #[test]
    fn it_is_found_on_templates_and_pods() {
        let found = |value: serde_json::Value| {
            found_on(Raw(&serde_json::json!({"metadata": {"annotations": {STAMP_ANNOTATION: value}}})))
        };
        assert_eq!(found("db@1".into()).as_deref(), Some("db@1"));
        assert_eq!(found("foreign".into()).as_deref(), Some("foreign"));
        assert_eq!(found("x".repeat(MAX_TEXT + 1).into()), None);
        assert_eq!(found(1.into()), None);
    }

    #[test]
    fn it_prints_sorted() {
        assert_eq!(stamp(&[("tls", 9917), ("db", 48_213)]).to_string(), "db@48213 tls@9917");
    }

    #[test]
    fn a_restart_adds_its_time_and_is_read_without() {
        let restarted = stamp(&[("db", 1)]).restarted(Time::parse("2026-12-01T03:21:07Z").unwrap());
        assert_eq!(restarted, "db@1 +2026-12-01T03:21:07Z");
        assert_eq!(Stamp::parse(&restarted), Some(stamp(&[("db", 1)])));
        assert!(stamp(&[("db", 1)]).matches(&restarted));
    }

    #[rstest]
    #[case("")]
    #[case(" ")]
    #[case("db")]
    #[case("db@")]
    #[case("db@x")]
    #[case("db@-1")]
    #[case("db@01")]
    #[case("@1")]
    #[case("DB@1")]
    #[case("db@1 ")]
    #[case("db@1  tls@2")]
    #[case("tls@2 db@1")]
    #[case("db@1 db@1")]
    #[case("db@1 +yesterday")]
    #[case("+2026-12-01T03:21:07Z")]
    #[case("db@1\ntls@2")]
    #[case("sha256:00 3")]
    fn other_text_is_no_stamp(#[case] text: &str) {
        assert_eq!(Stamp::parse(text), None);
        assert!(!stamp(&[("db", 1), ("tls", 2)]).matches(text));
        assert!(!Stamp::default().matches(text));
    }

    #[test]
    fn a_long_one_is_a_hash_and_the_count() {
        let text = long().to_string();
        assert_eq!(text, "sha256:a9492aa51267809fe6ffef2b81b0113f8740b1bbf69b7fdd2137df09b29cf9bc 1000");
        assert_eq!(Stamp::parse(&text), None);
        assert!(long().matches(&text));
        assert!(long().matches(&long().restarted(Time(0))));
        let mut other = long();
        other.0.insert("secret-0".into(), Version(1));
        assert!(!other.matches(&text));
    }

    #[test]
    fn the_list_is_written_out_up_to_the_limit() {
        let of = |length: usize| stamp(&[(&"a".repeat(length - 2), 1)]).to_string();
        assert_eq!(of(MAX_LIST).len(), MAX_LIST);
        assert!(of(MAX_LIST + 1).starts_with("sha256:"));
    }

    proptest! {
        #[test]
        fn what_is_printed_is_read(items in btree_map("[a-z0-9]{1,8}(\\.[a-z0-9]{1,3})?", any::<u64>(), 1..20)) {
            let stamp: Stamp = items.iter().map(|(n, v)| (Name::from(n.as_str()), Version(*v))).collect();
            let text = stamp.to_string();
            prop_assert_eq!(Stamp::parse(&text), Some(stamp.clone()));
            prop_assert!(stamp.matches(&text));
            prop_assert!(text.len() <= MAX_TEXT && stamp.restarted(Time(0)).len() <= MAX_TEXT);
            let names: Vec<&str> = text.split(' ').map(|item| item.split('@').next().unwrap()).collect();
            prop_assert!(names.is_sorted());
        }

        #[test]
        fn the_order_of_writing_does_not_count(mut items in proptest::collection::vec(("[a-c]", 0_u64..3), 0..5)) {
            items.sort();
            items.dedup_by(|a, b| a.0 == b.0);
            let of = |items: &[(String, u64)]| -> Stamp {
                items.iter().map(|(n, v)| (Name::from(n.as_str()), Version(*v))).collect()
            };
            let forwards = of(&items);
            items.reverse();
            prop_assert_eq!(of(&items).to_string(), forwards.to_string());
        }

        #[test]
        fn a_long_one_stands_for_its_list_and_no_other(
            versions in proptest::collection::vec(any::<u64>(), 200..500),
            names in "[a-z]{30}",
            (at, other, time) in (any::<prop::sample::Index>(), any::<u64>(), 0_i64..4_000_000_000_000),
        ) {
            let name = |n: usize| Name::from(format!("{names}-{n:03}"));
            let items: Vec<(Name, Version)> =
                versions.iter().enumerate().map(|(n, version)| (name(n), Version(*version))).collect();
            let stamp: Stamp = items.iter().cloned().collect();
            let text = stamp.to_string();
            // Of one length, whatever it stands for; with the count, for people.
            let hash = text.strip_prefix("sha256:").and_then(|rest| rest.strip_suffix(&format!(" {}", items.len())));
            prop_assert!(hash.is_some_and(|hash| hash.len() == 64 && hash.bytes().all(|b| b.is_ascii_hexdigit())));
            let restarted = stamp.restarted(Time(time / 1000 * 1000));
            prop_assert!(restarted.len() <= MAX_TEXT);
            // It is recognised, and can't be read.
            prop_assert!(stamp.matches(&text) && stamp.matches(&restarted));
            prop_assert_eq!(Stamp::parse(&text), None);
            prop_assert_eq!(Stamp::parse(&restarted), None);
            // The order of writing doesn't count.
            let backwards: Stamp = items.iter().rev().cloned().collect();
            prop_assert_eq!(backwards.to_string(), text.clone());
            // Another version of any of them is another stamp, and so is one Secret fewer.
            let mut another = stamp.clone();
            let changed = name(at.index(items.len()));
            let differs = another.0.insert(changed.clone(), Version(other)) != Some(Version(other));
            prop_assert_eq!(another.matches(&text), !differs);
            another.0.remove(&changed);
            prop_assert!(!another.matches(&text));
        }

        #[test]
        fn no_text_is_too_odd(text in "[a-c@0-2 +:\\-TZé]{0,30}") {
            if let Some(stamp) = Stamp::parse(&text) {
                prop_assert!(stamp.matches(&text));
            }
        }
    }
}
