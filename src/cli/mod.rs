//! The verbs that people call: with the caller's own rights, with or without an operator in the cluster.
//!
//! ```text
//! args ─► session ─► gather (lists) ─► scene (pure: the operator's own rules) ─► the verb's report ─► table, JSON, YAML
//! ```
//!
//! | folder | does |
//! | --- | --- |
//! | `scene` | all that is known at one moment; pure |
//! | `gather` | lists what a scene is made of |
//! | `status` | who consumes what, which pods are stale |
//! | `restart` | rolls the consumers of a Secret |
//! | `gate` | for deploy pipelines |
//! | `check` | for repositories; asks no cluster |

pub mod args;
pub mod check;
mod error;
mod exit;
pub mod gate;
mod gather;
mod output;
mod purge;
mod release;
pub mod restart;
pub mod scene;
mod session;
pub mod status;
mod table;
pub mod target;
mod version;

pub use error::{Class, CliError};
pub use exit::Exit;
pub use session::Session;

use crate::args::Command;

/// Runs a verb. What goes wrong is said on standard error.
pub async fn run(command: Command) -> Exit {
    let done = match command {
        Command::Status(args) => status::run(&args).await,
        Command::Restart(args) => restart::run(&args).await,
        Command::Check(args) => check::run(&args),
        Command::Gate(args) => gate::run(&args).await,
        Command::Release(args) => release::run(&args).await,
        Command::Purge(args) => purge::run(&args).await,
        Command::Version(args) => version::version(&args),
        Command::Completion(args) => Ok(version::completion(&args)),
        Command::Controller(_) | Command::Probe(_) => {
            Err(CliError::usage("the operator is no verb of people's"))
        }
    };
    done.unwrap_or_else(|error| {
        output::say(&format!("error: {}", error.to_string().replace('\n', " ")));
        error.exit
    })
}

/// The command as it was called: `kubectl uptake` if it is a plugin of kubectl.
#[must_use]
pub fn named(command: clap::Command, called: Option<&std::ffi::OsStr>) -> clap::Command {
    let file = called.map(std::path::Path::new).and_then(std::path::Path::file_stem);
    let is_plugin =
        file.and_then(std::ffi::OsStr::to_str).is_some_and(|file| file.replace('_', "-") == "kubectl-uptake");
    if !is_plugin {
        return command;
    }
    // Who runs these runs the operator's image.
    let command = command.mut_subcommands(|verb| match verb.get_name() {
        "controller" | "probe" => verb.hide(true),
        _ => verb,
    });
    command.name("kubectl-uptake").bin_name("kubectl uptake")
}
