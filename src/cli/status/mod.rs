//! `status`: who consumes what, which pods hold an old value since when, what holds.

mod describe;
pub mod render;
pub mod report;

use std::{pin::pin, time::Duration};

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};

use super::{
    CliError, Exit, Session,
    args::StatusArgs,
    gather::{self, Wanted},
    output::{self, Format, Progress},
    target::Target,
};
use crate::{
    cli::scene::Scene,
    cluster::{self, READ_LIMIT, path},
    engine::Fault,
};
use report::Report;

/// How often `--watch` looks.
const WATCH: Duration = Duration::from_secs(2);

/// Runs it.
///
/// # Errors
/// Nothing can be listed, or what is asked for isn't there.
pub async fn run(args: &StatusArgs) -> Result<Exit, CliError> {
    let session = Session::open(&args.cluster).await?;
    if !args.watch {
        return Ok(once(&session, args).await?.exit);
    }
    let mut ended = pin!(ended());
    loop {
        tokio::select! {
            looked = again(&session, args) => match looked? {
                Reader::Stays => {}
                Reader::Left => return Ok(Exit::Done),
            },
            () = &mut ended => return Ok(Exit::Done),
        }
    }
}

/// Somebody has seen enough: Ctrl-C, or SIGTERM.
async fn ended() {
    let interrupted = tokio::signal::ctrl_c();
    let Ok(mut terminated) = signal(SignalKind::terminate()) else {
        let _ = interrupted.await;
        return;
    };
    tokio::select! {
        _ = interrupted => {}
        _ = terminated.recv() => {}
    }
}

/// Whether anybody reads on.
enum Reader {
    Stays,
    /// The pipe was closed.
    Left,
}

/// What came of a look.
struct Looked {
    exit: Exit,
    reader: Reader,
}

/// Looks once, and waits until it is time for the next look.
async fn again(session: &Session, args: &StatusArgs) -> Result<Reader, CliError> {
    match once(session, args).await {
        Err(error) if error.exit == Exit::Usage => return Err(error),
        // A watch outlives a busy API server.
        Err(error) => output::say(&format!("error: {error}")),
        Ok(Looked { reader: Reader::Left, .. }) => return Ok(Reader::Left),
        Ok(_) => {}
    }
    tokio::time::sleep(WATCH).await;
    Ok(Reader::Stays)
}

async fn once(session: &Session, args: &StatusArgs) -> Result<Looked, CliError> {
    let wanted = match &args.target {
        Some(Target::Secret(name)) => Wanted { secret: Some(name.clone()) },
        Some(Target::ProviderClass(_) | Target::Consumer(_)) | None => Wanted::default(),
    };
    let mut progress = Progress::new();
    progress.show("reading the cluster…");
    let scene = gather::scene(session, &wanted).await;
    progress.end();
    let scene = scene?;
    let report = report::report(&scene, args.target.as_ref());
    if report.consumers.is_empty() {
        namespace_is_there(session).await?;
        if let Some(target) = &args.target {
            is_there(session, &scene, target)?;
        }
    }
    let all = session.namespace.is_none();
    if args.watch && matches!(args.output, Format::Table | Format::Wide) {
        output::clear();
    }
    let heard = output::print(args.output, &report, |paint, wide| render::render(&report, paint, wide, all))?;
    Ok(Looked {
        exit: if args.exit_code { exit(&report) } else { Exit::Done },
        reader: if heard { Reader::Stays } else { Reader::Left },
    })
}

fn exit(report: &Report) -> Exit {
    let summary = report.summary;
    if summary.stale + summary.probably_stale > 0 {
        Exit::Stale
    } else if !report.unknown.is_empty() || summary.unknown > 0 {
        Exit::Unknown
    } else {
        Exit::Done
    }
}

/// Whether the namespace in which nobody consumes anything is there, as far as the caller may know.
async fn namespace_is_there(session: &Session) -> Result<(), CliError> {
    let Some(namespace) = &session.namespace else { return Ok(()) };
    let request = cluster::get(&format!("{}/{namespace}", path::core(None, "namespaces")));
    match session.api.json::<Value>(request, READ_LIMIT).await {
        Err(Fault::NotFound) => Err(CliError::failed(format!("there is no namespace {namespace}"))),
        _ => Ok(()),
    }
}

/// Whether what nobody consumes is there at all, so that a misspelt name isn't good news.
fn is_there(session: &Session, scene: &Scene, target: &Target) -> Result<(), CliError> {
    let place = session
        .namespace
        .as_deref()
        .map_or_else(String::new, |namespace| format!(" in namespace {namespace}"));
    match target {
        Target::Secret(name) => {
            if !scene.knows_secrets() {
                let why = scene.unknown.iter().find(|unknown| unknown.kind == "Secret");
                let why = why.map(|unknown| unknown.message.clone()).unwrap_or_default();
                return Err(CliError::unknown(format!(
                    "nobody is known to consume {target}{place}, and Secrets can't be read: {why}"
                )));
            }
            if scene.has_secret(name) {
                return Ok(());
            }
            Err(CliError::failed(format!("{target} neither exists{place} nor is referenced by anybody")))
        }
        Target::ProviderClass(_) => Err(CliError::failed(format!("nobody mounts {target}{place}"))),
        Target::Consumer(consumer) => {
            if let Some(unknown) = scene.unknown.iter().find(|unknown| consumer.is_kind(&unknown.kind)) {
                return Err(CliError::unknown(format!("{target} can't be looked up: {}", unknown.message)));
            }
            if consumer.is_known_kind()
                || session.workloads.iter().any(|custom| consumer.is_kind(&custom.kind))
            {
                return Err(CliError::failed(format!("{target} isn't there{place}")));
            }
            Err(CliError::unknown(format!(
                "{target} is of a kind that isn't known: name it with --workload GROUP/VERSION/KIND"
            )))
        }
    }
}
