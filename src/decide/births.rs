//! Is a pod older or younger than a change?
//!
//! In this order: a trusted stamp that names the change's version or a later one; a creation time far
//! from the change's; the list of pods that lived at exactly the change's version; the clocks.

use std::{collections::BTreeMap, time::Duration};

use crate::{
    facts::{Time, Uid, Version},
    ledger::{Entry, History, Point, Since, Value},
};

/// Creation times this far from a change decide alone: no API server's clock is that wrong, and no
/// admission webhook that slow (a pod's creation time is taken before its admission; webhooks end after
/// 30 s at most).
pub const FAR: Duration = Duration::from_secs(60);

/// Where nothing better than the clocks is known, a pod born this shortly before or after a change may be older or
/// younger: creation times are cut to whole seconds.
pub const TIE: Duration = Duration::from_secs(2);

/// The pods that lived at a version, where that could be had.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Exact {
    /// These, sorted.
    Pods(Box<[Uid]>),
    /// It can't be had (410, or the stores are separate).
    Unavailable,
}

/// The exact lists of a namespace that have been read.
pub type ExactLists = BTreeMap<Version, Exact>;

/// What the births of pods are compared by.
#[derive(Clone, Copy, Debug)]
pub struct Births<'a> {
    /// The exact lists of the pod's namespace.
    pub exact: &'a ExactLists,
    /// Whether versions of Secrets and pods can be compared at all.
    pub comparable: bool,
}

/// A pod's birth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Birth {
    /// The pod.
    pub uid: Uid,
    /// Its creation time, in whole seconds.
    pub born: Time,
    /// The version at which it was changed last.
    pub version: Version,
    /// The version of the Secret in question that a trusted stamp on it names.
    pub stamped: Option<Version>,
}

/// How a pod's birth lies to the beginning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Older,
    Younger,
    /// Either, as far as the clocks tell.
    Tie,
    /// In an interval in which nobody watched.
    Blind,
    /// The exact list at this version has to be read first.
    Ask(Version),
}

/// What a pod holds of one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holds {
    /// The current value.
    Current,
    /// Another, or it isn't known which.
    Other,
    /// It was born before the first look at the value and before its last known writing.
    FirstSight,
    /// The exact list at this version has to be read first.
    Ask(Version),
}

impl Births<'_> {
    /// What a pod holds of a value with that history, looking no further than `upto`. A required value's
    /// absence can't be held by a running container: such a pod got the value that came next.
    #[must_use]
    pub fn holds(&self, birth: &Birth, history: &History, required: bool, upto: Option<Version>) -> Holds {
        let entries = history.entries();
        let known = upto
            .map_or(entries.len(), |upto| entries.iter().take_while(|e| e.since.version() <= upto).count());
        let Some((current, _)) = entries[..known].split_last() else { return Holds::Current };
        let mut next = None;
        for (index, entry) in entries[..known].iter().enumerate().rev() {
            match self.order(birth, &entry.since) {
                Order::Ask(version) => return Holds::Ask(version),
                Order::Blind => return Holds::Other,
                Order::Younger => return verdict(held(entry, next, required), current.value),
                Order::Older if matches!(entry.since, Since::FirstSight { .. }) => {
                    let before = index.checked_sub(1).map(|before| entries[before].value);
                    return before_first_sight(entry, before, current.value, required);
                }
                // It counts as whichever makes the pod stale.
                Order::Tie if verdict(held(entry, next, required), current.value) == Holds::Other => {
                    return Holds::Other;
                }
                Order::Tie | Order::Older => {}
            }
            if entry.value != Value::Absent || !required {
                next = Some(entry.value);
            }
        }
        Holds::Other
    }

    fn order(&self, birth: &Birth, since: &Since) -> Order {
        match *since {
            Since::Beginning => Order::Younger,
            Since::Seen(point) => self.order_to_point(birth, point),
            Since::Between { after, by } => self.order_to_gap(birth, after, by),
            Since::FirstSight { written, by } => self.order_to_first_sight(birth, written, by),
        }
    }

    fn order_to_point(&self, birth: &Birth, point: Point) -> Order {
        if birth.born < point.time.before(FAR) {
            return Order::Older;
        }
        if bears_later_stamp(birth, point) || birth.born > point.time + FAR {
            return Order::Younger;
        }
        self.near(birth, point)
    }

    /// Older or younger than a point, whose time alone doesn't tell.
    fn near(&self, birth: &Birth, point: Point) -> Order {
        if !self.comparable || !point.has_version() {
            return by_clock(birth, point.time);
        }
        // Nobody changed it since: it stands in the list at that version as it stands now.
        if birth.version <= point.version {
            return Order::Older;
        }
        match self.exact.get(&point.version) {
            None => Order::Ask(point.version),
            Some(Exact::Pods(older)) if older.binary_search(&birth.uid).is_ok() => Order::Older,
            Some(Exact::Pods(_)) => Order::Younger,
            Some(Exact::Unavailable) => by_clock(birth, point.time),
        }
    }

    /// Older than the first look by `managedFields`, or younger. Whatever they say, what was born after that look
    /// got what was seen there.
    fn order_to_first_sight(&self, birth: &Birth, written: Option<Time>, by: Point) -> Order {
        let stamped = bears_later_stamp(birth, by);
        // A Secret and its consumer are often made within one second, and times are cut to it.
        let suspect = written.is_some_and(|written| birth.born < written);
        if stamped || !suspect || birth.born > by.time + FAR {
            return Order::Younger;
        }
        if birth.born < by.time.before(FAR) {
            return Order::Older;
        }
        match self.near(birth, by) {
            Order::Tie => Order::Older,
            other => other,
        }
    }

    /// Before, within or after an interval in which nobody watched. Its ends are points like any other: near them
    /// the lists decide, for clocks can be wrong by more than the interval is long.
    fn order_to_gap(&self, birth: &Birth, after: Point, by: Point) -> Order {
        if birth.born < after.time.before(FAR) {
            return Order::Older;
        }
        if bears_later_stamp(birth, by) || birth.born > by.time + FAR {
            return Order::Younger;
        }
        if birth.born >= by.time.before(FAR) {
            match self.near(birth, by) {
                Order::Older | Order::Tie => {}
                other => return other,
            }
        }
        if birth.born > after.time + FAR {
            return Order::Blind;
        }
        match self.near(birth, after) {
            Order::Younger | Order::Tie => Order::Blind,
            other => other,
        }
    }
}

/// What a pod holds of which it is known what it was born with. A value that came after `upto` is as good as the one
/// that stood then.
#[must_use]
pub fn holds_value(value: Value, history: &History, upto: Option<Version>) -> Holds {
    let entries = history.entries();
    let known =
        upto.map_or(entries.len(), |upto| entries.iter().take_while(|e| e.since.version() <= upto).count());
    let current = known.saturating_sub(1);
    let is_it = |entry: &Entry| entry.value == value;
    if entries[current..].iter().any(is_it) {
        Holds::Current
    } else if current == 0 && matches!(entries[0].since, Since::FirstSight { .. }) {
        Holds::FirstSight
    } else {
        Holds::Other
    }
}

/// Whether a pod's stamp says that it is younger than a look at a value. One that names what was still to come is
/// forged: nobody stamps what he hasn't seen.
fn bears_later_stamp(birth: &Birth, look: Point) -> bool {
    birth.stamped.is_some_and(|stamped| stamped >= look.version) && birth.born >= look.time.before(FAR)
}

fn by_clock(birth: &Birth, time: Time) -> Order {
    if birth.born > time + TIE {
        Order::Younger
    } else if birth.born < time.before(TIE) {
        Order::Older
    } else {
        Order::Tie
    }
}

/// What a pod got that was born while `entry` stood; `next` is the next value that isn't an absence.
fn held(entry: &Entry, next: Option<Value>, required: bool) -> Value {
    match entry.value {
        Value::Absent if required => next.unwrap_or(Value::Absent),
        value => value,
    }
}

fn verdict(held: Value, current: Value) -> Holds {
    if held == current && held != Value::Unknown { Holds::Current } else { Holds::Other }
}

/// What a pod holds that is older than the first look at a value by `managedFields`, which prove nothing: it may hold
/// what was seen there, or anything that stood before. Where nothing stood before and the value is required, it can
/// only have waited for it.
fn before_first_sight(entry: &Entry, before: Option<Value>, current: Value, required: bool) -> Holds {
    if required && before == Some(Value::Absent) {
        verdict(entry.value, current)
    } else if entry.value == current {
        Holds::FirstSight
    } else {
        Holds::Other
    }
}

#[cfg(test)]
mod tests;
