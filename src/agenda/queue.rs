//! Who is looked at next, and when.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Mono, WorkloadId};

/// Workloads by the time at which they are to be looked at.
#[derive(Debug, Default)]
pub struct Queue {
    by_time: BTreeSet<(Mono, WorkloadId)>,
    due: BTreeMap<WorkloadId, Mono>,
}

impl Queue {
    /// Looks at it at that time, or earlier if it is to be looked at earlier already.
    pub fn at_latest(&mut self, id: &WorkloadId, when: Mono) {
        if self.due.get(id).is_none_or(|due| *due > when) {
            self.at(id, when);
        }
    }

    /// Looks at it at that time, and not earlier.
    pub fn at(&mut self, id: &WorkloadId, when: Mono) {
        self.remove(id);
        self.by_time.insert((when, id.clone()));
        self.due.insert(id.clone(), when);
    }

    /// Looks at it no more.
    pub fn remove(&mut self, id: &WorkloadId) {
        if let Some(due) = self.due.remove(id) {
            self.by_time.remove(&(due, id.clone()));
        }
    }

    /// When the next look is due.
    #[must_use]
    pub fn next(&self) -> Option<Mono> {
        self.by_time.first().map(|(when, _)| *when)
    }

    /// Takes those whose time has come, in order.
    pub fn take_due(&mut self, now: Mono) -> Vec<WorkloadId> {
        let mut taken = Vec::new();
        while let Some((when, _)) = self.by_time.first()
            && *when <= now
            && let Some((_, id)) = self.by_time.pop_first()
        {
            self.due.remove(&id);
            taken.push(id);
        }
        taken
    }

    /// How many wait.
    #[must_use]
    pub fn len(&self) -> usize {
        self.due.len()
    }

    /// Whether nobody waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.due.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::facts::Kind;

    #[test]
    fn the_earliest_time_holds_and_each_is_taken_once() {
        let at = |ms| Mono(Duration::from_millis(ms));
        let id = |name: &str| WorkloadId::new(Kind::Deployment, "ns", name);
        let mut queue = Queue::default();
        queue.at_latest(&id("a"), at(50));
        queue.at_latest(&id("a"), at(20));
        queue.at_latest(&id("a"), at(90));
        queue.at(&id("b"), at(10));
        queue.at(&id("b"), at(30));
        assert_eq!(queue.next(), Some(at(20)));
        assert_eq!(queue.take_due(at(30)), [id("a"), id("b")]);
        assert!(queue.is_empty());
        assert_eq!(queue.take_due(at(1000)), []);
    }
}
