//! The simulated cluster: its store, its clock, and the events that are still to come.

use std::{
    cmp::Reverse,
    collections::{BTreeMap, BTreeSet, BinaryHeap},
    rc::Rc,
};

use uptake::{
    catalog::namespace::NamespaceFacts,
    decide::OwnerFacts,
    engine::{Answer, CallId},
    facts::{Name, Uid, Version},
    leader::Observed,
};

use crate::{
    checks::Checks,
    history::{Knobs, Script},
    operator::Operator,
    planted::Bug,
    replicas::{Asked, Replica},
    report::Tally,
    restore::Backup,
    rng::{Rng, mix},
    store::{self, Owner, Place, Pod, ReplicaSet, Secret, SecretKey},
    watches::{Change, Logged, Stream},
};

pub use crate::history::Ms;

/// When every history begins, by the true clock.
pub const EPOCH: Ms = 1_790_000_000_000;

/// Something that is still to come.
#[derive(Debug)]
pub enum Event {
    Line(usize),
    Quiet,
    Deliver { stream: usize, turn: u64 },
    List { stream: usize, turn: u64 },
    Listed { stream: usize, turn: u64, part: usize },
    Resume { stream: usize, turn: u64 },
    OutageOver { stream: usize },
    Bookmark { stream: usize, life: u64 },
    Execute { life: u64, call: CallId },
    Answered { life: u64, call: CallId, answer: Box<Answer> },
    Tick { life: u64, number: u64 },
    Start { replica: u64 },
    Candidate { life: u64 },
    Lease { life: u64, asked: Asked },
    Control(usize),
    Deadline(usize),
    Admitted { owner: usize, set: Option<usize>, ordinal: u32, created: Ms },
    Container { pod: usize, which: u8 },
    Ready(usize),
    PodGone(usize),
    Git(usize),
    Set { place: SecretKey, key: u8 },
    OwnerGone(usize),
    Release { place: SecretKey, version: u64 },
    LedgerBack,
}

/// A value that stood in a place from a version on.
#[derive(Clone, Copy, Debug)]
pub struct Stood {
    pub version: u64,
    pub at: Ms,
    pub value: Option<u64>,
    /// What `managedFields` then said.
    pub written: Option<Ms>,
}

pub struct World {
    pub script: Script,
    pub knobs: Knobs,
    pub rng: Rng,
    pub now: Ms,
    /// When the processes' own clocks begin.
    pub base: tokio::time::Instant,
    pub version: u64,
    /// Where pods lie in a store of their own: its versions.
    pub pod_version: u64,
    pub compacted: u64,
    pub quiet: bool,
    queue: BinaryHeap<Reverse<(Ms, u64, usize)>>,
    slots: Vec<Option<Event>>,
    free: Vec<usize>,
    order: u64,
    serial: u64,
    pub secrets: BTreeMap<SecretKey, Secret>,
    /// The last data of Secrets, also of deleted ones.
    pub remembered: BTreeMap<SecretKey, Secret>,
    pub stood: BTreeMap<Place, Vec<Stood>>,
    /// All writes of a Secret.
    pub writes: BTreeMap<SecretKey, Vec<(u64, Ms)>>,
    pub owners: Vec<Owner>,
    pub sets: Vec<ReplicaSet>,
    pub pods: Vec<Pod>,
    pub ledger: BTreeMap<String, (u64, Vec<u8>)>,
    pub ledger_down: bool,
    pub told: BTreeSet<String>,
    /// Values with which no program becomes ready.
    pub bad_values: BTreeSet<u32>,
    pub namespaces: [NamespaceFacts; 3],
    pub logs: [Vec<Logged>; 5],
    pub streams: [Stream; 5],
    /// The replica that is being looked at, with its watches.
    pub operator: Operator,
    /// The other one, if there are two.
    pub other: Option<Box<Replica>>,
    /// Whether any of them ever ran.
    pub ever: bool,
    /// The Lease, with its version.
    pub lease: Option<(u64, Observed)>,
    pub checks: Checks,
    pub tally: Tally,
    /// How long a process stood still at most.
    pub longest_freeze: Ms,
    /// Versions of Secrets that a restore took back.
    pub lost_versions: BTreeSet<u64>,
    /// What a later restore may go back to.
    pub backups: Vec<Backup>,
    pub bug: Option<Bug>,
    /// What happened, in words, if somebody wants to read it.
    pub story: Option<Vec<String>>,
}

impl World {
    pub fn new(script: Script, bug: Option<Bug>, tell: bool) -> Self {
        let mut rng = Rng::new(script.seed ^ 0xdead_beef);
        let version = 1000 + rng.below(1000);
        let namespaces = [0, 1, 2].map(|number| NamespaceFacts {
            name: store::namespace(number),
            uid: Uid(u128::from(number) + 1),
            version: Version(1),
            rollout: None,
            paused: None,
        });
        Self {
            knobs: script.knobs.clone(),
            rng,
            now: EPOCH,
            base: tokio::time::Instant::now(),
            version,
            pod_version: version * 40,
            compacted: 0,
            quiet: false,
            queue: BinaryHeap::new(),
            slots: Vec::new(),
            free: Vec::new(),
            order: 0,
            serial: 0,
            secrets: BTreeMap::new(),
            remembered: BTreeMap::new(),
            stood: BTreeMap::new(),
            writes: BTreeMap::new(),
            owners: Vec::new(),
            sets: Vec::new(),
            pods: Vec::new(),
            ledger: BTreeMap::new(),
            ledger_down: false,
            told: BTreeSet::new(),
            bad_values: BTreeSet::new(),
            namespaces,
            logs: Default::default(),
            streams: Default::default(),
            operator: Operator::new(0),
            other: (script.knobs.replicas > 1).then(|| Box::new(Replica::new(1))),
            ever: false,
            lease: None,
            checks: Checks::default(),
            tally: Tally::default(),
            longest_freeze: 0,
            lost_versions: BTreeSet::new(),
            backups: Vec::new(),
            bug,
            story: tell.then(Vec::new),
            script,
        }
    }

    pub fn tell(&mut self, words: impl FnOnce(&Self) -> String) {
        if self.story.is_some() {
            let line = format!("{:>9.3}s  {}", (self.now - EPOCH) as f64 / 1000.0, words(self));
            if let Some(story) = &mut self.story {
                story.push(line);
            }
        }
    }

    pub fn after(&mut self, delay: Ms, event: Event) {
        self.order += 1;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(event);
        self.queue.push(Reverse((self.now + delay.max(0), self.order, slot)));
    }

    /// The next event, at its time.
    pub fn next_event(&mut self) -> Option<Event> {
        let Reverse((at, _, slot)) = self.queue.pop()?;
        self.now = self.now.max(at);
        self.free.push(slot);
        self.slots[slot].take()
    }

    /// A write to the store.
    pub fn bump(&mut self) -> u64 {
        // Other objects are written too.
        self.version += 1 + self.rng.below(3);
        // After a restore no Secret is written at a version at which one was written in the lost history, too: among a
        // cluster's millions of versions that is a chance that nobody could tell from the same write.
        while self.lost_versions.contains(&self.version) {
            self.version += 1;
        }
        self.version
    }

    /// The version of a pod's birth or end.
    pub fn bump_pods(&mut self) -> u64 {
        if self.knobs.separate_stores {
            self.pod_version += 1 + self.rng.below(3);
        }
        self.bump()
    }

    pub fn new_uid(&mut self) -> Uid {
        self.serial += 1;
        Uid(u128::from(mix(self.script.seed ^ self.serial)) << 64 | u128::from(self.serial))
    }

    pub fn serial(&self) -> u64 {
        self.serial
    }

    /// A time as the API server writes it: by the clock of one of them, in whole seconds.
    pub fn stamp_time(&mut self, at: Ms) -> Ms {
        let skew = self.knobs.skew[self.rng.index(3)];
        (at + skew).div_euclid(1000) * 1000
    }

    pub fn log(&mut self, stream: usize, change: Change) {
        let version = self.version;
        self.logs[stream].push(Logged { version, change });
        self.each_replica(|world| world.schedule_delivery(stream));
    }

    pub fn log_secret(&mut self, place: SecretKey) {
        if let Some(secret) = self.secrets.get(&place) {
            let facts = secret.facts(place);
            self.log(crate::history::SECRETS, Change::Secret(Box::new(facts)));
        }
    }

    /// The place's values are noted, as they stand now.
    pub fn note_values(&mut self, (of, name): SecretKey) {
        let now = self.now;
        let version = self.version;
        let secret = self.secrets.get(&(of, name));
        let mut all = vec![(
            None,
            secret.map(Secret::all),
            secret.and_then(|secret| secret.data.values().map(|datum| datum.written).max()),
        )];
        for key in 0..store::KEYS {
            let datum = secret.and_then(|secret| secret.data.get(&key));
            all.push((
                Some(key),
                datum.map(|datum| u64::from(datum.value)),
                datum.map(|datum| datum.written),
            ));
        }
        self.writes.entry((of, name)).or_default().push((version, now));
        for (key, value, written) in all {
            let stood = self.stood.entry((of, name, key)).or_default();
            if stood.last().is_none_or(|last| last.value != value) {
                stood.push(Stood { version, at: now, value, written });
            } else if let Some(last) = stood.last_mut() {
                last.written = written;
            }
        }
    }

    /// A workload changed.
    pub fn touch(&mut self, owner: usize) {
        let version = self.bump();
        self.owners[owner].version = version;
        let it = &mut self.owners[owner];
        it.shown = it.rollout.clone();
        let shows = (it.shown.updated, it.shown.ready);
        if it.trail.last().is_none_or(|(_, before)| *before != shows) {
            it.trail.push((version, shows));
        }
        let facts = self.owners[owner].facts();
        let stream = self.owners[owner].sort.stream();
        self.log(stream, Change::Workload(Box::new(facts)));
        self.wake(owner);
    }

    /// Its controller looks at it soon.
    pub fn wake(&mut self, owner: usize) {
        if !self.owners[owner].awake {
            self.owners[owner].awake = true;
            let delay = if self.rng.permille(30) {
                self.rng.between(1_000, 8_000)
            } else {
                self.rng.between(20, 400)
            };
            self.after(delay, Event::Control(owner));
        }
    }

    pub fn pod_owner(&self, pod: &Pod) -> OwnerFacts {
        if let Some(set) = pod.set {
            let set = &self.sets[set];
            return OwnerFacts { kind: "ReplicaSet".into(), name: set.name.clone(), uid: set.uid };
        }
        let owner = &self.owners[pod.owner];
        OwnerFacts { kind: owner.sort.kind().as_str().into(), name: owner.name.clone(), uid: owner.uid }
    }

    /// The template of a workload becomes another.
    pub fn set_template(&mut self, owner: usize, template: store::Template, writer: &str) {
        let now = self.now;
        let it = &mut self.owners[owner];
        if *it.template == template {
            return;
        }
        let before = std::mem::replace(&mut it.template, Rc::new(template));
        it.past.retain(|past| **past != *it.template);
        it.past.push(before);
        it.generation += 1;
        it.progressed = now;
        let ours = writer == "uptake";
        if !ours {
            it.writer = Some(Name::from(writer));
        }
        let git = it.git_always && !ours;
        self.touch(owner);
        if self.owners[owner].git_always && !git {
            let delay = self.rng.between(500, 5_000);
            self.after(delay, Event::Git(owner));
        }
    }
}
