//! The history of one value: which value stood since when.
//!
//! A pod's value is that of the entry which stood when the pod was born. An entry knows its beginning
//! exactly (an unbroken watch delivered it), within a blind interval (nobody watched), or not at all.

use std::collections::BTreeSet;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

use super::Digest;
use crate::facts::{Time, Version};

/// How many entries are kept of a value: pods older than the oldest of them hold an unknown value, and so do
/// pods of what was made one in between.
pub const ENTRIES: usize = 8;

/// A point in a store's history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Point {
    /// The version.
    #[serde(rename = "v")]
    pub version: Version,
    /// The server's time of it.
    #[serde(rename = "t")]
    pub time: Time,
}

impl Point {
    /// Whether its version says anything: not that of a store that was set back since, which another history's version
    /// of the same number stands for now. Its time still does.
    #[must_use]
    pub fn has_version(self) -> bool {
        self.version.0 > 0
    }

    /// The later of both, by their times where one has no version.
    #[must_use]
    pub fn later(self, other: Self) -> Self {
        if self.has_version() == other.has_version() {
            return self.max(other);
        }
        if self.time >= other.time { self } else { other }
    }

    /// The same moment, of a store that was set back since: nothing can be asked by its version any more.
    #[must_use]
    pub fn without_version(self) -> Self {
        Self { version: Version(0), ..self }
    }
}

/// What stood in a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// Something, by its digest.
    Present(Digest),
    /// Nothing: the key, or the whole Secret, was missing.
    Absent,
    /// It isn't known what.
    Unknown,
}

impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Present(digest) => digest.serialize(to),
            Self::Absent => to.serialize_str("absent"),
            Self::Unknown => to.serialize_str("unknown"),
        }
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        match String::deserialize(from)?.as_str() {
            "absent" => Ok(Self::Absent),
            "unknown" => Ok(Self::Unknown),
            hex => u128::from_str_radix(hex, 16)
                .map(|bits| Self::Present(Digest(bits)))
                .map_err(|_| de::Error::custom("not a value")),
        }
    }
}

/// When a value began to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Since {
    /// Before all that is told of.
    #[serde(rename = "beginning")]
    Beginning,
    /// At this point: an unbroken watch delivered it.
    #[serde(rename = "seen")]
    Seen(Point),
    /// After the one and not after the other: nobody watched meanwhile.
    #[serde(rename = "between")]
    Between {
        /// Last seen with the old value.
        after: Point,
        /// First seen with the new.
        by: Point,
    },
    /// It stood when this place was first looked at. When it was written is known from `managedFields`
    /// at best.
    #[serde(rename = "firstSight")]
    FirstSight {
        /// The latest `managedFields` time of an owner of the value.
        #[serde(rename = "w", default, skip_serializing_if = "Option::is_none")]
        written: Option<Time>,
        /// The first look.
        by: Point,
    },
}

impl Since {
    /// The point by which the value stood for certain.
    #[must_use]
    pub fn point(&self) -> Point {
        match *self {
            Self::Beginning => Point::default(),
            Self::Seen(point) | Self::Between { by: point, .. } | Self::FirstSight { by: point, .. } => point,
        }
    }

    /// The version by which it stood for certain: what a stamp names.
    #[must_use]
    pub fn version(&self) -> Version {
        self.point().version
    }

    /// The time by which it stood for certain.
    #[must_use]
    pub fn time(&self) -> Time {
        self.point().time
    }
}

/// A value and when it began to stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// The value.
    #[serde(rename = "d")]
    pub value: Value,
    /// Since when.
    #[serde(rename = "s")]
    pub since: Since,
}

impl Entry {
    /// See [`History::forget_gaps`].
    pub(super) fn forget_gap(&mut self, from: &BTreeSet<Point>) -> bool {
        match &mut self.since {
            Since::Between { after, .. } if from.contains(after) => {
                *after = after.without_version();
                true
            }
            _ => false,
        }
    }
}

/// The entries of one value, oldest first; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct History(Vec<Entry>);

impl<'de> Deserialize<'de> for History {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let entries = Vec::<Entry>::deserialize(from)?;
        if entries.is_empty() {
            return Err(de::Error::custom("a history without entries"));
        }
        Ok(Self(entries))
    }
}

impl History {
    /// A history that begins with this entry.
    #[must_use]
    pub fn new(first: Entry) -> Self {
        Self(vec![first])
    }

    /// The entries, oldest first.
    #[must_use]
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    /// The newest entry.
    #[must_use]
    pub fn last(&self) -> &Entry {
        // Never empty: `new` and `deserialize` see to it, and nothing removes the last entry.
        &self.0[self.0.len() - 1]
    }

    /// Adds an entry; where they are too many, the one goes that is missed least.
    pub fn push(&mut self, entry: Entry) {
        self.0.push(entry);
        while self.0.len() > ENTRIES {
            self.shorten();
        }
    }

    /// The oldest entry goes, unless it is where the newest value stood first: pods of that time are fresh, however
    /// often the value went and came back since. Then the two after it become one of which nothing is known.
    fn shorten(&mut self) {
        let mut values = self.0.iter().rev().map(|entry| entry.value);
        let newest = values.find(|value| matches!(value, Value::Present(_)));
        if newest == Some(self.0[0].value) {
            self.0[1].value = Value::Unknown;
            self.0.remove(2);
        } else {
            self.0.remove(0);
        }
    }

    /// Adds what was learnt of the value now; whether that was news.
    pub fn learn(&mut self, sight: &Sight) -> bool {
        let news = news(self.last(), sight);
        let changed = !news.is_empty();
        for entry in news {
            self.push(entry);
        }
        changed
    }

    /// The newest version that a change of the value has.
    #[must_use]
    pub fn version(&self) -> Version {
        self.last().since.version()
    }

    /// Makes every value unknown, because its digest is of another scheme.
    pub fn forget_digests(&mut self) {
        for entry in &mut self.0 {
            if matches!(entry.value, Value::Present(_)) {
                entry.value = Value::Unknown;
            }
        }
    }

    /// Says what the newest value is, after its digest was forgotten: an adoption, not a change.
    pub fn adopt(&mut self, value: Value) {
        if let Some(last) = self.0.last_mut()
            && last.value == Value::Unknown
        {
            last.value = value;
        }
    }

    /// After a store was set back: of gaps that began at these points of the lost history only the time counts. Whether
    /// there was any.
    pub fn forget_gaps(&mut self, from: &BTreeSet<Point>) -> bool {
        self.0.iter_mut().map(|entry| entry.forget_gap(from)).filter(|forgot| *forgot).count() > 0
    }

    /// Drops entries from above that version, of a store that was set back since: they never were. If none is left, the
    /// newest becomes a first sight. Whether there were any.
    pub fn forget_above(&mut self, store: Point) -> bool {
        if self.last().since.version() <= store.version {
            return false;
        }
        let value = self.last().value;
        self.0.retain(|entry| entry.since.version() <= store.version);
        if self.0.is_empty() {
            self.push(Entry { value, since: Since::FirstSight { written: None, by: store } });
        }
        true
    }

    /// The object itself was set back to that point, where this value stands: what came after never was. Another
    /// value than the last one that was changed in the restored store, before anybody watched it.
    pub fn set_back(&mut self, to: Point, value: Value) {
        self.0.retain(|entry| entry.since.version() <= to.version);
        match self.0.last().copied() {
            None => self.push(Entry { value, since: Since::FirstSight { written: None, by: to } }),
            Some(last) if last.value != value => {
                self.push(Entry { value, since: Since::Between { after: last.since.point(), by: to } });
            }
            Some(_) => {}
        }
    }
}

/// What was seen of a value, and what is known of the time before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sight {
    /// The value.
    pub value: Value,
    /// The latest `managedFields` time of an owner.
    pub written: Option<Time>,
    /// The look.
    pub moment: Moment,
}

/// What a look at a value can tell of the time since the last one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The watch was unbroken: a new value stands since this very point.
    Unbroken(Point),
    /// Nobody watched between these points.
    Gap {
        /// The last point that was seen.
        after: Point,
        /// This look.
        by: Point,
    },
}

/// The entries that a sight adds to a history which ends with `last`.
///
/// In a gap a value may have changed and changed back. Then the key's `managedFields` time moved, and a
/// pod born meanwhile may hold what stood in between: an entry of the same value whose beginning lies in
/// the gap says so.
fn news(last: &Entry, sight: &Sight) -> Vec<Entry> {
    let differs = last.value != sight.value;
    match sight.moment {
        Moment::Unbroken(point) if differs => vec![Entry { value: sight.value, since: Since::Seen(point) }],
        Moment::Unbroken(_) => Vec::new(),
        Moment::Gap { after, by } => {
            let moved = sight.written.is_some_and(|written| written > after.time);
            let known = last.since.version() >= by.version;
            if (differs || moved) && !known {
                // What is known by a later look than the gap's beginning narrows it.
                let after = after.later(last.since.point());
                vec![Entry { value: sight.value, since: Since::Between { after, by } }]
            } else {
                Vec::new()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_was_set_back_has_the_history_it_had_then() {
        let entry =
            |bits: u128, version: u64| Entry { value: present(bits), since: Since::Seen(at(version)) };
        let mut history = History::new(entry(1, 5));
        let then = history.clone();
        history.push(entry(2, 9));
        history.set_back(at(5), present(1));
        assert_eq!(history, then);
        history.push(entry(2, 9));
        history.set_back(at(6), present(3));
        let by = at(6);
        let changed = Entry { value: present(3), since: Since::Between { after: at(5), by } };
        assert_eq!(history.entries(), [entry(1, 5), changed], "the restored store was changed unseen");
        history.set_back(at(4), present(4));
        let first = Entry { value: present(4), since: Since::FirstSight { written: None, by: at(4) } };
        assert_eq!(history.entries(), [first], "nothing is known of that time");
    }

    fn at(version: u64) -> Point {
        Point { version: Version(version), time: Time(i64::try_from(version).unwrap() * 1000) }
    }

    fn present(bits: u128) -> Value {
        Value::Present(Digest(bits))
    }

    fn seen(bits: u128, version: u64) -> Entry {
        Entry { value: present(bits), since: Since::Seen(at(version)) }
    }

    fn sight(bits: u128, written: Option<i64>, moment: Moment) -> Sight {
        Sight { value: present(bits), written: written.map(Time), moment }
    }

    #[test]
    fn an_unbroken_watch_tells_the_very_version() {
        let mut history = History::new(seen(1, 5));
        assert!(!history.learn(&sight(1, Some(9_000), Moment::Unbroken(at(9)))));
        assert!(history.learn(&sight(2, None, Moment::Unbroken(at(10)))));
        assert_eq!(history.entries(), [seen(1, 5), seen(2, 10)]);
    }

    #[test]
    fn a_gap_tells_an_interval() {
        let mut history = History::new(seen(1, 5));
        let gap = Moment::Gap { after: at(6), by: at(20) };
        assert!(!history.learn(&sight(1, Some(6_000), gap)), "neither value nor time moved");
        assert!(history.learn(&sight(2, Some(1_000), gap)), "the value moved, whatever the time says");
        assert_eq!(history.last().since, Since::Between { after: at(6), by: at(20) });
    }

    #[test]
    fn a_time_that_moved_in_a_gap_is_a_change_and_back() {
        let mut history = History::new(seen(1, 5));
        assert!(history.learn(&sight(1, Some(7_000), Moment::Gap { after: at(6), by: at(20) })));
        assert_eq!(history.entries().len(), 2);
        assert!(
            !history.learn(&sight(1, Some(7_000), Moment::Gap { after: at(6), by: at(20) })),
            "learnt once"
        );
    }

    #[test]
    fn only_the_newest_entries_are_kept() {
        let mut history = History::new(seen(0, 1));
        for n in 1..20_u64 {
            history.learn(&sight(u128::from(n), None, Moment::Unbroken(at(n + 1))));
        }
        assert_eq!(history.entries().len(), ENTRIES);
        assert_eq!(history.last(), &seen(19, 20));
    }

    #[test]
    fn a_value_that_goes_and_comes_back_is_still_known_since_its_first_time() {
        let mut history = History::new(seen(1, 1));
        for n in 1..40_u64 {
            let value = if n % 2 == 0 { present(1) } else { Value::Absent };
            history.push(Entry { value, since: Since::Seen(at(n + 1)) });
        }
        assert_eq!(history.entries().len(), ENTRIES);
        assert_eq!(history.entries()[0], seen(1, 1));
        let blurred = Entry { value: Value::Unknown, since: Since::Seen(at(2)) };
        assert_eq!(history.entries()[1], blurred);
        assert_eq!(history.entries()[2].since.version(), Version(35));
        assert_eq!(history.version(), Version(40));
    }

    #[test]
    fn what_lies_above_a_restored_store_never_was_and_what_is_left_alone_is_first_sight() {
        let mut history = History::new(seen(1, 5));
        history.push(seen(2, 50));
        assert!(!history.clone().forget_above(at(50)));
        assert!(history.forget_above(at(10)));
        assert_eq!(history.entries(), [seen(1, 5)]);
        assert!(history.forget_above(at(3)));
        let first = Entry { value: present(1), since: Since::FirstSight { written: None, by: at(3) } };
        assert_eq!(history.entries(), [first]);
    }

    #[test]
    fn a_gap_that_began_in_a_lost_history_began_at_a_time() {
        let heard = at(50).without_version();
        assert_eq!((heard.later(at(49)), at(51).later(heard), at(8).later(at(9))), (heard, at(51), at(9)));
        assert_eq!(heard, Point { version: Version(0), time: Time(50_000) });
        let mut history = History::new(seen(1, 5));
        history.push(Entry { value: present(2), since: Since::Between { after: at(50), by: at(70) } });
        assert!(!history.forget_gaps(&BTreeSet::from([at(49), at(70)])));
        assert!(history.forget_gaps(&BTreeSet::from([at(50)])));
        assert_eq!(history.last().since, Since::Between { after: heard, by: at(70) });
        let mut history = History::new(seen(1, 5));
        history.learn(&sight(2, None, Moment::Gap { after: heard, by: at(60) }));
        assert_eq!(
            history.last().since,
            Since::Between { after: heard, by: at(60) },
            "no earlier than it was"
        );
        let early = Point { version: Version(0), time: Time(4_000) };
        let mut history = History::new(seen(1, 5));
        history.learn(&sight(2, None, Moment::Gap { after: early, by: at(60) }));
        assert_eq!(
            history.last().since,
            Since::Between { after: at(5), by: at(60) },
            "narrowed by what is known"
        );
    }

    #[test]
    fn a_history_reads_as_it_is_written_and_is_never_empty() {
        let mut history = History::new(Entry { value: Value::Absent, since: Since::Beginning });
        history.push(Entry { value: Value::Unknown, since: Since::Between { after: at(1), by: at(2) } });
        history.push(Entry {
            value: present(7),
            since: Since::FirstSight { written: Some(Time(3)), by: at(3) },
        });
        history.push(seen(8, 9));
        let text = serde_json::to_string(&history).unwrap();
        assert_eq!(serde_json::from_str::<History>(&text).unwrap(), history);
        assert!(serde_json::from_str::<History>("[]").is_err());
    }
}
