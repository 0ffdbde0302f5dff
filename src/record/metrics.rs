//! Metrics. Names and labels are part of the interface: dashboards and alerts are built on them.

use std::sync::{Mutex, PoisonError};

use prometheus::{
    Encoder as _, Histogram, HistogramOpts, HistogramVec, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder, core::Collector,
};

use super::{Effect, Gauges, LedgerWriteResult, Record};

/// From a fifth of a second to the half hour in which a rollout may run.
const ROLLOUT_SECONDS: [f64; 12] =
    [1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0, 300.0, 600.0, 900.0, 1800.0];
/// The settle time is 2 s, at most 30 s; beyond that something held the workload.
const STAMP_SECONDS: [f64; 12] = [0.5, 1.0, 2.0, 2.5, 3.0, 4.0, 6.0, 10.0, 30.0, 60.0, 300.0, 900.0];

const EFFECTS: [Effect; 5] =
    [Effect::Rolled, Effect::NothingToDo, Effect::Report, Effect::Unchanged, Effect::Held];
const RESULTS: [LedgerWriteResult; 3] =
    [LedgerWriteResult::Ok, LedgerWriteResult::Conflict, LedgerWriteResult::Error];

/// All metrics of the process.
pub struct Metrics {
    registry: Registry,
    secret_changes: IntCounterVec,
    rollouts: IntCounterVec,
    rollout_duration: HistogramVec,
    change_to_stamp: Histogram,
    stale_pods: IntGaugeVec,
    held: IntGaugeVec,
    pending: IntGauge,
    in_flight: IntGauge,
    synced: IntGaugeVec,
    ledger_writes: IntCounterVec,
    requests: IntCounterVec,
    leader: IntGauge,
    scrape: Mutex<()>,
}

impl Metrics {
    /// Makes and registers them.
    ///
    /// # Errors
    /// Never, unless two have one name.
    pub fn new() -> prometheus::Result<Self> {
        let registry = Registry::new();
        let metrics = Self {
            secret_changes: counters(
                "secret_changes_total",
                "Secret versions examined, by what came of them.",
                &["effect"],
            )?,
            rollouts: counters("rollouts_total", "Rollouts that ended, by outcome.", &["kind", "outcome"])?,
            rollout_duration: HistogramVec::new(
                HistogramOpts::new("uptake_rollout_duration_seconds", "From the stamp to the outcome.")
                    .buckets(ROLLOUT_SECONDS.to_vec()),
                &["kind"],
            )?,
            change_to_stamp: Histogram::with_opts(
                HistogramOpts::new(
                    "uptake_change_to_stamp_seconds",
                    "From a change's delivery to the stamp.",
                )
                .buckets(STAMP_SECONDS.to_vec()),
            )?,
            stale_pods: gauges(
                "stale_pods",
                "Live pods older than a value they consume.",
                &["namespace", "kind", "name"],
            )?,
            held: gauges("held_workloads", "Workloads whose rollout is held, by reason.", &["reason"])?,
            pending: gauge("pending_workloads", "Workloads that are to be looked at.")?,
            in_flight: gauge("rollouts_in_flight", "Rollouts between stamp and outcome.")?,
            synced: gauges("watch_synced", "Whether a kind's inventory is complete.", &["kind"])?,
            ledger_writes: counters(
                "ledger_writes_total",
                "Writes of ledger objects, by result.",
                &["result"],
            )?,
            requests: counters("api_requests_total", "Requests to the API server.", &["verb", "code"])?,
            leader: gauge("leader", "Whether this process decides.")?,
            scrape: Mutex::new(()),
            registry,
        };
        metrics.register()?;
        metrics.seed();
        Ok(metrics)
    }

    fn register(&self) -> prometheus::Result<()> {
        self.collectors()?.into_iter().try_for_each(|collector| self.registry.register(collector))
    }

    fn collectors(&self) -> prometheus::Result<[Box<dyn Collector>; 13]> {
        let Self {
            registry: _,
            secret_changes,
            rollouts,
            rollout_duration,
            change_to_stamp,
            stale_pods,
            held,
            pending,
            in_flight,
            synced,
            ledger_writes,
            requests,
            leader,
            scrape: _,
        } = self;
        let build = gauges("build_info", "The version that runs.", &["version"])?;
        build.with_label_values(&[env!("CARGO_PKG_VERSION")]).set(1);
        Ok([
            Box::new(secret_changes.clone()),
            Box::new(rollouts.clone()),
            Box::new(rollout_duration.clone()),
            Box::new(change_to_stamp.clone()),
            Box::new(stale_pods.clone()),
            Box::new(held.clone()),
            Box::new(pending.clone()),
            Box::new(in_flight.clone()),
            Box::new(synced.clone()),
            Box::new(ledger_writes.clone()),
            Box::new(requests.clone()),
            Box::new(leader.clone()),
            Box::new(build),
        ])
    }

    /// The names of all metrics.
    #[cfg(test)]
    pub(super) fn names(&self) -> Vec<String> {
        let all = self.collectors().unwrap();
        all.iter().flat_map(|collector| collector.desc()).map(|desc| desc.fq_name.clone()).collect()
    }

    /// Series that are always there, so that their first increase is one.
    fn seed(&self) {
        for effect in EFFECTS {
            self.secret_changes.with_label_values(&[effect.as_str()]);
        }
        for result in RESULTS {
            self.ledger_writes.with_label_values(&[result.as_str()]);
        }
    }

    /// `uptake_api_requests_total{verb,code}`.
    #[must_use]
    pub fn requests(&self) -> IntCounterVec {
        self.requests.clone()
    }

    /// From now on this process decides.
    pub fn lead(&self) {
        self.leader.set(1);
    }

    /// Counts a record.
    pub fn count(&self, record: &Record) {
        match record {
            Record::SecretChange { secret: _, effect, consumed: _ } => {
                self.secret_changes.with_label_values(&[effect.as_str()]).inc();
            }
            Record::Stamped { workload: _, stamp: _, after } => {
                self.change_to_stamp.observe(after.as_secs_f64());
            }
            Record::RolloutEnded { workload, outcome, took } => {
                let kind = workload.kind.as_str();
                self.rollouts.with_label_values(&[kind, outcome.as_str()]).inc();
                self.rollout_duration.with_label_values(&[kind]).observe(took.as_secs_f64());
            }
            Record::LedgerWrite { name: _, result } => {
                self.ledger_writes.with_label_values(&[result.as_str()]).inc();
            }
            Record::Decided { .. } | Record::Notice { .. } => {}
        }
    }

    /// The metrics as text, with the gauges as they are.
    ///
    /// # Errors
    /// Never, unless two metrics have one name.
    pub fn text(&self, state: &Gauges) -> prometheus::Result<Vec<u8>> {
        // Two scrapes at a time would see each other's half-filled gauges.
        let _turn = self.scrape.lock().unwrap_or_else(PoisonError::into_inner);
        self.show(state);
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.registry.gather(), &mut text)?;
        Ok(text)
    }

    fn show(&self, state: &Gauges) {
        let Gauges { stale_pods, held, pending, in_flight, synced, ledger: _ } = state;
        // A series is there only while there is something to say.
        self.stale_pods.reset();
        for (workload, count) in stale_pods {
            let labels = [&*workload.namespace, workload.kind.as_str(), &*workload.name];
            self.stale_pods.with_label_values(&labels).set(number(*count));
        }
        self.held.reset();
        for (reason, count) in held {
            self.held.with_label_values(&[*reason]).set(number(*count));
        }
        self.pending.set(number(*pending));
        self.in_flight.set(number(*in_flight));
        for (watch, state) in synced {
            self.synced.with_label_values(&[watch.as_str()]).set(i64::from(state.is_ok()));
        }
    }
}

fn name(rest: &str) -> String {
    format!("uptake_{rest}")
}

fn counters(rest: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntCounterVec> {
    IntCounterVec::new(Opts::new(name(rest), help), labels)
}

fn gauges(rest: &str, help: &str, labels: &[&str]) -> prometheus::Result<IntGaugeVec> {
    IntGaugeVec::new(Opts::new(name(rest), help), labels)
}

fn gauge(rest: &str, help: &str) -> prometheus::Result<IntGauge> {
    IntGauge::new(name(rest), help)
}

fn number(count: usize) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        facts::{Kind, WorkloadId},
        record::Watch,
        rollout::Outcome,
    };

    fn state(stale: usize) -> Gauges {
        let id = WorkloadId::new(Kind::Deployment, "demo", "web");
        Gauges {
            stale_pods: (stale > 0).then_some((id, stale)).into_iter().collect(),
            held: vec![("settling", 2)],
            pending: 3,
            in_flight: 1,
            synced: vec![(Watch::Secrets, Ok(())), (Watch::Workloads(Kind::StatefulSet), Err("no".into()))],
            ledger: Ok(()),
        }
    }

    fn text(metrics: &Metrics, state: &Gauges) -> String {
        String::from_utf8(metrics.text(state).unwrap()).unwrap()
    }

    #[test]
    fn the_names_are_fixed() {
        let metrics = Metrics::new().unwrap();
        let workload = WorkloadId::new(Kind::Deployment, "demo", "web");
        metrics.requests().with_label_values(&["get", "200"]).inc();
        metrics.count(&Record::RolloutEnded {
            workload: workload.clone(),
            outcome: Outcome::Completed,
            took: Duration::from_secs(3),
        });
        metrics.count(&Record::Stamped { workload, stamp: "db@1".into(), after: Duration::from_secs(2) });
        assert!(text(&metrics, &state(4)).contains("uptake_leader 0\n"));
        metrics.lead();
        let text = text(&metrics, &state(4));
        for line in [
            r#"uptake_secret_changes_total{effect="nothing_to_do"} 0"#,
            r#"uptake_rollouts_total{kind="Deployment",outcome="completed"} 1"#,
            r#"uptake_rollout_duration_seconds_count{kind="Deployment"} 1"#,
            r#"uptake_change_to_stamp_seconds_bucket{le="2"} 1"#,
            r#"uptake_stale_pods{kind="Deployment",name="web",namespace="demo"} 4"#,
            r#"uptake_held_workloads{reason="settling"} 2"#,
            "uptake_pending_workloads 3",
            "uptake_rollouts_in_flight 1",
            r#"uptake_watch_synced{kind="Secret"} 1"#,
            r#"uptake_watch_synced{kind="StatefulSet"} 0"#,
            r#"uptake_ledger_writes_total{result="conflict"} 0"#,
            r#"uptake_api_requests_total{code="200",verb="get"} 1"#,
            "uptake_leader 1",
            concat!("uptake_build_info{version=\"", env!("CARGO_PKG_VERSION"), "\"} 1"),
        ] {
            assert!(text.lines().any(|found| found == line), "{line} isn't in\n{text}");
        }
    }

    #[test]
    fn a_workload_without_stale_pods_has_no_series() {
        let metrics = Metrics::new().unwrap();
        text(&metrics, &state(4));
        assert!(!text(&metrics, &state(0)).contains("uptake_stale_pods{"));
    }
}
