//! The plugin's archives and manifest for krew, as `make plugin` makes them.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::support::chart::root;

const TEMPLATE: &str = "config/krew/uptake.template.yaml";
const URL: &str = "https://downloads.example.com/uptake";

fn make(folder: &Path, url: &str, arch: &str, program: &Path) -> Output {
    let mut command = Command::new(root().join("config/krew/make.sh"));
    command.arg(folder).arg(url).arg(arch).arg(program).env("SOURCE_DATE_EPOCH", "1700000000");
    command.env_remove("HOMEPAGE").output().unwrap()
}

fn yaml(path: &Path) -> Value {
    serde_saphyr::from_str(&fs::read_to_string(path).unwrap()).unwrap()
}

/// What is in an archive, by name.
fn unpacked(archive: &Path, into: &Path) -> BTreeMap<String, Vec<u8>> {
    fs::create_dir_all(into).unwrap();
    let status = Command::new("tar").arg("-xzf").arg(archive).arg("-C").arg(into).status().unwrap();
    assert!(status.success());
    let files = fs::read_dir(into).unwrap().map(|file| file.unwrap());
    files.map(|file| (file.file_name().into_string().unwrap(), fs::read(file.path()).unwrap())).collect()
}

fn sum(file: &Path) -> String {
    let output = Command::new("sha256sum").arg(file).output().unwrap();
    String::from_utf8(output.stdout).unwrap().split_whitespace().next().unwrap().to_owned()
}

#[test]
fn a_manifest_names_the_archives_that_were_made_and_nothing_else() {
    let temp = tempfile::tempdir().unwrap();
    let folder = temp.path().join("plugin");
    for arch in ["x86_64", "aarch64"] {
        let program = temp.path().join(arch);
        fs::write(&program, arch).unwrap();
        let made = make(&folder, URL, arch, &program);
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
    }
    let mut manifest = yaml(&folder.join("uptake.yaml"));
    let mut template = yaml(&root().join(TEMPLATE));
    assert_eq!(template["spec"]["platforms"], json!([]));
    let version = concat!("v", env!("CARGO_PKG_VERSION"));
    assert_eq!(manifest["spec"]["version"], version);
    let platforms = manifest["spec"]["platforms"].take();
    for made in ["version", "platforms"] {
        manifest["spec"].as_object_mut().unwrap().remove(made);
        template["spec"].as_object_mut().unwrap().remove(made);
    }
    assert_eq!(manifest, template, "all else is said once");

    let platforms = platforms.as_array().unwrap();
    assert_eq!(platforms.len(), 2);
    for (platform, (arch, content)) in platforms.iter().zip([("amd64", "x86_64"), ("arm64", "aarch64")]) {
        let name = format!("uptake-{version}-linux-{arch}.tar.gz");
        let archive = folder.join(&name);
        assert_eq!(platform["selector"], json!({ "matchLabels": { "os": "linux", "arch": arch } }));
        assert_eq!(platform["uri"], format!("{URL}/{name}"));
        assert_eq!(platform["sha256"], sum(&archive));
        let files = unpacked(&archive, &temp.path().join(format!("{arch}.unpacked")));
        assert_eq!(files["uptake"], content.as_bytes());
        let named: Vec<_> = platform["files"].as_array().unwrap().iter().map(|file| &file["from"]).collect();
        assert_eq!((named.len(), files.len()), (2, 2), "{platform}");
        assert!(named.iter().all(|name| files.contains_key(name.as_str().unwrap())), "{platform}");
        assert!(files.contains_key(platform["bin"].as_str().unwrap()));
        let before = sum(&archive);
        make(&folder, URL, content, &temp.path().join(content));
        assert_eq!(sum(&archive), before, "made twice, it is the same");
    }
}

#[test]
fn no_address_is_made_up() {
    let temp = tempfile::tempdir().unwrap();
    let program = temp.path().join("uptake");
    fs::write(&program, "x").unwrap();
    let made = make(temp.path(), "", "x86_64", &program);
    assert_eq!(made.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&made.stderr).contains("no address"), "{made:?}");
    assert!(!temp.path().join("uptake.yaml").exists());
    let template = fs::read_to_string(root().join(TEMPLATE)).unwrap();
    assert!(!template.contains("sha256") && !template.contains("uri:"), "{template}");
}
