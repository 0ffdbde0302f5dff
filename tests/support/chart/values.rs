//! `values.yaml` with its comments: a key that has a comment is a value, one that has none is a group of values.

use crate::support::{Error, Result};
use serde_json::Value;

/// What stands under one `## Heading`.
pub struct Section {
    pub title: String,
    pub values: Vec<Described>,
}

/// One value.
pub struct Described {
    /// From the top: `config`, `settle`.
    pub path: Vec<String>,
    pub description: String,
    /// What its comment adds to the schema.
    pub schema: Option<Value>,
    pub default: Value,
}

#[derive(Default)]
struct Comment {
    text: Vec<String>,
    schema: Option<Value>,
}

pub fn parse(text: &str) -> Result<Vec<Section>> {
    let defaults: Value = serde_saphyr::from_str(text)?;
    let mut sections: Vec<Section> = Vec::new();
    let mut groups: Vec<(usize, String)> = Vec::new();
    let mut comment = Comment::default();
    // Lines that are indented deeper belong to a value's default.
    let mut value_at: Option<usize> = None;
    for line in text.lines() {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if trimmed.is_empty() {
            comment = Comment::default();
            continue;
        }
        if value_at.is_some_and(|at| indent > at) {
            continue;
        }
        value_at = None;
        if let Some(title) = trimmed.strip_prefix("## ") {
            sections.push(Section { title: title.into(), values: Vec::new() });
        } else if let Some(words) = trimmed.strip_prefix('#') {
            comment.add(words.trim())?;
        } else if let Some((key, _)) = trimmed.split_once(':') {
            groups.retain(|(at, _)| *at < indent);
            if comment.text.is_empty() {
                groups.push((indent, key.into()));
                continue;
            }
            value_at = Some(indent);
            let Comment { text, schema } = std::mem::take(&mut comment);
            let path: Vec<String> =
                groups.iter().map(|(_, group)| group.clone()).chain([key.into()]).collect();
            let default = defaults.pointer(&format!("/{}", path.join("/"))).cloned();
            let default = default.ok_or_else(|| format!("{} has no default", path.join(".")))?;
            let section = sections.last_mut().ok_or("a value stands before the first section")?;
            section.values.push(Described { path, description: text.join(" "), schema, default });
        } else {
            return Err(Error::from(format!("neither a comment nor a key: {line}")));
        }
    }
    Ok(sections)
}

impl Comment {
    fn add(&mut self, words: &str) -> Result<()> {
        match words.strip_prefix("@schema ") {
            Some(json) => {
                self.schema = Some(serde_json::from_str(json).map_err(|error| format!("{error}: {json}"))?);
            }
            None => self.text.push(words.into()),
        }
        Ok(())
    }
}
