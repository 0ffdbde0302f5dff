//! What is printed, and in which form.

use std::io::{self, IsTerminal as _, Write};

use anstyle::{AnsiColor, Style};
use clap::ValueEnum;
use serde::Serialize;

use super::CliError;

/// `-o`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    #[default]
    Table,
    /// For people, with everything
    Wide,
    /// For programs
    Json,
    /// The same as YAML
    Yaml,
}

/// Prints a report: as a table by `table`, or as it is. Whether anybody reads on.
///
/// # Errors
/// It can't be made into that form.
pub fn print<Report: Serialize>(
    format: Format,
    report: &Report,
    table: impl FnOnce(Paint, bool) -> String,
) -> Result<bool, CliError> {
    let text = match format {
        Format::Table => table(Paint::of_stdout(), false),
        Format::Wide => table(Paint::of_stdout(), true),
        Format::Json => json(report)?,
        Format::Yaml => serde_saphyr::to_string(report)
            .map_err(|error| CliError::failed(format!("failed to write YAML: {error}")))?,
    };
    Ok(write(&text))
}

/// A report as JSON.
///
/// # Errors
/// It can't be made into it.
pub fn json<Report: Serialize>(report: &Report) -> Result<String, CliError> {
    serde_json::to_string_pretty(report)
        .map(|text| text + "\n")
        .map_err(|error| CliError::failed(format!("failed to write JSON: {error}")))
}

/// Writes to standard output. Whoever closed it (`| head`) has seen enough, and reads on no more; what else goes wrong
/// is said, for a report that is cut off looks like a whole one.
#[allow(clippy::must_use_candidate, reason = "most have said all that they have to say")]
pub fn write(text: &str) -> bool {
    let mut out = io::stdout().lock();
    let written = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    if let Err(error) = &written
        && error.kind() != io::ErrorKind::BrokenPipe
    {
        say(&format!("error: failed to write to standard output: {error}"));
    }
    written.is_ok()
}

/// Clears the screen, where there is one.
pub fn clear() {
    if io::stdout().is_terminal() {
        write("\x1b[2J\x1b[H");
    }
}

/// Says something beside the report, on standard error.
pub fn say(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// What goes on, on standard error: one line that changes where people look, else a line for what is over.
#[derive(Debug)]
pub struct Progress {
    live: bool,
}

impl Progress {
    /// Nothing yet.
    #[must_use]
    pub fn new() -> Self {
        Self { live: io::stderr().is_terminal() }
    }

    /// What goes on now.
    pub fn show(&mut self, text: &str) {
        if self.live {
            let _ = write!(io::stderr().lock(), "\r\x1b[K{text}");
        }
    }

    /// Something is over.
    pub fn said(&mut self, text: &str) {
        self.end();
        say(text);
    }

    /// Nothing goes on any more.
    pub fn end(&mut self) {
        self.show("");
    }
}

impl Default for Progress {
    fn default() -> Self {
        Self::new()
    }
}

/// Colours, where people look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Paint(bool);

/// What a text is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tone {
    /// Nothing in particular.
    #[default]
    Plain,
    /// All is well.
    Good,
    /// Somebody should look.
    Warning,
    /// Something is wrong.
    Bad,
    /// A heading.
    Strong,
    /// Beside the point.
    Faint,
}

impl Paint {
    /// No colours.
    pub const PLAIN: Self = Self(false);

    fn of_stdout() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self(io::stdout().is_terminal() && !unwanted)
    }

    /// A text in that tone.
    #[must_use]
    pub fn paint(self, tone: Tone, text: &str) -> String {
        let style = match tone {
            Tone::Plain => return text.to_owned(),
            Tone::Good => Style::new().fg_color(Some(AnsiColor::Green.into())),
            Tone::Warning => Style::new().fg_color(Some(AnsiColor::Yellow.into())),
            Tone::Bad => Style::new().fg_color(Some(AnsiColor::Red.into())),
            Tone::Strong => Style::new().bold(),
            Tone::Faint => Style::new().dimmed(),
        };
        if self.0 { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }
}
