//! The engine's loop: the one task that owns it.

use std::{sync::Arc, time::Duration};

use tokio::{
    sync::{Notify, mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_util::sync::CancellationToken;

use crate::{
    cluster::{Performer, ServerClock},
    engine::{Answer, Call, CallId, Engine, Input, Output},
    facts::Mono,
    record::{self, Metrics},
    server::Published,
};

/// The loop wakes this often though nothing happens, so that a stuck one can be told from an idle one.
const BEAT: Duration = Duration::from_secs(5);
/// The state is published when a page asks for it, at most this often: making it looks at every workload.
const PUBLISH: Duration = Duration::from_millis(50);
/// Timers fire up to two of these late, for the runtime and the kernel both round up: they are set one earlier, and what
/// is due within one is done.
const GRAIN: Duration = Duration::from_millis(1);
/// How long a stop waits for writes in flight. What isn't done then is found half done by the next start,
/// as after a crash.
const FINISH: Duration = Duration::from_secs(5);

/// The loop.
pub struct Drive {
    engine: Engine,
    clock: ServerClock,
    /// What the engine was told that it is: a tick may be told a grain early.
    told: Mono,
    /// When the engine is to be woken.
    next: Option<Mono>,
    performer: Arc<Performer>,
    metrics: Arc<Metrics>,
    inputs: mpsc::Receiver<Input>,
    publish: watch::Sender<Published>,
    calls: JoinSet<Done>,
    /// Calls in flight that write.
    writes: usize,
    /// Tells that every watch is to start over.
    relist: Arc<Notify>,
    /// Whoever wants the state to be published.
    ask: Arc<Notify>,
    /// Whether somebody did since it was.
    asked: bool,
    published: Instant,
}

struct Done {
    id: CallId,
    answer: Answer,
    write: bool,
}

impl Drive {
    /// Joins the engine with its inputs and hands.
    #[must_use]
    pub fn new(
        engine: Engine,
        clock: ServerClock,
        performer: Arc<Performer>,
        metrics: Arc<Metrics>,
        inputs: mpsc::Receiver<Input>,
        relist: Arc<Notify>,
        ask: Arc<Notify>,
    ) -> (Self, watch::Receiver<Published>) {
        let published = Instant::now();
        let (publish, state) = watch::channel(Published { gauges: engine.gauges(), beat: published });
        let drive = Self {
            engine,
            clock,
            told: Mono::default(),
            next: None,
            performer,
            metrics,
            inputs,
            publish,
            calls: JoinSet::new(),
            writes: 0,
            relist,
            ask,
            asked: false,
            published,
        };
        (drive, state)
    }

    /// Runs until it is stopped, then waits for writes in flight. Whether all of them were answered.
    pub async fn run(mut self, stop: CancellationToken) -> bool {
        self.step(Input::Tick);
        loop {
            let wake = self.wake();
            tokio::select! {
                () = stop.cancelled() => break,
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => self.answered(done),
                input = self.inputs.recv() => match input {
                    Some(input) => self.step(input),
                    None => break,
                },
                () = self.ask.notified() => self.asked = true,
                () = sleep_until(wake) => self.step(Input::Tick),
            }
            self.publish();
        }
        self.finish().await
    }

    fn step(&mut self, input: Input) {
        let mut now = self.clock.now();
        let due = self.next.filter(|&at| at.since(now.mono) <= GRAIN);
        now.mono = now.mono.max(due.unwrap_or_default()).max(self.told);
        self.told = now.mono;
        let Output { calls, records, relist } = self.engine.step(now, input);
        self.next = self.engine.next_wake();
        for record in &records {
            self.metrics.count(record);
            record::log(record);
        }
        for (id, call) in calls {
            self.call(id, call);
        }
        if relist {
            self.relist.notify_one();
        }
    }

    fn call(&mut self, id: CallId, call: Call) {
        let performer = Arc::clone(&self.performer);
        let write = is_write(&call);
        self.writes += usize::from(write);
        self.calls.spawn(async move { Done { id, answer: performer.perform(call).await, write } });
    }

    fn answered(&mut self, done: Result<Done, tokio::task::JoinError>) {
        match done {
            Ok(Done { id, answer, write }) => {
                self.writes -= usize::from(write);
                self.step(Input::Answer(id, answer));
            }
            // A call that is never answered would hold its workload for ever.
            Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
            Err(_) => {}
        }
    }

    fn wake(&self) -> Instant {
        let beat = self.published + BEAT;
        let publish = self.asked.then(|| self.published + PUBLISH);
        let engine = self.next.map(|at| Instant::from_std(self.clock.instant(at)) - GRAIN);
        [publish, engine].into_iter().flatten().fold(beat, Instant::min)
    }

    fn publish(&mut self) {
        let since = self.published.elapsed();
        if since >= BEAT || (self.asked && since >= PUBLISH) {
            self.published = Instant::now();
            self.asked = false;
            self.publish.send_replace(Published { gauges: self.engine.gauges(), beat: self.published });
        }
    }

    /// Lets the engine write what it knows, and waits for the writes in flight.
    async fn finish(mut self) -> bool {
        let until = Instant::now() + FINISH;
        tracing::info!(writes_in_flight = self.writes, "Stopping");
        self.step(Input::Stop);
        while self.writes > 0 || self.next.is_some_and(|at| self.clock.instant(at) < until.into_std()) {
            let wake = self.wake().min(until);
            tokio::select! {
                Some(done) = self.calls.join_next(), if !self.calls.is_empty() => self.answered(done),
                () = sleep_until(wake) => self.step(Input::Tick),
            }
            if Instant::now() >= until {
                tracing::warn!(writes_in_flight = self.writes, "Stopped before these writes were answered");
                return false;
            }
        }
        true
    }
}

const fn is_write(call: &Call) -> bool {
    match call {
        Call::WriteLedger { .. } | Call::DeleteLedger { .. } | Call::Stamp { .. } | Call::Note(_) => true,
        Call::ListLedger
        | Call::ListPods(..)
        | Call::ListPodsAt(..)
        | Call::ListReplicaSets(..)
        | Call::ProbePodVersion
        | Call::GetSecret(_)
        | Call::GetWorkload(_) => false,
    }
}
