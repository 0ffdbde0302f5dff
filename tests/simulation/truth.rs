//! What really is: which values stood when, what a pod holds, and what could not be known.

use uptake::facts::Version;

use crate::{
    history::Ms,
    store::{Place, Pod, Template, Use},
    world::World,
};

/// Nobody watched Secrets in this interval.
#[derive(Clone, Debug)]
pub struct Blind {
    pub namespace: u8,
    pub after: u64,
    pub after_at: Ms,
    pub by: u64,
    pub by_at: Ms,
    /// What the ledger had of this namespace then; none while it was known all along.
    pub known: Option<std::collections::BTreeSet<Place>>,
}

/// Why a pod that isn't stale may have been taken for stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Excuse {
    /// It was born while nobody watched, and the Secret was written then.
    Blind,
    /// Nothing but the clocks told whether it was older than the change.
    Tie,
    /// More changes happened since its birth than are kept.
    Forgotten,
    /// It is of the installed base.
    FirstSight,
    /// Its template doesn't consume the value yet.
    NewReference,
    /// The place was looked at for the first time after it was written.
    FirstLook,
}

impl Excuse {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Blind => "blind_birth",
            Self::Tie => "clock_tie",
            Self::Forgotten => "forgotten_value",
            Self::FirstSight => "first_sight",
            Self::NewReference => "new_reference",
            Self::FirstLook => "first_look",
        }
    }
}

impl World {
    pub fn place(&self, pod: &Pod, one: Use) -> Place {
        (self.owners[pod.owner].namespace, one.secret, one.key)
    }

    pub fn value_at(&self, place: Place, version: u64) -> Option<u64> {
        let stood = self.stood.get(&place)?;
        let after = stood.partition_point(|stood| stood.version <= version);
        after.checked_sub(1).and_then(|last| stood[last].value)
    }

    /// What a pod was born with. A required value's absence can't be held: it got the one that came next.
    pub fn held(&self, pod: &Pod, one: Use) -> Option<u64> {
        let place = self.place(pod, one);
        let value = self.value_at(place, pod.born);
        if value.is_some() || one.optional {
            return value;
        }
        let stood = self.stood.get(&place)?;
        stood.iter().filter(|stood| stood.version > pod.born).find_map(|stood| stood.value)
    }

    pub fn is_stale(&self, pod: &Pod, template: &Template, version: u64) -> bool {
        template.uses.iter().any(|one| self.held(pod, *one) != self.value_at(self.place(pod, *one), version))
    }

    /// Whether a pod was stale by some value that stood from one version to another.
    pub fn was_stale(&self, pod: &Pod, template: &Template, from: u64, to: u64) -> bool {
        if self.is_stale(pod, template, from) || self.is_stale(pod, template, to) {
            return true;
        }
        template.uses.iter().any(|one| {
            let stood = self.stood.get(&self.place(pod, *one));
            let between =
                stood.into_iter().flatten().filter(|stood| stood.version > from && stood.version <= to);
            between.into_iter().any(|stood| stood.value != self.held(pod, *one))
        })
    }

    /// By how much clocks may mislead.
    pub fn margin(&self) -> Ms {
        let skew = self.knobs.skew.iter().max().unwrap_or(&0) - self.knobs.skew.iter().min().unwrap_or(&0);
        let admission = if self.knobs.slow_admission { 12_000 } else { 0 };
        3_500 + skew + admission
    }

    pub fn excuse(&self, pod: &Pod, template: &Template) -> Option<Excuse> {
        template.uses.iter().find_map(|one| {
            // It is of an earlier template, before which nobody kept the value's history.
            let new = !pod.template.uses.contains(one);
            if new { Some(Excuse::NewReference) } else { self.excuse_of(pod, self.place(pod, *one)) }
        })
    }

    fn excuse_of(&self, pod: &Pod, place: Place) -> Option<Excuse> {
        if self.checks.made(place.0).is_some_and(|made| pod.born < made) {
            return Some(Excuse::FirstSight);
        }
        let margin = self.margin();
        let written = |blind: &Blind| {
            let writes = self.writes.get(&(place.0, place.1));
            writes.into_iter().flatten().any(|(version, at)| {
                (*version > blind.after && *version <= blind.by)
                    || (*at >= blind.after_at - margin && *at <= blind.by_at + margin)
            })
        };
        let blind = self
            .checks
            .blind
            .iter()
            .any(|blind| blind.namespace == place.0 && self.is_blind(pod, blind) && written(blind));
        if blind {
            return Some(Excuse::Blind);
        }
        // Nobody kept a history of the place then: of its writing only its own word was known.
        let first_look = self.checks.blind.iter().any(|blind| {
            blind.namespace == place.0
                && pod.born < blind.by
                && blind.known.as_ref().is_some_and(|known| !known.contains(&place))
                && self.writes.get(&(place.0, place.1)).into_iter().flatten().any(|(version, at)| {
                    (*version > pod.born || *at > pod.created - margin) && *version <= blind.by
                })
        });
        if first_look {
            return Some(Excuse::FirstLook);
        }
        if self.is_tie(pod, place) {
            return Some(Excuse::Tie);
        }
        let stood = self.stood.get(&place).map(Vec::as_slice).unwrap_or_default();
        let since = stood.iter().filter(|stood| stood.version > pod.born).count();
        // Of a value that nobody consumed as far as the operator heard, it remembers the last change only: more than one
        // may have come before a late watch told of the consumer.
        let soon =
            stood.iter().filter(|stood| stood.version > pod.born && stood.at < pod.created + 12_000).count();
        let unheard = self.knobs.late > 0 && soon >= 2;
        (since >= uptake::ledger::ENTRIES || unheard).then_some(Excuse::Forgotten)
    }

    /// Whether nothing but clocks tells whether a pod is older than a change, and they don't tell well enough: a
    /// change's time is that of its delivery.
    fn is_tie(&self, pod: &Pod, place: Place) -> bool {
        let by_clock = self.knobs.separate_stores || self.compacted > 0;
        // A watch that breaks is late, too, and so is a process that stood still.
        let late = if self.knobs.late > 0 { 17_000 } else { 9_000 } + self.longest_freeze;
        let stood = self.stood.get(&place).map(Vec::as_slice).unwrap_or_default();
        by_clock
            && stood
                .iter()
                .any(|stood| pod.created >= stood.at - 3_500 && pod.created <= stood.at + 3_500 + late)
    }

    /// Whether a pod was born in a blind interval, as far as its version or its clock tells.
    pub fn is_blind(&self, pod: &Pod, blind: &Blind) -> bool {
        let by_version = pod.born > blind.after && pod.born <= blind.by;
        let margin = self.margin();
        by_version || (pod.created >= blind.after_at - margin && pod.created <= blind.by_at + margin)
    }

    /// Why nobody could know that a stale pod is stale.
    pub fn unknowable(&self, pod: &Pod, template: &Template) -> Option<&'static str> {
        let version = self.version;
        let stale = template
            .uses
            .iter()
            .filter(|one| self.held(pod, **one) != self.value_at(self.place(pod, **one), version));
        let mut why = None;
        for one in stale {
            why = Some(self.unknowable_of(pod, self.place(pod, *one))?);
        }
        why
    }

    fn unknowable_of(&self, pod: &Pod, place: Place) -> Option<&'static str> {
        let stood = self.stood.get(&place).map(Vec::as_slice).unwrap_or_default();
        let last = stood.last().map_or(0, |stood| stood.version);
        if self.checks.made(place.0).is_some_and(|made| {
            // What stood at the first look stands again, or still.
            pod.born < made && self.value_at(place, made) == self.value_at(place, self.version)
        }) {
            return Some("first_sight");
        }
        // What was gone at the first look had a value before, which nobody knows.
        if self
            .checks
            .made(place.0)
            .is_some_and(|made| pod.born < made && self.value_at(place, made).is_none())
        {
            return Some("first_sight_absent");
        }
        // It changed and changed back, within what a late watch and the clocks can tell.
        let current = self.value_at(place, self.version);
        let back = stood.iter().any(|stood| stood.version < last && stood.value == current);
        if back && self.is_tie(pod, place) {
            return Some("clock_tie");
        }
        // Its stamp names the last change, or what it was rolled for after that, and it is older: somebody guessed what was to
        // come, on his own workload.
        if let Some(stamp) = pod.template.stamp.as_deref()
            && self.checks.forged.contains(&(pod.owner, stamp.to_owned()))
            && let Some((name, version)) = stamp.split_once('@')
            && let Ok(version) = version.parse::<u64>()
            && version >= last
            && (version == last
                || self.checks.was_intended(self.owners[pod.owner].uid, name, Version(version)))
        {
            return Some("forged");
        }
        let in_or_like = |blind: &&Blind| last <= blind.by || self.value_at(place, blind.by) == current;
        let blind = self.checks.blind.iter().filter(|blind| blind.namespace == place.0).collect::<Vec<_>>();
        for blind in blind {
            let changed = stood
                .iter()
                .rev()
                .map(|stood| stood.version)
                .find(|version| *version <= blind.by)
                .unwrap_or(0);
            if pod.born >= changed {
                continue;
            }
            // A place of which nobody kept a history, first looked at now: its own word is all there is, and what is
            // gone has none.
            let unknown = blind.known.as_ref().is_some_and(|known| !known.contains(&place));
            if unknown && (in_or_like(&blind) || self.value_at(place, blind.by).is_none()) {
                return Some("first_look");
            }
            if !in_or_like(&blind) {
                continue;
            }
            // It waited for a value that came while nobody watched, and that wasn't the only one.
            if self.value_at(place, pod.born).is_none() && changed > blind.after {
                return Some("waited_blind");
            }
            // It changed and changed back, and its time doesn't tell.
            let back = self.value_at(place, blind.after) == self.value_at(place, blind.by);
            let moved = stood
                .last()
                .and_then(|stood| stood.written)
                .is_some_and(|at| at > blind.after_at + self.margin());
            if back && !moved && pod.born > blind.after {
                return Some("masked");
            }
        }
        None
    }
}
