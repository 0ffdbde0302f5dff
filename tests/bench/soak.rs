//! An hour of changes, each rolled and followed to its end: memory must not grow.

use std::time::{Duration, Instant};

use crate::{
    field::{Field, Place},
    process,
    report::Report,
    support::operator::Operator,
    uptake::install,
};

/// Changed at a time; each is another Secret every time until all had their turn.
const AT_ONCE: usize = 20;
/// For whatever must happen at all.
const DEADLINE: Duration = Duration::from_secs(120);
/// Memory may be so much larger at the end than after the first tenth: allocators aren't exact.
const GROWTH: f64 = 1.1;

/// Changes Secrets for so long, and reports how memory grew.
pub async fn run(field: &Field<'_>, report: &mut Report, minutes: u64) {
    let install = install(field).await;
    let operator = Operator::start(field.cluster, &install);
    operator.wait_ready(DEADLINE).await;
    let (began, length) = (Instant::now(), Duration::from_secs(60 * minutes));
    let mut early = None;
    let mut round = 0;
    while began.elapsed() < length {
        churn(field, round).await;
        round += 1;
        if early.is_none() && began.elapsed() > length / 10 {
            early = Some(process::memory(operator.id()).now);
        }
    }
    let now = process::memory(operator.id()).now;
    let early = early.unwrap_or(now);
    println!("{} changes in {minutes} min, each rolled once", round * AT_ONCE);
    report.at_most("memory after it, beside that after its first tenth", now / early, GROWTH, "×");
    if now > early * GROWTH {
        report.wrong(format!("memory grew from {early:.1} to {now:.1} MiB"));
    }
    operator.sigterm();
    operator.wait_exit(DEADLINE).await;
}

/// Changes some Secrets, sees each rolled once, and does what a controller and a kubelet would do then.
async fn churn(field: &Field<'_>, round: usize) {
    let own = field.size.namespaces * field.size.per_namespace;
    let places: Vec<Place> =
        (0..AT_ONCE.min(own)).map(|n| field.place((round * AT_ONCE + n) % own)).collect();
    let before = field.rollouts();
    field.change_all(places.clone()).await;
    field.wait_rollouts(DEADLINE, before + places.len() as u64).await;
    for place in &places {
        field.finish(place).await;
    }
}
