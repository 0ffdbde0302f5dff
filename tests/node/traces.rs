//! What a node is on the machine, and what of it is still there.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use crate::{
    Result,
    node::said,
    wait::{check, until},
};

/// For processes that are being killed, and the script that removes their cgroups.
const PATIENCE: Duration = Duration::from_secs(60);
const NAMESPACES: [&str; 6] = ["cgroup", "ipc", "mnt", "net", "pid", "uts"];

/// By what a node's remains are known.
pub struct Traces {
    folder: PathBuf,
    cgroup: String,
    /// `net:[4026532411]` and the others.
    namespaces: BTreeSet<String>,
    /// What the machine's own network had already that looks as if it were a node's.
    before: BTreeSet<String>,
}

impl Traces {
    /// Before the node comes up.
    pub fn new(folder: &Path) -> Result<Self> {
        let before = in_the_machines_network()?;
        Ok(Self { folder: folder.into(), cgroup: String::new(), namespaces: BTreeSet::new(), before })
    }

    /// The node runs: its cgroups bear the number of its script, and its first process is in all its namespaces.
    pub fn note(&mut self, script: u32, first: &str) {
        self.cgroup = format!("uptake-node-{script}");
        let own = namespaces(Path::new("/proc/self"));
        self.namespaces = namespaces(&Path::new("/proc").join(first)).difference(&own).cloned().collect();
    }

    /// Waits until no process of it lives and no mount is left, though its cgroups and its folder may be. From then on the
    /// kernel gives the numbers of its namespaces to others.
    pub fn wait_dead(&mut self) -> Result<()> {
        until(PATIENCE, || {
            let left = [self.processes()?, self.mounts()?].concat();
            check(left.is_empty(), format!("nobody lives, but: {}", left.join(", ")))
        })?;
        self.namespaces.clear();
        Ok(())
    }

    /// Waits until nothing of it is left; an error says what is.
    pub fn wait_gone(&self) -> Result<()> {
        until(PATIENCE, || {
            let left = self.left()?;
            check(left.is_empty(), format!("nothing is left, but: {}", left.join(", ")))
        })
    }

    /// What is there of it now.
    pub fn left(&self) -> Result<Vec<String>> {
        let mut left = self.processes()?;
        if !self.cgroup.is_empty() {
            let mut find = Command::new("find");
            let found = said(find.args(["/sys/fs/cgroup", "-maxdepth", "8", "-name", &self.cgroup]))?;
            left.extend(found.lines().map(|path| format!("cgroup {path}")));
        }
        left.extend(self.mounts()?);
        left.extend(in_the_machines_network()?.difference(&self.before).cloned());
        if self.folder.exists() && !self.folder.join("keep").exists() {
            left.push(format!("folder {}", self.folder.display()));
        }
        Ok(left)
    }

    fn mounts(&self) -> Result<Vec<String>> {
        let folder = self.folder.display().to_string();
        let mounts = fs::read_to_string("/proc/self/mountinfo")?;
        let its = mounts.lines().filter(|mount| {
            mount.contains(&folder) || self.namespaces.iter().any(|namespace| mount.contains(namespace))
        });
        Ok(its.map(|mount| format!("mount {mount}")).collect())
    }

    /// Those in its cgroups or in one of its namespaces, which go with the last of them: its links and nft rules, too.
    fn processes(&self) -> Result<Vec<String>> {
        let mut left = Vec::new();
        for process in fs::read_dir("/proc")?.flatten() {
            let path = process.path();
            // One that has ended and whose parent hasn't asked for its end is none.
            let state = fs::read_to_string(path.join("stat")).unwrap_or_default();
            if state.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with(['Z', 'X'])) {
                continue;
            }
            let in_cgroup = !self.cgroup.is_empty()
                && fs::read_to_string(path.join("cgroup")).unwrap_or_default().contains(&self.cgroup);
            if in_cgroup || !namespaces(&path).is_disjoint(&self.namespaces) {
                let name = fs::read_to_string(path.join("comm")).unwrap_or_default();
                left.push(format!("process {} {}", process.file_name().display(), name.trim()));
            }
        }
        Ok(left)
    }
}

fn namespaces(process: &Path) -> BTreeSet<String> {
    let links = NAMESPACES.iter().filter_map(|kind| fs::read_link(process.join("ns").join(kind)).ok());
    links.map(|link| link.display().to_string()).collect()
}

/// What a node makes in its own network, looked for in the machine's: bridges, named network namespaces and tables of
/// rules.
fn in_the_machines_network() -> Result<BTreeSet<String>> {
    let mut found = BTreeSet::new();
    let is_a_nodes = |name: &str| ["cni", "veth"].iter().any(|start| name.starts_with(start));
    for (what, folder) in [("link", "/sys/class/net"), ("network", "/run/netns")] {
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let name = entry.file_name().display().to_string();
            if is_a_nodes(&name) {
                found.insert(format!("{what} {name}"));
            }
        }
    }
    let tables = said(Command::new("nft").args(["list", "tables"]).env("PATH", crate::node::PATH))?;
    found.extend(tables.lines().filter(|table| table.contains("kube-proxy")).map(str::to_owned));
    Ok(found)
}
