//! The state machine that joins the rooms. It has no client, no clock and no randomness.
//!
//! | file | does |
//! | --- | --- |
//! | `start` | loads the ledger, makes it one with what the watches saw, checks that versions can be compared |
//! | `intake` | takes in what the watches deliver |
//! | `beside` | the same of ServiceAccounts and SecretProviderClasses, which add to what workloads consume |
//! | `consumption` | what a workload consumes, with the histories of it |
//! | `look` | looks at workloads and decides |
//! | `lists` | lists the pods that looks ask for, a namespace at a time, and judges them |
//! | `stamping` | intent, then stamp, then its answer |
//! | `follow` | follows a rollout to its outcome |
//! | `breaker` | keeps a bad value from breaking every consumer: breaker, canary |
//! | `rotation` | what came of one change of one Secret, over all of its consumers |
//! | `resume` | large rotations that a crash cut short |
//! | `notes` | Events |
//! | `keep` | what is done from time to time: seen-until, garbage |
//! | `view` | gauges and readiness |

mod beside;
mod breaker;
mod config;
mod consumption;
mod follow;
mod intake;
mod io;
mod keep;
mod lists;
mod look;
mod notes;
mod resume;
mod rotation;
mod stamping;
mod start;
mod task;
mod view;

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

pub use config::{EngineConfig, FirstSight, Trigger};
pub use io::{Answer, Call, CallId, Fault, Input, InventoryFault, LedgerObject, Output, Watched};

use self::{
    lists::NamespaceLook,
    notes::Telling,
    rotation::Rotation,
    start::Stage,
    task::{Phase, Task},
};
use crate::{
    agenda::{Queue, Slots},
    catalog::{Catalog, mounted::Mounts},
    facts::{Mono, Name, Namespace, Now, SecretId, Uid, Version, WorkloadId, is_covered},
    ledger::{Book, Edit, Findings, Point, SCHEME, Sightings, Urgency},
    record::Record,
};

/// How often a candidate is looked at when nothing else makes it.
pub const LOOK_EVERY: Duration = Duration::from_secs(600);

/// A rollout that made no progress for so long waits for nobody any more: it gives its slot back, and a
/// newer value may be rolled over it.
pub const STALLED: Duration = Duration::from_secs(60);

/// A template that its controller hasn't observed for so long is as good as not rolled yet: whatever is
/// written now comes with the same rollout.
pub const UNOBSERVED: Duration = Duration::from_secs(3);

/// The operator without its hands: told what happens, it says what to do.
#[allow(clippy::struct_excessive_bools)] // Facts of their own, set and asked in different places.
pub struct Engine {
    config: EngineConfig,
    now: Now,
    out: Output,
    last_call: u64,
    calls: BTreeMap<CallId, Pending>,
    stage: Stage,
    stopping: bool,
    secrets_fault: Option<InventoryFault>,
    /// What the Secrets Store CSI driver mounted.
    mounts: Mounts,
    /// The lowest version of a Secret that the list under way shows older than it was.
    set_back_to: Option<Version>,
    /// Whether the gap that the next list of Secrets closes began in a store that was set back since.
    gap_is_lost: bool,
    /// Whether a list under way shows a workload older than it was.
    workloads_set_back: bool,
    /// Whether what is consumed was in the ledger once, since this process leads.
    recorded: bool,
    sightings: Sightings,
    catalog: Catalog,
    book: Book,
    findings: Findings,
    /// Why the ledger can't be read or written.
    findings_fault: Option<String>,
    /// The ledger and what the watches saw were made one.
    united: bool,
    retry_load: Option<Mono>,
    problems_told: BTreeSet<String>,
    comparable: bool,
    queue: Queue,
    slots: Slots,
    tasks: BTreeMap<WorkloadId, Task>,
    intended: BTreeSet<WorkloadId>,
    looks: BTreeMap<Namespace, NamespaceLook>,
    /// Namespaces in which somebody asked for pods.
    asked: BTreeSet<Namespace>,
    /// Secrets that are referenced and lie outside the watch: whether they are there.
    outside: BTreeMap<SecretId, Outside>,
    /// Namespaces whose part of the ledger is full.
    full: BTreeSet<Namespace>,
    rotations: BTreeMap<SecretId, Rotation>,
    telling: Vec<Telling>,
    stale: BTreeMap<WorkloadId, usize>,
    first_sight: BTreeMap<WorkloadId, Vec<Name>>,
    first_sight_told: bool,
    /// Watched kinds whose fault was told in an Event already.
    faults_told: BTreeSet<String>,
    next_seen: Mono,
    next_garbage: Mono,
    garbage_due: bool,
}

/// A Secret that no watch delivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outside {
    /// It is being read.
    Asked,
    /// It is there, of a type that the watch leaves out.
    There,
    /// It isn't there.
    Gone,
}

/// What a call was made for.
#[derive(Clone, Debug, PartialEq)]
enum Pending {
    LoadLedger,
    RereadLedger,
    WriteLedger(String),
    DeleteLedger,
    ProbePods,
    Pods(Namespace),
    PodsAt(Namespace, Version),
    Owners(Namespace),
    Outside(SecretId),
    Reread(WorkloadId, Version),
    Stamp(WorkloadId),
    Note(Box<notes::Told>),
}

impl Engine {
    /// A new engine; the first calls come from the first [`step`](Self::step).
    #[must_use]
    pub fn new(config: EngineConfig) -> Self {
        let trigger = match config.trigger {
            Trigger::Data => "data",
            Trigger::ResourceVersion => "version",
        };
        let scheme = format!("{SCHEME}/{}/{trigger}", config.digest_key.id());
        Self {
            now: Now::default(),
            out: Output::default(),
            last_call: 0,
            calls: BTreeMap::new(),
            stage: Stage::New,
            stopping: false,
            secrets_fault: None,
            mounts: Mounts::default(),
            set_back_to: None,
            gap_is_lost: false,
            workloads_set_back: false,
            recorded: false,
            sightings: Sightings::new(config.namespaces.len() > 1),
            catalog: Catalog::new(&config.kinds),
            book: Book::new(config.own_namespace_uid, scheme, Point::default()).under(&config.settings()),
            findings: Findings::default(),
            findings_fault: None,
            united: false,
            retry_load: None,
            problems_told: BTreeSet::new(),
            comparable: false,
            queue: Queue::default(),
            slots: match config.namespaces.len() {
                1 => Slots::for_one_namespace(config.max_concurrent_rollouts),
                _ => Slots::new(config.max_concurrent_rollouts),
            },
            tasks: BTreeMap::new(),
            intended: BTreeSet::new(),
            looks: BTreeMap::new(),
            asked: BTreeSet::new(),
            outside: BTreeMap::new(),
            full: BTreeSet::new(),
            rotations: BTreeMap::new(),
            telling: Vec::new(),
            stale: BTreeMap::new(),
            first_sight: BTreeMap::new(),
            first_sight_told: false,
            faults_told: BTreeSet::new(),
            next_seen: Mono::default(),
            next_garbage: Mono::default(),
            garbage_due: false,
            config,
        }
    }

    /// A new engine that takes in what the watches deliver and does nothing, until [`Input::Lead`].
    #[must_use]
    pub fn standby(config: EngineConfig) -> Self {
        Self { stage: Stage::Standby, ..Self::new(config) }
    }

    /// Takes one input and says what to do.
    pub fn step(&mut self, now: Now, input: Input) -> Output {
        self.now = now;
        if self.stage == Stage::New {
            self.load_ledger();
        }
        match input {
            Input::Secrets(watched) => self.take_secrets(watched),
            Input::Workloads(kind, watched) => self.take_workloads(&kind, watched),
            Input::Namespaces(watched) => self.take_namespaces(watched),
            Input::ServiceAccounts(watched) => self.take_service_accounts(watched),
            Input::ProviderClasses(watched) => self.take_provider_classes(watched),
            Input::Mounts(watched) => self.take_mounts(watched),
            Input::Answer(id, answer) => self.take_answer(id, answer),
            Input::Lead => self.lead(),
            Input::Tick => {}
            Input::Stop => self.stop(),
        }
        self.pump();
        std::mem::take(&mut self.out)
    }

    /// When an [`Input::Tick`] is due at the latest.
    #[must_use]
    pub fn next_wake(&self) -> Option<Mono> {
        let intended = self.intended.iter().filter(|_| !self.stopping).filter_map(|id| {
            match &self.tasks.get(id)?.phase {
                Phase::Intended { at, ticket, .. } if self.book.is_durable(ticket) => Some(*at),
                _ => None,
            }
        });
        let looks = (self.stage == Stage::Ready && !self.stopping).then(|| self.queue.next()).flatten();
        let times = [self.book.next_write(), looks, self.next_keeping()];
        times.into_iter().flatten().chain(intended).min()
    }

    /// Whether nothing is in flight and nothing waits to be written: the process can end.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.calls.is_empty() && self.book.next_write().is_none()
    }

    /// Does what has become due.
    fn pump(&mut self) {
        self.keep();
        if self.stage == Stage::Ready && !self.stopping {
            for id in self.queue.take_due(self.now.mono) {
                self.look(&id);
            }
            self.pump_stamps();
            self.pump_looks();
        }
        self.pump_ledger();
        self.pump_notes();
        self.recorded |= self.stage == Stage::Ready && self.united && self.book.is_all_durable();
    }

    fn pump_ledger(&mut self) {
        if !matches!(self.stage, Stage::Probing(_) | Stage::Ready) {
            return;
        }
        let unbroken = self.united && !self.sightings.is_relisting();
        let seen = unbroken.then(|| self.sightings.seen());
        for write in self.book.writes(self.now.mono, seen) {
            let pending = Pending::WriteLedger(write.name.clone());
            self.call(pending, Call::WriteLedger { name: write.name, over: write.over, body: write.body });
        }
    }

    fn stop(&mut self) {
        self.stopping = true;
        if self.stage == Stage::Ready && self.sightings.is_complete() && !self.sightings.is_relisting() {
            self.book.see_until(self.sightings.seen(), self.now.mono);
        }
    }

    fn call(&mut self, pending: Pending, call: Call) {
        self.last_call += 1;
        let id = CallId(self.last_call);
        self.calls.insert(id, pending);
        self.out.calls.push((id, call));
    }

    fn record(&mut self, record: Record) {
        self.out.records.push(record);
    }

    fn notice(&mut self, warning: bool, message: impl Into<String>) {
        self.record(Record::Notice { message: message.into(), warning });
    }

    fn take_answer(&mut self, id: CallId, answer: Answer) {
        let Some(pending) = self.calls.remove(&id) else { return };
        match (pending, answer) {
            (Pending::LoadLedger, Answer::Ledger(result)) => self.ledger_loaded(result),
            (Pending::RereadLedger, Answer::Ledger(result)) => self.ledger_reread(result),
            (Pending::WriteLedger(name), Answer::Written(result)) => self.ledger_written(&name, result),
            (Pending::ProbePods, Answer::PodListVersion(result)) => self.pods_probed(result),
            (Pending::Pods(namespace), Answer::Pods(result)) => self.pods_listed(&namespace, result),
            (Pending::PodsAt(namespace, version), Answer::PodUids(result)) => {
                self.pods_at_listed(&namespace, version, result);
            }
            (Pending::Owners(namespace), Answer::Owners(result)) => self.owners_listed(&namespace, result),
            (Pending::Outside(secret), Answer::Secret(result)) => self.outside_read(&secret, &result),
            (Pending::Reread(id, known), Answer::Workload(result)) => self.reread(&id, known, result),
            (Pending::Stamp(id), Answer::Workload(result)) => self.stamp_answered(&id, result),
            (Pending::Note(told), Answer::Done(result)) => self.note_written(&told, &result),
            (Pending::DeleteLedger, Answer::Done(_)) => {}
            (pending, answer) => self.notice(true, format!("unexpected answer {answer:?} to {pending:?}")),
        }
    }

    /// The circumstances of an edit of the ledger now.
    fn edit(&self, urgency: Urgency) -> Edit {
        Edit { now: self.now.mono, at: self.point(), urgency }
    }

    /// Now, as a point of the store.
    fn point(&self) -> Point {
        Point { version: self.sightings.seen().version, time: self.now.server }
    }

    fn is_ignored(&self, namespace: &str) -> bool {
        self.config.ignore_namespaces.iter().any(|ignored| **ignored == *namespace)
    }

    /// Whether the watches cover a namespace.
    fn is_in_scope(&self, namespace: &str) -> bool {
        is_covered(namespace, &self.config.namespaces, &self.config.ignore_namespaces)
    }

    fn uid(&self, id: &WorkloadId) -> Option<Uid> {
        self.catalog.get(id).map(|workload| workload.uid)
    }
}
