//! Makes the container image: `make image`.
//!
//! `image ARCH PROGRAM`: the architecture as `uname -m` says it, and the static program built for it.

// Helpers of tests fail as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs;
use support::image::{archive::Image, dockerfile::Recipe, program::is_static};
use support::{Result, chart::root};

/// What nodes pull.
const LARGEST: usize = 20 << 20;

fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [machine, program] = arguments.as_slice() else { return Err("usage: image ARCH PROGRAM".into()) };
    let architecture = match machine.as_str() {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => return Err(format!("no image is made for {other}").into()),
    };
    let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let version = env!("CARGO_PKG_VERSION");
    let revision = said("REVISION").unwrap_or_else(|| "unknown".into());
    let arguments = BTreeMap::from([("VERSION", version.to_owned()), ("REVISION", revision)]);
    let recipe = Recipe::read(&fs::read_to_string(root().join("Dockerfile"))?, &arguments)?;
    let created = said("SOURCE_DATE_EPOCH").map_or(Ok(0), |text| text.parse())?;
    let image = Image { recipe: &recipe, architecture, created, name: version };
    let content = |source: &str| -> Result<Vec<u8>> {
        if !source.starts_with("target/") {
            return Ok(fs::read(root().join(source))?);
        }
        let bytes = fs::read(program).map_err(|error| format!("{program}: {error}"))?;
        if is_static(&bytes)? { Ok(bytes) } else { Err(format!("{program} isn't static").into()) }
    };
    let (archive, digest) = image.archive(content)?;
    if archive.len() > LARGEST {
        return Err(format!("the image has {} bytes, and may have {LARGEST}", archive.len()).into());
    }
    let folder = root().join("target/image");
    fs::create_dir_all(&folder)?;
    let path = folder.join(format!("uptake-{version}-{architecture}.tar"));
    fs::write(&path, &archive)?;
    println!("{} ({} KiB)\n{digest}", path.display(), archive.len() >> 10);
    Ok(())
}
