//! What is measured, in order.

use std::time::{Duration, Instant};

use jiff::Timestamp;

use crate::{
    field::{FAN, Field, Place},
    figures::Durations,
    limits, process,
    report::{Limit, Report, limits as limits_of_run, note},
    requests::{Counter, sum},
    support::operator::{Install, Operator},
    uptake::{SETTLE, install},
};

/// For whatever must happen at all.
const DEADLINE: Duration = Duration::from_secs(300);
/// Changes that are made one after the other.
const SINGLE: usize = 40;
/// Secrets that are changed at one moment.
const BURST: usize = 200;

pub async fn run(field: &Field<'_>, report: &mut Report) {
    let loops = [limits::patch_loop(field, 4).await, limits::patch_loop(field, 16).await];
    let slower = loops[0].max(loops[1]);
    let reactor = limits::reactor(field, 30).await.median_ms();
    limits_of_run(loops, reactor);

    let install = install(field).await.arg("--max-concurrent-rollouts").arg("0");
    let mut bench = Bench { field, report, install, counter: None, used: 0 };

    let operator = bench.start().await;
    let perf = process::profile(operator.id());
    bench.installed(&operator).await;
    bench.single(&operator, reactor, "one change to its stamp, median, beyond settle", SETTLE, 1.5).await;
    bench.fanout(&operator, slower).await;
    bench.burst(&operator).await;
    bench.coalesce(&operator).await;
    bench.labels(&operator).await;
    bench.report.memory("peak memory", process::memory(operator.id()).peak, bench.field.size);
    let operator = bench.outage(operator).await;
    if let Some(mut perf) = perf {
        perf.wait().expect("perf ends with what it looks at");
    }
    bench.restart(operator).await;

    bench.install = bench.install.clone().settle(Duration::ZERO);
    let operator = bench.start().await;
    bench.single(&operator, reactor, "the same with settle 0", Duration::ZERO, 2.2).await;
}

struct Bench<'a> {
    field: &'a Field<'a>,
    report: &'a mut Report,
    install: Install,
    counter: Option<Counter>,
    /// Places that had their turn.
    used: usize,
}

impl Bench<'_> {
    async fn start(&mut self) -> Operator {
        let began = Instant::now();
        self.counter = Some(Counter::new(self.field.cluster, &self.install.user));
        let operator = Operator::start(self.field.cluster, &self.install);
        operator.wait_ready(DEADLINE).await;
        self.report.started(began.elapsed(), self.field.size);
        operator
    }

    fn counter(&mut self) -> &mut Counter {
        self.counter.as_mut().expect("it is made with the operator")
    }

    /// Places that nothing was rolled in yet: no controller ends a rollout here.
    fn fresh(&mut self, count: usize) -> Vec<Place> {
        let first = self.used;
        self.used += count;
        (first..self.used).map(|n| self.field.place(n)).collect()
    }

    /// Whatever happened before has had its effect: a change that is made now is rolled.
    async fn witness(&mut self) {
        let place = self.fresh(1).remove(0);
        let began = Instant::now();
        self.field.change(&place).await;
        self.field.changed_after(&place, began, DEADLINE).await.expect("the witness is rolled");
    }

    async fn installed(&mut self, operator: &Operator) {
        let before = self.field.rollouts();
        self.witness().await;
        let rollouts = self.field.rollouts() - before - 1;
        self.report.count("rollouts on install", rollouts, 0);
        let requests = self.counter().read_all().await;
        note("requests of the start", &requests);
        self.report.memory("memory after the start", process::memory(operator.id()).now, self.field.size);
    }

    /// Changes one after the other, each to its stamp.
    async fn single(&mut self, operator: &Operator, limit: f64, name: &str, settle: Duration, must: f64) {
        let _ = self.counter().read_all().await;
        let (cpu, before) = (process::cpu(operator.id()), self.field.rollouts());
        let mut measured = Durations::default();
        let mut peak = 0;
        let mut all = 0;
        for place in self.fresh(SINGLE) {
            let (began, since) = (Instant::now(), Timestamp::now());
            self.field.change(&place).await;
            let changed = self.field.changed_after(&place, began, DEADLINE).await.expect("it is rolled");
            measured.add((changed - began).saturating_sub(settle));
            let asked = self.counter().before_stamp(since);
            peak = peak.max(asked);
            all += asked;
        }
        let requests = self.counter().read_all().await;
        let cpu = process::cpu(operator.id()).saturating_sub(cpu);
        self.report.right(name, self.field.rollouts() - before, SINGLE as u64);
        self.report.latency(name, measured.median_ms(), Limit { of: "bare reactor", is: limit, times: must });
        let each = cpu.as_secs_f64() * 1000.0 / SINGLE as f64;
        self.report.at_most(&format!("CPU a change, {name}"), each, 1.5, "ms");
        let before_stamp = all as f64 / SINGLE as f64;
        self.report.at_most(
            &format!("requests before the stamp, {name} (most: {peak})"),
            before_stamp,
            4.0,
            "",
        );
        note("after the stamps", &requests);
    }

    async fn fanout(&mut self, operator: &Operator, slower: Duration) {
        let fan = self.field.size.fanout as u64;
        let _ = self.counter().read_all().await;
        let (cpu, before) = (process::cpu(operator.id()), self.field.rollouts());
        let began = Instant::now();
        self.field.change(&Place { namespace: FAN.into(), name: "shared".into() }).await;
        self.field.wait_rollouts(DEADLINE, before + fan).await;
        let took = self.took(began);
        self.witness().await;
        let name = "one Secret, all who share it: to the last stamp, beyond settle";
        self.report.right(name, self.field.rollouts() - before, fan + 1);
        let limit = Limit { of: "slower patch loop", is: slower.as_secs_f64() * 1000.0, times: 1.3 };
        self.report.latency(name, took.as_secs_f64() * 1000.0, limit);
        let cpu = process::cpu(operator.id()).saturating_sub(cpu).as_secs_f64() * 1000.0 / fan as f64;
        self.report.at_most("CPU a consumer of it", cpu, 1.5, "ms");
        let requests = self.counter().read_all().await;
        note("requests of it", &requests);
    }

    /// From a moment to the last stamp seen, beyond the settle time.
    fn took(&self, began: Instant) -> Duration {
        self.field.last_change().map_or(Duration::MAX, |last| last - began).saturating_sub(SETTLE)
    }

    async fn burst(&mut self, operator: &Operator) {
        let count = BURST.min(self.field.size.secrets() / 2);
        let places = self.fresh(count);
        let (cpu, before) = (process::cpu(operator.id()), self.field.rollouts());
        let began = Instant::now();
        self.field.change_all(places).await;
        let writers = began.elapsed();
        self.field.wait_rollouts(DEADLINE, before + count as u64).await;
        let took = self.took(began);
        self.witness().await;
        let name = format!("{count} Secrets at once, beyond settle");
        self.report.right(&name, self.field.rollouts() - before, count as u64 + 1);
        let limit = Limit { of: "the writers' own time", is: writers.as_secs_f64() * 1000.0, times: 2.0 };
        self.report.latency(&name, took.as_secs_f64() * 1000.0, limit);
        let cpu = process::cpu(operator.id()).saturating_sub(cpu).as_secs_f64() * 1000.0 / count as f64;
        self.report.at_most("CPU a change of them", cpu, 1.5, "ms");
        let requests = self.counter().read_all().await;
        note("requests of it", &requests);
    }

    async fn coalesce(&mut self, _operator: &Operator) {
        let before = self.field.rollouts();
        let place = self.fresh(1).remove(0);
        for _ in 0..5 {
            self.field.change(&place).await;
            tokio::time::sleep(SETTLE / 5).await;
        }
        self.field.wait_rollouts(DEADLINE, before + 1).await;
        self.witness().await;
        self.report.count(
            "5 writes of one Secret in half a second: rollouts",
            self.field.rollouts() - before - 1,
            1,
        );
    }

    async fn labels(&mut self, _operator: &Operator) {
        let _ = self.counter().read_all().await;
        let before = self.field.rollouts();
        let places = (0..BURST.min(self.field.size.secrets() - 1)).map(|n| self.field.place(n)).collect();
        self.field.relabel(places).await;
        let requests = self.counter().read_all().await;
        self.witness().await;
        self.report.count("label edits: rollouts", self.field.rollouts() - before - 1, 0);
        self.report.count("label edits: requests", sum(&requests) as u64, 0);
        note("requests of it", &requests);
    }

    /// Changes while nobody watches.
    async fn outage(&mut self, operator: Operator) -> Operator {
        operator.sigterm();
        operator.wait_exit(DEADLINE).await;
        let count = (BURST / 4).min(self.field.size.secrets() / 4);
        let before = self.field.rollouts();
        let places = self.fresh(count);
        self.field.change_all(places).await;
        let operator = self.start().await;
        self.field.wait_rollouts(DEADLINE, before + count as u64).await;
        self.witness().await;
        let caught_up = self.field.rollouts() - before - 1;
        self.report.count("changes while down: rollouts", caught_up, count as u64);
        operator
    }

    async fn restart(&mut self, operator: Operator) {
        operator.sigterm();
        operator.wait_exit(DEADLINE).await;
        let before = self.field.rollouts();
        let operator = self.start().await;
        self.witness().await;
        self.report.count("own restart: rollouts", self.field.rollouts() - before - 1, 0);
        operator.sigterm();
        operator.wait_exit(DEADLINE).await;
    }
}
