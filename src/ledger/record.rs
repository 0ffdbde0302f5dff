//! What is remembered of a Secret that somebody consumes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::{History, Point};
use crate::facts::{Name, Time};

/// A part of a Secret that is consumed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Part {
    /// All of its data.
    All,
    /// One key.
    Key(Name),
}

/// The histories of the consumed parts of a Secret.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SecretRecord {
    /// All of its data as one value, if somebody consumes all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all: Option<History>,
    /// Single keys that somebody consumes.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub keys: BTreeMap<Name, History>,
    /// Since when nobody refers to it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unused: Option<Time>,
    /// What a newer version of Uptake wrote.
    #[serde(flatten)]
    pub more: Map<String, Json>,
}

impl SecretRecord {
    /// The history of a part.
    #[must_use]
    pub fn history(&self, part: &Part) -> Option<&History> {
        match part {
            Part::All => self.all.as_ref(),
            Part::Key(key) => self.keys.get(key),
        }
    }

    /// The history of a part, to be changed.
    pub fn history_mut(&mut self, part: &Part) -> Option<&mut History> {
        match part {
            Part::All => self.all.as_mut(),
            Part::Key(key) => self.keys.get_mut(key),
        }
    }

    /// Begins the history of a part.
    pub fn begin(&mut self, part: &Part, history: History) {
        match part {
            Part::All => self.all = Some(history),
            Part::Key(key) => {
                self.keys.insert(key.clone(), history);
            }
        }
    }

    /// All parts that have a history.
    pub fn parts(&self) -> impl Iterator<Item = Part> + '_ {
        self.all.iter().map(|_| Part::All).chain(self.keys.keys().map(|key| Part::Key(key.clone())))
    }

    /// Joins what another writer of the same ledger knows: the history that goes further wins.
    pub fn join(&mut self, theirs: Self) {
        if let Some(history) = theirs.all {
            join_history(&mut self.all, history);
        }
        for (key, history) in theirs.keys {
            let mut mine = self.keys.remove(&key);
            join_history(&mut mine, history);
            if let Some(mine) = mine {
                self.keys.insert(key, mine);
            }
        }
        if theirs.unused.is_none() {
            self.unused = None;
        }
    }

    /// Makes the digests of another scheme incomparable: what they stood for isn't known any more.
    pub fn forget_digests(&mut self) {
        let histories = self.all.iter_mut().chain(self.keys.values_mut());
        histories.for_each(History::forget_digests);
    }

    /// Of gaps that began at these points only the time counts. Whether there was any.
    pub fn forget_gaps(&mut self, from: &BTreeSet<Point>) -> bool {
        let histories = self.all.iter_mut().chain(self.keys.values_mut());
        histories.map(|history| history.forget_gaps(from)).filter(|forgot| *forgot).count() > 0
    }

    /// Turns what lies above a restored store's version into a first sight. Whether there was any.
    pub fn forget_above(&mut self, store: Point) -> bool {
        let histories = self.all.iter_mut().chain(self.keys.values_mut());
        // All of them, not only up to the first.
        histories.map(|history| history.forget_above(store)).filter(|forgot| *forgot).count() > 0
    }
}

fn join_history(mine: &mut Option<History>, theirs: History) {
    match mine {
        Some(mine) if mine.version() >= theirs.version() => {}
        _ => *mine = Some(theirs),
    }
}
