//! The chart, and what is made from it: its README's table and its schema from the values' comments, the plain
//! manifests of `config/` by `helm template`.
//!
//! `cargo run --example chart` writes the files; a test compares them.

pub mod helm;
mod manifests;
mod readme;
mod schema;
pub mod values;

use crate::support::Result;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The repository.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Where the chart lies.
pub fn folder() -> PathBuf {
    root().join("charts/uptake")
}

/// All files that are made, by their path in the repository.
pub fn generated(helm: &helm::Helm) -> Result<BTreeMap<PathBuf, String>> {
    let values = fs::read_to_string(folder().join("values.yaml"))?;
    let sections = values::parse(&values)?;
    let template = fs::read_to_string(folder().join("README.template.md"))?;
    let chart = |name: &str| Path::new("charts/uptake").join(name);
    let mut files = BTreeMap::from([
        (chart("README.md"), readme::page(&template, &sections)),
        (chart("values.schema.json"), schema::text(&sections)),
    ]);
    files.extend(manifests::all(helm)?);
    Ok(files)
}
