//! The report for code scanning: SARIF 2.1.0.

use serde_json::{Value, json};

use super::verdict::{ConsumerReport, ErrorReport, Report, State};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// The report as SARIF: what is pending, what can't be rolled, what can't be read.
#[must_use]
pub fn sarif(report: &Report) -> Value {
    let found = report.consumers.iter().filter_map(result);
    let unreadable = report.errors.iter().map(error);
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "uptake",
                "version": env!("CARGO_PKG_VERSION"),
                "rules": [
                    rule("pending", "A pod template consumes a Secret, and nobody decided what its change means"),
                    rule("cant-roll", "A pod template consumes a Secret, and nothing can roll it"),
                    rule("unreadable", "A manifest can't be read"),
                ],
            }},
            "results": found.chain(unreadable).collect::<Vec<Value>>(),
        }],
    })
}

fn rule(id: &str, text: &str) -> Value {
    json!({"id": id, "shortDescription": {"text": text}})
}

fn result(one: &ConsumerReport) -> Option<Value> {
    let (rule, level) = match one.state {
        State::Pending => ("pending", "error"),
        State::CantRoll => ("cant-roll", "note"),
        State::OptedOut | State::Covered => return None,
    };
    let text = format!("{}/{}: {}", one.kind, one.name, one.reason);
    Some(located(rule, level, &text, &one.file, one.line, one.column))
}

fn error(one: &ErrorReport) -> Value {
    located("unreadable", "error", &one.message, &one.file, one.line, one.column)
}

fn located(rule: &str, level: &str, text: &str, file: &str, line: usize, column: usize) -> Value {
    json!({
        "ruleId": rule,
        "level": level,
        "message": {"text": text},
        "locations": [{"physicalLocation": {
            "artifactLocation": {"uri": file},
            "region": {"startLine": line.max(1), "startColumn": column.max(1)},
        }}],
    })
}
