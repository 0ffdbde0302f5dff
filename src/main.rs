//! The thin binary: see the library.

use std::process::ExitCode;

use clap::Parser as _;
use uptake::{
    args::{Args, Command},
    config::Config,
    operator, probe, record,
};

/// A wrong flag. clap exits with it by itself.
const USAGE: u8 = 2;
const FAILED: u8 = 1;

fn main() -> ExitCode {
    match Args::parse().command {
        Command::Controller(args) => match Config::try_from(*args) {
            Ok(config) => controller(config),
            Err(error) => fail(USAGE, &error),
        },
        Command::Probe(args) => match probe::run(&args) {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => fail(FAILED, &error),
        },
    }
}

fn controller(config: Config) -> ExitCode {
    // Before anything that opens a TLS connection; a second installation is refused, and no harm.
    let _ = rustls::crypto::ring::default_provider().install_default();
    if let Err(error) = record::init_telemetry(config.log_format, config.log_level) {
        return fail(FAILED, &error);
    }
    let runtime = match tokio::runtime::Runtime::new() {
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
