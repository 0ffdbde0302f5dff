//! The README names tests as proofs.

use std::{fs, path::Path};

/// Every row of the table of decisions names a test that there is.
#[test]
fn every_decision_in_the_readme_names_its_proof() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = fs::read_to_string(root.join("README.md")).unwrap();
    let (_, table) = readme.split_once("| situation | decision | reason | proven by |").expect("the table");
    let rows: Vec<&str> = table.lines().skip(2).take_while(|line| line.starts_with('|')).collect();
    assert!(rows.len() > 20, "{} rows", rows.len());
    for row in rows {
        let proof = row.trim_end_matches(" |").rsplit("| ").next().unwrap_or_default().trim_matches('`');
        let (file, name) = proof.split_once("::").unwrap_or_else(|| panic!("no test: {row}"));
        let text = fs::read_to_string(root.join("tests/cluster").join(file).with_extension("rs"));
        let text = text.unwrap_or_else(|error| panic!("{proof}: {error}"));
        assert!(text.contains(&format!("fn {name}()")), "there is no {proof}");
    }
}
