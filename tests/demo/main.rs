//! The demo: a real control plane, nine consumers of one Secret, and all that Uptake does and doesn't do about them.
//!
//! It fails if any of what it says didn't happen.

// What can't be done ends the demo.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod shop;
mod stage;
mod story;

use std::process::ExitCode;

use stage::Stage;
use support::cluster::{Cluster, Options};
use support::operator::{Operator, program};

#[tokio::main]
async fn main() -> ExitCode {
    let keep = std::env::var("KEEP").is_ok_and(|keep| keep == "1");
    match run(keep).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ndemo failed: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn run(keep: bool) -> support::Result<()> {
    let cluster = Cluster::start(Options::default()).await?;
    let told = tokio::select! {
        told = tell(&cluster) => told,
        _ = tokio::signal::ctrl_c() => Err("interrupted".into()),
    };
    if let (Ok((operator, own_namespace)), true) = (&told, keep) {
        println!("\nThe cluster and the operator go on until Ctrl-C. To play with them:");
        println!("  export KUBECONFIG={}", cluster.kubeconfig(&cluster.admin()).display());
        println!("  export PATH={}:$PATH", cluster.program("kubectl").parent().unwrap().display());
        println!("  export UPTAKE_OWN_NAMESPACE={own_namespace}   # where `uptake status` finds the ledger");
        println!("  {} status -n shop", program().display());
        println!("  curl http://{}/metrics", operator.address());
        let _ = tokio::signal::ctrl_c().await;
    }
    told.map(drop)
}

async fn tell(cluster: &Cluster) -> support::Result<(Operator, String)> {
    let stage = Stage::new(cluster).await?;
    let operator = story::tell(&stage).await?;
    Ok((operator, stage.install.own_namespace))
}
