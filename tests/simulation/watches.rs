//! Watch streams: in order within a kind, late by any time, broken and taken up again or begun anew.

use uptake::{
    catalog::{SecretFacts, Workload, namespace::NamespaceFacts},
    engine::{Input, InventoryFault, Watched},
    facts::{SecretId, Version, WorkloadId},
};

use crate::{
    history::{NAMESPACES, SECRETS, STREAMS},
    planted::Bug,
    store::Sort,
    world::{Event, World},
};

#[derive(Clone, Debug)]
pub enum Change {
    Secret(Box<SecretFacts>),
    SecretGone(SecretId),
    Workload(Box<Workload>),
    WorkloadGone(WorkloadId),
    Namespace(NamespaceFacts),
}

#[derive(Clone, Debug)]
pub struct Logged {
    pub version: u64,
    pub change: Change,
}

#[derive(Debug, Default)]
pub struct Stream {
    /// What of the log comes next.
    at: usize,
    live: bool,
    /// The list can't be had.
    pub out: bool,
    /// Deliveries of an earlier turn are void. Of the n-th replica it is n modulo two.
    pub turn: u64,
    /// Nothing is delivered before what was sent earlier.
    due: i64,
    list: Vec<Change>,
    list_version: u64,
    /// The version up to which it delivered.
    pub delivered: u64,
    /// Since when it is complete and unbroken.
    pub whole_since: i64,
    /// A relist is under way, from this version on nothing is delivered.
    pub gap_from: u64,
}

impl Stream {
    /// The store was set back to this version.
    pub fn forget_above(&mut self, version: u64) {
        self.delivered = self.delivered.min(version);
        self.gap_from = self.gap_from.min(version);
    }
}

impl World {
    pub fn schedule_delivery(&mut self, stream: usize) {
        if !self.streams[stream].live {
            return;
        }
        let late = !self.quiet && self.rng.permille(self.knobs.late);
        let delay = if late { self.rng.between(500, 8_000) } else { self.rng.between(1, 60) };
        let due = (self.now + delay).max(self.streams[stream].due);
        self.streams[stream].due = due;
        let turn = self.streams[stream].turn;
        self.after(due - self.now, Event::Deliver { stream, turn });
    }

    /// The operator begins to watch.
    pub fn start_streams(&mut self) {
        for stream in 0..STREAMS {
            let next = Stream {
                turn: self.streams[stream].turn + 2,
                out: self.streams[stream].out,
                ..Stream::default()
            };
            self.streams[stream] = next;
            self.list_later(stream, 5, 400);
            let life = self.operator.life;
            self.after(30_000, Event::Bookmark { stream, life });
        }
    }

    fn list_later(&mut self, stream: usize, low: i64, high: i64) {
        let delay = self.rng.between(low, high);
        let turn = self.streams[stream].turn;
        self.after(delay, Event::List { stream, turn });
    }

    /// A watch breaks: it goes on where it was, or must begin anew.
    pub fn break_stream(&mut self, stream: usize, relist: bool, pause: i64) {
        if !self.streams[stream].live {
            return;
        }
        let it = &mut self.streams[stream];
        it.live = false;
        it.turn += 2;
        let turn = it.turn;
        if relist {
            it.gap_from = it.delivered;
            if self.rng.permille(500) {
                self.give_broken(stream);
            }
            let again = pause + self.rng.between(10, 500);
            self.after(again, Event::List { stream, turn });
        } else {
            self.after(pause, Event::Resume { stream, turn });
        }
    }

    /// The operator wants a fresh list.
    pub fn relist(&mut self, stream: usize) {
        let it = &mut self.streams[stream];
        it.live = false;
        it.turn += 2;
        it.gap_from = it.delivered;
        self.list_later(stream, 10, 500);
    }

    /// A watch is ahead of the store, and hears nothing until it is begun anew.
    pub fn deafen(&mut self, stream: usize) {
        let it = &mut self.streams[stream];
        if it.live {
            it.live = false;
            it.turn += 2;
            it.gap_from = it.delivered;
            self.list_later(stream, 300_000, 600_000);
        }
    }

    pub fn resume(&mut self, stream: usize, turn: u64) {
        if self.streams[stream].turn != turn {
            return;
        }
        self.streams[stream].live = true;
        for _ in self.streams[stream].at..self.logs[stream].len() {
            self.schedule_delivery(stream);
        }
    }

    pub fn outage(&mut self, stream: usize, pause: i64) {
        self.each_replica(|world| {
            world.streams[stream].out = true;
            world.break_stream(stream, true, 100);
        });
        self.after(pause, Event::OutageOver { stream });
    }

    fn give_broken(&mut self, stream: usize) {
        let fault = InventoryFault::Unavailable("the API server can't be reached".to_owned());
        let input = match stream {
            SECRETS => Input::Secrets(Watched::Broken(fault)),
            NAMESPACES => Input::Namespaces(Watched::Broken(fault)),
            kind => Input::Workloads(sort(kind).kind(), Watched::Broken(fault)),
        };
        self.give(input);
    }

    /// A fresh list is made.
    pub fn list(&mut self, stream: usize, turn: u64) {
        if self.streams[stream].turn != turn || !self.operator.is_up() {
            return;
        }
        let fails = !self.quiet && self.rng.permille(self.knobs.faults);
        if self.streams[stream].out || fails {
            self.give_broken(stream);
            if self.streams[stream].turn == turn {
                self.list_later(stream, 500, 5_000);
            }
            return;
        }
        let objects = self.objects(stream);
        let version = self.version;
        let at = self.logs[stream].len();
        let it = &mut self.streams[stream];
        (it.list, it.list_version, it.at) = (objects, version, at);
        let delay = self.rng.between(1, 150);
        self.after(delay, Event::Listed { stream, turn, part: 0 });
    }

    fn objects(&self, stream: usize) -> Vec<Change> {
        match stream {
            SECRETS => {
                self.secrets.iter().map(|(place, it)| Change::Secret(Box::new(it.facts(*place)))).collect()
            }
            NAMESPACES => self.namespaces.iter().cloned().map(Change::Namespace).collect(),
            kind => {
                let of_kind = self.owners.iter().filter(|owner| !owner.gone && owner.sort.stream() == kind);
                of_kind.map(|owner| Change::Workload(Box::new(owner.facts()))).collect()
            }
        }
    }

    /// A part of a fresh list arrives.
    pub fn listed(&mut self, stream: usize, turn: u64, part: usize) {
        if self.streams[stream].turn != turn || !self.operator.is_up() {
            return;
        }
        if part == 0 {
            self.give(match stream {
                SECRETS => Input::Secrets(Watched::Relist),
                NAMESPACES => Input::Namespaces(Watched::Relist),
                kind => Input::Workloads(sort(kind).kind(), Watched::Relist),
            });
        }
        let list = std::mem::take(&mut self.streams[stream].list);
        let half = if part == 0 { list.len() / 2 } else { list.len() };
        let mut list = list.into_iter();
        for change in list.by_ref().take(half) {
            self.give_change(stream, change, None);
        }
        self.streams[stream].list = list.collect();
        if self.streams[stream].turn != turn {
            return;
        }
        if part == 0 {
            let delay = self.rng.between(0, 100);
            self.after(delay, Event::Listed { stream, turn, part: 1 });
            return;
        }
        let version = self.streams[stream].list_version;
        if stream == SECRETS {
            self.watch_complete(version);
        }
        self.streams[stream].delivered = version;
        self.streams[stream].whole_since = self.now;
        let complete = Version(version);
        self.give(match stream {
            SECRETS => Input::Secrets(Watched::Complete(complete)),
            NAMESPACES => Input::Namespaces(Watched::Complete(complete)),
            kind => Input::Workloads(sort(kind).kind(), Watched::Complete(complete)),
        });
        self.resume(stream, turn);
    }

    pub fn deliver(&mut self, stream: usize, turn: u64) {
        let it = &mut self.streams[stream];
        if it.turn != turn || !self.operator.is_up() {
            return;
        }
        let Some(logged) = self.logs[stream].get(it.at).cloned() else { return };
        it.at += 1;
        it.delivered = logged.version;
        self.give_change(stream, logged.change, Some(logged.version));
    }

    pub fn bookmark(&mut self, stream: usize, life: u64) {
        if self.operator.life != life || !self.operator.is_up() {
            return;
        }
        // When all is quiet they only cost time.
        let again = if self.quiet { 600_000 } else { 45_000 };
        self.after(again, Event::Bookmark { stream, life });
        let it = &mut self.streams[stream];
        if !it.live || it.at < self.logs[stream].len() {
            return;
        }
        it.delivered = self.version;
        let version = Version(self.version);
        self.give(match stream {
            SECRETS => Input::Secrets(Watched::Progress(version)),
            NAMESPACES => Input::Namespaces(Watched::Progress(version)),
            kind => Input::Workloads(sort(kind).kind(), Watched::Progress(version)),
        });
    }

    fn give_change(&mut self, stream: usize, change: Change, version: Option<u64>) {
        let version = Version(version.unwrap_or_default());
        let lost = self.bug == Some(Bug::DeletionsLost) && self.rng.permille(500);
        match change {
            Change::Secret(facts) => self.give(Input::Secrets(Watched::Apply(*facts))),
            Change::SecretGone(id) if !lost => self.give(Input::Secrets(Watched::Delete(id, version))),
            Change::Workload(facts) => {
                self.give(Input::Workloads(sort(stream).kind(), Watched::Apply(*facts)));
            }
            Change::WorkloadGone(id) => {
                self.give(Input::Workloads(sort(stream).kind(), Watched::Delete(id, version)));
            }
            Change::Namespace(facts) => self.give(Input::Namespaces(Watched::Apply(facts))),
            Change::SecretGone(_) => {}
        }
    }
}

fn sort(stream: usize) -> Sort {
    match stream {
        1 => Sort::Deployment,
        2 => Sort::StatefulSet,
        _ => Sort::DaemonSet,
    }
}
