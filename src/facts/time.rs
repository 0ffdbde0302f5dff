//! Points in time, always given by the caller: no room but the I/O ones asks a clock.

use std::{fmt, ops::Add, time::Duration};

use serde::{Deserialize, Serialize};

/// A moment by the API server's clock, in milliseconds since the Unix epoch. It is compared with
/// creation timestamps, so the operator's own clock is first corrected by the server's `Date` header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Time(pub i64);

impl Time {
    /// The moment of an RFC 3339 text as the API server writes it; `None` if it is none.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        text.parse::<jiff::Timestamp>().ok().map(|t| Self(t.as_millisecond()))
    }

    /// The moment so much earlier.
    #[must_use]
    pub fn before(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(millis(span)))
    }

    /// How long after `earlier` this is; zero if it isn't after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl Add<Duration> for Time {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(millis(span)))
    }
}

/// RFC 3339 in UTC with whole seconds, as Kubernetes writes times.
impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_second(self.0.div_euclid(1000)) {
            Ok(at) => at.fmt(f),
            Err(_) => write!(f, "{}ms", self.0),
        }
    }
}

/// A moment by the process's own monotonic clock, as the time since its start: for timers only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(pub Duration);

impl Mono {
    /// How long after `earlier` this is; zero if it isn't after it.
    #[must_use]
    pub fn since(self, earlier: Self) -> Duration {
        self.0.saturating_sub(earlier.0)
    }
}

impl Add<Duration> for Mono {
    type Output = Self;

    fn add(self, span: Duration) -> Self {
        Self(self.0.saturating_add(span))
    }
}

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// By the API server's clock.
    pub server: Time,
    /// By the process's monotonic clock.
    pub mono: Mono,
}

fn millis(span: Duration) -> i64 {
    i64::try_from(span.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_reads_and_prints_as_kubernetes_writes_it() {
        let at = Time::parse("2026-12-01T03:21:07Z").unwrap();
        assert_eq!(at.to_string(), "2026-12-01T03:21:07Z");
        assert_eq!(Time::parse("2026-12-01T03:21:07.250000Z").unwrap(), at + Duration::from_millis(250));
        assert_eq!(Time::parse("yesterday"), None);
    }

    #[test]
    fn spans_never_wrap() {
        assert_eq!(Time(5).since(Time(9)), Duration::ZERO);
        assert_eq!(Time(i64::MIN).before(Duration::from_secs(1)), Time(i64::MIN));
        assert_eq!(Time(i64::MAX) + Duration::MAX, Time(i64::MAX));
    }
}
