//! The API server's clock, as far as it can be known from here.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use crate::facts::{Mono, Now, Time};

/// How fast two clocks may drift apart, in millionths. Beyond it an old observation is worth less than a
/// new one.
const DRIFT_PPM: i64 = 200;

/// Both clocks. Clones share what they learn.
#[derive(Clone)]
pub struct ServerClock {
    start: Instant,
    offset: Arc<Mutex<Offset>>,
}

impl ServerClock {
    /// Starts with the machine's own clock, until the first answer.
    #[must_use]
    pub fn new() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), offset: Arc::new(Mutex::new(Offset::guessed(millis(wall)))) }
    }

    /// The time since the process started.
    #[must_use]
    pub fn mono(&self) -> Mono {
        Mono(self.start.elapsed())
    }

    /// A moment of the process's clock as timers take it.
    #[must_use]
    pub fn instant(&self, mono: Mono) -> Instant {
        // A moment beyond what the clock can hold is never.
        self.start.checked_add(mono.0).unwrap_or_else(|| self.start + Duration::from_secs(1 << 31))
    }

    /// Both clocks now. The server's may step back by less than a second while it is being learnt.
    #[must_use]
    pub fn now(&self) -> Now {
        let mono = self.mono();
        let offset = *self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        Now { server: Time(offset.estimate() + millis(mono.0)), mono }
    }

    /// Learns from an answer's `Date` header: it was written between `sent` and the moment of this call.
    pub fn learn(&self, sent: Mono, date: &str) {
        let Ok(date) = jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(date) else { return };
        let received = self.mono();
        let mut offset = self.offset.lock().unwrap_or_else(PoisonError::into_inner);
        offset.learn(millis(sent.0), millis(received.0), date.as_millisecond());
    }
}

impl Default for ServerClock {
    fn default() -> Self {
        Self::new()
    }
}

/// The server's clock minus the process's monotonic one, in milliseconds, as an interval.
///
/// A `Date` header D has whole seconds, so the server's clock stood in [D, D + 1 s) at some moment between
/// the request's start s and the answer's arrival r. So the offset is at least D − r and less than D + 1 s − s.
/// Each answer narrows the interval; with one answer the estimate is off by at most half a second plus half
/// the request's duration, and it gets better with every request that meets another part of a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offset {
    low: i64,
    high: i64,
    /// When it was last learnt, by the monotonic clock.
    at: i64,
    /// Whether it is only the machine's own clock.
    guessed: bool,
}

impl Offset {
    const fn guessed(offset: i64) -> Self {
        Self { low: offset, high: offset, at: 0, guessed: true }
    }

    const fn estimate(self) -> i64 {
        i64::midpoint(self.low, self.high)
    }

    fn learn(&mut self, sent: i64, received: i64, date: i64) {
        let seen = Self { low: date - received, high: date + 1000 - sent, at: received, guessed: false };
        let drift = (received - self.at).max(0) * DRIFT_PPM / 1_000_000;
        let low = seen.low.max(self.low - drift);
        let high = seen.high.min(self.high + drift);
        // Nothing fits both: a clock was set, or another API server with another clock answered.
        let contradicts = low > high;
        *self = if self.guessed || contradicts { seen } else { Self { low, high, ..seen } };
    }
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn date(server: i64) -> i64 {
        server.div_euclid(1000) * 1000
    }

    #[test]
    fn many_answers_make_it_exact() {
        let truth = 1_700_000_000_123;
        let mut offset = Offset::guessed(0);
        for step in 0..200 {
            let sent = step * 737;
            offset.learn(sent, sent + 6, date(truth + sent + 3));
        }
        assert!((offset.estimate() - truth).abs() < 30, "{}", offset.estimate() - truth);
    }

    #[test]
    fn a_server_whose_clock_was_set_is_believed() {
        let mut offset = Offset::guessed(0);
        offset.learn(0, 5, 5000);
        offset.learn(1000, 1005, 96_000);
        assert!((offset.estimate() - 95_000).abs() < 1100);
    }

    #[test]
    fn the_header_is_read_as_servers_write_it() {
        let clock = ServerClock::new();
        clock.learn(clock.mono(), "Tue, 01 Dec 2037 03:41:10 GMT");
        let server = clock.now().server;
        let expected = Time::parse("2037-12-01T03:41:10Z").unwrap();
        assert!(server >= expected && server.since(expected) < Duration::from_secs(2), "{server}");
        clock.learn(clock.mono(), "yesterday");
    }

    proptest! {
        #[test]
        fn the_estimate_is_within_its_bound(
            truth in 0i64..2_000_000_000_000,
            requests in proptest::collection::vec((0i64..10_000, 0i64..3000, 0i64..3000), 1..20),
        ) {
            let mut offset = Offset::guessed(0);
            let mut mono = 0;
            for (gap, there, back) in requests {
                mono += gap;
                offset.learn(mono, mono + there + back, date(truth + mono + there));
                mono += there + back;
                prop_assert!(offset.low <= truth + 4 && truth <= offset.high + 4);
                prop_assert!((offset.estimate() - truth).abs() <= 504 + i64::midpoint(there, back));
            }
        }
    }
}
