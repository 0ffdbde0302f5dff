//! How long after a change of a Secret a container can still start with the old value, by each way in which it gets there.
//!
//! A Secret's value is counted up again and again while containers start that print when they started and what they
//! got. A container that got a value which had been superseded by then was late by the time since. That is the only thing
//! that Uptake can't see: it knows when a pod was born, not what its kubelet knew.

mod late;
mod pods;

use std::{
    sync::atomic::{AtomicBool, Ordering},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::{Result, node::Node, stage::Stage};
use late::{Changes, Sample, Way};

pub const NAMESPACE: &str = "measure";
/// How often the value changes: longer than all that was ever seen on a quiet kubelet, so that each start says something.
const PERIOD: Duration = Duration::from_millis(1500);

/// Who starts containers, and how many at a time.
struct Trial {
    name: &'static str,
    at_a_time: usize,
    starts: Starts,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Starts {
    /// Of new pods.
    New,
    /// Of pods whose containers end and are started again.
    Again,
}

const TRIALS: [Trial; 4] = [
    Trial { name: "new pod, quiet", at_a_time: 4, starts: Starts::New },
    Trial { name: "new pod, busy", at_a_time: 20, starts: Starts::New },
    Trial { name: "restart, quiet", at_a_time: 4, starts: Starts::Again },
    Trial { name: "restart, busy", at_a_time: 20, starts: Starts::Again },
];

/// So many starts of each trial, as a table.
pub fn tell(stage: &Stage, node: &Node, tries: usize) -> Result<()> {
    stage.chapter(&format!("How long a container can still start with the old value: {tries} tries each"));
    node.apply(&pods::stage())?;
    stage.output(&late::heading());
    let mut changes = Changes::default();
    for trial in &TRIALS {
        let samples = while_changing(node, &mut changes, || match trial.starts {
            Starts::New => pods::new_ones(node, trial.at_a_time, tries),
            Starts::Again => pods::restarted(node, trial.at_a_time, tries),
        })?;
        for way in Way::ALL {
            stage.output(&late::row(trial.name, way, &samples, &changes));
        }
    }
    node.kubectl(&["delete", "namespace", NAMESPACE, "--wait=false"]).map(drop)
}

/// Changes the value all the while.
fn while_changing(
    node: &Node,
    changes: &mut Changes,
    look: impl FnOnce() -> Result<Vec<Sample>>,
) -> Result<Vec<Sample>> {
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        let changing = scope.spawn(|| -> Result<()> {
            while !ended.load(Ordering::Relaxed) {
                pods::set(node, changes.next())?;
                changes.note(now());
                thread::sleep(PERIOD);
            }
            Ok(())
        });
        let samples = look();
        ended.store(true, Ordering::Relaxed);
        changing.join().map_err(|_| "the thread that changes the value")??;
        samples
    })
}

/// Unix time in milliseconds: of one machine, so that the containers' clock is the same.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
