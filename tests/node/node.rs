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

use crate::{
    Result,
    traces::Traces,
    wait::{check, until},
};

/// Where Debian has the programs of root, too.
pub const PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/// For a control plane and a kubelet on a machine that does other things too.
const BOOT: Duration = Duration::from_secs(180);

/// A running node. However its owner ends, `boot.sh` sees it and leaves nothing behind.
pub struct Node {
    pub folder: PathBuf,
    pub programs: PathBuf,
    /// The program under test, for its verbs.
    pub uptake: PathBuf,
    /// What `make e2e` prepares for its pods.
    pub images: PathBuf,
    pub booted_in: Duration,
    boot: Child,
    traces: Traces,
}

impl Node {
    /// Boots it, with the images whose archives lie in that folder.
    pub fn start(programs: &Path, images: &Path, uptake: &Path) -> Result<Self> {
        let began = Instant::now();
        let folder = tempfile::Builder::new().prefix("uptake-node-").tempdir()?.keep();
        let traces = Traces::new(&folder)?;
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
            images: images.into(),
            booted_in: Duration::ZERO,
            boot,
            traces,
        };
        let ready = node.wait_ready();
        node.booted_in = began.elapsed();
        match ready {
            Ok(()) => Ok(node),
            Err(error) => Err(node.fail(&error)),
        }
    }

    fn wait_ready(&mut self) -> Result<()> {
        let entered = until(BOOT, || {
            if self.boot.try_wait()?.is_some() {
                return Ok(false);
            }
            self.first().map(|_| true)
        })?;
        check(entered, "the node's script runs")?;
        self.traces.note(self.boot.id(), &self.first()?);
        let started = until(BOOT, || match self.boot.try_wait()? {
            Some(_) => Ok(false),
            None if self.folder.join("started").exists() => Ok(true),
            None => Err("the control plane isn't up".into()),
        })?;
        check(started, "the node's script runs")?;
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
        drop(self.boot.stdin.take());
        let ended = self.boot.wait()?;
        self.traces.wait_gone()?;
        if ended.success() { Ok(()) } else { Err(format!("taking the node down: {ended}").into()) }
    }

    /// A program in the node's network that finds the cluster. It is one of the node's processes: it ends with the node at the
    /// latest.
    pub fn program(&self, name: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first().unwrap_or_default(), "--net", "--pid", "--"]).arg(name);
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
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.first().unwrap_or_default(), "--mount", "--pid", "--net", "--"]);
        command.stdin(Stdio::null());
        command
    }

    /// Starts one that goes on until the node goes down, with a log of its own.
    pub fn start_inside(&self, name: &str, program: &Path, arguments: &[&str]) -> Result<()> {
        let log = fs::File::create(self.folder.join(format!("{name}.log")))?;
        self.inside()
            .arg(program)
            .args(arguments)
            .env("KUBECONFIG", self.folder.join("admin.conf"))
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(())
    }

    fn first(&self) -> Result<String> {
        first(&self.folder)
    }
}

/// The number of the first process of the namespaces of the node in that folder.
pub fn first(folder: &Path) -> Result<String> {
    let pid = fs::read_to_string(folder.join("pid"))?.trim().to_owned();
    let children = fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))?;
    Ok(children.split_whitespace().next().ok_or("it has no first process yet")?.to_owned())
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
