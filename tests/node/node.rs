//! The node: what `boot.sh` brings up, and how programs reach it.

use std::{
    fs,
    io::Write as _,
    os::unix::process::CommandExt as _,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use serde_json::Value;

use crate::{Result, wait::until};

/// For a control plane and a kubelet on a machine that does other things too.
const BOOT: Duration = Duration::from_secs(180);

/// A running node. However its owner ends, `boot.sh` sees it and leaves nothing behind.
pub struct Node {
    pub folder: PathBuf,
    pub programs: PathBuf,
    /// The program under test, for its verbs.
    pub uptake: PathBuf,
    pub booted_in: Duration,
    boot: Child,
}

impl Node {
    /// Boots it, with the images whose archives lie in that folder.
    pub fn start(programs: &Path, images: &Path, uptake: &Path) -> Result<Self> {
        let began = Instant::now();
        let folder = tempfile::Builder::new().prefix("uptake-node-").tempdir()?.keep();
        let boot = Command::new(Path::new(SOURCES).join("boot.sh"))
            .args([&folder, programs, images])
            .stdin(Stdio::piped())
            // Ctrl-C is for the owner: boot.sh has to outlive it.
            .process_group(0)
            .spawn()?;
        let mut node = Self {
            folder,
            programs: programs.into(),
            uptake: uptake.into(),
            booted_in: Duration::ZERO,
            boot,
        };
        let ready = node.wait_ready();
        node.booted_in = began.elapsed();
        match ready {
            Ok(()) => Ok(node),
            Err(error) => Err(node.fail(&error)),
        }
    }

    fn wait_ready(&mut self) -> Result<()> {
        let began = Instant::now();
        while !self.folder.join("started").exists() {
            if self.boot.try_wait()?.is_some() || began.elapsed() > BOOT {
                return Err("the node doesn't come up".into());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        until(BOOT, || {
            self.kubectl(&["wait", "--for=condition=Ready", "node/node", "--timeout=20s"]).map(drop)
        })?;
        // Without it no pod is let in.
        until(BOOT, || self.kubectl(&["get", "serviceaccount", "default"]).map(drop))
    }

    /// Takes it down, keeps its logs, and gives the error back with their folder.
    pub fn fail(self, error: &crate::Error) -> crate::Error {
        let folder = self.folder.clone();
        let _ = fs::write(folder.join("keep"), "");
        let down = self.down().err().map(|error| format!("; and {error}")).unwrap_or_default();
        format!("{error}{down}\nlogs: {}", folder.display()).into()
    }

    /// Takes it down; an error says what is left.
    pub fn down(mut self) -> Result<()> {
        let network = fs::read_link(format!("/proc/{}/ns/net", self.pid())).ok();
        drop(self.boot.stdin.take());
        let ended = self.boot.wait()?;
        let cgroup = format!("uptake-node-{}", self.boot.id());
        until(Duration::from_secs(5), || {
            let left = left_behind(&cgroup, network.as_deref(), &self.folder)?;
            if left.is_empty() { Ok(()) } else { Err(format!("left behind: {}", left.join(", ")).into()) }
        })?;
        if ended.success() { Ok(()) } else { Err(format!("taking the node down: {ended}").into()) }
    }

    /// A program in the node's network that finds the cluster.
    pub fn program(&self, name: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.pid(), "--net", "--"]).arg(name);
        command.env("KUBECONFIG", self.folder.join("admin.conf"));
        command
            .env("HELM_CACHE_HOME", self.folder.join("helm"))
            .env("HELM_CONFIG_HOME", self.folder.join("helm"));
        command.env("HELM_DATA_HOME", self.folder.join("helm")).stdin(Stdio::null());
        command
    }

    /// What kubectl says.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        said(self.program(self.programs.join("kubectl")).args(arguments))
    }

    pub fn json(&self, arguments: &[&str]) -> Result<Value> {
        let all: Vec<&str> = arguments.iter().copied().chain(["-o", "json"]).collect();
        Ok(serde_json::from_str(&self.kubectl(&all)?)?)
    }

    /// Applies a manifest.
    pub fn apply(&self, manifest: &str) -> Result<()> {
        let mut command = self.program(self.programs.join("kubectl"));
        let mut child = command
            .args(["apply", "-f", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        child.stdin.take().ok_or("no standard input")?.write_all(manifest.as_bytes())?;
        text(&child.wait_with_output()?).map(drop)
    }

    /// Sends a signal to one of the node's own processes: `kubelet`, `containerd`…
    pub fn signal(&self, process: &str, signal: &str) -> Result<()> {
        said(self.inside().args(["bash", "-c", &format!("kill -{signal} $(cat /run/pids/{process})")]))
            .map(drop)
    }

    /// Kills the process of a container as the kernel would that has no memory left.
    pub fn kill_container(&self, id: &str) -> Result<()> {
        let mut command = self.inside();
        command.arg(self.programs.join("ctr")).args(["-n", "k8s.io", "task", "kill", "-s", "SIGKILL", id]);
        said(&mut command).map(drop)
    }

    /// A program of the node's own, as long as it lives.
    pub fn inside(&self) -> Command {
        let pid = self.pid();
        let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap_or_default();
        let first = children.split_whitespace().next().unwrap_or_default();
        let mut command = Command::new("nsenter");
        command.args(["--target", first, "--mount", "--pid", "--net", "--"]).stdin(Stdio::null());
        command
    }

    fn pid(&self) -> String {
        fs::read_to_string(self.folder.join("pid")).unwrap_or_default().trim().to_owned()
    }
}

/// Processes in the node's cgroups or in its network, which goes with the last of them and its links with it; these cgroups,
/// and mounts below its folder.
fn left_behind(cgroup: &str, network: Option<&Path>, folder: &Path) -> Result<Vec<String>> {
    let mut left = Vec::new();
    for process in fs::read_dir("/proc")?.flatten() {
        let groups = fs::read_to_string(process.path().join("cgroup")).unwrap_or_default();
        let its_network = fs::read_link(process.path().join("ns/net")).ok();
        if groups.contains(cgroup) || (network.is_some() && its_network.as_deref() == network) {
            left.push(format!("process {}", process.file_name().display()));
        }
    }
    let found = said(Command::new("find").args(["/sys/fs/cgroup", "-maxdepth", "8", "-name", cgroup]))?;
    left.extend(found.lines().map(|path| format!("cgroup {path}")));
    let folder = folder.display().to_string();
    let mounts = fs::read_to_string("/proc/self/mountinfo")?;
    left.extend(mounts.lines().filter(|mount| mount.contains(&folder)).map(|mount| format!("mount {mount}")));
    Ok(left)
}

/// Where the node's scripts lie.
pub const SOURCES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/node");

/// Runs a command to its end and gives its output, or what it complained about.
pub fn said(command: &mut Command) -> Result<String> {
    text(&command.output()?)
}

fn text(output: &std::process::Output) -> Result<String> {
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let complaint =
        [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).trim().to_owned());
    Err(complaint.join("\n").trim().to_owned().into())
}
