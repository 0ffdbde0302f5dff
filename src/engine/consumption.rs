//! What a workload consumes, with the histories of it.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::{Engine, Outside};
use crate::{
    catalog::{
        Workload,
        policy::{self, Mode, Source},
        reference::{Keys, Reference, Rolls},
    },
    decide::{self, Consumption, ReportOnly, Values, parts},
    facts::{SecretId, WorkloadId},
    ledger::{Entry, Full, History, Part, Since, Urgency, Value, Versions},
};

/// The references that roll their workload.
pub(super) fn rolling(workload: &Workload) -> impl Iterator<Item = &Reference> {
    workload.references.iter().filter(|reference| reference.rolls == Rolls::Yes)
}

/// The identity of what a workload's references consume, for the ledger: it depends on no build.
pub(super) fn references_hash(workload: &Workload) -> u64 {
    let mut sha = Sha256::new();
    let mut field = |bytes: &[u8]| {
        sha.update((bytes.len() as u64).to_be_bytes());
        sha.update(bytes);
    };
    for reference in rolling(workload) {
        field(reference.secret.as_bytes());
        field(if reference.optional { b"optional" } else { b"required" });
        match &reference.keys {
            Keys::All => field(b"all"),
            Keys::Named(keys) => {
                field(b"keys");
                keys.iter().for_each(|key| field(key.as_bytes()));
            }
        }
    }
    sha.finalize().iter().take(8).fold(0, |sum, &byte| sum << 8 | u64::from(byte))
}

impl Values for Engine {
    fn mode(&self, secret: &SecretId) -> Option<Mode> {
        self.secret_mode(secret)
    }

    fn is_left_out(&self, secret: &SecretId) -> bool {
        self.outside.get(secret) == Some(&Outside::There)
    }

    fn is_present(&self, secret: &SecretId) -> bool {
        self.sightings.get(secret).is_some_and(|sighting| sighting.present)
    }

    fn history(&self, secret: &SecretId, part: &Part) -> Option<&History> {
        self.book.secret(secret)?.history(part)
    }
}

impl Engine {
    pub(super) fn secret_id(workload: &Workload, reference: &Reference) -> SecretId {
        SecretId { namespace: workload.id.namespace.clone(), name: reference.secret.clone() }
    }

    pub(super) fn consumption<'a>(&'a self, workload: &'a Workload) -> Consumption<'a> {
        decide::consumption(&workload.id.namespace, workload.references.iter(), self)
    }

    pub(super) fn secret_mode(&self, secret: &SecretId) -> Option<Mode> {
        policy::rollout(self.sightings.get(secret)?.annotations.rollout.as_deref()).0
    }

    /// The workload's mode, whatever its Secrets say, and why if it is report.
    pub(super) fn mode(&self, workload: &Workload) -> (Mode, ReportOnly) {
        let namespace = self.catalog.namespace_mode(&workload.id.namespace);
        let (mode, source) =
            policy::effective(&workload.policy, None, namespace, self.config.default_rollout);
        let too_many = workload.reference_count > crate::catalog::references::MAX_REFERENCES;
        let full = self.full.contains(&workload.id.namespace);
        match (mode, source) {
            (Mode::Auto, _) if full => (Mode::Report, ReportOnly::TooMany),
            (Mode::Report, _) if too_many => (Mode::Report, ReportOnly::TooMany),
            (mode, Source::Problem) => (mode, ReportOnly::InvalidAnnotation),
            (mode, Source::Workload | Source::Secret | Source::Namespace | Source::Default) => {
                (mode, ReportOnly::Policy)
            }
        }
    }

    /// Begins the histories of what a workload consumes and nobody did before, and tells what can't be understood of it.
    pub(super) fn track(&mut self, id: &WorkloadId) {
        if !self.united {
            return;
        }
        let Some(workload) = self.catalog.get(id) else { return };
        let mut wanted: Vec<(SecretId, Part)> = Vec::new();
        let mut secrets: BTreeSet<SecretId> = BTreeSet::new();
        for reference in rolling(workload) {
            let secret = Self::secret_id(workload, reference);
            secrets.insert(secret.clone());
            for part in parts(reference) {
                let known = self.book.secret(&secret).is_some_and(|record| record.history(&part).is_some());
                if !known {
                    wanted.push((secret.clone(), part));
                }
            }
        }
        for secret in secrets {
            self.tell_secret_problem(&secret);
        }
        for (secret, part) in wanted {
            if let Err(Full) = self.begin_history(&secret, &part)
                && self.full.insert(secret.namespace.clone())
            {
                self.notice(
                    true,
                    format!(
                        "the ledger of namespace {} is full: the rest of it is reported only",
                        secret.namespace
                    ),
                );
            }
        }
    }

    fn begin_history(&mut self, secret: &SecretId, part: &Part) -> Result<(), Full> {
        let nothing = Entry { value: Value::Absent, since: Since::Beginning };
        let history = match self.sightings.get(secret) {
            Some(sighting) => sighting.history(part),
            None => History::new(self.newest_mount(secret).unwrap_or(nothing)),
        };
        let edit = self.edit(Urgency::Soon);
        self.book.edit_secret(secret, edit, |record| {
            record.unused = None;
            record.begin(part, history);
        })?;
        Ok(())
    }

    /// The versions that a workload would be stamped with now.
    pub(super) fn versions(&self, workload: &Workload) -> Versions {
        let consumption = self.consumption(workload);
        let mut versions = decide::versions(&consumption.rolling);
        versions.extend(decide::versions(&consumption.reported));
        // What stood since the beginning was never seen to change: nothing is named by it.
        versions.retain(|_, version| version.0 > 0);
        versions
    }

    /// Whether something that a workload consumes changed after it was last proven clean.
    pub(super) fn is_candidate(&self, workload: &Workload) -> bool {
        let consumption = self.consumption(workload);
        if consumption.untracked {
            return true;
        }
        let marks = self.book.marks(&workload.id.namespace, workload.uid);
        let clean = marks
            .filter(|marks| marks.clean_for == Some(references_hash(workload)))
            .map(|marks| &marks.clean);
        consumption.rolling.iter().chain(&consumption.reported).any(|consumed| {
            let proven = clean.and_then(|clean| clean.get(&consumed.reference.secret));
            proven.is_none_or(|proven| consumed.history.version() > *proven)
        })
    }
}
