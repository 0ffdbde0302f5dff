//! The folder and the processes of one cluster, and their certain end.

use crate::support::Result;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

/// Logs of the last failures are kept for a look, not for ever.
const KEPT_RUNS: usize = 8;

/// See `supervise.sh`: a shell that outlives this process by exactly the time that it takes to clean up.
pub struct Supervisor {
    folder: PathBuf,
    /// Leads the process group that every component is started in.
    shell: Child,
    /// Its closing is the signal; nothing is ever written. The kernel closes it if this process dies.
    lifeline: Option<ChildStdin>,
}

impl Supervisor {
    /// Makes a new folder below `runs` and starts its supervisor.
    pub fn start(runs: &Path) -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        forget_old_runs(runs);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let folder = runs.join(format!("{}-{number}", std::process::id()));
        // A process id comes round again: what an earlier holder of it left is not ours.
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(folder.join("logs"))?;
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/support/cluster/supervise.sh");
        let mut shell = Command::new(&script)
            .arg(&folder)
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| format!("cannot run {}: {error}", script.display()))?;
        let lifeline = shell.stdin.take();
        keep_logs::of_failures_in(&folder);
        Ok(Self { folder, shell, lifeline })
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Starts a process that ends with the cluster, its output going to `logs/NAME.log`.
    pub fn spawn(&self, name: &str, command: &mut Command) -> Result<Child> {
        let log = File::options()
            .create(true)
            .append(true)
            .open(self.folder.join("logs").join(format!("{name}.log")))?;
        self.adopt(command)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()
            .map_err(|error| format!("cannot start {name}: {error}").into())
    }

    /// Puts a process that is about to start under supervision.
    pub fn adopt<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        command.process_group(i32::try_from(self.shell.id()).expect("a process id fits"))
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        if std::env::var_os("KEEP_LOGS").is_some() {
            keep_logs::in_folder(&self.folder);
        }
        keep_logs::done_with(&self.folder);
        drop(self.lifeline.take());
        let _ = self.shell.wait();
        // The shell is gone first; whoever cleans up after it holds the pipe until all is done.
        if let Some(mut output) = self.shell.stdout.take() {
            let _ = output.read_to_end(&mut Vec::new());
        }
    }
}

/// Removes all but the newest kept runs, and what is left of runs that the machine itself ended.
fn forget_old_runs(runs: &Path) {
    let Ok(entries) = fs::read_dir(runs) else { return };
    let entries: Vec<_> = entries.flatten().collect();
    for entry in &entries {
        let name = entry.file_name();
        let owner = name.to_str().and_then(|name| name.split('-').next()).unwrap_or_default();
        let processes = Path::new("/proc");
        let is_over = processes.join("self").exists() && !processes.join(owner).exists();
        if is_over && !entry.path().join("keep").exists() {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let mut kept: Vec<_> = entries
        .iter()
        .filter_map(|entry| {
            Some((fs::metadata(entry.path().join("keep")).ok()?.modified().ok()?, entry.path()))
        })
        .filter(|(_, path)| !path.join("etcd").exists())
        .collect();
    kept.sort();
    for (_, path) in kept.iter().rev().skip(KEPT_RUNS) {
        let _ = fs::remove_dir_all(path);
    }
}

/// When any test of this process panics, the logs of all its clusters stay: a shared cluster is never dropped,
/// and a panic may be another thread's.
mod keep_logs {
    use super::{File, Mutex, Path, PathBuf};
    use std::sync::Once;

    static LIVE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

    pub fn of_failures_in(folder: &Path) {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                previous(info);
                // Not `lock().unwrap()`: a panic within a panic would end the process.
                if let Ok(live) = LIVE.lock() {
                    live.iter().for_each(|folder| in_folder(folder));
                }
            }));
        });
        if let Ok(mut live) = LIVE.lock() {
            live.push(folder.to_owned());
        }
    }

    pub fn done_with(folder: &Path) {
        if let Ok(mut live) = LIVE.lock() {
            live.retain(|other| other != folder);
        }
    }

    pub fn in_folder(folder: &Path) {
        let mark = folder.join("keep");
        if !mark.exists() && File::create(&mark).is_ok() {
            eprintln!("cluster: logs are kept in {}", folder.join("logs").display());
        }
    }
}
