//! How long a workload waits for its data to be quiet.

use std::{collections::VecDeque, time::Duration};

use crate::facts::Mono;

/// Rollouts this close to each other make the settle time grow.
pub const WINDOW: Duration = Duration::from_secs(600);

/// How many rollouts within [`WINDOW`] are too many.
pub const TOO_MANY: usize = 3;

/// How far the settle time may grow.
pub const SETTLE_LIMIT: Duration = Duration::from_secs(600);

/// The waiting of one workload.
#[derive(Clone, Debug, Default)]
pub struct Settle {
    /// The first change that wasn't rolled yet.
    first: Option<Mono>,
    /// When it has been quiet long enough.
    until: Option<Mono>,
    /// The rollouts within [`WINDOW`].
    rollouts: VecDeque<Mono>,
    /// How often the settle time was doubled.
    doublings: u32,
}

/// The settle times that hold for a workload.
#[derive(Clone, Copy, Debug)]
pub struct SettleTimes {
    /// How long it must have been quiet.
    pub quiet: Duration,
    /// How long the waiting may take in all.
    pub at_most: Duration,
}

impl Settle {
    /// The data changed: gives when the waiting ends.
    pub fn changed(&mut self, now: Mono, times: SettleTimes) -> Mono {
        let grown = self.grown(times.quiet);
        let first = *self.first.get_or_insert(now);
        let until = (now + grown).min(first + times.at_most.max(grown));
        self.until = Some(until);
        until
    }

    /// When the waiting ends, if it goes on.
    #[must_use]
    pub fn until(&self, now: Mono) -> Option<Mono> {
        self.until.filter(|until| *until > now)
    }

    /// A look was made of the settled data: the next change begins a new waiting.
    pub fn looked(&mut self) {
        self.first = None;
        self.until = None;
    }

    /// Whether something of it must not be forgotten yet.
    #[must_use]
    pub fn remembers(&self, now: Mono) -> bool {
        self.until(now).is_some() || self.rollouts.iter().any(|at| now.since(*at) < WINDOW)
    }

    /// A rollout began. Whether the settle time grew because they come too fast.
    pub fn rolled(&mut self, now: Mono) -> bool {
        self.looked();
        self.rollouts.retain(|at| now.since(*at) < WINDOW);
        if self.rollouts.is_empty() {
            self.doublings = 0;
        }
        self.rollouts.push_back(now);
        let too_fast = self.rollouts.len() >= TOO_MANY;
        self.doublings += u32::from(too_fast);
        too_fast
    }

    /// The settle time as it has grown.
    #[must_use]
    pub fn grown(&self, quiet: Duration) -> Duration {
        if self.doublings == 0 {
            return quiet;
        }
        // A settle time of zero grows too.
        let base = quiet.max(Duration::from_secs(1));
        base.saturating_mul(1_u32.checked_shl(self.doublings).unwrap_or(u32::MAX)).min(SETTLE_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIMES: SettleTimes =
        SettleTimes { quiet: Duration::from_secs(2), at_most: Duration::from_secs(30) };

    fn at(seconds: u64) -> Mono {
        Mono(Duration::from_secs(seconds))
    }

    #[test]
    fn each_change_starts_the_quiet_anew_up_to_a_limit() {
        let mut settle = Settle::default();
        assert_eq!(settle.changed(at(0), TIMES), at(2));
        assert_eq!(settle.changed(at(1), TIMES), at(3));
        for second in 2..40 {
            assert!(settle.changed(at(second), TIMES) <= at(30));
        }
        assert_eq!(settle.until(at(31)), None);
        settle.looked();
        assert_eq!(settle.changed(at(50), TIMES), at(52));
    }

    #[test]
    fn the_third_rollout_in_ten_minutes_doubles_the_settle_time() {
        let mut settle = Settle::default();
        assert!(!settle.rolled(at(0)));
        assert!(!settle.rolled(at(60)));
        assert_eq!(settle.grown(TIMES.quiet), TIMES.quiet);
        assert!(settle.rolled(at(120)));
        assert_eq!(settle.grown(TIMES.quiet), 2 * TIMES.quiet);
        assert_eq!(settle.changed(at(130), TIMES), at(134));
        for n in 3..20 {
            settle.rolled(at(n * 60));
        }
        assert_eq!(settle.grown(TIMES.quiet), SETTLE_LIMIT);
        assert_eq!(settle.grown(Duration::ZERO), SETTLE_LIMIT);
        assert!(!settle.rolled(at(10_000)), "after a quiet time it starts over");
        assert_eq!(settle.grown(TIMES.quiet), TIMES.quiet);
    }
}
