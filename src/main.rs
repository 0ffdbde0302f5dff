//! The thin binary: see the library.

use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};
use tokio::runtime::{Builder, Runtime};
use uptake::{
    args::{Args, Command},
    cli::{self, Exit},
    config::Config,
    operator, probe, record,
};

const FAILED: u8 = 1;

/// The engine is one task, and what it waits for is the API server: more threads only cost memory.
const WORKERS: usize = 2;

fn main() -> ExitCode {
    match parse().command {
        Command::Controller(args) => match Config::try_from(*args) {
            Ok(config) => controller(config),
            Err(error) => fail(Exit::Usage.code(), &error),
        },
        Command::Probe(args) => match probe::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(FAILED, &error),
        },
        command => verb(command),
    }
}

/// What the user typed; as a kubectl plugin the binary is called as kubectl's verb. clap ends with 2 where it
/// makes no sense.
fn parse() -> Args {
    let command = cli::named(Args::command(), std::env::args_os().next().as_deref());
    let matches = command.get_matches();
    Args::from_arg_matches(&matches).unwrap_or_else(|error| error.exit())
}

fn verb(command: Command) -> ExitCode {
    match Runtime::new() {
        Ok(runtime) => runtime.block_on(cli::run(command)).into(),
        Err(error) => fail(Exit::Failed.code(), &error),
    }
}

fn controller(config: Config) -> ExitCode {
    // Before anything that opens a TLS connection; a second installation is refused, and no harm.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if let Err(error) = record::init_telemetry(config.log_format, config.log_level) {
        return fail(FAILED, &error);
    }
    let runtime = Builder::new_multi_thread().worker_threads(WORKERS).enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return fail(FAILED, &error),
    };
    match runtime.block_on(operator::run(config)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(FAILED, &error),
    }
}

/// Says why, once and in one line.
fn fail(code: u8, error: &dyn std::error::Error) -> ExitCode {
    eprintln!("error: {}", error.to_string().replace('\n', " "));
    ExitCode::from(code)
}
