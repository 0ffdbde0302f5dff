//! The report as people read it.

use super::report::{Report, Status};
use crate::cli::{
    output::{Paint, Tone},
    table::{Cell, Table},
};

/// The table, and all in words.
#[must_use]
pub fn render(report: &Report, paint: Paint) -> String {
    let mut table = Table::new(&["CONSUMER", "RESULT", "DETAIL"]);
    let done = if report.dry_run { "would be requested" } else { "requested" };
    for one in &report.requested {
        let ended = report.outcomes.iter().find(|ended| (&ended.kind, &ended.name) == (&one.kind, &one.name));
        let (tone, result, detail) = match ended {
            Some(ended) if ended.outcome == "completed" => (Tone::Good, ended.outcome, String::new()),
            Some(ended) => (Tone::Bad, ended.outcome, ended.detail.clone()),
            None => (Tone::Good, done, format!("generation {}", one.generation)),
        };
        table.row(vec![
            format!("{}/{}", one.kind, one.name).into(),
            Cell::toned(tone, result),
            detail.into(),
        ]);
    }
    for one in &report.failures {
        let of = format!("{}/{}", one.kind, one.name);
        table.row(vec![of.into(), Cell::toned(Tone::Bad, one.reason.as_str()), one.message.as_str().into()]);
    }
    for one in &report.discovery_failures {
        let result = format!("not listed: {}", one.reason.as_str());
        table.row(vec![(&*one.kind).into(), Cell::toned(Tone::Bad, result), one.message.as_str().into()]);
    }
    let rows = report.requested.len() + report.failures.len() + report.discovery_failures.len();
    let table = if rows == 0 { String::new() } else { table.render(paint) + "\n" };
    let tone = match report.status {
        Status::Requested => Tone::Good,
        Status::NoTargets => Tone::Plain,
        Status::Partial => Tone::Warning,
        Status::Failed => Tone::Bad,
    };
    let dry = if report.dry_run { "dry run: " } else { "" };
    // Where nobody answered, the table has said so.
    let note = report.note.as_ref().filter(|_| !report.untold);
    let note = note.map(|note| format!("note: {note}\n")).unwrap_or_default();
    format!("{table}{}\n{note}", paint.paint(tone, &format!("{dry}{}", report.message)))
}
