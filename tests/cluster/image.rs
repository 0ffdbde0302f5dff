//! The image: the Dockerfile and the archive that is made without it are one recipe.

use crate::support::chart::{folder, root};
use crate::support::image::{archive::Image, dockerfile::Recipe, program::is_static};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;

const PROGRAM: &[u8] = b"the program";

fn dockerfile() -> String {
    fs::read_to_string(root().join("Dockerfile")).unwrap()
}

fn recipe() -> Recipe {
    let arguments = BTreeMap::from([("VERSION", "1.2.3".to_owned()), ("REVISION", "abc".to_owned())]);
    Recipe::read(&dockerfile(), &arguments).unwrap()
}

fn archive(recipe: &Recipe) -> (BTreeMap<String, Vec<u8>>, String) {
    let image = Image { recipe, architecture: "arm64", created: 1_800_000_000, name: "1.2.3" };
    let content = |source: &str| match source {
        "target/release/uptake" => Ok(PROGRAM.to_vec()),
        other => Ok(fs::read(root().join(other))?),
    };
    let (bytes, digest) = image.archive(content).unwrap();
    assert_eq!(image.archive(content).unwrap().0, bytes, "twice the same");
    (files(&bytes), digest)
}

fn files(tar: &[u8]) -> BTreeMap<String, Vec<u8>> {
    let mut archive = tar::Archive::new(tar);
    let entries = archive.entries().unwrap().map(|entry| {
        let mut entry = entry.unwrap();
        assert_eq!((entry.header().uid().unwrap(), entry.header().mtime().unwrap()), (0, 1_800_000_000));
        let path = entry.path().unwrap().display().to_string();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        (path, bytes)
    });
    entries.collect()
}

fn blob(archive: &BTreeMap<String, Vec<u8>>, digest: &Value) -> Vec<u8> {
    let digest = digest.as_str().unwrap().replace(':', "/");
    archive[&format!("blobs/{digest}")].clone()
}

fn json(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap()
}

#[test]
fn the_archive_is_what_the_dockerfile_says() {
    let recipe = recipe();
    let (archive, digest) = archive(&recipe);
    assert_eq!(json(&archive["oci-layout"])["imageLayoutVersion"], "1.0.0");
    let index = json(&archive["index.json"]);
    assert_eq!(index["manifests"][0]["digest"], digest);
    assert_eq!(index["manifests"][0]["platform"]["architecture"], "arm64");
    let manifest = json(&blob(&archive, &index["manifests"][0]["digest"]));
    let config = json(&blob(&archive, &manifest["config"]["digest"]));
    assert_eq!(
        config["rootfs"]["diff_ids"][0], manifest["layers"][0]["digest"],
        "the layer isn't compressed"
    );
    let layer = files(&blob(&archive, &manifest["layers"][0]["digest"]));
    assert_eq!(layer.keys().collect::<Vec<_>>(), ["LICENSE", "uptake"]);
    assert_eq!(layer["uptake"], PROGRAM);
    let config = &config["config"];
    assert_eq!(config["Entrypoint"], serde_json::json!(["/uptake"]));
    assert_eq!(config["User"], "65532:65532");
    assert_eq!(config["ExposedPorts"], serde_json::json!({ "8080/tcp": {} }));
    let label = |name: &str| config["Labels"][format!("org.opencontainers.image.{name}")].as_str();
    assert_eq!(
        (label("version"), label("revision"), label("licenses")),
        (Some("1.2.3"), Some("abc"), Some("Apache-2.0"))
    );
    assert_eq!(label("description"), Some(env!("CARGO_PKG_DESCRIPTION")));
}

/// What the chart says of pods is true of the image.
#[test]
fn the_chart_and_the_image_agree() {
    let recipe = recipe();
    let values: Value =
        serde_saphyr::from_str(&fs::read_to_string(folder().join("values.yaml")).unwrap()).unwrap();
    let context = &values["podSecurityContext"];
    assert_eq!(recipe.user, format!("{}:{}", context["runAsUser"], context["runAsGroup"]));
    assert_eq!(recipe.ports, [format!("{}/tcp", values["containerPort"])]);
    let version = format!("ARG VERSION={}\n", env!("CARGO_PKG_VERSION"));
    assert!(dockerfile().contains(&version), "the Dockerfile's default is another version");
}

#[test]
fn what_the_archive_could_not_make_is_refused() {
    for (line, with) in [
        ("USER 65532:65532", "RUN chmod 0777 /uptake"),
        ("COPY --from=build /image/ /", "COPY --from=build /other/ /"),
        ("FROM scratch", "FROM alpine"),
    ] {
        let other = dockerfile().replace(line, with);
        assert!(Recipe::read(&other, &BTreeMap::new()).is_err(), "{with}");
    }
}

#[test]
fn a_program_that_needs_a_loader_is_not_static() {
    let own = fs::read(std::env::current_exe().unwrap()).unwrap();
    assert!(!is_static(&own).unwrap());
    assert!(is_static(PROGRAM).is_err());
}
