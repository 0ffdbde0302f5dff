//! What a process uses, from `/proc`.

use std::{
    fs,
    process::{Child, Command},
    time::Duration,
};

/// Memory, in MiB.
#[derive(Clone, Copy, Debug, Default)]
pub struct Memory {
    pub now: f64,
    pub peak: f64,
}

pub fn memory(id: u32) -> Memory {
    let status = fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<f64>().ok()
    };
    let mib = |name: &str| field(name).unwrap_or(f64::NAN) / 1024.0;
    Memory { now: mib("VmRSS:"), peak: mib("VmHWM:") }
}

/// Notes where a process computes until it ends, with perf, if PROFILE names a file for it.
pub fn profile(id: u32) -> Option<Child> {
    let file = std::env::var_os("PROFILE").filter(|file| !file.is_empty())?;
    let mut perf = Command::new("perf");
    perf.args(["record", "--quiet", "--freq", "2000", "--pid", &id.to_string(), "--output"]).arg(file);
    Some(perf.spawn().expect("perf is there (Debian: apt-get install linux-perf)"))
}

/// The time its threads have computed.
pub fn cpu(id: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    // The name before the last bracket may hold anything.
    let fields: Vec<&str> =
        stat.rsplit_once(')').map(|(_, rest)| rest.split_whitespace().collect()).unwrap_or_default();
    let ticks: u64 = [11, 12].iter().filter_map(|&at| fields.get(at)?.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second().max(1))
}
