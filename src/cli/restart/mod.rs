//! `restart`: rolls every consumer of a Secret now.
//!
//! Each kind is listed to its end before any of it is stamped; kinds that can't be listed stop no other. A stamp is the
//! operator's own, with the time added, so that it always makes a new revision; the pods that come of it are younger than
//! the Secret's change, so the operator has nothing left to do.

mod follow;
mod perform;
mod plan;
mod render;
pub mod report;
mod wait;

use tokio::time::Instant;

use super::{CliError, Exit, Session, args::RestartArgs, output, target::Target};
pub use perform::{Order, Stamped, perform};
use report::Report;
pub use wait::wait;

/// Runs it.
///
/// # Errors
/// It is asked for something that can't be restarted.
pub async fn run(args: &RestartArgs) -> Result<Exit, CliError> {
    let Target::Secret(secret) = &args.target else {
        return Err(CliError::usage(format!(
            "restart rolls the consumers of a Secret: secret/NAME, not {}",
            args.target
        )));
    };
    let session = Session::open(&args.cluster).await?;
    let order = Order {
        namespace: session.one_namespace()?,
        secret: secret.clone(),
        only: args.only.clone(),
        dry_run: args.dry_run,
    };
    let wait = args.wait.then(|| Instant::now() + args.timeout);
    let report = restart(&session, &order, wait).await;
    output::print(args.output, &report, |paint, _| render::render(&report, paint))?;
    Ok(report.exit())
}

/// Restarts; waits until then, if so.
pub async fn restart(session: &Session, order: &Order, until: Option<Instant>) -> Report {
    let (tally, stamped) = perform(session, order).await;
    let mut report = report::judge(tally, &format!("secret/{}", order.secret));
    if let Some(deadline) = until
        && !stamped.is_empty()
    {
        report.end(wait(session, &order.namespace, stamped, deadline).await);
    }
    report
}
