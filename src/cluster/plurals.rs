//! The plurals of custom kinds that the API server told of.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use crate::facts::Kind;

/// Shared by all who send requests: a watch learns of a kind what a stamp needs.
#[derive(Clone, Default)]
pub struct Plurals(Arc<Mutex<BTreeMap<Kind, String>>>);

impl Plurals {
    /// As it was told last.
    pub fn get(&self, kind: &Kind) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(kind).cloned()
    }

    /// As it is told now; none if the kind isn't served.
    pub fn set(&self, kind: &Kind, plural: Option<String>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match plural {
            Some(plural) => known.insert(kind.clone(), plural),
            None => known.remove(kind),
        };
    }
}
