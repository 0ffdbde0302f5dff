//! What asks no cluster: `check`, `version`, `completion`, help.

use std::path::Path;

use super::{Said, run};
use crate::support::operator::program;

const DEMO: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/demo/shop.yaml");
const TENTH: &str = "---
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: tenth, namespace: shop}
spec:
  template:
    spec:
      containers: [{name: app, image: shop/tenth:1, envFrom: [{secretRef: {name: shop-db}}]}]
";

async fn uptake(arguments: &[&str], input: &str) -> Said {
    run(&program(), arguments, Some(Path::new("/nonexistent")), input).await
}

#[tokio::test]
async fn the_demos_nine_are_found_and_a_tenth_that_nobody_examined_fails() {
    let nine = uptake(&["check", "-f", DEMO, "-o", "json"], "").await.ended(0).json();
    assert_eq!(nine["summary"]["consumers"], 9);
    let manifests = std::fs::read_to_string(DEMO).unwrap() + TENTH;
    let ten = uptake(&["check", "-f", "-"], &manifests).await.ended(1);
    insta::with_settings!({ prepend_module_to_snapshot => false }, { insta::assert_snapshot!("check", ten.out) });
    let sarif = uptake(&["check", "-f", "-", "-o", "sarif"], &manifests).await.ended(1).json();
    insta::with_settings!({ prepend_module_to_snapshot => false }, { insta::assert_json_snapshot!("check_sarif", sarif) });
    uptake(&["check", "-f", DEMO, "--without-operator"], "").await.ended(1);
}

#[tokio::test]
async fn folders_are_read_and_bad_yaml_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::copy(DEMO, folder.path().join("shop.yaml")).unwrap();
    std::fs::write(folder.path().join("notes.txt"), "kind: [").unwrap();
    let path = folder.path().to_str().unwrap();
    uptake(&["check", "-f", path], "").await.ended(0);
    std::fs::write(folder.path().join("bad.yml"), "kind: Pod\nspec: {a: [}\n").unwrap();
    let said = uptake(&["check", "-f", path], "").await.ended(1);
    assert!(said.out.contains("bad.yml:2:"), "{}", said.out);
    uptake(&["check", "-f", "/nonexistent"], "").await.ended(2);
    uptake(&["check"], "").await.ended(2);
}

#[tokio::test]
async fn the_binary_tells_of_itself() {
    let version = uptake(&["version", "-o", "json"], "").await.ended(0).json();
    assert_eq!(version["version"], env!("CARGO_PKG_VERSION"));
    for shell in ["bash", "zsh", "fish", "powershell"] {
        let script = uptake(&["completion", shell], "").await.ended(0);
        assert!(script.out.contains("uptake") && script.out.contains("restart"), "{shell}");
    }
    uptake(&[], "").await.ended(2);
    for verb in ["status", "restart", "gate", "check", "release", "purge"] {
        let help = uptake(&[verb, "--help"], "").await.ended(0);
        assert!(help.out.contains("Examples:"), "{verb}: {}", help.out);
    }
}
