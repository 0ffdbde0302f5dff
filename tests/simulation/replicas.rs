//! Two Uptakes in one cluster: with a Lease by which one of them leads, or without.
//!
//! What belongs to one replica (its process, its watches, what was seen of it) lies in the world's own fields while it is
//! its turn, and is changed for the other's when it is the other's. An event says by a number of its own whose it is.

use tokio::time::Instant;
use uptake::{
    engine::{CallId, Input},
    leader::{Candidacy, Observed, Step, Timing},
};

use crate::{
    checks::Life,
    history::{Ms, STREAMS},
    operator::Operator,
    watches::Stream,
    world::{EPOCH, Event, World},
};

/// The replica whose turn it isn't.
pub struct Replica {
    pub operator: Operator,
    pub streams: [Stream; STREAMS],
    pub life: Life,
}

impl Replica {
    pub fn new(replica: u64) -> Self {
        let mut streams: [Stream; STREAMS] = Default::default();
        for stream in &mut streams {
            stream.turn = replica;
        }
        Self { operator: Operator::new(replica), streams, life: Life::default() }
    }
}

/// A process that stands for election.
pub struct Candidate {
    candidacy: Candidacy,
    /// The version of the Lease that it knows.
    version: Option<u64>,
    leads: bool,
}

/// A request about the Lease.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    step: Step,
    sent: Ms,
    fails: bool,
    is_done: bool,
}

impl World {
    /// Makes it the turn of the replica that an event is about; none if the event has to wait for its process.
    pub fn turn_to_replica_of(&mut self, event: Event) -> Option<Event> {
        let number = match &event {
            Event::Deliver { turn, .. }
            | Event::List { turn, .. }
            | Event::Listed { turn, .. }
            | Event::Resume { turn, .. } => *turn,
            Event::Execute { life: u64::MAX, call: CallId(call) } => call >> 32,
            Event::Bookmark { life, .. }
            | Event::Execute { life, .. }
            | Event::Answered { life, .. }
            | Event::Tick { life, .. }
            | Event::Candidate { life }
            | Event::Lease { life, .. } => *life,
            Event::Start { replica } => *replica,
            _ => return Some(event),
        };
        self.turn_to(number % 2);
        // What the API server does, it does whether or not the process that asked for it runs.
        let waits = !matches!(&event, Event::Execute { .. } | Event::Start { .. });
        let frozen = self.operator.frozen_until - self.now;
        if waits && frozen > 0 && self.operator.is_up() {
            self.after(frozen, event);
            return None;
        }
        Some(event)
    }

    pub fn turn_to(&mut self, replica: u64) {
        if self.operator.replica != replica {
            self.turn();
        }
    }

    /// Makes it the other's turn, if there is another.
    fn turn(&mut self) -> bool {
        let Some(other) = &mut self.other else { return false };
        std::mem::swap(&mut self.operator, &mut other.operator);
        std::mem::swap(&mut self.streams, &mut other.streams);
        std::mem::swap(&mut self.checks.life, &mut other.life);
        true
    }

    /// Makes it anyone's turn.
    pub fn turn_to_any(&mut self) {
        if self.other.is_some() && self.rng.permille(500) {
            self.turn();
        }
    }

    pub fn each_replica(&mut self, act: impl Fn(&mut Self)) {
        act(self);
        if self.turn() {
            act(self);
            self.turn();
        }
    }

    /// Those who decide.
    pub fn deciding(&self) -> Vec<u64> {
        let all = [Some(&self.operator), self.other.as_ref().map(|other| &other.operator)];
        let up = all.into_iter().flatten().filter(|one| one.is_up());
        up.filter(|one| one.candidate.as_ref().is_none_or(|it| it.leads)).map(|one| one.replica).collect()
    }

    /// The process is stopped, and doesn't know it.
    pub fn freeze(&mut self, pause: Ms) {
        if self.operator.is_up() {
            self.tally.fault("frozen");
            self.longest_freeze = self.longest_freeze.max(pause);
            self.tell(|world| format!("replica {} is stopped for {pause} ms", world.operator.replica));
            self.operator.frozen_until = self.now + pause;
        }
    }

    fn instant(&self, at: Ms) -> Instant {
        self.base + std::time::Duration::from_millis(u64::try_from(at - EPOCH).unwrap_or(0))
    }

    pub fn stand_for_election(&mut self) {
        self.operator.candidate = None;
        if !self.knobs.elects {
            return;
        }
        let (life, now) = (self.operator.life, self.instant(self.now));
        let candidacy = Candidacy::new(format!("process {life}"), Timing::default(), now);
        self.operator.candidate = Some(Candidate { candidacy, version: None, leads: false });
        self.after(1, Event::Candidate { life });
    }

    /// A candidate, or the leader, does what is to be done about the Lease.
    pub fn candidate(&mut self, life: u64) {
        if self.operator.life != life || !self.operator.is_up() {
            return;
        }
        let now = self.instant(self.now);
        let Some(candidate) = &self.operator.candidate else { return };
        match candidate.candidacy.step(now) {
            Step::Wait(until) => {
                let wait = i64::try_from((until - now).as_millis()).unwrap_or(0) + 1;
                self.after(wait, Event::Candidate { life });
            }
            Step::End(_) => {
                self.tell(|world| format!("replica {} lost the leadership", world.operator.replica));
                self.tally.fault("leadership_lost");
                self.crash();
            }
            step => {
                let patience = i64::try_from(candidate.candidacy.patience(now).as_millis()).unwrap_or(0);
                let fails = !self.quiet && self.rng.permille(self.knobs.faults * 3);
                let is_done = self.rng.permille(500);
                let asked = Asked { step, sent: self.now, fails, is_done };
                let delay = if fails { patience } else { self.rng.between(1, 60).min(patience) };
                self.after(delay, Event::Lease { life, asked });
            }
        }
    }

    /// The API server did what was asked about the Lease, or didn't.
    pub fn lease_answers(&mut self, life: u64, asked: Asked) {
        if self.operator.life != life || !self.operator.is_up() {
            return;
        }
        let done = if asked.fails && !asked.is_done { None } else { Some(self.use_lease(asked.step)) };
        let (now, sent) = (self.instant(self.now), self.instant(asked.sent));
        let lease = self.lease.clone();
        let Some(candidate) = &mut self.operator.candidate else { return };
        let mut begins = false;
        match done.filter(|_| !asked.fails) {
            None => candidate.candidacy.failed(now),
            Some(false) => candidate.candidacy.conflicted(),
            Some(true) => {
                candidate.version = lease.as_ref().map(|(version, _)| *version);
                let seen = lease.map(|(_, seen)| seen);
                match (asked.step, seen) {
                    (Step::Read, seen) => candidate.candidacy.saw(seen, now),
                    (_, Some(written)) => {
                        candidate.candidacy.wrote(written, sent);
                        begins = !std::mem::replace(&mut candidate.leads, true);
                    }
                    (_, None) => {}
                }
            }
        }
        if begins {
            self.tally.fault("handover");
            self.tell(|world| format!("replica {} leads", world.operator.replica));
            self.give(Input::Lead);
        }
        self.after(0, Event::Candidate { life });
    }

    /// Whether the store took it.
    fn use_lease(&mut self, step: Step) -> bool {
        let Some(candidate) = &self.operator.candidate else { return false };
        if step == Step::Read {
            return true;
        }
        let there = self.lease.as_ref().map(|(version, _)| *version);
        let over = if step == Step::Create { None } else { candidate.version };
        if there != over {
            return false;
        }
        let before = self.lease.take().map(|(_, before)| before).unwrap_or_default();
        let new = step != Step::Renew;
        let now = Some(self.now.to_string());
        let written = Observed {
            holder: Some(candidate.candidacy.me().to_owned()),
            duration: Some(Timing::default().duration),
            times: [if new { now.clone() } else { before.times[0].clone() }, now],
            transitions: before.transitions + i64::from(new),
        };
        self.lease = Some((self.bump(), written));
        true
    }

    pub fn give_lease_back(&mut self) {
        let Some(candidate) = &self.operator.candidate else { return };
        let is_known = self.lease.as_ref().is_some_and(|(version, _)| Some(*version) == candidate.version);
        if candidate.leads && is_known && !self.rng.permille(self.knobs.faults) {
            let version = self.bump();
            if let Some(lease) = &mut self.lease {
                *lease = (version, Observed { holder: None, ..lease.1.clone() });
            }
        }
    }

    /// Whether the process may begin a write now, by its own clock; never both.
    pub fn may_write(&mut self) -> bool {
        let now = self.instant(self.now);
        let may = |operator: &Operator| {
            operator.is_up()
                && operator
                    .candidate
                    .as_ref()
                    .is_none_or(|it| it.leads && it.candidacy.expiry().is_some_and(|expiry| now < expiry))
        };
        if !self.knobs.elects {
            return true;
        }
        let mine = may(&self.operator);
        // A Lease that is set back is held by who held it then.
        let set_back = self.checks.restored.is_some_and(|at| self.now - at < 30_000);
        if mine && !set_back && self.other.as_ref().is_some_and(|other| may(&other.operator)) {
            self.violated("two replicas may write at the same time".to_owned());
        }
        mine
    }
}
