//! What the API server does with a call.

use std::{collections::BTreeMap, rc::Rc};

use uptake::{
    catalog::Selection,
    decide::OwnerFacts,
    engine::{Answer, Call, CallId, Fault, LedgerObject},
    facts::{Name, Uid, Version, WorkloadId},
};

use crate::{
    checks::Evidence,
    operator::{failed, words},
    planted::Bug,
    store::{self, Template},
    world::World,
};

impl World {
    pub fn perform(&mut self, life: u64, id: CallId, call: &Call, _late: bool) -> Answer {
        let late = life == u64::MAX;
        let answer = match call {
            Call::ListLedger => Answer::Ledger(Ok(self.ledger_objects())),
            Call::WriteLedger { name, over, body } => Answer::Written(self.write_ledger(name, *over, body)),
            Call::DeleteLedger { name, over } => Answer::Done(self.delete_ledger(name, *over)),
            Call::ListPods(namespace, only) => self.list_pods(life, id, namespace, only),
            Call::ListPodsAt(namespace, version) => Answer::PodUids(self.pods_at(namespace, version.0)),
            Call::ListReplicaSets(namespace, only) => Answer::Owners(Ok(self.replica_sets(namespace, only))),
            Call::ProbePodVersion => {
                let version = if self.knobs.separate_stores { self.pod_version } else { self.version };
                Answer::PodListVersion(Ok(Version(version)))
            }
            Call::GetSecret(of) => {
                let found = self.secrets.iter().find(|(place, _)| store::secret_id(**place) == *of);
                Answer::Secret(Ok(found.map(|(place, secret)| secret.facts(*place))))
            }
            Call::GetWorkload(of) => Answer::Workload(match self.owner_of(of) {
                Some(owner) => Ok(self.owners[owner].facts()),
                None => Err(Fault::NotFound),
            }),
            Call::Stamp { id: of, uid, over, stamp } => {
                let decided = self.operator.stamps.remove(&(life, id));
                match self.stamp(of, *uid, *over, stamp, decided.filter(|_| !late)) {
                    Ok(owner) => Answer::Workload(Ok(self.owners[owner].facts())),
                    Err(fault) => failed(call, fault),
                }
            }
            Call::Note(note) => {
                self.check_note(note);
                self.told.insert(note.name.clone());
                Answer::Done(Ok(()))
            }
        };
        let tedious =
            matches!(call, Call::WriteLedger { name, .. } if self.quiet && name == uptake::ledger::HEAD);
        if !tedious
            && matches!(
                call,
                Call::Stamp { .. } | Call::WriteLedger { .. } | Call::Note(_) | Call::ListPods(..)
            )
        {
            let result = match &answer {
                Answer::Workload(Err(fault)) | Answer::Written(Err(fault)) => format!("{fault}"),
                Answer::Written(Ok(version)) => format!("now {version}"),
                _ => "done".to_owned(),
            };
            self.tell(|_| format!("  API: {}: {result}", words(call)));
        }
        answer
    }

    fn ledger_objects(&self) -> Vec<LedgerObject> {
        let objects = self.ledger.iter();
        objects
            .map(|(name, (version, body))| LedgerObject {
                name: Name::from(name.as_str()),
                version: Version(*version),
                body: body.clone(),
            })
            .collect()
    }

    fn write_ledger(&mut self, name: &str, over: Option<Version>, body: &[u8]) -> Result<Version, Fault> {
        let there = self.ledger.get(name).map(|(version, _)| *version);
        match (over, there) {
            (None, Some(_)) => return Err(Fault::Conflict),
            (Some(_), None) => return Err(Fault::NotFound),
            (Some(over), Some(there)) if over.0 != there => {
                self.tally.fault("ledger_conflict");
                return Err(Fault::Conflict);
            }
            _ => {}
        }
        // What changes nothing gets no version.
        if let (Some(there), Some((_, before))) = (there, self.ledger.get(name))
            && before == body
        {
            return Ok(Version(there));
        }
        let version = self.bump();
        if self.bug == Some(Bug::LedgerWriteLost) && self.rng.permille(200) && there.is_some() {
            if let Some(object) = self.ledger.get_mut(name) {
                object.0 = version;
            }
            return Ok(Version(version));
        }
        self.check_ledger_write(name, body);
        self.ledger.insert(name.to_owned(), (version, body.to_vec()));
        Ok(Version(version))
    }

    fn delete_ledger(&mut self, name: &str, over: Version) -> Result<(), Fault> {
        match self.ledger.get(name) {
            None => Err(Fault::NotFound),
            Some((version, _)) if *version != over.0 => Err(Fault::Conflict),
            Some(_) => {
                self.bump();
                self.ledger.remove(name);
                Ok(())
            }
        }
    }

    fn list_pods(&mut self, life: u64, id: CallId, namespace: &Name, only: &Selection) -> Answer {
        let there: Vec<usize> = (0..self.pods.len())
            .filter(|pod| {
                let pod = &self.pods[*pod];
                let owner = &self.owners[pod.owner];
                pod.gone.is_none() && store::namespace(owner.namespace) == *namespace && owner.is_among(only)
            })
            .collect();
        let pods = there.iter().copied().filter(|pod| self.pods[*pod].is_live()).collect();
        let evidence = Evidence { namespace: namespace.clone(), pods, version: self.version };
        self.operator.lists.insert((life, id), evidence);
        let facts = there.iter().map(|pod| {
            let pod = &self.pods[*pod];
            pod.facts(self.pod_owner(pod))
        });
        Answer::Pods(Ok(facts.collect()))
    }

    fn pods_at(&mut self, namespace: &Name, version: u64) -> Result<Vec<Uid>, Fault> {
        if self.knobs.separate_stores {
            self.violated(
                "pods are listed at a Secret's version though they lie in another store".to_owned(),
            );
        }
        if version < self.compacted {
            self.tally.fault("expired");
            return Err(Fault::Expired);
        }
        if version == 0 {
            self.violated("pods are listed at no version at all".to_owned());
        }
        if version > self.version {
            return Err(Fault::Expired);
        }
        let there = self.pods.iter().filter(|pod| {
            pod.born <= version
                && pod.gone.is_none_or(|gone| gone > version)
                && store::namespace(self.owners[pod.owner].namespace) == *namespace
        });
        let mut uids: Vec<Uid> = there.map(|pod| pod.uid).collect();
        uids.sort_unstable();
        Ok(uids)
    }

    fn replica_sets(&self, namespace: &Name, only: &Selection) -> BTreeMap<Uid, Option<OwnerFacts>> {
        let there = self.sets.iter().filter(|set| {
            let owner = &self.owners[set.owner];
            !owner.gone && store::namespace(owner.namespace) == *namespace && owner.is_among(only)
        });
        there
            .map(|set| {
                let owner = &self.owners[set.owner];
                let facts =
                    OwnerFacts { kind: "Deployment".into(), name: owner.name.clone(), uid: owner.uid };
                (set.uid, Some(facts))
            })
            .collect()
    }

    fn stamp(
        &mut self,
        id: &WorkloadId,
        uid: Uid,
        over: Version,
        stamp: &str,
        decided: Option<(Option<Evidence>, u64)>,
    ) -> Result<usize, Fault> {
        let owner = self.owner_of(id).ok_or(Fault::NotFound)?;
        let it = &self.owners[owner];
        if it.version != over.0 {
            self.tally.fault("stamp_conflict");
            return Err(Fault::Conflict);
        }
        if it.uid != uid {
            return Err(Fault::Refused("metadata.uid: field is immutable".to_owned()));
        }
        if it.denied {
            self.tally.fault("refused");
            return Err(Fault::Refused("admission webhook denied the request".to_owned()));
        }
        if it.stripped {
            // Admission takes the annotation away again: nothing is left of the patch.
            self.tally.fault("stripped");
            self.checks.reverted.insert(uid);
            return Ok(owner);
        }
        if it.template.stamp.as_deref() == Some(stamp) {
            return Ok(owner);
        }
        self.check_stamp(owner, stamp, decided);
        let template = Template { stamp: Some(Rc::from(stamp)), ..(*self.owners[owner].template).clone() };
        self.set_template(owner, template, "uptake");
        Ok(owner)
    }
}
