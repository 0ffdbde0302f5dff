//! The report as people read it.

use super::verdict::{Report, State};
use crate::cli::{
    output::{Paint, Tone},
    status::render::{counted, uses},
    table::{Cell, Table},
};

/// The table, what can't be read, and a summary.
#[must_use]
pub fn render(report: &Report, paint: Paint, wide: bool) -> String {
    let headings = ["PLACE", "CONSUMER", "USES", "STATE", "REASON"];
    let mut table = Table::new(&headings);
    for one in &report.consumers {
        let (tone, word) = match one.state {
            State::Pending => (Tone::Bad, "pending"),
            State::CantRoll => (Tone::Warning, "can't roll"),
            State::OptedOut => (Tone::Plain, "opted out"),
            State::Covered => (Tone::Good, "covered"),
        };
        let name = match &one.namespace {
            Some(namespace) if wide => format!("{}/{namespace}/{}", one.kind, one.name),
            _ => format!("{}/{}", one.kind, one.name),
        };
        let uses: Vec<String> = one.references.iter().map(uses).collect();
        table.row(vec![
            format!("{}:{}", one.file, one.line).into(),
            name.into(),
            uses.join(", ").into(),
            Cell::toned(tone, word),
            one.reason.as_str().into(),
        ]);
    }
    let mut text = if report.consumers.is_empty() { String::new() } else { table.render(paint) + "\n" };
    for error in &report.errors {
        let line = format!("{}:{}:{}: {}", error.file, error.line, error.column, error.message);
        text += &(paint.paint(Tone::Bad, &line) + "\n");
    }
    let all = report.summary;
    let summary = format!(
        "{} in {}: {} covered, {} opted out, {} can't be rolled, {} pending\n",
        counted(all.consumers, "consumer"),
        counted(all.objects, "object"),
        all.covered,
        all.opted_out,
        all.cant_roll,
        all.pending
    );
    text + &summary
}
