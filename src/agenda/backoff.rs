//! Delays that grow with each failure of one object.

use std::time::Duration;

/// Doubling delays, from the first to the last.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    first: Duration,
    last: Duration,
    failures: u32,
}

impl Backoff {
    /// Delays from `first` on, doubled up to `last`.
    #[must_use]
    pub const fn new(first: Duration, last: Duration) -> Self {
        Self { first, last, failures: 0 }
    }

    /// The next delay.
    pub fn fail(&mut self) -> Duration {
        let factor = 1_u32.checked_shl(self.failures).unwrap_or(u32::MAX);
        self.failures = self.failures.saturating_add(1);
        self.first.saturating_mul(factor).min(self.last)
    }

    /// Starts over.
    pub fn succeed(&mut self) {
        self.failures = 0;
    }

    /// How many failures there were in a row.
    #[must_use]
    pub fn failures(&self) -> u32 {
        self.failures
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_double_up_to_the_last_and_start_over() {
        let mut backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(5));
        let delays: Vec<u64> = (0..40).map(|_| backoff.fail().as_secs()).collect();
        assert_eq!(delays[..4], [1, 2, 4, 5]);
        assert_eq!(delays[39], 5);
        backoff.succeed();
        assert_eq!(backoff.fail().as_secs(), 1);
    }
}
