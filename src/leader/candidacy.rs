//! What to do about the Lease next. Pure: told what was seen and when, by the own monotonic clock.

use std::time::Duration;

use tokio::time::Instant;

/// How long things take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a claim is good after the request that made it was sent.
    pub duration: Duration,
    /// How long after that request the next one is sent.
    pub renew: Duration,
    /// How often a candidate looks.
    pub look: Duration,
    /// How long a request may take. Two of them fit between a renewal that fails and the claim's end.
    pub call: Duration,
    /// How long after a request that failed the next one is sent.
    pub retry: Duration,
    /// How much longer than its duration a foreign claim is respected: for clocks of unequal speed, and for a write
    /// that was begun in a claim's last moment.
    pub grace: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            duration: Duration::from_secs(15),
            renew: Duration::from_secs(5),
            look: Duration::from_secs(1),
            call: Duration::from_secs(4),
            retry: Duration::from_millis(500),
            grace: Duration::from_secs(1),
        }
    }
}

/// What stands in a Lease. Another of these than before means that its holder lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// Who holds it; nobody if it was released.
    pub holder: Option<String>,
    /// How long the holder wants to be respected; none if it doesn't say.
    pub duration: Option<Duration>,
    /// `acquireTime` and `renewTime` as they stand there: compared, never read as times.
    pub times: [Option<String>; 2],
    /// How often the holder changed.
    pub transitions: i64,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Read the Lease: what is known of it is old, or was never known.
    Read,
    /// Make the Lease: there is none.
    Create,
    /// Take the Lease over from nobody or from a holder that is gone.
    Take,
    /// Write the own name into the Lease that bears it.
    Renew,
    /// Do nothing until then.
    Wait(Instant),
    /// The leadership was had and is lost.
    End(Why),
}

/// Why the leadership is lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The claim ran out before it could be renewed.
    Expired,
    /// Somebody else holds the Lease.
    Taken,
}

/// What is known of the Lease.
#[derive(Debug)]
enum Known {
    /// Nothing, or what was known may be old.
    Nothing,
    /// There is none.
    Absent,
    /// This stands in it.
    Lease(Observed),
}

/// What a candidate, or the holder, knows.
#[derive(Debug)]
pub struct Candidacy {
    me: String,
    timing: Timing,
    known: Known,
    /// A foreign record, and since when it has stood unchanged.
    foreign: Option<(Observed, Instant)>,
    /// Until when the own claim is good; none before it was had.
    expiry: Option<Instant>,
    /// Not before.
    next: Instant,
}

impl Candidacy {
    /// Under a name that nobody else has.
    #[must_use]
    pub fn new(me: String, timing: Timing, now: Instant) -> Self {
        Self { me, timing, known: Known::Nothing, foreign: None, expiry: None, next: now }
    }

    /// The own name.
    #[must_use]
    pub fn me(&self) -> &str {
        &self.me
    }

    /// Until when the own claim is good.
    #[must_use]
    pub const fn expiry(&self) -> Option<Instant> {
        self.expiry
    }

    /// What to do now.
    #[must_use]
    pub fn step(&self, now: Instant) -> Step {
        let taken = self.foreign_holder().is_some();
        match self.expiry {
            Some(expiry) if now >= expiry => return Step::End(Why::Expired),
            Some(_) if taken => return Step::End(Why::Taken),
            Some(_) | None => {}
        }
        if now < self.next {
            return Step::Wait(self.next);
        }
        match &self.known {
            Known::Nothing => Step::Read,
            Known::Absent => Step::Create,
            Known::Lease(seen) if seen.holder.as_ref() == Some(&self.me) => Step::Renew,
            Known::Lease(_) => match self.foreign_end() {
                Some(end) if now < end => Step::Read,
                _ => Step::Take,
            },
        }
    }

    /// Until when a request that is sent now may take: not longer than the claim is good.
    #[must_use]
    pub fn patience(&self, now: Instant) -> Duration {
        let left = self.expiry.map_or(self.timing.call, |expiry| expiry.saturating_duration_since(now));
        self.timing.call.min(left)
    }

    /// The Lease was read.
    pub fn saw(&mut self, seen: Option<Observed>, now: Instant) {
        let foreign = seen.as_ref().filter(|seen| seen.holder.as_ref().is_some_and(|h| *h != self.me));
        let same = self.foreign.as_ref().map(|(record, _)| record) == foreign;
        if !same {
            self.foreign = foreign.map(|record| (record.clone(), now));
        }
        self.known = seen.map_or(Known::Absent, Known::Lease);
        // A candidate that has to wait looks again in time for the end of the claim before it.
        self.next = match self.foreign_end() {
            Some(end) if now < end => end.min(now + self.timing.look),
            _ => now,
        };
    }

    /// The own name was written by a request that was sent then, and this stands in the Lease now.
    pub fn wrote(&mut self, written: Observed, sent: Instant) {
        self.foreign = None;
        self.known = Known::Lease(written);
        self.expiry = Some(sent + self.timing.duration);
        self.next = sent + self.timing.renew;
    }

    /// Somebody else wrote first.
    pub fn conflicted(&mut self) {
        self.known = Known::Nothing;
    }

    /// A request failed, and whether it did something isn't known.
    pub fn failed(&mut self, now: Instant) {
        self.known = Known::Nothing;
        self.next = now + self.timing.retry;
    }

    fn foreign_holder(&self) -> Option<&str> {
        match &self.known {
            Known::Lease(seen) => seen.holder.as_deref().filter(|holder| *holder != self.me),
            Known::Nothing | Known::Absent => None,
        }
    }

    /// When the foreign claim ends.
    fn foreign_end(&self) -> Option<Instant> {
        let (record, since) = self.foreign.as_ref()?;
        let duration = record.duration.unwrap_or_default().max(self.timing.duration);
        // One that claims to hold for ever is respected for an hour after its last sign of life.
        let duration = duration.min(Duration::from_secs(3600).max(self.timing.duration));
        Some(*since + duration + self.timing.grace)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn lease(holder: &str, renewed: &str) -> Observed {
        Observed {
            holder: (!holder.is_empty()).then(|| holder.to_owned()),
            duration: Some(Duration::from_secs(15)),
            times: [None, Some(renewed.to_owned())],
            transitions: 1,
        }
    }

    /// Seconds after the start.
    fn at(start: Instant, seconds: f64) -> Instant {
        start + Duration::from_secs_f64(seconds)
    }

    fn candidate() -> (Candidacy, Instant) {
        let start = Instant::now();
        (Candidacy::new("me".to_owned(), Timing::default(), start), start)
    }

    #[rstest]
    #[case::no_lease(None, Step::Create)]
    #[case::released(Some(lease("", "1")), Step::Take)]
    #[case::mine_by_a_lost_answer(Some(lease("me", "1")), Step::Renew)]
    fn what_a_candidate_does_about(#[case] seen: Option<Observed>, #[case] step: Step) {
        let (mut candidacy, start) = candidate();
        assert_eq!(candidacy.step(start), Step::Read);
        candidacy.saw(seen, start);
        assert_eq!(candidacy.step(start), step);
    }

    #[test]
    fn a_foreign_claim_is_respected_from_its_last_change_that_was_seen() {
        let (mut candidacy, start) = candidate();
        for second in 0..40 {
            let now = at(start, f64::from(second));
            candidacy.saw(Some(lease("other", &(second / 5).to_string())), now);
            assert_eq!(candidacy.step(now), Step::Wait(at(now, 1.0)));
        }
        // Seen renewed at 35, and never again.
        candidacy.saw(Some(lease("other", "7")), at(start, 50.5));
        assert_eq!(candidacy.step(at(start, 50.5)), Step::Wait(at(start, 51.0)));
        candidacy.saw(Some(lease("other", "7")), at(start, 51.0));
        assert_eq!(candidacy.step(at(start, 51.0)), Step::Take);
    }

    #[test]
    fn a_longer_duration_is_respected_and_a_shorter_or_endless_one_is_not() {
        for (stated, respected) in [(None, 16), (Some(1), 16), (Some(60), 61), (Some(1 << 31), 3601)] {
            let (mut candidacy, start) = candidate();
            let stated = stated.map(Duration::from_secs);
            let seen = Observed { duration: stated, ..lease("other", "1") };
            candidacy.saw(Some(seen.clone()), start);
            let end = start + Duration::from_secs(respected);
            candidacy.saw(Some(seen.clone()), end - Duration::from_millis(1));
            assert_eq!(candidacy.step(end - Duration::from_millis(1)), Step::Wait(end));
            candidacy.saw(Some(seen), end);
            assert_eq!(candidacy.step(end), Step::Take, "{stated:?}");
        }
    }

    #[test]
    fn a_claim_counts_from_before_its_request_was_sent() {
        let (mut candidacy, start) = candidate();
        candidacy.saw(None, start);
        candidacy.wrote(lease("me", "1"), at(start, 1.0));
        assert_eq!(candidacy.expiry(), Some(at(start, 16.0)));
        assert_eq!(candidacy.step(at(start, 4.0)), Step::Wait(at(start, 6.0)));
        assert_eq!(candidacy.step(at(start, 6.0)), Step::Renew);
        assert_eq!(candidacy.patience(at(start, 6.0)), Duration::from_secs(4));
        assert_eq!(candidacy.patience(at(start, 15.0)), Duration::from_secs(1));
        assert_eq!(candidacy.step(at(start, 16.0)), Step::End(Why::Expired));
    }

    #[test]
    fn a_renewal_whose_answer_was_lost_is_looked_after_and_repeated() {
        let (mut candidacy, start) = candidate();
        candidacy.saw(None, start);
        candidacy.wrote(lease("me", "1"), start);
        candidacy.failed(at(start, 9.0));
        assert_eq!(candidacy.step(at(start, 9.0)), Step::Wait(at(start, 9.5)));
        assert_eq!(candidacy.step(at(start, 9.5)), Step::Read);
        candidacy.saw(Some(lease("me", "2")), at(start, 9.5));
        assert_eq!(candidacy.expiry(), Some(at(start, 15.0)), "nobody acknowledged more");
        assert_eq!(candidacy.step(at(start, 9.5)), Step::Renew);
        candidacy.wrote(lease("me", "3"), at(start, 9.6));
        assert_eq!(candidacy.expiry(), Some(at(start, 24.6)));
    }

    #[test]
    fn the_leader_ends_when_somebody_else_holds_the_lease() {
        let (mut candidacy, start) = candidate();
        candidacy.saw(None, start);
        candidacy.wrote(lease("me", "1"), start);
        candidacy.conflicted();
        assert_eq!(candidacy.step(at(start, 5.0)), Step::Read);
        candidacy.saw(Some(lease("other", "2")), at(start, 5.0));
        assert_eq!(candidacy.step(at(start, 5.0)), Step::End(Why::Taken));
    }

    #[test]
    fn the_leader_takes_a_lease_back_that_somebody_cleared_or_deleted() {
        let (mut candidacy, start) = candidate();
        candidacy.saw(None, start);
        candidacy.wrote(lease("me", "1"), start);
        for (seen, step) in [(Some(lease("", "2")), Step::Take), (None, Step::Create)] {
            candidacy.conflicted();
            candidacy.saw(seen, at(start, 5.0));
            assert_eq!(candidacy.step(at(start, 5.0)), step);
        }
    }
}
