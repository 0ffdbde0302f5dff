//! The operator's ledger, as somebody else reads it.

use crate::{
    catalog::SecretFacts,
    engine::LedgerObject,
    facts::{Name, Uid, Version},
    ledger::{
        Attempt, Book, Digest, DigestKey, Findings, HEAD, Head, History, KEY_BYTES, Moment, Part, Point,
        SCHEME, Settings, Sight, Value,
    },
};

/// A ledger that was read.
#[derive(Debug)]
pub struct Ledger {
    /// Its records.
    pub book: Book,
    /// What the operator was told when it wrote it; none if that isn't understood.
    pub settings: Option<Settings>,
    compares: Compares,
}

/// How the ledger's digests are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Compares {
    /// Of the data, under the key that was read.
    Data,
    /// Of versions (`--trigger resource-version`).
    Versions,
    /// Under a key that isn't known: values can't be compared with it.
    Nothing,
}

impl Ledger {
    /// Reads it; none if there is none that can be read. `own` is the identity of Uptake's own namespace, if that is
    /// known: another cluster's ledger is none.
    #[must_use]
    pub fn read(objects: &[LedgerObject], key: Option<&DigestKey>, own: Option<Uid>) -> Option<Self> {
        let head = objects.iter().find(|object| *object.name == *HEAD)?;
        let Head { cover, settings, .. } = serde_json::from_slice(&head.body).ok()?;
        if own.is_some_and(|own| own != cover.identity) {
            return None;
        }
        let id = key.map(DigestKey::id).unwrap_or_default();
        let compares = match cover.scheme.strip_prefix(&format!("{SCHEME}/{id}/")) {
            Some("data") => Compares::Data,
            Some("version") => Compares::Versions,
            _ => Compares::Nothing,
        };
        let mut book = Book::new(cover.identity, cover.scheme, cover.made);
        let mut findings = Findings::default();
        for object in objects {
            book.read(&object.name, object.version, &object.body, &mut findings);
        }
        Some(Self { book, settings: serde_json::from_value(settings).ok(), compares })
    }

    /// Whether values can be compared with the ledger's.
    #[must_use]
    pub fn compares_data(&self) -> bool {
        self.compares == Compares::Data
    }

    /// What a part of a Secret held since when: what the ledger says, and what stands there now.
    #[must_use]
    pub fn history(
        &self,
        namespace: &str,
        recorded: &History,
        part: &Part,
        now: Option<&SecretFacts>,
        by: Point,
    ) -> History {
        let mut history = recorded.clone();
        let value = match (now, self.compares) {
            (_, Compares::Nothing) => return history,
            (None, _) => Value::Absent,
            (Some(secret), compares) => stands(secret, part, compares),
        };
        let after = self.book.seen_until(namespace);
        // The operator writes down every minute how far it saw. Times of writing that moved since say nothing then: other
        // values do.
        history.learn(&Sight { value, written: None, moment: Moment::Gap { after, by } });
        history
    }

    /// The last rollout of a workload by the operator.
    #[must_use]
    pub fn attempt(&self, namespace: &str, uid: Uid) -> Option<&Attempt> {
        self.book.marks(namespace, uid)?.attempt.as_ref()
    }

    /// Who else was broken by that version of a Secret of that namespace.
    #[must_use]
    pub fn broken_by(&self, namespace: &str, uid: Uid, secret: &str, version: Version) -> Option<&Name> {
        let others = self.book.workloads().filter(|(of, other, _)| ***of == *namespace && *other != uid);
        let broken = |attempt: &Attempt| {
            attempt.versions.get(secret) == Some(&version)
                && attempt
                    .ended
                    .as_ref()
                    .is_some_and(|ended| ended.broke.iter().any(|name| **name == *secret))
        };
        let mut broke = others
            .filter(|(_, _, marks)| marks.attempt.as_ref().is_some_and(broken))
            .map(|(_, _, marks)| &marks.name);
        broke.next()
    }
}

fn stands(secret: &SecretFacts, part: &Part, compares: Compares) -> Value {
    let digest = match part {
        Part::All => Some(secret.all),
        Part::Key(key) => secret.key(key).map(|key| key.digest),
    };
    let of_version = Digest(u128::from(secret.version.0));
    digest.map_or(Value::Absent, |digest| {
        Value::Present(if compares == Compares::Versions { of_version } else { digest })
    })
}

/// A key for digests that are compared with nobody's: where there is no ledger.
#[must_use]
pub fn nobodys_key() -> DigestKey {
    DigestKey::new([0; KEY_BYTES])
}
