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

/// Where nothing better than the clocks is known, a pod born this shortly after a change counts as older:
/// creation times are cut to whole seconds.
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
    /// The version of the Secret in question that a trusted stamp on it names.
    pub stamped: Option<Version>,
}

/// How a pod's birth lies to the beginning of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Older,
    Younger,
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
                Order::Older => {}
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
            Since::Between { after, by } => self.order_to_interval(birth, after, by),
            Since::FirstSight { written, by } => first_sight(birth, written, by),
        }
    }

    fn order_to_point(&self, birth: &Birth, point: Point) -> Order {
        if birth.stamped.is_some_and(|stamped| stamped >= point.version) {
            return Order::Younger;
        }
        if birth.born < point.time.before(FAR) {
            return Order::Older;
        }
        if birth.born > point.time + FAR {
            return Order::Younger;
        }
        if !self.comparable {
            return by_clock(birth, point.time);
        }
        match self.exact.get(&point.version) {
            None => Order::Ask(point.version),
            Some(Exact::Pods(older)) if older.binary_search(&birth.uid).is_ok() => Order::Older,
            Some(Exact::Pods(_)) => Order::Younger,
            Some(Exact::Unavailable) => by_clock(birth, point.time),
        }
    }
}

/// Before the clocks and in between, whoever lived at the interval's beginning is older, and whoever didn't yet live at
/// its end is younger.
impl Births<'_> {
    fn order_to_interval(&self, birth: &Birth, after: Point, by: Point) -> Order {
        match self.lived_at(birth, after) {
            Lived::Yes => return Order::Older,
            Lived::Ask => return Order::Ask(after.version),
            Lived::No | Lived::Unsure => {}
        }
        if birth.stamped.is_some_and(|stamped| stamped >= by.version) {
            return Order::Younger;
        }
        match self.lived_at(birth, by) {
            Lived::No => Order::Younger,
            Lived::Ask => Order::Ask(by.version),
            Lived::Yes | Lived::Unsure => Order::Blind,
        }
    }

    /// Whether a pod lived at a point.
    fn lived_at(&self, birth: &Birth, point: Point) -> Lived {
        if birth.born < point.time.before(FAR) {
            return Lived::Yes;
        }
        if birth.born > point.time + FAR {
            return Lived::No;
        }
        // A point that no version belongs to can't be asked for.
        let askable = self.comparable && point.version > Version(0);
        match self.exact.get(&point.version).filter(|_| askable) {
            None if askable => Lived::Ask,
            Some(Exact::Pods(alive)) if alive.binary_search(&birth.uid).is_ok() => Lived::Yes,
            Some(Exact::Pods(_)) => Lived::No,
            Some(Exact::Unavailable) | None if birth.born < point.time.before(TIE) => Lived::Yes,
            Some(Exact::Unavailable) | None if birth.born > point.time + TIE => Lived::No,
            Some(Exact::Unavailable) | None => Lived::Unsure,
        }
    }
}

/// Whether a pod lived at a point.
enum Lived {
    Yes,
    No,
    /// Too close for the clocks.
    Unsure,
    /// The exact list has to be read first.
    Ask,
}

fn by_clock(birth: &Birth, time: Time) -> Order {
    if birth.born <= time + TIE { Order::Older } else { Order::Younger }
}

fn first_sight(birth: &Birth, written: Option<Time>, by: Point) -> Order {
    if birth.stamped.is_some_and(|stamped| stamped >= by.version) {
        return Order::Younger;
    }
    match written {
        // A Secret and its consumer are often made within one second, and times are cut to it.
        Some(written) if birth.born < written => Order::Older,
        Some(_) | None => Order::Younger,
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
