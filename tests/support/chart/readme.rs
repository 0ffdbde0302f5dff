//! The chart's README: its template, with the values in it.

use super::values::Section;
use serde_json::Value;
use std::fmt::Write as _;

const PLACE: &str = "<!-- values -->\n";

pub fn page(template: &str, sections: &[Section]) -> String {
    let mut tables = String::new();
    for section in sections {
        let _ = writeln!(tables, "### {}\n\n| value | default | |\n| --- | --- | --- |", section.title);
        for value in &section.values {
            let description = value.description.replace('|', "\\|");
            let _ = writeln!(
                tables,
                "| `{}` | {} | {description} |",
                value.path.join("."),
                default(&value.default)
            );
        }
        tables.push('\n');
    }
    template.replace(PLACE, tables.trim_end_matches('\n').to_owned().as_str())
}

fn default(value: &Value) -> String {
    match value {
        Value::String(text) if !text.is_empty() => format!("`{text}`"),
        Value::Object(map) if map.values().any(Value::is_object) => "see values.yaml".into(),
        other => format!("`{other}`"),
    }
}
