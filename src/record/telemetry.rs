//! Logs, on standard error: standard output is for what a command prints.
//!
//! `--log-level` is Uptake's own level. Other crates are capped at `warn`, and those through which answers of
//! the API server pass are off: `kube_client` logs the whole body of an answer that it can't decode, at
//! `warn`, and a list of Secrets is such a body. No environment variable changes that.

use std::io;

use tracing::{Level, Subscriber, level_filters::LevelFilter, subscriber::SetGlobalDefaultError};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    fmt::{self, MakeWriter},
    layer::SubscriberExt as _,
    registry,
    registry::LookupSpan,
};

/// `--log-format`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Crates that see answers' bodies or headers with tokens.
const SILENT: [&str; 10] = [
    "kube",
    "kube_client",
    "kube_core",
    "kube_runtime",
    "hyper",
    "hyper_util",
    "h2",
    "rustls",
    "tower",
    "tower_http",
];

/// Starts logging. Records of the `log` crate aren't taken: they have no targets to be capped by.
///
/// # Errors
/// It was started already.
pub fn init(format: LogFormat, level: Level) -> Result<(), SetGlobalDefaultError> {
    match format {
        LogFormat::Text => tracing::subscriber::set_global_default(text(level, io::stderr)),
        LogFormat::Json => tracing::subscriber::set_global_default(json(level, io::stderr)),
    }
}

fn caps(level: Level) -> Targets {
    let silent = SILENT.map(|target| (target, LevelFilter::OFF));
    Targets::new().with_default(LevelFilter::WARN).with_targets(silent).with_target("uptake", level)
}

/// Logs for people.
fn text<W>(level: Level, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    registry().with(caps(level)).with(text_lines(writer))
}

/// Logs for programs.
fn json<W>(level: Level, writer: W) -> impl Subscriber + Send + Sync
where
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    registry().with(caps(level)).with(json_lines(writer))
}

fn text_lines<S, W>(writer: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::layer().with_writer(writer).with_target(false).with_ansi(false)
}

/// The fields of [`text_lines`], and no others.
fn json_lines<S, W>(writer: W) -> impl Layer<S> + Send + Sync
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    W: for<'a> MakeWriter<'a> + Send + Sync + 'static,
{
    fmt::layer().json().flatten_event(true).with_target(false).with_writer(writer)
}

/// A log that can be read, for tests of other rooms too.
#[cfg(test)]
pub(crate) mod captured {
    use std::{
        io,
        sync::{Arc, Mutex},
    };

    use tracing::{Level, Subscriber, level_filters::LevelFilter};
    use tracing_subscriber::{fmt, layer::SubscriberExt as _, registry};

    /// A log that can be read.
    #[derive(Clone, Default)]
    pub struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Captured {
        /// A subscriber with the real caps that writes here.
        pub fn subscriber(&self, level: Level) -> impl Subscriber + Send + Sync + use<> {
            let log = self.clone();
            super::text(level, move || log.clone())
        }

        /// A subscriber without any cap that writes here.
        pub fn uncapped(&self) -> impl Subscriber + Send + Sync + use<> {
            let log = self.clone();
            registry().with(LevelFilter::TRACE).with(fmt::layer().with_writer(move || log.clone()))
        }

        /// A subscriber that writes each event twice: as text here, as JSON there.
        pub fn in_both_forms(&self, json: &Self) -> impl Subscriber + Send + Sync + use<> {
            let (text, json) = (self.clone(), json.clone());
            registry()
                .with(super::caps(Level::TRACE))
                .with(super::text_lines(move || text.clone()))
                .with(super::json_lines(move || json.clone()))
        }

        /// What was logged.
        pub fn text(&self) -> String {
            String::from_utf8_lossy(&self.0.lock().unwrap()).into_owned()
        }
    }

    impl io::Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{captured::Captured, *};

    #[test]
    fn other_crates_are_capped_and_some_are_silent() {
        let log = Captured::default();
        tracing::subscriber::with_default(log.subscriber(Level::TRACE), || {
            tracing::trace!(target: "uptake::watch", "own");
            tracing::error!(target: "kube_client::client", "hunter2");
            tracing::error!(target: "hyper_util::client", "hunter2");
            tracing::info!(target: "mio", "low");
            tracing::warn!(target: "mio", "high");
        });
        let text = log.text();
        assert!(text.contains("own") && text.contains("high"), "{text}");
        assert!(!text.contains("hunter2") && !text.contains("low"), "{text}");
    }

    #[test]
    fn json_is_one_object_a_line() {
        let log = Captured::default();
        let to = log.clone();
        tracing::subscriber::with_default(json(Level::INFO, move || to.clone()), || {
            tracing::info!(target: "uptake", reason = "x", "Said");
        });
        let line: serde_json::Value = serde_json::from_str(log.text().trim()).unwrap();
        assert_eq!((&line["message"], &line["reason"]), (&"Said".into(), &"x".into()));
    }
}
