//! What the user typed after the verbs that people call.

use std::{path::PathBuf, time::Duration};

use clap::{Args, ValueEnum};
use clap_complete::Shell;

use super::{
    output::Format,
    target::{ConsumerTarget, Target},
};
use crate::{
    args::{WorkloadArg, duration},
    facts::is_dns_label,
};

const CLUSTER: &str = "Cluster";

/// Where the cluster is, and what of it is meant.
#[derive(Clone, Debug, Args)]
pub struct ClusterArgs {
    /// The namespace; without it the context's
    #[arg(short, long, value_name = "NAMESPACE", value_parser = namespace, help_heading = CLUSTER)]
    pub namespace: Option<String>,

    /// All namespaces
    #[arg(short = 'A', long, conflicts_with = "namespace", help_heading = CLUSTER)]
    pub all_namespaces: bool,

    /// The kubeconfig file; without it KUBECONFIG, ~/.kube/config, then the service account
    #[arg(long, value_name = "FILE", help_heading = CLUSTER)]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, value_name = "NAME", help_heading = CLUSTER)]
    pub context: Option<String>,

    /// Wait no longer than that for an answer of the API server
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = duration, help_heading = CLUSTER)]
    pub request_timeout: Duration,

    /// Where the operator's ledger lies, if there is one
    #[arg(long, value_name = "NAMESPACE", env = "UPTAKE_OWN_NAMESPACE", default_value = "uptake-system", value_parser = namespace, help_heading = CLUSTER)]
    pub operator_namespace: String,

    /// A custom kind that rolls too, as the operator is told of it; may be repeated
    #[arg(long = "workload", value_name = "GROUP/VERSION/KIND[=PATH]", env = "UPTAKE_WORKLOAD", value_delimiter = ',', help_heading = CLUSTER)]
    pub workloads: Vec<WorkloadArg>,
}

/// A namespace's name. An empty one, from a variable that isn't set, would be all namespaces in a path.
fn namespace(text: &str) -> Result<String, String> {
    if text.is_empty() {
        return Err("it is empty; leave the flag out, or name a namespace".to_owned());
    }
    if !is_dns_label(text) {
        return Err(format!("{text:?} can't be a namespace's name"));
    }
    Ok(text.to_owned())
}

/// `uptake status`.
#[derive(Clone, Debug, Args)]
#[command(after_help = STATUS_EXAMPLES)]
pub struct StatusArgs {
    /// A Secret, or a workload: secret/NAME or KIND/NAME; without it, everything in the namespace
    #[arg(value_name = "KIND/NAME")]
    pub target: Option<Target>,

    /// How it is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Format,

    /// Exit with 3 if any pod is stale, with 6 if that can't be told
    #[arg(long)]
    pub exit_code: bool,

    /// Look again and again, until it is interrupted
    #[arg(short, long)]
    pub watch: bool,

    /// Where the cluster is.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

const STATUS_EXAMPLES: &str = "\
A pod is stale when a value that it consumes was different when the pod was born. With the operator's ledger that is known;
without it, pods that are older than their Secret's last change are 'probably stale'.

Examples:
  # Who consumes what in this namespace, and who holds an old value?
  kubectl uptake status

  # Who would a rotation of this Secret concern?
  kubectl uptake status secret/db -n shop

  # Is anything stale, anywhere? (exit code 3: yes)
  kubectl uptake status -A --exit-code

  # Pod by pod, for a program
  kubectl uptake status deployment/web -o json";

/// `uptake restart`.
#[derive(Clone, Debug, Args)]
#[command(after_help = RESTART_EXAMPLES)]
pub struct RestartArgs {
    /// The Secret whose consumers are rolled: secret/NAME
    #[arg(value_name = "secret/NAME")]
    pub target: Target,

    /// Ask the API server whether it would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Roll this consumer only; may be repeated
    #[arg(long, value_name = "KIND/NAME", value_delimiter = ',')]
    pub only: Vec<ConsumerTarget>,

    /// Follow the rollouts to their ends, and exit by them
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,

    /// How long --wait waits
    #[arg(long, value_name = "DURATION", default_value = "15m", value_parser = duration)]
    pub timeout: Duration,

    /// How it is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Format,

    /// Where the cluster is.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

const RESTART_EXAMPLES: &str = "\
Every workload that names the Secret is rolled, whatever its pods hold: by environment, mounts, pull secrets (its ServiceAccount's
too). Left out is who opted out (uptake.dev/rollout: \"off\", uptake.dev/ignore-secrets); --only rolls those too.

Examples:
  # What would be rolled?
  kubectl uptake restart secret/db --dry-run

  # Roll the consumers, and wait until no old pod is left
  kubectl uptake restart secret/db --wait

  # One of them
  kubectl uptake restart secret/db --only deployment/web

Exit codes: 0 all are requested (with --wait: completed), 4 some, 5 none, 6 it can't be told.";

/// `uptake gate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = GATE_EXAMPLES)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
pub struct GateArgs {
    /// What the deploy depends on: secret/NAME or secretproviderclass/NAME
    #[arg(value_name = "KIND/NAME")]
    pub target: Target,

    /// Only look: roll nothing
    #[arg(long)]
    pub no_restart: bool,

    /// How long the whole gate may take
    #[arg(long, value_name = "DURATION", default_value = "10m", value_parser = duration)]
    pub timeout: Duration,

    /// Fail if nobody consumes it
    #[arg(long)]
    pub require_consumers: bool,

    /// Ask in each container whether its process has the expected environment names (names only)
    #[arg(long)]
    pub exec: bool,

    /// With --exec: let containers pass that can't be asked
    #[arg(long, requires = "exec")]
    pub allow_unknown: bool,

    /// How it is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: GateFormat,

    /// Where the cluster is.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// `-o` of `gate`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum GateFormat {
    /// For people
    Table,
    /// For people, with everything
    Wide,
    /// For programs
    Json,
    /// The same as YAML
    Yaml,
    /// For the test reports of CI systems
    Junit,
}

const GATE_EXAMPLES: &str = "\
Passes when every expected key is there and no running pod holds an old value. If not, the consumers are rolled once; a second
failure fails the deploy.

Examples:
  # After the manifests are applied: does everybody have the new password?
  kubectl uptake gate secret/db -n shop --timeout 5m

  # Have all keys of the class arrived, and is every pod that mounts it younger than they are?
  kubectl uptake gate secretproviderclass/vault -o junit > gate.xml

Exit codes: 0 it passes, 1 it doesn't, 6 it can't be told (no rights, no time left).";

/// `uptake check`.
#[derive(Clone, Debug, Args)]
#[command(after_help = CHECK_EXAMPLES)]
pub struct CheckArgs {
    /// A file, a folder, or - for standard input; may be repeated
    #[arg(short = 'f', long = "filename", value_name = "FILE", required = true)]
    pub files: Vec<PathBuf>,

    /// There is no operator: only a version or checksum annotation on the template covers it
    #[arg(long)]
    pub without_operator: bool,

    /// A list of consumers that were examined, KIND/NAMESPACE/NAME a line: any other one is pending
    #[arg(long, value_name = "FILE")]
    pub examined: Option<PathBuf>,

    /// A custom kind that the operator rolls too; may be repeated
    #[arg(
        long = "workload",
        value_name = "GROUP/VERSION/KIND[=PATH]",
        env = "UPTAKE_WORKLOAD",
        value_delimiter = ','
    )]
    pub workloads: Vec<WorkloadArg>,

    /// How it is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: CheckFormat,
}

/// `-o` of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckFormat {
    /// For people
    Table,
    /// For people, with everything
    Wide,
    /// For programs
    Json,
    /// The same as YAML
    Yaml,
    /// For code scanning
    Sarif,
}

const CHECK_EXAMPLES: &str = "\
Finds every pod template that consumes a Secret, of any kind. No cluster is asked.

  covered        the operator rolls it, or it re-reads the Secret itself
  opted out      uptake.dev/rollout says so, and uptake.dev/reason says why
  can't roll     a Pod, Job, CronJob or ReplicaSet: nothing replaces its pods
  pending        somebody has to decide: exit code 1

Examples:
  kubectl uptake check -f deploy/
  helm template ./chart | kubectl uptake check -f -
  kubectl kustomize overlays/prod | kubectl uptake check -f - -o sarif > check.sarif

  # Without the operator: does every template carry a checksum of its Secrets?
  kubectl uptake check -f deploy/ --without-operator";

/// `uptake release`.
#[derive(Clone, Debug, Args)]
#[command(after_help = RELEASE_EXAMPLES)]
pub struct ReleaseArgs {
    /// The Secret whose breaker is closed: secret/NAME
    #[arg(value_name = "secret/NAME")]
    pub target: Target,

    /// Where the cluster is.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

const RELEASE_EXAMPLES: &str = "\
When a new value breaks its first consumer, the others are held: the breaker is open for that version of the Secret. This says that
the version is right nevertheless. A corrected value closes the breaker by itself.

Examples:
  kubectl uptake release secret/db -n shop";

/// `uptake purge`.
#[derive(Clone, Debug, Args)]
#[command(after_help = PURGE_EXAMPLES)]
pub struct PurgeArgs {
    /// Say what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,

    /// Where the cluster is.
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

const PURGE_EXAMPLES: &str = "\
Removes what the operator keeps in its own namespace: the ledger, the digest key, the Lease. Remove the operator first. Annotations on
workloads and Secrets stay: they are their owners'.

Examples:
  kubectl uptake purge --operator-namespace uptake-system";

/// `uptake version`.
#[derive(Clone, Debug, Args)]
pub struct VersionArgs {
    /// How it is printed
    #[arg(short, long, value_name = "FORMAT", default_value = "table")]
    pub output: Format,
}

/// `uptake completion`.
#[derive(Clone, Debug, Args)]
#[command(after_help = COMPLETION_EXAMPLES)]
pub struct CompletionArgs {
    /// The shell
    pub shell: Shell,
}

const COMPLETION_EXAMPLES: &str = "\
Examples:
  source <(uptake completion bash)
  uptake completion zsh > \"${fpath[1]}/_uptake\"";

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use rstest::rstest;

    use crate::args::Args;

    #[rstest]
    #[case(&["restart", "secret/db", "--namespace="])]
    #[case(&["restart", "secret/db", "-n", "a/../b"])]
    #[case(&["gate", "secret/db", "-n", ""])]
    #[case(&["status", "-n", "a?b"])]
    #[case(&["purge", "--operator-namespace", ""])]
    #[case(&["purge", "--operator-namespace", "../a"])]
    fn what_can_be_no_namespace_is_never_sent(#[case] typed: &[&str]) {
        Args::try_parse_from(["uptake"].iter().chain(typed)).unwrap_err();
    }
}
