//! etcd is restored from a backup under the running cluster: versions go back, and so does everything that it keeps.

use std::collections::BTreeMap;

use uptake::{catalog::namespace::NamespaceFacts, leader::Observed};

use crate::{
    history::{Action, STREAMS},
    store::{Owner, Place, Pod, ReplicaSet, Secret, SecretKey},
    world::{Event, Ms, Stood, World},
};

/// What etcd held once.
#[derive(Clone)]
pub struct Backup {
    version: u64,
    pod_version: u64,
    compacted: u64,
    secrets: BTreeMap<SecretKey, Secret>,
    remembered: BTreeMap<SecretKey, Secret>,
    stood: BTreeMap<Place, Vec<Stood>>,
    writes: BTreeMap<SecretKey, Vec<(u64, Ms)>>,
    owners: Vec<Owner>,
    sets: Vec<ReplicaSet>,
    pods: Vec<Pod>,
    ledger: BTreeMap<String, (u64, Vec<u8>)>,
    namespaces: [NamespaceFacts; 3],
    lease: Option<(u64, Observed)>,
}

impl World {
    /// A backup is made, if one will be needed.
    pub fn back_up(&mut self) {
        if self.script.lines.iter().any(|line| matches!(line.action, Action::Restore { .. })) {
            self.backups.push(Backup {
                version: self.version,
                pod_version: self.pod_version,
                compacted: self.compacted,
                secrets: self.secrets.clone(),
                remembered: self.remembered.clone(),
                stood: self.stood.clone(),
                writes: self.writes.clone(),
                owners: self.owners.clone(),
                sets: self.sets.clone(),
                pods: self.pods.clone(),
                ledger: self.ledger.clone(),
                namespaces: self.namespaces.clone(),
                lease: self.lease.clone(),
            });
        }
    }

    pub fn restore(&mut self, draw: u64) {
        let recent = self.backups.len().min(6);
        let Some(back) = usize::try_from(draw % 6).ok().filter(|back| *back < recent) else { return };
        let backup = self.backups[self.backups.len() - 1 - back].clone();
        self.backups.clear();
        self.tell(|world| {
            format!("etcd is restored: its version goes from {} back to {}", world.version, backup.version)
        });
        self.tally.fault("restored");
        let Backup {
            version,
            pod_version,
            compacted,
            secrets,
            remembered,
            stood,
            writes,
            owners,
            sets,
            pods,
            ledger,
            namespaces,
            lease,
        } = backup;
        let lost = self.writes.values().flatten().map(|(written, _)| *written);
        self.lost_versions.extend(lost.filter(|written| *written > version));
        (self.version, self.pod_version, self.compacted) = (version, pod_version, compacted);
        (self.secrets, self.remembered, self.stood, self.writes) = (secrets, remembered, stood, writes);
        (self.ledger, self.namespaces, self.lease) = (ledger, namespaces, lease);
        self.restore_sets(sets);
        self.restore_owners(owners);
        self.restore_pods(pods);
        self.checks.store_was_restored(version, self.now);
        self.each_replica(World::watches_were_restored);
    }

    // Numbers stay what they stood for: events are still to come that name them.

    fn restore_sets(&mut self, sets: Vec<ReplicaSet>) {
        let known = sets.len();
        for set in &mut self.sets[known..] {
            (set.want, set.pending) = (0, 0);
        }
        for (number, set) in sets.into_iter().enumerate() {
            // Pods that are being admitted are so still.
            let pending = self.sets[number].pending;
            self.sets[number] = ReplicaSet { pending, ..set };
        }
    }

    fn restore_owners(&mut self, owners: Vec<Owner>) {
        let known = owners.len();
        for owner in &mut self.owners[known..] {
            owner.gone = true;
        }
        for (number, owner) in owners.into_iter().enumerate() {
            let is_gone = owner.gone;
            let is_being_deleted = owner.deleting;
            self.owners[number] = Owner { awake: false, progressed: self.now, ..owner };
            if !is_gone {
                self.wake(number);
            }
            if is_being_deleted && !is_gone {
                self.after(5_000, Event::OwnerGone(number));
            }
        }
    }

    fn restore_pods(&mut self, pods: Vec<Pod>) {
        let known = pods.len();
        for pod in &mut self.pods[known..] {
            (pod.born, pod.gone, pod.deleting) = (u64::MAX, Some(0), true);
        }
        for (number, pod) in pods.into_iter().enumerate() {
            let (is_gone, is_going) = (pod.gone.is_some(), pod.deleting);
            self.pods[number] = pod;
            if is_gone {
                continue;
            }
            if is_going {
                self.after(2_000, Event::PodGone(number));
            } else {
                self.after(500, Event::Container { pod: number, which: 0 });
            }
        }
    }

    /// The API server was restarted, so a watch breaks; or the client doesn't notice, and it never says anything again
    /// until it is begun anew, as silent ones are.
    fn watches_were_restored(&mut self) {
        let version = self.version;
        self.checks.life.listed.clear();
        for stream in 0..STREAMS {
            self.streams[stream].forget_above(version);
            if self.rng.permille(700) {
                self.break_stream(stream, true, 300);
            } else {
                self.deafen(stream);
            }
        }
    }
}
