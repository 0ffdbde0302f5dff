//! Reads a workload.

use super::{message::Meta, read::Read};
use crate::{
    catalog::Workload,
    catalog::{ReadOptions, read},
    facts::{Kind, Namespace, WorkloadId},
};

/// Reads a kind's workloads.
pub struct Workloads {
    /// The kind.
    pub kind: Kind,
    /// The namespaces that are left alone.
    pub ignored: Vec<Namespace>,
    /// How they are read.
    pub options: ReadOptions,
}

impl Read for Workloads {
    type Item = Workload;
    type Id = WorkloadId;

    fn wants(&self, meta: &Meta) -> bool {
        !self.ignored.iter().any(|ignored| **ignored == *meta.namespace)
    }

    fn item(&self, object: &[u8]) -> Option<Workload> {
        let object = serde_json::from_slice(object).ok()?;
        read::workload(&self.kind, &object, &self.options).ok()
    }

    fn id(&self, meta: &Meta) -> WorkloadId {
        WorkloadId::new(self.kind.clone(), meta.namespace.as_str(), meta.name.as_str())
    }
}
