//! What this process itself saw of every watched Secret, consumed or not.
//!
//! A reference can come to the operator's ears after a change of the Secret that it names; the two kinds are
//! watched apart. So the last change of every key is remembered, and a history can begin with it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use super::{Entry, History, Moment, Part, Point, Sight, Since, Value};
use crate::{
    catalog::{SecretAnnotations, SecretFacts},
    facts::{Name, SecretId, Time, Uid, Version},
};

/// How long it is remembered that a key or an unconsumed Secret was removed: a reference that was made
/// before the removal is known by then.
const TOMBSTONE: Duration = Duration::from_secs(600);

/// A managed-fields time this close to the Secret's creation is that of its first value.
const CREATION: Duration = Duration::from_secs(1);

/// What was seen of one Secret.
#[derive(Clone, Debug)]
pub struct Sighting {
    /// Its identity, as it was last there.
    pub uid: Uid,
    /// The version it was last delivered with.
    pub version: Version,
    /// Whether it is there.
    pub present: bool,
    /// Its annotations that concern Uptake.
    pub annotations: SecretAnnotations,
    all: Seen,
    keys: Box<[(Name, Seen)]>,
}

/// What was seen of one value.
#[derive(Clone, Copy, Debug)]
struct Seen {
    entry: Entry,
    before: Before,
    written: Option<Time>,
}

/// What stood before the entry that is remembered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before {
    /// The entry is the first look.
    NothingKnown,
    /// Nothing ever stood there.
    Absent,
    /// This did. What stood before it isn't known any more.
    Entry(Entry),
}

/// All watched Secrets.
#[derive(Debug, Default)]
pub struct Sightings {
    secrets: BTreeMap<SecretId, Sighting>,
    relist: Option<Relist>,
    complete: bool,
    /// Up to where everything was delivered.
    seen: Point,
    /// Whether the Secrets come by several watches, so that one's event says nothing of the others.
    several: bool,
}

#[derive(Debug)]
struct Relist {
    named: BTreeSet<SecretId>,
    /// Up to where the watch before the list had delivered everything; none at the first list.
    after: Option<Point>,
}

impl Sightings {
    /// None yet; they come by one watch or by several.
    #[must_use]
    pub fn new(several: bool) -> Self {
        Self { several, ..Self::default() }
    }

    /// Whether every Secret in the watch's scope is known.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.complete
    }

    /// Up to where everything was delivered.
    #[must_use]
    pub fn seen(&self) -> Point {
        self.seen
    }

    /// What was seen of a Secret.
    #[must_use]
    pub fn get(&self, id: &SecretId) -> Option<&Sighting> {
        self.secrets.get(id)
    }

    /// A fresh list starts. What is known stays known until the list is complete, but isn't added to.
    pub fn relist(&mut self) {
        // A list that starts over before it was complete goes on from the same point.
        let after = match &self.relist {
            Some(relist) => relist.after,
            None => self.complete.then_some(self.seen),
        };
        self.relist = Some(Relist { named: BTreeSet::new(), after });
    }

    /// The watch broke: what is known isn't current.
    pub fn broken(&mut self) {
        if self.relist.is_none() {
            self.relist();
        }
    }

    /// Whether a fresh list is under way or due.
    #[must_use]
    pub fn is_relisting(&self) -> bool {
        self.relist.is_some()
    }

    /// Whether a Secret that is delivered is older than it was already. A fresh list is never older than what the watch
    /// before it delivered, unless the store was restored from a backup. The list's own version needn't tell: the
    /// store may have grown beyond what was seen of it. Nor does the identity: who makes a Secret anew makes it later.
    #[must_use]
    pub fn is_set_back(&self, facts: &SecretFacts) -> bool {
        let is_older =
            |known: &Sighting| known.version > facts.version || (!known.present && known.uid == facts.uid);
        self.is_relisting() && self.secrets.get(&facts.id).is_some_and(is_older)
    }

    /// A Secret was delivered. Gives the moment, by which consumed parts learn.
    pub fn apply(&mut self, facts: &SecretFacts, at: Time) -> Moment {
        let point = Point { version: facts.version, time: at };
        let moment = self.moment(point);
        if let Some(relist) = &mut self.relist {
            relist.named.insert(facts.id.clone());
        } else {
            self.deliver(point);
        }
        let first_look = self.relist.as_ref().is_some_and(|relist| relist.after.is_none());
        let sighting = match self.secrets.get(&facts.id) {
            Some(_) if self.is_set_back(facts) => Sighting::new(facts, Origin::FirstLook, moment),
            Some(known) => known.see(facts, moment),
            None => {
                Sighting::new(facts, if first_look { Origin::FirstLook } else { Origin::Created }, moment)
            }
        };
        self.secrets.insert(facts.id.clone(), sighting);
        moment
    }

    /// A Secret is gone.
    pub fn delete(&mut self, id: &SecretId, version: Version, at: Time) -> Moment {
        let point = Point { version, time: at };
        let moment = self.moment(point);
        if self.relist.is_none() {
            self.deliver(point);
        }
        if let Some(sighting) = self.secrets.get_mut(id) {
            sighting.remove(moment);
        }
        moment
    }

    /// The fresh list is complete: gives the Secrets that vanished meanwhile, and the moment.
    pub fn complete(&mut self, version: Version, at: Time) -> (Vec<SecretId>, Moment) {
        let point = Point { version, time: at };
        let moment = self.moment(point);
        let named = self.relist.take().map(|relist| relist.named).unwrap_or_default();
        let vanished: Vec<SecretId> = self
            .secrets
            .iter()
            .filter(|(id, s)| s.present && !named.contains(id))
            .map(|(id, _)| id.clone())
            .collect();
        for id in &vanished {
            if let Some(sighting) = self.secrets.get_mut(id) {
                sighting.remove(moment);
            }
        }
        self.complete = true;
        self.seen = point;
        (vanished, moment)
    }

    /// Everything up to this version was delivered.
    pub fn progress(&mut self, version: Version, at: Time) {
        if self.relist.is_none() {
            self.seen = self.seen.max(Point { version, time: at });
        }
    }

    /// Forgets what was removed long ago.
    pub fn forget_removed(&mut self, now: Time) {
        self.secrets
            .retain(|_, sighting| sighting.present || now.since(sighting.all.entry.since.time()) < TOMBSTONE);
    }

    /// The store was set back to this point: what was seen above it is of a history that is gone.
    pub fn set_back(&mut self, store: Point) {
        self.secrets.clear();
        self.relist = Some(Relist { named: BTreeSet::new(), after: None });
        self.complete = false;
        self.seen = store;
    }

    /// Where the gap began that a fresh list is to close.
    #[must_use]
    pub fn gap(&self) -> Option<Point> {
        self.relist.as_ref()?.after
    }

    /// Of gaps that began at these points of a history that is lost only the time counts.
    pub fn forget_gaps(&mut self, from: &BTreeSet<Point>) {
        for sighting in self.secrets.values_mut() {
            let all = sighting.keys.iter_mut().map(|(_, seen)| seen).chain([&mut sighting.all]);
            for entry in all.flat_map(Seen::entries_mut) {
                entry.forget_gap(from);
            }
        }
    }

    fn deliver(&mut self, point: Point) {
        if !self.several {
            self.seen = self.seen.max(point);
        }
    }

    fn moment(&self, by: Point) -> Moment {
        match &self.relist {
            None => Moment::Unbroken(by),
            Some(Relist { after, .. }) => Moment::Gap { after: after.unwrap_or_default(), by },
        }
    }
}

impl Sighting {
    /// What stands in a part now.
    #[must_use]
    pub fn value(&self, part: &Part) -> Value {
        match part {
            Part::All => self.all.entry.value,
            Part::Key(key) => self.key(key).map_or(Value::Absent, |seen| seen.entry.value),
        }
    }

    /// The latest `managedFields` time of a part.
    #[must_use]
    pub fn written(&self, part: &Part) -> Option<Time> {
        match part {
            Part::All => self.all.written,
            Part::Key(key) => self.key(key).and_then(|seen| seen.written),
        }
    }

    /// The history of a part, as far as this process knows it.
    #[must_use]
    pub fn history(&self, part: &Part) -> History {
        let seen = match part {
            Part::All => Some(&self.all),
            Part::Key(key) => self.key(key),
        };
        match seen {
            None => History::new(Entry { value: Value::Absent, since: Since::Beginning }),
            Some(seen) => seen.history(),
        }
    }

    /// The last change of a part that this process itself saw, and not at its first look.
    #[must_use]
    pub fn change(&self, part: &Part) -> Option<Entry> {
        let seen = match part {
            Part::All => Some(&self.all),
            Part::Key(key) => self.key(key),
        };
        seen.map(|seen| seen.entry)
            .filter(|entry| matches!(entry.since, Since::Seen(_) | Since::Between { .. }))
    }

    /// What stood before [`change`](Self::change), if this process saw it.
    #[must_use]
    pub fn before(&self, part: &Part) -> Option<Entry> {
        let seen = match part {
            Part::All => Some(&self.all),
            Part::Key(key) => self.key(key),
        };
        match seen?.before {
            Before::Entry(before) => Some(before),
            Before::NothingKnown | Before::Absent => None,
        }
    }

    fn key(&self, name: &str) -> Option<&Seen> {
        self.keys.binary_search_by(|(key, _)| (**key).cmp(name)).ok().map(|at| &self.keys[at].1)
    }

    fn remove(&mut self, moment: Moment) {
        self.present = false;
        self.all.become_value(Value::Absent, None, moment);
        for (_, seen) in &mut self.keys {
            seen.become_value(Value::Absent, None, moment);
        }
    }
}

/// Why a Secret is delivered that wasn't known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    /// Nobody looked before.
    FirstLook,
    /// It wasn't there at the last look.
    Created,
}

fn by(moment: Moment) -> Point {
    match moment {
        Moment::Unbroken(point) | Moment::Gap { by: point, .. } => point,
    }
}

impl Seen {
    fn new(value: Value, written: Option<Time>, created: Time, origin: Origin, moment: Moment) -> Self {
        match (origin, moment) {
            (Origin::FirstLook, _) => Self::first(value, written, created, by(moment)),
            (Origin::Created, Moment::Unbroken(point)) => Self::created(value, written, Since::Seen(point)),
            (Origin::Created, Moment::Gap { after, by }) => {
                Self::created(value, written, Since::Between { after, by })
            }
        }
    }

    fn created(value: Value, written: Option<Time>, since: Since) -> Self {
        Self { entry: Entry { value, since }, before: Before::Absent, written }
    }

    fn first(value: Value, written: Option<Time>, created: Time, by: Point) -> Self {
        // A value as old as the Secret itself replaced nothing.
        let first_value = written.is_some_and(|written| written <= created + CREATION);
        let before = if first_value { Before::Absent } else { Before::NothingKnown };
        Self { entry: Entry { value, since: Since::FirstSight { written, by } }, before, written }
    }

    fn entries_mut(&mut self) -> impl Iterator<Item = &mut Entry> {
        let before = match &mut self.before {
            Before::Entry(before) => Some(before),
            Before::NothingKnown | Before::Absent => None,
        };
        before.into_iter().chain([&mut self.entry])
    }

    fn become_value(&mut self, value: Value, written: Option<Time>, moment: Moment) {
        let mut history = History::new(self.entry);
        if history.learn(&Sight { value, written, moment }) {
            self.before = Before::Entry(self.entry);
            self.entry = *history.last();
        }
        self.written = written;
    }

    fn history(&self) -> History {
        let first = |value| History::new(Entry { value, since: Since::Beginning });
        let mut history = match self.before {
            Before::NothingKnown => return History::new(self.entry),
            Before::Absent => first(Value::Absent),
            Before::Entry(before) => match before.since {
                Since::Beginning | Since::FirstSight { .. } => History::new(before),
                Since::Seen(_) | Since::Between { .. } => {
                    let mut history = first(Value::Unknown);
                    history.push(before);
                    history
                }
            },
        };
        history.push(self.entry);
        history
    }
}

impl Seen {
    fn then(mut self, value: Value, written: Option<Time>, moment: Moment) -> Self {
        self.become_value(value, written, moment);
        self
    }
}

impl Sighting {
    fn new(facts: &SecretFacts, origin: Origin, moment: Moment) -> Self {
        let seen = |value, written| Seen::new(Value::Present(value), written, facts.created, origin, moment);
        Self {
            uid: facts.uid,
            version: facts.version,
            present: true,
            annotations: facts.annotations.clone(),
            all: seen(facts.all, facts.written),
            keys: facts.keys.iter().map(|key| (key.name.clone(), seen(key.digest, key.written))).collect(),
        }
    }

    fn see(&self, facts: &SecretFacts, moment: Moment) -> Self {
        Self {
            uid: facts.uid,
            version: facts.version,
            present: true,
            annotations: facts.annotations.clone(),
            all: self.all.then(Value::Present(facts.all), facts.written, moment),
            keys: self.keys_then(facts, moment),
        }
    }

    /// The keys after `facts` were delivered, with those that were removed lately.
    fn keys_then(&self, facts: &SecretFacts, moment: Moment) -> Box<[(Name, Seen)]> {
        let now = by(moment);
        let mut keys: BTreeMap<Name, Seen> = BTreeMap::new();
        for (name, seen) in &self.keys {
            let gone = facts.key(name).is_none();
            let old =
                seen.entry.value == Value::Absent && now.time.since(seen.entry.since.time()) >= TOMBSTONE;
            if gone && !old {
                keys.insert(name.clone(), seen.then(Value::Absent, None, moment));
            }
        }
        for key in &facts.keys {
            let was = self.key(&key.name).copied().unwrap_or(Seen {
                // An unknown key of a known Secret was absent.
                entry: Entry { value: Value::Absent, since: Since::Beginning },
                before: Before::NothingKnown,
                written: None,
            });
            keys.insert(key.name.clone(), was.then(Value::Present(key.digest), key.written, moment));
        }
        keys.into_iter().collect()
    }
}
