//! Who may be rolled while another consumer is tried first, or after it broke.

use uptake::{
    engine::Call,
    facts::{Version, WorkloadId},
    ledger::Attempt,
    rollout::{Outcome, Stamp},
};

use crate::{
    store::{self, SecretKey},
    world::{Event, World},
};

impl World {
    /// A stamp is about to be sent.
    pub fn check_turn(&mut self, id: &WorkloadId, stamp: &str) {
        // Without a leader neither of two Uptakes knows what the other one just learnt.
        let is_alone = self.knobs.replicas == 1 || self.knobs.elects;
        if !is_alone || self.checks.ledger_was_deleted {
            return;
        }
        let (Some(owner), Some(stamp)) = (self.owner_of(id), Stamp::parse(stamp)) else { return };
        let clean = self.checks.clean.get(&self.owners[owner].uid);
        let new: Vec<_> = stamp
            .iter()
            .map(|(name, version)| (name.clone(), version))
            .filter(|(name, version)| clean.and_then(|clean| clean.get(name)) < Some(version))
            .collect();
        for (name, version) in new {
            let Some(number) = (0..3).find(|number| store::secret_name(*number) == name) else { continue };
            let place = (self.owners[owner].namespace, number);
            let others = self.tried(owner, place, version);
            let broke = others
                .iter()
                .any(|(_, attempt)| attempt.ended.as_ref().is_some_and(|ended| ended.broke.contains(&name)));
            if broke && !self.checks.released.contains(&(place, version.0)) {
                self.violated(format!("{id} is stamped for {name}@{version}, which broke another consumer"));
                return;
            }
            if self.knobs.canary && self.is_being_tried(&others, owner, place, version) {
                self.violated(format!("{id} is stamped for {name}@{version}, which another tries first"));
                return;
            }
        }
    }

    /// The other consumers, as far as the operator heard of them, whose last rollout was for that version.
    fn tried(&self, owner: usize, place: SecretKey, version: Version) -> Vec<(usize, &Attempt)> {
        let name = store::secret_name(place.1);
        let others = self.owners.iter().enumerate().filter(|(other, its)| {
            *other != owner
                && !its.gone
                && its.namespace == place.0
                && its.template.uses.iter().any(|one| one.secret == place.1)
                && self.streams[its.sort.stream()].delivered >= its.version
        });
        others
            .filter_map(|(other, its)| Some((other, self.checks.attempts.get(&its.uid)?)))
            .filter(|(_, attempt)| attempt.versions.get(&name) == Some(&version))
            .collect()
    }

    fn is_being_tried(
        &self,
        others: &[(usize, &Attempt)],
        owner: usize,
        place: SecretKey,
        version: Version,
    ) -> bool {
        // Whoever was proven, whether or not the operator heard the last of him. He doesn't try it any more, though he may
        // be rolled for another Secret and his stamp name this one, too.
        let name = store::secret_name(place.1);
        let is_proven = |its: &store::Owner| {
            let clean = self.checks.clean.get(&its.uid).and_then(|clean| clean.get(&name));
            clean >= Some(&version) && self.checks.was_intended(its.uid, &name, version)
        };
        let is_completed = |attempt: &Attempt| {
            attempt.versions.get(&name) == Some(&version)
                && attempt.ended.as_ref().is_some_and(|it| it.outcome == Outcome::Completed)
        };
        let completed = self.owners.iter().any(|its| {
            its.namespace == place.0
                && (is_proven(its) || self.checks.attempts.get(&its.uid).is_some_and(is_completed))
        });
        let names = |stamp: &str| Stamp::parse(stamp).and_then(|stamp| stamp.get(&name)) == Some(version);
        // The stamp of that very attempt: an earlier one may name the same version.
        let is_rolled = |other: usize, attempt: &Attempt| {
            let stamp: Stamp = attempt.versions.clone().into_iter().collect();
            self.owners[other].template.stamp.as_deref().is_some_and(|text| stamp.matches(text))
        };
        let mut running = others.iter().filter(|(other, it)| it.ended.is_none() && is_rolled(*other, it));
        let mut under_way = self.operator.calls().filter_map(|call| match call {
            Call::Stamp { id, stamp, .. } => self.owner_of(id).filter(|_| names(stamp)),
            _ => None,
        });
        let is_tried = running.next().is_some() || under_way.any(|other| other != owner);
        is_tried && !completed
    }

    /// A version broke a consumer: somebody may do something about it.
    pub fn breaker_opens(&mut self, place: SecretKey, version: u64) {
        self.tally.fault("breaker_opened");
        let delay = self.rng.between(1_000, 900_000);
        match self.rng.below(10) {
            0..=3 => self.after(delay, Event::Release { place, version }),
            4..=5 => self.after(delay, Event::Release { place, version: version + 1 }),
            6..=7 => self.after(delay, Event::Set { place, key: 0 }),
            _ => {}
        }
    }

    /// Somebody annotates a Secret with `uptake.dev/release`.
    pub fn release(&mut self, place: SecretKey, version: u64) {
        let Some(secret) = self.secrets.get_mut(&place) else { return };
        secret.release = Some(version);
        self.checks.released.insert((place, version));
        self.tally.fault("released");
        self.tell(|_| format!("Secret {} says uptake.dev/release: {version}", store::secret_id(place)));
        self.rewrite_secret(place);
    }
}
