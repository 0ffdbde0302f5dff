//! Writes what is made from the chart: `make chart`.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

use std::fs;
use support::{Result, chart};

fn main() -> Result<()> {
    let helm = chart::helm::Helm::find()?;
    for (path, text) in chart::generated(&helm)? {
        let full = chart::root().join(&path);
        if fs::read_to_string(&full).is_ok_and(|is| is == text) {
            continue;
        }
        fs::create_dir_all(full.parent().ok_or("a file lies in a folder")?)?;
        fs::write(&full, text)?;
        println!("{}", path.display());
    }
    Ok(())
}
