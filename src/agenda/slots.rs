//! How many rollouts run at a time, and whose turn it is.

use std::collections::{BTreeMap, BTreeSet};

use crate::facts::{Namespace, WorkloadId};

/// A namespace's share of the slots is one of so many.
const SHARES: usize = 4;

/// The slots of rollouts.
#[derive(Debug)]
pub struct Slots {
    /// How many there are; none is no limit.
    limit: Option<usize>,
    /// How many of them a namespace leaves free that is alone in wanting some: whoever comes next finds them, whatever
    /// becomes of its rollouts.
    reserve: usize,
    held: BTreeSet<WorkloadId>,
    by_namespace: BTreeMap<Namespace, usize>,
    /// Who waits, by when they began to, so that the longest waits least.
    waiting: BTreeMap<u64, WorkloadId>,
    tickets: BTreeMap<WorkloadId, u64>,
    next: u64,
}

impl Slots {
    /// So many slots, for many namespaces; 0 is no limit.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { reserve: limit / SHARES, ..Self::for_one_namespace(limit) }
    }

    /// So many slots, and only one namespace that could want any; 0 is no limit.
    #[must_use]
    pub fn for_one_namespace(limit: usize) -> Self {
        Self {
            limit: (limit > 0).then_some(limit),
            reserve: 0,
            held: BTreeSet::new(),
            by_namespace: BTreeMap::new(),
            waiting: BTreeMap::new(),
            tickets: BTreeMap::new(),
            next: 0,
        }
    }

    /// How many are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Whether the workload holds one, or could take one now.
    #[must_use]
    pub fn is_free_for(&self, id: &WorkloadId) -> bool {
        let Some(limit) = self.limit else { return true };
        self.held.contains(id) || (self.held.len() < limit && self.has_turn(id, limit))
    }

    /// A namespace has at most a quarter of the slots while another's workload waits, and never the last quarter: its
    /// rollouts may keep their slots for long, and the others are to go on at once.
    fn has_turn(&self, id: &WorkloadId, limit: usize) -> bool {
        let others_wait = self.waiting.values().any(|waiting| waiting.namespace != id.namespace);
        let most = if others_wait { limit.div_ceil(SHARES) } else { limit - self.reserve };
        self.by_namespace.get(&id.namespace).copied().unwrap_or(0) < most
    }

    /// Takes a slot. Call it only when one is free.
    pub fn take(&mut self, id: &WorkloadId) {
        self.stop_waiting(id);
        if self.held.insert(id.clone()) {
            *self.by_namespace.entry(id.namespace.clone()).or_default() += 1;
        }
    }

    /// Waits for a slot.
    pub fn wait(&mut self, id: &WorkloadId) {
        if !self.tickets.contains_key(id) {
            self.tickets.insert(id.clone(), self.next);
            self.waiting.insert(self.next, id.clone());
            self.next += 1;
        }
    }

    /// Waits no longer.
    pub fn stop_waiting(&mut self, id: &WorkloadId) {
        if let Some(ticket) = self.tickets.remove(id) {
            self.waiting.remove(&ticket);
        }
    }

    /// Gives a slot back: gives those whose turn it is now; nobody if it held none.
    pub fn release(&mut self, id: &WorkloadId) -> Vec<WorkloadId> {
        if !self.held.remove(id) {
            return Vec::new();
        }
        if let Some(count) = self.by_namespace.get_mut(&id.namespace) {
            *count -= 1;
            if *count == 0 {
                self.by_namespace.remove(&id.namespace);
            }
        }
        self.turns()
    }

    /// Those whose turn it is, as many as there are free slots.
    #[must_use]
    pub fn turns(&self) -> Vec<WorkloadId> {
        let Some(limit) = self.limit else { return self.waiting.values().cloned().collect() };
        let free = limit.saturating_sub(self.held.len());
        self.waiting.values().filter(|id| self.has_turn(id, limit)).take(free).cloned().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::Kind;

    fn id(namespace: &str, name: &str) -> WorkloadId {
        WorkloadId::new(Kind::Deployment, namespace, name)
    }

    #[test]
    fn never_more_than_the_limit_and_first_come_first_served() {
        let mut slots = Slots::new(2);
        slots.take(&id("a", "1"));
        slots.take(&id("a", "2"));
        assert!(!slots.is_free_for(&id("a", "3")));
        assert!(slots.is_free_for(&id("a", "1")), "its own");
        slots.wait(&id("a", "3"));
        slots.wait(&id("a", "4"));
        assert_eq!(slots.release(&id("a", "1")), [id("a", "3")]);
        assert_eq!(slots.held(), 1);
        assert_eq!(slots.release(&id("a", "1")), [], "it holds none any more");
    }

    #[test]
    fn a_namespace_has_a_quarter_while_others_wait() {
        let mut slots = Slots::new(8);
        slots.take(&id("a", "1"));
        slots.take(&id("a", "2"));
        assert!(slots.is_free_for(&id("a", "3")), "nobody else waits");
        slots.wait(&id("b", "1"));
        assert!(!slots.is_free_for(&id("a", "3")));
        assert!(slots.is_free_for(&id("b", "1")));
    }

    #[test]
    fn a_namespace_alone_leaves_a_quarter_to_whoever_comes() {
        let mut slots = Slots::new(20);
        let taken = (0..20).map(|n| id("a", &n.to_string())).filter(|id| {
            let free = slots.is_free_for(id);
            if free {
                slots.take(id);
            } else {
                slots.wait(id);
            }
            free
        });
        assert_eq!(taken.count(), 15);
        assert!(slots.is_free_for(&id("b", "1")));
        // Where nobody else can come, nothing is left.
        let mut slots = Slots::for_one_namespace(4);
        (0..3).for_each(|n| slots.take(&id("a", &n.to_string())));
        assert!(slots.is_free_for(&id("a", "3")));
    }

    #[test]
    fn no_limit_is_no_limit() {
        let mut slots = Slots::new(0);
        (0..100).for_each(|n| slots.take(&id("a", &n.to_string())));
        assert!(slots.is_free_for(&id("a", "x")));
    }
}
