//! The simulated API server answers as the real one does: see the script that both run.

use std::collections::BTreeSet;

use uptake::{
    catalog::Selection,
    engine::{Answer, Call, CallId, Fault},
    facts::{Uid, Version, WorkloadId},
    ledger::HEAD,
    rollout::Strategy,
};

#[path = "../cluster/conformance/agreed.rs"]
mod agreed;

use agreed::{Over, SCRIPT, Step, WATCHED, birth};

use crate::{
    happen,
    history::{self, SECRETS, Script},
    rng::Rng,
    store::{self, SecretKey, Sort},
    watches::Change,
    world::World,
};

const PLACE: SecretKey = (0, 0);

struct Run {
    world: World,
    ledger: [u64; 2],
    workload: Option<WorkloadId>,
    seen: u64,
    time: Option<i64>,
    marks: Vec<(u64, BTreeSet<Uid>)>,
    calls: u64,
}

/// Runs the script; gives what isn't as agreed.
pub fn differences() -> Vec<String> {
    let mut run = Run::new();
    let mut wrong = Vec::new();
    for (number, (step, agreed)) in SCRIPT.iter().enumerate() {
        let answer = run.take(*step);
        if answer != *agreed {
            wrong.push(format!("step {number}, {step:?}: {answer}, and {agreed} was agreed"));
        }
    }
    let log = &run.world.logs[SECRETS];
    let watched: Vec<&str> = log
        .iter()
        .map(|logged| if matches!(logged.change, Change::Secret(_)) { "applied" } else { "deleted" })
        .collect();
    // A bookmark says that all up to the store's version was delivered.
    let rises = log.windows(2).all(|pair| pair[0].version < pair[1].version)
        && log.last().is_some_and(|last| last.version <= run.world.version);
    if watched[..WATCHED.len()] != *WATCHED || !rises {
        wrong.push(format!("the watch delivers {watched:?}, rising: {rises}"));
    }
    wrong
}

impl Run {
    fn new() -> Self {
        let mut knobs = history::script(0).knobs;
        knobs.skew = [0; 3];
        // Only what is there is consumed: pods would wait for the rest for ever.
        knobs.secrets = 1;
        (knobs.slow_admission, knobs.separate_stores, knobs.compacts) = (false, false, true);
        (knobs.faults, knobs.late, knobs.replicas, knobs.elects) = (0, 0, 1, false);
        let script = Script { seed: 0, knobs, lines: Vec::new(), until: 1 };
        let world = World::new(script, None, false);
        Self { world, ledger: [0; 2], workload: None, seen: 0, time: None, marks: Vec::new(), calls: 0 }
    }

    fn call(&mut self, call: &Call) -> Answer {
        self.calls += 1;
        self.world.perform(0, CallId(self.calls), call, false)
    }

    fn newer(&mut self, version: u64) -> String {
        let newer = version > self.seen;
        self.seen = self.seen.max(version);
        if newer { "newer" } else { "same" }.to_owned()
    }

    fn take(&mut self, step: Step) -> String {
        match step {
            Step::Write(body, over) => {
                let over = self.over(over);
                let name = HEAD.to_owned();
                let answer = self.call(&Call::WriteLedger { name, over, body: body.into() });
                let Answer::Written(result) = answer else { return "?".to_owned() };
                match result {
                    Ok(version) => {
                        if self.ledger[1] != version.0 {
                            self.ledger = [self.ledger[1], version.0];
                        }
                        self.newer(version.0)
                    }
                    Err(fault) => word(&fault),
                }
            }
            Step::Erase(over) => {
                let over = self.over(over).unwrap_or_default();
                match self.call(&Call::DeleteLedger { name: HEAD.to_owned(), over }) {
                    Answer::Done(result) => done(result),
                    _ => "?".to_owned(),
                }
            }
            Step::CreateSecret => self.secret(|world| world.create_secret(PLACE, None)),
            Step::ChangeSecret | Step::Mark => {
                let answer = self.secret(|world| world.set_anew(PLACE, 0));
                if matches!(step, Step::Mark) {
                    let there = self.pods();
                    self.marks.push((self.world.version, there));
                }
                answer
            }
            Step::LabelSecret => self.secret(|world| world.rewrite_secret(PLACE)),
            Step::DeleteSecret => {
                self.world.delete_secret(PLACE);
                "done".to_owned()
            }
            Step::ReadTime => self.read_time(),
            Step::CreateWorkload(sort) => self.create_workload(match sort {
                agreed::Sort::Deployment => Sort::Deployment,
                agreed::Sort::StatefulSet => Sort::StatefulSet,
                agreed::Sort::DaemonSet => Sort::DaemonSet,
            }),
            Step::EditTemplate => self.edit_template(),
            Step::ReadWriter => self.read_writer(),
            Step::Born => self.born(),
            Step::Stamp(stamp, over) => self.stamp(stamp, over),
            Step::PodsAt(mark) => {
                let (version, there) = self.marks[mark].clone();
                let before = if mark == 0 { there } else { self.marks[0].1.clone() };
                self.pods_at(version, &before)
            }
            Step::PodsAtFuture => self.pods_at(self.world.version + 1_000_000, &BTreeSet::new()),
            Step::ReplacePod => {
                let pod = self.world.pods.iter().position(store::Pod::is_live).unwrap();
                self.world.delete_pod(pod);
                self.rest();
                "done".to_owned()
            }
            Step::Compact => {
                self.world.compacted = self.world.version;
                "done".to_owned()
            }
        }
    }

    fn over(&self, over: Over) -> Option<Version> {
        match over {
            Over::Nothing => None,
            Over::Current | Over::Stranger => Some(Version(self.ledger[1])),
            Over::Earlier => Some(Version(self.ledger[0])),
        }
    }

    fn secret(&mut self, act: impl FnOnce(&mut World)) -> String {
        act(&mut self.world);
        let version = self.world.secrets[&PLACE].version;
        self.newer(version)
    }

    fn read_time(&mut self) -> String {
        let Answer::Secret(Ok(found)) = self.call(&Call::GetSecret(store::secret_id(PLACE))) else {
            return "?".to_owned();
        };
        let Some(facts) = found else { return "not found".to_owned() };
        let time = facts.keys[0].written.map(|time| time.0);
        match self.time.replace(time.unwrap_or_default()) {
            None => "first".to_owned(),
            before if before == time => "same".to_owned(),
            _ => "another".to_owned(),
        }
    }

    fn create_workload(&mut self, sort: Sort) -> String {
        // Of all that can be drawn, one of that kind with one pod in the Secret's namespace.
        for draw in 0.. {
            self.world.rng = Rng::new(draw);
            self.world.new_workload(draw);
            let owner = self.world.owners.len() - 1;
            let it = &self.world.owners[owner];
            let is_plain = it.desired == 1 && it.strategy == Strategy::Automatic;
            if it.sort == sort && it.namespace == PLACE.0 && is_plain {
                self.workload = Some(it.id());
                break;
            }
            self.world.workload_ends(owner);
        }
        self.rest();
        "done".to_owned()
    }

    fn owner(&self) -> usize {
        self.workload.as_ref().and_then(|id| self.world.owner_of(id)).expect("a workload was made")
    }

    fn edit_template(&mut self) -> String {
        let owner = self.owner();
        let mut template = (*self.world.owners[owner].template).clone();
        template.image += 1;
        self.world.set_template(owner, template, "another");
        self.newer(self.world.version)
    }

    fn read_writer(&mut self) -> String {
        let id = self.world.owners[self.owner()].id();
        let Answer::Workload(Ok(workload)) = self.call(&Call::GetWorkload(id)) else { return "?".to_owned() };
        match workload.last_writer.as_deref() {
            Some("human") => "its maker".to_owned(),
            other => other.unwrap_or("nobody").to_owned(),
        }
    }

    fn born(&mut self) -> String {
        self.rest();
        let of = self.owner();
        let (kind, uid) = (self.world.owners[of].sort.kind(), self.world.owners[of].uid);
        let namespace = store::namespace(PLACE.0);
        let only = Selection::of([&self.world.owners[of].facts().selector]);
        let Answer::Pods(Ok(pods)) = self.call(&Call::ListPods(namespace.clone(), only.clone())) else {
            return "?".to_owned();
        };
        let Answer::Owners(Ok(sets)) = self.call(&Call::ListReplicaSets(namespace, only)) else {
            return "?".to_owned();
        };
        let births = pods.iter().filter(|pod| !pod.deleting).filter_map(|pod| {
            let owner = pod.owner.as_ref()?;
            let above = sets.get(&owner.uid).and_then(|above| above.as_ref());
            let is = if owner.uid == uid && *owner.kind == *kind.as_str() {
                "it".to_owned()
            } else if above.is_some_and(|above| above.uid == uid) {
                format!("a {} of it", owner.kind)
            } else {
                return None;
            };
            Some(birth(&is, pod.stamp.as_deref()))
        });
        births.collect::<BTreeSet<String>>().into_iter().collect::<Vec<_>>().join("; ")
    }

    /// Until nothing is to come any more.
    fn rest(&mut self) {
        while let Some(event) = self.world.next_event() {
            happen(&mut self.world, event);
        }
        self.seen = self.world.version;
    }

    fn stamp(&mut self, stamp: &str, over: Over) -> String {
        let id = self.workload.clone().unwrap_or_else(|| {
            WorkloadId::new(uptake::facts::Kind::Deployment, store::namespace(PLACE.0), "w0")
        });
        let (uid, version) = match self.world.owner_of(&id) {
            Some(owner) => (self.world.owners[owner].uid, self.world.owners[owner].version),
            None => (Uid(1), 1),
        };
        let (uid, over) = match over {
            Over::Earlier => (uid, Version(version - 1)),
            Over::Stranger => (Uid(1), Version(version)),
            Over::Nothing | Over::Current => (uid, Version(version)),
        };
        let answer = self.call(&Call::Stamp { id, uid, over, stamp: stamp.to_owned() });
        match answer {
            Answer::Workload(Ok(workload)) => self.newer(workload.version.0),
            Answer::Workload(Err(fault)) => word(&fault),
            _ => "?".to_owned(),
        }
    }

    fn pods(&self) -> BTreeSet<Uid> {
        self.world.pods.iter().filter(|pod| pod.gone.is_none()).map(|pod| pod.uid).collect()
    }

    fn pods_at(&mut self, version: u64, before: &BTreeSet<Uid>) -> String {
        match self.call(&Call::ListPodsAt(store::namespace(PLACE.0), Version(version))) {
            Answer::PodUids(Ok(uids)) => {
                if uids.into_iter().collect::<BTreeSet<_>>() == *before { "these" } else { "others" }
                    .to_owned()
            }
            Answer::PodUids(Err(fault)) => word(&fault),
            _ => "?".to_owned(),
        }
    }
}

fn done(result: Result<(), Fault>) -> String {
    result.map_or_else(|fault| word(&fault), |()| "done".to_owned())
}

fn word(fault: &Fault) -> String {
    match fault {
        Fault::NotFound => "not found",
        Fault::Conflict => "conflict",
        Fault::Forbidden(_) => "forbidden",
        Fault::Refused(_) => "refused",
        Fault::Expired => "expired",
        Fault::Throttled => "throttled",
        Fault::Unknown(_) => "unknown",
    }
    .to_owned()
}
