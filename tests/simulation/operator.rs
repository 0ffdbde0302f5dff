//! The operator's process: the engine, its calls, its crashes.

use std::{collections::BTreeMap, time::Duration};

use uptake::{
    catalog::policy::Mode,
    engine::{Answer, Call, CallId, Engine, EngineConfig, Fault, FirstSight, Input, Output, Trigger},
    facts::{Kind, Mono, Now, Time, Uid, WorkloadId},
    ledger::DigestKey,
};

use crate::{
    checks::Evidence,
    history::{CrashPoint, Ms},
    planted::Bug,
    replicas::Candidate,
    store,
    world::{Event, World},
};

#[derive(Default)]
pub struct Operator {
    /// Which of the replicas it is.
    pub replica: u64,
    /// In a box: it is taken out for each step.
    engine: Option<Box<Engine>>,
    /// Which process this is: each start is another, and of the n-th replica it is n modulo two.
    pub life: u64,
    pub started: Ms,
    /// What it knows of the Lease, where there is one.
    pub candidate: Option<Candidate>,
    /// It is stopped until then, and doesn't know it.
    pub frozen_until: Ms,
    skew: Ms,
    calls: BTreeMap<(u64, CallId), Call>,
    tick: u64,
    /// When the last one is due.
    tick_at: Ms,
    spins: (Ms, u32),
    plan: Option<(CrashPoint, Ms)>,
    ending: Option<Ms>,
    /// What each stamp under way was decided by.
    pub stamps: BTreeMap<(u64, CallId), (Option<Evidence>, u64)>,
    pub lists: BTreeMap<(u64, CallId), Evidence>,
}

impl Operator {
    pub fn new(replica: u64) -> Self {
        Self { replica, life: replica, ..Self::default() }
    }

    pub fn is_up(&self) -> bool {
        self.engine.is_some()
    }

    /// Its calls that the API server hasn't done yet; what timed out isn't waited for.
    pub fn calls(&self) -> impl Iterator<Item = &Call> {
        let mine = self.calls.iter().filter(|((life, _), _)| *life == self.life);
        mine.map(|(_, call)| call)
    }

    pub fn engine(&self) -> Option<&Engine> {
        self.engine.as_deref()
    }
}

/// A judgement by a list of pods counts so long, though another list came since.
const JUDGEMENT_HOLDS: Ms = 2_000;

impl World {
    /// What the lists of a namespace's pods showed that a stamp can be by.
    fn evidence(&self, namespace: &str) -> Option<Evidence> {
        let listed = self.checks.life.listed.get(namespace)?;
        let recent =
            listed.iter().filter(|(at, _)| at + JUDGEMENT_HOLDS >= self.now).map(|(_, evidence)| evidence);
        recent.cloned().reduce(|mut all, one| {
            all.pods.extend(one.pods);
            all
        })
    }

    pub fn start_operator(&mut self) {
        if self.operator.is_up() {
            return;
        }
        let config = EngineConfig {
            settle: Duration::from_secs(2),
            settle_max: Duration::from_secs(30),
            max_concurrent_rollouts: self.knobs.max_concurrent,
            canary: self.knobs.canary,
            default_rollout: Mode::Auto,
            first_sight: if self.knobs.first_sight_rolls { FirstSight::Roll } else { FirstSight::Report },
            trigger: Trigger::Data,
            rollout_timeout: Duration::from_secs(900),
            roll_volumes: true,
            kinds: Kind::BUILTIN.to_vec(),
            namespaces: Vec::new(),
            ignore_namespaces: vec!["kube-system".into()],
            own_namespace: store::namespace(2),
            own_namespace_uid: Uid(3),
            digest_key: DigestKey::new([7; 32]),
        };
        let server = self.rng.index(3);
        let error = self.rng.between(-400, 400);
        let operator = &mut self.operator;
        let engine = if self.knobs.elects { Engine::standby(config) } else { Engine::new(config) };
        operator.engine = Some(Box::new(engine));
        operator.life += 2;
        operator.frozen_until = 0;
        self.ever = true;
        operator.started = self.now;
        operator.tick_at = 0;
        operator.skew = self.knobs.skew[server] + error;
        operator.ending = None;
        self.checks.life = crate::checks::Life::default();
        self.tell(|_| "the operator starts".to_owned());
        self.start_streams();
        self.stand_for_election();
        self.give(Input::Tick);
    }

    /// Gives the engine an input and performs what it says.
    pub fn give(&mut self, input: Input) {
        let Some(mut engine) = self.operator.engine.take() else { return };
        let mono = u64::try_from(self.now - self.operator.started).unwrap_or(0);
        let now =
            Now { server: Time(self.now + self.operator.skew), mono: Mono(Duration::from_millis(mono)) };
        let output = engine.step(now, input);
        self.operator.engine = Some(engine);
        self.take(output);
    }

    fn take(&mut self, output: Output) {
        for record in &output.records {
            self.check_record(record);
        }
        if output.relist {
            for stream in 0..crate::history::STREAMS {
                self.relist(stream);
            }
        }
        let life = self.operator.life;
        for (id, call) in output.calls {
            if !self.quiet {
                self.tally.calls += 1;
            }
            if self.crash_is_due(CrashPoint::Before(0)) {
                self.tell(|_| format!("the operator dies before {}", words(&call)));
                self.crash();
                return;
            }
            if is_write(&call) && !self.may_write() {
                let fault = Fault::Unknown("this process doesn't lead any more".to_owned());
                let answer = Box::new(failed(&call, fault));
                self.after(1, Event::Answered { life, call: id, answer });
                continue;
            }
            if let Call::Stamp { id: workload, stamp, .. } = &call {
                self.check_turn(workload, stamp);
                let evidence = self.evidence(&workload.namespace);
                let delivered = self.streams[0].delivered;
                self.operator.stamps.insert((life, id), (evidence, delivered));
            }
            self.operator.calls.insert((life, id), call);
            let delay = self.delay();
            self.after(delay, Event::Execute { life, call: id });
        }
        self.schedule_tick();
        if let Some(down) = self.operator.ending
            && self.operator.engine().is_some_and(Engine::is_quiet)
        {
            self.tell(|_| "the operator ended as it was asked to".to_owned());
            self.operator.ending = None;
            self.give_lease_back();
            self.end_process(down);
        }
    }

    fn delay(&mut self) -> Ms {
        if !self.quiet && self.rng.permille(self.knobs.late) {
            self.rng.between(300, 4_000)
        } else {
            self.rng.between(1, 40)
        }
    }

    fn schedule_tick(&mut self) {
        let Some(wake) = self.operator.engine().and_then(Engine::next_wake) else { return };
        let at = self.operator.started + i64::try_from(wake.0.as_millis()).unwrap_or(0);
        let at = at + i64::from(wake.0.subsec_nanos() % 1_000_000 > 0);
        if self.operator.tick_at == at && at > self.now {
            return;
        }
        self.operator.tick += 1;
        self.operator.tick_at = at;
        let (life, number) = (self.operator.life, self.operator.tick);
        self.after(at - self.now, Event::Tick { life, number });
    }

    pub fn tick(&mut self, life: u64, number: u64) {
        let operator = &mut self.operator;
        if operator.life != life || operator.tick != number || !operator.is_up() {
            return;
        }
        operator.spins =
            if operator.spins.0 == self.now { (self.now, operator.spins.1 + 1) } else { (self.now, 0) };
        if operator.spins.1 > 50 {
            self.violated("the engine asks to be woken again and again, and does nothing".to_owned());
            self.operator.engine = None;
            return;
        }
        self.give(Input::Tick);
    }

    pub fn execute(&mut self, life: u64, id: CallId) {
        let Some(call) = self.operator.calls.remove(&(life, id)) else { return };
        let answer = self.execute_or_fail(life, id, &call);
        if life != self.operator.life || !self.operator.is_up() {
            return;
        }
        if self.crash_is_due(CrashPoint::Done(0)) {
            self.tell(|_| format!("the operator dies after {} was done", words(&call)));
            self.crash();
            return;
        }
        let delay = self.delay();
        self.after(delay, Event::Answered { life, call: id, answer: Box::new(answer) });
    }

    fn execute_or_fail(&mut self, life: u64, id: CallId, call: &Call) -> Answer {
        let is_ledger = matches!(call, Call::WriteLedger { .. });
        if is_ledger && self.ledger_down && !self.quiet {
            self.tally.fault("ledger_down");
            return failed(call, Fault::Unknown("the store doesn't answer".to_owned()));
        }
        if self.quiet || !self.rng.permille(self.knobs.faults) {
            return self.perform(life, id, call, false);
        }
        let is_write = is_write(call);
        let fault = Fault::Unknown("timed out".to_owned());
        match self.rng.below(4) {
            0 => {
                self.tally.fault("throttled");
                failed(call, Fault::Throttled)
            }
            1 if is_write => {
                self.tally.fault("done_unknown");
                let _ = self.perform(life, id, call, false);
                self.tell(|_| format!("{} is done, and its answer is lost", words(call)));
                failed(call, fault)
            }
            2 if is_write => {
                self.tally.fault("done_late");
                self.tell(|_| format!("{} times out, and is done later", words(call)));
                self.operator.calls.insert((u64::MAX, CallId(life << 32 | id.0)), call.clone());
                let delay = self.rng.between(100, 5_000);
                self.after(delay, Event::Execute { life: u64::MAX, call: CallId(life << 32 | id.0) });
                failed(call, fault)
            }
            _ => {
                self.tally.fault("not_done_unknown");
                failed(call, fault)
            }
        }
    }

    pub fn answered(&mut self, life: u64, id: CallId, answer: Answer) {
        if life != self.operator.life || !self.operator.is_up() {
            return;
        }
        if let Some(evidence) = self.operator.lists.remove(&(life, id)) {
            let now = self.now;
            let listed = self.checks.life.listed.entry(evidence.namespace.clone()).or_default();
            listed.retain(|(at, _)| at + JUDGEMENT_HOLDS >= now);
            listed.push((now, evidence));
        }
        if let Answer::Ledger(Ok(objects)) = &answer {
            self.ledger_is_loaded(objects);
        }
        if self.bug == Some(Bug::ConflictDropped) && matches!(answer, Answer::Workload(Err(Fault::Conflict)))
        {
            return;
        }
        self.give(Input::Answer(id, answer));
        if self.crash_is_due(CrashPoint::Answered(0)) {
            self.tell(|_| "the operator dies after an answer".to_owned());
            self.crash();
        }
    }

    pub fn plan_crash(&mut self, point: CrashPoint, down: Ms) {
        if !self.operator.is_up() || self.operator.ending.is_some() {
            return;
        }
        self.operator.plan = Some((point, down));
        match point {
            CrashPoint::Now => {
                self.tell(|_| "the operator dies".to_owned());
                self.crash();
            }
            CrashPoint::Asked => {
                self.operator.plan = None;
                self.operator.ending = Some(down);
                self.tell(|_| "the operator is asked to end".to_owned());
                self.give(Input::Stop);
            }
            CrashPoint::Before(_) | CrashPoint::Done(_) | CrashPoint::Answered(_) => {}
        }
    }

    /// Whether the planned crash is of that sort and its turn has come.
    fn crash_is_due(&mut self, sort: CrashPoint) -> bool {
        let same = |a: CrashPoint, b: CrashPoint| std::mem::discriminant(&a) == std::mem::discriminant(&b);
        let Some((plan, down)) = self.operator.plan else { return false };
        if !same(plan, sort) {
            return false;
        }
        let (CrashPoint::Before(left) | CrashPoint::Done(left) | CrashPoint::Answered(left)) = plan else {
            return false;
        };
        if left == 0 {
            return true;
        }
        let next = match plan {
            CrashPoint::Before(_) => CrashPoint::Before(left - 1),
            CrashPoint::Done(_) => CrashPoint::Done(left - 1),
            _ => CrashPoint::Answered(left - 1),
        };
        self.operator.plan = Some((next, down));
        false
    }

    /// The process dies: calls under way are done, or not.
    pub fn crash(&mut self) {
        let down = self.operator.plan.take().map_or(1_000, |(_, down)| down);
        self.tally.crashes += 1;
        self.end_process(down);
    }

    fn end_process(&mut self, down: Ms) {
        self.operator.engine = None;
        let under_way: Vec<(u64, CallId)> = self.operator.calls.keys().copied().collect();
        for call in under_way {
            if call.0 != u64::MAX && self.rng.permille(500) {
                self.operator.calls.remove(&call);
            }
        }
        let down = if self.quiet { down.min(1_000) } else { down };
        let replica = self.operator.replica;
        self.after(down, Event::Start { replica });
    }

    /// The active phase is over.
    pub fn become_quiet(&mut self) {
        self.tell(|_| "from now on nothing happens by itself, and nothing fails".to_owned());
        self.quiet = true;
        self.ledger_down = false;
        self.each_replica(|world| {
            world.operator.plan = None;
            for stream in &mut world.streams {
                stream.out = false;
            }
            if !world.operator.is_up() {
                let replica = world.operator.replica;
                world.after(500, Event::Start { replica });
            }
        });
    }

    pub fn owner_of(&self, id: &WorkloadId) -> Option<usize> {
        self.owners.iter().rposition(|owner| !owner.gone && owner.id() == *id)
    }
}

pub fn is_write(call: &Call) -> bool {
    matches!(call, Call::WriteLedger { .. } | Call::Stamp { .. } | Call::Note(_) | Call::DeleteLedger { .. })
}

/// The answer to a call that failed.
pub fn failed(call: &Call, fault: Fault) -> Answer {
    match call {
        Call::ListLedger => Answer::Ledger(Err(fault)),
        Call::WriteLedger { .. } => Answer::Written(Err(fault)),
        Call::DeleteLedger { .. } | Call::Note(_) => Answer::Done(Err(fault)),
        Call::ListPods(..) => Answer::Pods(Err(fault)),
        Call::ListPodsAt(..) => Answer::PodUids(Err(fault)),
        Call::ListReplicaSets(..) => Answer::Owners(Err(fault)),
        Call::ProbePodVersion => Answer::PodListVersion(Err(fault)),
        Call::GetSecret(_) => Answer::Secret(Err(fault)),
        Call::GetWorkload(_) | Call::Stamp { .. } => Answer::Workload(Err(fault)),
    }
}

/// A call in words.
pub fn words(call: &Call) -> String {
    match call {
        Call::ListLedger => "the list of the ledger".to_owned(),
        Call::WriteLedger { name, over, .. } => match over {
            Some(over) => format!("the write of {name} over {over}"),
            None => format!("the creation of {name}"),
        },
        Call::DeleteLedger { name, .. } => format!("the deletion of {name}"),
        Call::ListPods(namespace, only) => format!("the list of pods in {namespace} {only}"),
        Call::ListPodsAt(namespace, version) => format!("the list of pods in {namespace} at {version}"),
        Call::ListReplicaSets(namespace, only) => format!("the list of ReplicaSets in {namespace} {only}"),
        Call::ProbePodVersion => "the probe of the pods' version".to_owned(),
        Call::GetSecret(id) => format!("the read of Secret {id}"),
        Call::GetWorkload(id) => format!("the read of {id}"),
        Call::Stamp { id, stamp, over, .. } => format!("the stamp {stamp} on {id} over {over}"),
        Call::Note(note) => format!("the Event {} on {}", note.reason, note.regarding.name),
    }
}
