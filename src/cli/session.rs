//! A verb's connection to the cluster, with the caller's own rights.

use std::sync::Arc;

use super::{CliError, args::ClusterArgs};
use crate::{
    args::WorkloadArg,
    cluster::{self, Api, Connection, Meter, ServerClock},
    engine::Fault,
    facts::{CustomKind, Kind, Namespace, Time},
    record::Metrics,
};

/// Who asks, and what about.
#[derive(Clone)]
pub struct Session {
    /// Sends requests.
    pub api: Api,
    /// The namespace that is meant; none if all are.
    pub namespace: Option<Namespace>,
    /// Where the operator's ledger lies.
    pub operator_namespace: Namespace,
    /// Custom kinds that roll, as they were given.
    pub workloads: Vec<WorkloadArg>,
    clock: ServerClock,
}

impl Session {
    /// Makes the client. Nothing is sent yet.
    ///
    /// # Errors
    /// There is no kubeconfig, or it names no cluster.
    pub async fn open(args: &ClusterArgs) -> Result<Self, CliError> {
        // A second installation is refused, and no harm.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let metrics = Metrics::new().map_err(|error| CliError::failed(error.to_string()))?;
        let clock = ServerClock::new();
        let meter = Meter { requests: metrics.requests(), clock: clock.clone() };
        let connection = Connection { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
        let client = cluster::connect(&connection, &meter).await?;
        let namespace = match &args.namespace {
            _ if args.all_namespaces => None,
            Some(namespace) => Some(namespace.as_str().into()),
            None => Some(client.default_namespace().into()),
        };
        Ok(Self {
            api: Api::new(client).with_patience(args.request_timeout),
            namespace,
            operator_namespace: args.operator_namespace.as_str().into(),
            workloads: args.workloads.clone(),
            clock,
        })
    }

    /// Over an API server of a test's own.
    #[cfg(test)]
    pub fn over(api: Api, namespace: &str) -> Self {
        Self {
            api,
            namespace: Some(namespace.into()),
            operator_namespace: "uptake-system".into(),
            workloads: Vec::new(),
            clock: ServerClock::new(),
        }
    }

    /// The namespace that is meant, where one must be.
    ///
    /// # Errors
    /// All are meant.
    pub fn one_namespace(&self) -> Result<Namespace, CliError> {
        self.namespace.clone().ok_or_else(|| CliError::usage("one namespace is wanted here, not all of them"))
    }

    /// The API server's time.
    #[must_use]
    pub fn now(&self) -> Time {
        self.clock.now().server
    }

    /// The kinds that roll: those that every cluster has, and the given ones that this one has; with each, why it
    /// can't be looked up.
    pub async fn kinds(&self) -> Vec<(Kind, Option<Fault>)> {
        let mut kinds: Vec<_> = Kind::BUILTIN.into_iter().map(|kind| (kind, None)).collect();
        for arg in &self.workloads {
            let kind = Kind::Custom(Arc::new(CustomKind {
                group: arg.group.clone(),
                version: arg.version.clone(),
                kind: arg.kind.clone(),
                template: arg.template.clone(),
            }));
            let fault = cluster::look_up(&self.api, &kind).await.err();
            kinds.push((kind, fault));
        }
        kinds
    }
}
