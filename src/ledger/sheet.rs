//! When one ledger object is written.

use std::time::Duration;

use crate::facts::{Mono, Version};

/// How long an edit that nothing waits for may wait for others to be written with.
pub const GROUP: Duration = Duration::from_millis(100);

/// How long a change may wait to be written: with a short settle time the intent to roll for it comes with it. A crash
/// before that write costs the change's exact version, no more: the next start finds the other value.
pub const SETTLING: Duration = Duration::from_millis(300);

/// The first delay after a failed write; it doubles up to [`BACKOFF_MAX`].
const BACKOFF: Duration = Duration::from_millis(250);
const BACKOFF_MAX: Duration = Duration::from_secs(30);

/// How soon an edit has to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Urgency {
    /// Something waits for it.
    Now,
    /// Within [`GROUP`].
    Soon,
    /// Within [`SETTLING`]: it is a change whose consumers still settle.
    Settling,
    /// With the next write of the object, whenever that is: losing it costs a repeated look, nothing more.
    WithNext,
}

/// One ledger object: its version, its edits, its write in flight.
#[derive(Debug, Default)]
pub struct Sheet {
    version: Option<Version>,
    edits: u64,
    /// The last edit that isn't [`Urgency::WithNext`].
    required: u64,
    durable: u64,
    in_flight: Option<u64>,
    due: Option<Mono>,
    failures: u32,
    bytes: usize,
}

/// What a new record is expected to need, in bytes, until the object is measured at its next write.
const RECORD_BYTES: usize = 512;

impl Sheet {
    /// It was read at this version.
    pub fn read(&mut self, version: Version) {
        self.version = Some(version);
    }

    /// The version it has in the store.
    #[must_use]
    pub fn version(&self) -> Option<Version> {
        self.version
    }

    /// It was changed in memory; the number of the change.
    pub fn edit(&mut self, now: Mono, urgency: Urgency) -> u64 {
        self.edits += 1;
        let due = match urgency {
            Urgency::Now if self.failures == 0 => now,
            Urgency::Now | Urgency::Soon => now + GROUP,
            Urgency::Settling => now + SETTLING,
            Urgency::WithNext => return self.edits,
        };
        self.required = self.edits;
        self.due = Some(self.due.map_or(due, |before| before.min(due)));
        self.edits
    }

    /// Whether that change is in the store.
    #[must_use]
    pub fn is_durable(&self, edit: u64) -> bool {
        self.durable >= edit
    }

    /// Whether all changes that must not be lost are in the store.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.durable >= self.required
    }

    /// The last change that must not be lost.
    #[must_use]
    pub fn required(&self) -> u64 {
        self.required
    }

    /// Whether a write is in flight.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }

    /// Whether its last write failed.
    #[must_use]
    pub fn is_failing(&self) -> bool {
        self.failures > 0
    }

    /// When it is to be written; never while a write is in flight.
    #[must_use]
    pub fn due(&self) -> Option<Mono> {
        self.due.filter(|_| self.in_flight.is_none())
    }

    /// Whether it is to be written now.
    #[must_use]
    pub fn is_due(&self, now: Mono) -> bool {
        self.due().is_some_and(|due| due <= now)
    }

    /// A write of all changes up to now begins; gives the version that it replaces.
    pub fn send(&mut self) -> Option<Version> {
        self.in_flight = Some(self.edits);
        self.due = None;
        self.version
    }

    /// The same, with the size it has now.
    pub fn send_sized(&mut self, bytes: usize) -> Option<Version> {
        self.bytes = bytes;
        self.send()
    }

    /// The write was done.
    pub fn written(&mut self, version: Version) {
        self.version = Some(version);
        self.durable = self.in_flight.take().map_or(self.durable, |sent| sent.max(self.durable));
        self.failures = 0;
    }

    /// The write failed or its answer was lost.
    pub fn not_written(&mut self, now: Mono) {
        self.in_flight = None;
        let delay = BACKOFF.saturating_mul(1 << self.failures.min(8)).min(BACKOFF_MAX);
        self.failures = self.failures.saturating_add(1);
        self.due = Some(now + delay);
    }

    /// It is written no sooner than that.
    pub fn wait_until(&mut self, when: Mono) {
        self.due = self.due.map(|due| due.max(when));
    }

    /// The object was deleted by somebody: all of it has to be written again.
    pub fn vanished(&mut self, now: Mono) {
        self.version = None;
        self.durable = 0;
        self.in_flight = None;
        self.due = Some(now);
    }

    /// Whether another record fits.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.bytes + RECORD_BYTES < super::PAGE_BYTES
    }

    /// A record was placed on it.
    pub fn grow(&mut self) {
        self.bytes += RECORD_BYTES;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Mono {
        Mono(Duration::from_millis(ms))
    }

    #[test]
    fn edits_are_grouped_unless_something_waits() {
        let mut sheet = Sheet::default();
        sheet.edit(at(0), Urgency::Soon);
        assert!(!sheet.is_due(at(99)));
        assert!(sheet.is_due(at(100)));
        sheet.edit(at(50), Urgency::Now);
        assert!(sheet.is_due(at(50)));
    }

    #[test]
    fn one_write_is_in_flight_and_covers_only_what_was_there_when_it_began() {
        let mut sheet = Sheet::default();
        let first = sheet.edit(at(0), Urgency::Now);
        assert_eq!(sheet.send(), None);
        let second = sheet.edit(at(1), Urgency::Now);
        assert_eq!(sheet.due(), None, "not while one is in flight");
        sheet.written(Version(7));
        assert!(sheet.is_durable(first));
        assert!(!sheet.is_durable(second));
        assert!(sheet.is_due(at(1)));
        assert_eq!(sheet.send(), Some(Version(7)));
    }

    #[test]
    fn a_failed_write_is_tried_again_with_growing_delays() {
        let mut sheet = Sheet::default();
        let edit = sheet.edit(at(0), Urgency::Now);
        for delay in [250, 500, 1000] {
            sheet.send();
            sheet.not_written(at(0));
            assert_eq!(sheet.due(), Some(at(delay)));
            assert!(!sheet.is_durable(edit));
        }
        sheet.send();
        sheet.written(Version(1));
        assert!(!sheet.is_failing());
    }
}
