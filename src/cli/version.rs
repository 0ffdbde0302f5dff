//! `version` and `completion`: what the binary says of itself.

use clap::CommandFactory as _;
use serde::Serialize;

use super::{
    CliError, Exit,
    args::{CompletionArgs, VersionArgs},
    output,
};
use crate::{
    args::Args,
    ledger::{SCHEMA, SCHEME},
};

/// What it says.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    version: &'static str,
    /// The ledger's form, and how its digests are made.
    ledger_schema: u32,
    digest_scheme: &'static str,
    platform: String,
}

/// Shows the version.
///
/// # Errors
/// It can't be written in that form.
pub fn version(args: &VersionArgs) -> Result<Exit, CliError> {
    let platform = format!("{}/{}", std::env::consts::OS, std::env::consts::ARCH);
    let version = env!("CARGO_PKG_VERSION");
    let report = Report { version, ledger_schema: SCHEMA, digest_scheme: SCHEME, platform };
    output::print(args.output, &report, |_, wide| {
        let more = format!(" (ledger schema {SCHEMA}, digests {SCHEME}, {})", report.platform);
        format!("uptake {version}{}\n", if wide { more.as_str() } else { "" })
    })?;
    Ok(Exit::Done)
}

/// Prints completions.
pub fn completion(args: &CompletionArgs) -> Exit {
    let mut text = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "uptake", &mut text);
    output::write(&String::from_utf8_lossy(&text));
    Exit::Done
}
