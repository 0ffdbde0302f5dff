//! Waiting for a condition: polled against a deadline, never a fixed sleep.

use std::{
    thread::sleep,
    time::{Duration, Instant},
};

use crate::Result;

/// For what takes a rollout or two, on a busy machine.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// Short beside every deadline, long beside a program that is started for each look.
const POLL: Duration = Duration::from_millis(200);

/// Looks until it is so; the failure says what was seen last.
pub fn until<T>(patience: Duration, mut look: impl FnMut() -> Result<T>) -> Result<T> {
    let end = Instant::now() + patience;
    loop {
        match look() {
            Ok(seen) => return Ok(seen),
            Err(error) if Instant::now() >= end => {
                return Err(format!("not within {} s: {error}", patience.as_secs()).into());
            }
            Err(_) => sleep(POLL),
        }
    }
}

/// An error unless the claim holds.
pub fn check(holds: bool, claim: impl Into<String>) -> Result<()> {
    if holds { Ok(()) } else { Err(format!("this doesn't hold: {}", claim.into()).into()) }
}
