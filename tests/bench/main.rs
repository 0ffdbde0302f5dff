//! The benchmark: what a change costs with Uptake, beside what it costs at least, in one run on one machine.
//!
//! There is no controller manager in it: only the API server, etcd and Uptake are measured. Pods and ReplicaSets are
//! made by hand. Every scenario also checks the number of rollouts; a wrong one fails the run.
//!
//! `NAMESPACES`, `PER_NAMESPACE` and `FANOUT` choose the size, `OUT` the folder for `bench.json` and `bench.svg`.

// What can't be done ends the run.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Milliseconds and megabytes of a report.
#![allow(clippy::cast_precision_loss)]

#[path = "../support/mod.rs"]
mod support;

mod field;
mod figures;
mod limits;
mod process;
mod report;
mod requests;
mod scenarios;
mod soak;
mod uptake;

use std::process::ExitCode;

use field::{Field, Size};
use report::Report;
use support::cluster::{Cluster, Options};

#[tokio::main]
async fn main() -> ExitCode {
    let size = Size::from_env();
    let cluster = Cluster::start(Options { agents: false, ..Options::default() }).await.expect("a cluster");
    let field = Field::seed(&cluster, size).await;
    let mut report = Report::new(size);
    let minutes = std::env::var("SOAK").ok().filter(|text| !text.is_empty());
    let minutes = minutes.map(|text| text.parse().expect("SOAK is a number of minutes"));
    tokio::select! {
        () = async {
            match minutes {
                Some(minutes) => soak::run(&field, &mut report, minutes).await,
                None => scenarios::run(&field, &mut report).await,
            }
        } => {}
        _ = tokio::signal::ctrl_c() => return ExitCode::FAILURE,
    }
    report.print();
    report.write();
    if report.is_right() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
