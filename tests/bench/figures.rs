//! Numbers from many measurements.

use std::time::Duration;

/// Durations, for their middle and their end.
#[derive(Default)]
pub struct Durations(Vec<Duration>);

impl Durations {
    pub fn add(&mut self, one: Duration) {
        self.0.push(one);
    }

    /// The median, in milliseconds.
    pub fn median_ms(&self) -> f64 {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        sorted.get(sorted.len().saturating_sub(1) / 2).map_or(f64::NAN, Duration::as_secs_f64) * 1000.0
    }
}
