//! Reads what stands beside workloads: ServiceAccounts, SecretProviderClasses.

use std::marker::PhantomData;

use super::{
    message::Meta,
    read::{Read, Reading},
};
use crate::{
    catalog::beside::{Beside, BesideId},
    facts::Namespace,
};

/// Reads one of these kinds.
pub struct Besides<T> {
    ignored: Vec<Namespace>,
    kind: PhantomData<fn() -> T>,
}

impl<T> Besides<T> {
    /// Leaves these namespaces alone.
    pub fn new(ignored: Vec<Namespace>) -> Self {
        Self { ignored, kind: PhantomData }
    }
}

impl<T: Beside + Send + 'static> Read for Besides<T> {
    type Item = T;
    type Id = BesideId;

    fn wants(&self, meta: &Meta) -> bool {
        !self.ignored.iter().any(|ignored| **ignored == *meta.namespace)
    }

    fn read(&self, object: &[u8]) -> Reading<T> {
        serde_json::from_slice(object).ok().and_then(|object| T::read(&object).ok()).into()
    }

    fn id(&self, meta: &Meta) -> BesideId {
        BesideId::new(meta.namespace.as_str(), meta.name.as_str())
    }
}
