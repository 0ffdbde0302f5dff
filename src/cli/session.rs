//! A verb's connection to the cluster, with the caller's own rights.

use kube::Client;

use super::{CliError, args::ClusterArgs};
use crate::{
    args::WorkloadArg,
    cluster::{self, Api, Connected, Connection, Meter, ServerClock},
    config::check_kinds,
    engine::Fault,
    facts::{Kind, Namespace, Time, is_dns_label},
    ledger::Settings,
    record::Metrics,
};

/// Who asks, and what about.
#[derive(Clone)]
pub struct Session {
    /// Sends requests.
    pub api: Api,
    /// The same as kube knows it, for what is no request with an answer.
    pub client: Client,
    /// The API server's address.
    pub server: String,
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
    /// There is no kubeconfig, or it names no cluster; a kind is named twice.
    pub async fn open(args: &ClusterArgs) -> Result<Self, CliError> {
        check_kinds(&args.workloads).map_err(|error| CliError::usage(error.to_string()))?;
        // A second installation is refused, and no harm.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let metrics = Metrics::new().map_err(|error| CliError::failed(error.to_string()))?;
        let clock = ServerClock::new();
        let meter = Meter { requests: metrics.requests(), clock: clock.clone() };
        let connection = Connection { kubeconfig: args.kubeconfig.clone(), context: args.context.clone() };
        let Connected { client, server } = cluster::connect(&connection, &meter).await?;
        let namespace = match &args.namespace {
            _ if args.all_namespaces => None,
            Some(namespace) => Some(namespace.as_str().into()),
            None => Some(of_context(client.default_namespace())?),
        };
        Ok(Self {
            api: Api::new(client.clone()).with_patience(args.request_timeout),
            client,
            server,
            namespace,
            operator_namespace: args.operator_namespace.as_str().into(),
            workloads: args.workloads.clone(),
            clock,
        })
    }

    /// Over an API server of a test's own.
    #[cfg(test)]
    #[must_use]
    pub fn over(client: Client, namespace: &str) -> Self {
        Self {
            api: Api::new(client.clone()),
            client,
            server: "https://test".to_owned(),
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

    /// The kinds that roll: those that every cluster has, the given ones, and those that the operator was told of and that are
    /// there.
    pub async fn kinds(&self, settings: Option<&Settings>) -> Vec<Kind> {
        let mut kinds: Vec<Kind> =
            Kind::BUILTIN.into_iter().chain(self.workloads.iter().map(WorkloadArg::to_kind)).collect();
        let told = settings.into_iter().flat_map(|settings| &settings.workloads);
        for told in told.filter_map(|text| text.parse().ok()).map(|arg: WorkloadArg| arg.to_kind()) {
            let is_known =
                kinds.iter().any(|known| (known.group(), known.as_str()) == (told.group(), told.as_str()));
            // The operator waits for a kind that isn't there yet; here nobody asked for it.
            if !is_known && !matches!(cluster::look_up(&self.api, &told).await, Err(Fault::NotFound)) {
                kinds.push(told);
            }
        }
        kinds
    }
}

/// The namespace of the kubeconfig's context. As kubectl has it, an empty one is none: in a path it would be all of them.
fn of_context(namespace: &str) -> Result<Namespace, CliError> {
    match namespace {
        "" => Ok("default".into()),
        name if is_dns_label(name) => Ok(name.into()),
        name => Err(CliError::usage(format!("the context's namespace {name:?} can't be a namespace's name"))),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::{
        args::{Args, Command},
        cli::Exit,
    };

    #[tokio::test]
    async fn no_kind_is_rolled_twice() {
        for twice in ["apps/v1/Deployment", "a/v1/K,a/v2/K", "Rollout,argoproj.io/v1alpha1/Rollout"] {
            let typed = ["uptake", "status", "--workload", twice, "--kubeconfig", "/nonexistent"];
            let Command::Status(args) = Args::try_parse_from(typed).unwrap().command else { unreachable!() };
            let opened = Session::open(&args.cluster).await;
            assert_eq!(opened.err().map(|error| error.exit), Some(Exit::Usage), "{twice}");
        }
    }

    #[test]
    fn a_context_without_a_namespace_means_default_and_never_all() {
        assert_eq!(&*of_context("").unwrap(), "default");
        assert_eq!(&*of_context("shop").unwrap(), "shop");
        assert_eq!(of_context("a/../b").unwrap_err().exit, Exit::Usage);
    }
}
