//! The control plane's programs: built on first use by the same script as `make cluster`.

use crate::support::{Error, Result};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The folder with every program in it. The script answers at once when they are built; else it says on
/// standard error what it builds. `K8S` in the environment selects another Kubernetes, as with `make cluster`.
pub fn folder() -> Result<PathBuf> {
    build("")
}

/// A program that not all tests need (`helm`, `promtool`): built when first asked for.
pub fn tool(name: &str) -> Result<PathBuf> {
    Ok(build(name)?.join(name))
}

fn build(tools: &str) -> Result<PathBuf> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cluster/build.sh");
    let output = Command::new(&script)
        .env("TOOLS", tools)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot run {}: {error}", script.display()))?;
    let answer = String::from_utf8_lossy(&output.stdout);
    match answer.lines().last() {
        Some(folder) if output.status.success() => Ok(folder.into()),
        _ => Err(Error::from("the test cluster's programs are missing and could not be built (see above)")),
    }
}

/// Where clusters run and leave their logs: beside the programs, so `cargo clean` removes it.
pub fn run_folder(programs: &Path) -> PathBuf {
    programs.parent().unwrap_or(programs).join("run")
}

/// Where the audit logs of operators are kept until the next `make test`.
pub fn audit_folder(programs: &Path) -> PathBuf {
    programs.parent().unwrap_or(programs).join("audit")
}
