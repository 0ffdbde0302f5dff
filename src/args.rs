//! The command line: what the user typed. What it means together is checked in [`config`](crate::config).

use std::{net::SocketAddr, path::PathBuf, str::FromStr, sync::Arc, time::Duration};

use clap::{ArgAction, Parser, Subcommand, ValueEnum};
use tracing::Level;

use crate::{
    cli::args::{
        CheckArgs, CompletionArgs, GateArgs, PurgeArgs, ReleaseArgs, RestartArgs, StatusArgs, VersionArgs,
    },
    facts::{CustomKind, KNOWN_KINDS, Kind, KnownKind},
    record::LogFormat,
};

/// Makes a Kubernetes Secret change reach the running pod, and proves that it did.
#[derive(Debug, Parser)]
#[command(name = "uptake", version, about, max_term_width = 100)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Runs the operator: watches Secrets and rolls the workloads whose pods hold an old value
    Controller(Box<ControllerArgs>),
    /// Shows who consumes which Secret, and which pods hold an old value
    Status(Box<StatusArgs>),
    /// Rolls every consumer of a Secret now
    Restart(Box<RestartArgs>),
    /// For deploy pipelines: passes when no pod holds an old value and every key is there
    Gate(Box<GateArgs>),
    /// For repositories: finds every pod template that consumes a Secret
    Check(Box<CheckArgs>),
    /// Lets a Secret's version be rolled that broke its first consumer
    Release(Box<ReleaseArgs>),
    /// Removes the operator's ledger and key
    Purge(Box<PurgeArgs>),
    /// Shows the version
    Version(VersionArgs),
    /// Prints completions for a shell
    Completion(CompletionArgs),
    /// Asks a page of a running operator until it answers with success
    Probe(ProbeArgs),
}

/// `uptake probe`.
#[derive(Clone, Debug, clap::Args)]
pub struct ProbeArgs {
    /// The page, for example <http://uptake.uptake-system:8080/readyz>
    #[arg(value_name = "URL")]
    pub url: http::Uri,

    /// Ask for no longer than that
    #[arg(long, value_name = "DURATION", default_value = "60s", value_parser = duration)]
    pub timeout: Duration,
}

/// The flags of `uptake controller`. Each can be given as an environment variable instead.
#[derive(Clone, Debug, clap::Args)]
pub struct ControllerArgs {
    /// Wait until the data that a workload consumes has been quiet for this long
    ///
    /// Many changes within that time become one rollout. A workload may say otherwise with the annotation
    /// uptake.dev/settle.
    #[arg(long, env = "UPTAKE_SETTLE", value_name = "DURATION", default_value = "2s", value_parser = duration, help_heading = ROLLING)]
    pub settle: Duration,

    /// Roll after this long at the latest, though the data be still changing
    #[arg(long, env = "UPTAKE_SETTLE_MAX", value_name = "DURATION", default_value = "30s", value_parser = duration, help_heading = ROLLING)]
    pub settle_max: Duration,

    /// How many rollouts may run at a time; 0 is no limit
    ///
    /// While others wait, one namespace gets at most a quarter of them.
    #[arg(long, env = "UPTAKE_MAX_CONCURRENT_ROLLOUTS", value_name = "COUNT", default_value_t = 20, help_heading = ROLLING)]
    pub max_concurrent_rollouts: usize,

    /// Roll one consumer of a changed Secret first, and the others when it is done
    #[arg(long, env = "UPTAKE_CANARY", value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, help_heading = ROLLING)]
    pub canary: bool,

    /// What is done where no annotation uptake.dev/rollout says otherwise
    #[arg(long, env = "UPTAKE_DEFAULT_ROLLOUT", value_name = "MODE", default_value = "auto", help_heading = ROLLING)]
    pub default_rollout: DefaultRollout,

    /// What is done about pods that were stale already when Uptake was installed
    #[arg(long, env = "UPTAKE_FIRST_SIGHT", value_name = "WHAT", default_value = "report", help_heading = ROLLING)]
    pub first_sight: FirstSightArg,

    /// What counts as a change of a Secret
    #[arg(long, env = "UPTAKE_TRIGGER", value_name = "WHAT", default_value = "data", help_heading = ROLLING)]
    pub trigger: TriggerArg,

    /// Whether a change of a mounted Secret rolls
    ///
    /// Say false if all applications re-read their mounted files; one of them says so itself with the annotation
    /// uptake.dev/reloads. Environment variables and subPath mounts always roll: they are never refreshed.
    #[arg(long, env = "UPTAKE_ROLL_VOLUMES", value_name = "BOOL", default_value_t = true, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, help_heading = ROLLING)]
    pub roll_volumes: bool,

    /// A rollout that makes no progress for this long has failed
    #[arg(long, env = "UPTAKE_ROLLOUT_TIMEOUT", value_name = "DURATION", default_value = "15m", value_parser = duration, help_heading = ROLLING)]
    pub rollout_timeout: Duration,

    /// Roll this custom kind too; may be repeated
    ///
    /// For example argoproj.io/v1alpha1/Rollout, or with the place of its pod template:
    /// example.org/v1/App=spec.workload.template. Some are known by name: Rollout, CloneSet, AdvancedStatefulSet,
    /// DeploymentConfig, KnativeService. A kind that the cluster doesn't know yet is waited for.
    #[arg(long = "workload", env = "UPTAKE_WORKLOAD", value_name = "GROUP/VERSION/KIND[=PATH]", value_delimiter = ',', help_heading = WATCHING)]
    pub workloads: Vec<WorkloadArg>,

    /// Watch this namespace only; may be repeated. Without it, all
    ///
    /// Rights in these namespaces are enough then.
    #[arg(long = "namespace", env = "UPTAKE_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',', help_heading = WATCHING)]
    pub namespaces: Vec<String>,

    /// Leave this namespace alone; may be repeated
    ///
    /// Whoever gives it replaces the default: say --ignore-namespace= to leave none alone.
    #[arg(long = "ignore-namespace", env = "UPTAKE_IGNORE_NAMESPACE", value_name = "NAMESPACE", value_delimiter = ',', default_value = "kube-system", help_heading = WATCHING)]
    pub ignore_namespaces: Vec<String>,

    /// The namespace of Uptake's own ledger and key; without it the service account's
    #[arg(long, env = "UPTAKE_OWN_NAMESPACE", value_name = "NAMESPACE", help_heading = PROCESS)]
    pub own_namespace: Option<String>,

    /// Where metrics and probes are served
    #[arg(long, env = "UPTAKE_HTTP_ADDR", value_name = "ADDRESS:PORT", default_value = "[::]:8080", help_heading = PROCESS)]
    pub http_addr: SocketAddr,

    /// Whether several replicas agree on one that decides
    #[arg(long, env = "UPTAKE_LEADER_ELECT", value_name = "BOOL", default_value_t = false, default_missing_value = "true", num_args = 0..=1, require_equals = true, action = ArgAction::Set, help_heading = PROCESS)]
    pub leader_elect: bool,

    /// How logs are written, on standard error
    #[arg(long, env = "UPTAKE_LOG_FORMAT", value_name = "FORMAT", default_value = "text", help_heading = PROCESS)]
    pub log_format: LogFormat,

    /// Up to which level Uptake logs: error, warn, info, debug or trace
    ///
    /// Libraries log warnings at most, at any level: answers of the API server, and so Secrets, pass through them.
    #[arg(long, env = "UPTAKE_LOG_LEVEL", value_name = "LEVEL", default_value = "info", value_parser = level, help_heading = PROCESS)]
    pub log_level: Level,

    /// The kubeconfig file; without it KUBECONFIG, ~/.kube/config, then the service account
    #[arg(long, env = "UPTAKE_KUBECONFIG", value_name = "FILE", help_heading = PROCESS)]
    pub kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig
    #[arg(long, env = "UPTAKE_CONTEXT", value_name = "NAME", help_heading = PROCESS)]
    pub context: Option<String>,
}

const ROLLING: &str = "Rolling";
const WATCHING: &str = "Watching";
const PROCESS: &str = "Process";

/// `--default-rollout`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum DefaultRollout {
    /// Roll
    Auto,
    /// Say what would be rolled
    Report,
    /// Do nothing
    Off,
}

/// `--first-sight`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FirstSightArg {
    /// List them in reports, a metric and one Event
    Report,
    /// Roll them
    Roll,
    /// Say nothing
    Trust,
}

/// `--trigger`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TriggerArg {
    /// Data that the workload consumes
    Data,
    /// Each new resourceVersion, though the data be the same
    ResourceVersion,
}

/// `--workload`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadArg {
    /// The API group.
    pub group: String,
    /// Its version.
    pub version: String,
    /// The kind.
    pub kind: String,
    /// Where the pod template lies, a field name a step.
    pub template: Vec<String>,
}

impl WorkloadArg {
    /// The kind that it names.
    #[must_use]
    pub fn to_kind(&self) -> Kind {
        Kind::Custom(Arc::new(CustomKind {
            group: self.group.clone(),
            version: self.version.clone(),
            kind: self.kind.clone(),
            template: self.template.clone(),
        }))
    }
}

impl FromStr for WorkloadArg {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (gvk, path) = text.split_once('=').map_or((text, None), |(gvk, path)| (gvk, Some(path)));
        let named = KNOWN_KINDS.iter().find(|known| known.name == gvk);
        let parts = match named {
            Some(KnownKind { group, version, kind, .. }) => vec![*group, *version, *kind],
            None => gvk.split('/').collect(),
        };
        let &[group, version, kind] = parts.as_slice() else {
            let known = KNOWN_KINDS.map(|known| known.name).join(", ");
            return Err(format!(
                "write GROUP/VERSION/KIND, for example argoproj.io/v1alpha1/Rollout, or one of {known}"
            ));
        };
        let known = KNOWN_KINDS.iter().find(|known| known.group == group && known.kind == kind);
        let path = path.unwrap_or_else(|| known.map_or("spec.template", |known| known.template));
        let plain = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-'))
        };
        if !(plain(group) && plain(version) && plain(kind)) {
            return Err("group, version and kind have letters, digits, dots and dashes only".to_owned());
        }
        let template: Vec<String> = path.split('.').map(ToOwned::to_owned).collect();
        if template.iter().any(String::is_empty) {
            return Err(
                "write the template's path as field names with dots between, for example spec.template"
                    .to_owned(),
            );
        }
        Ok(Self { group: group.to_owned(), version: version.to_owned(), kind: kind.to_owned(), template })
    }
}

/// Longer than anybody waits, and short enough to be added to any time.
const LONGEST: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// A span of time, as people write it.
///
/// # Errors
/// It is none, or more than a hundred years.
pub fn duration(text: &str) -> Result<Duration, String> {
    let span = humantime::parse_duration(text)
        .map_err(|_| "write a number with its unit, for example 2s, 500ms or 15m".to_owned())?;
    if span > LONGEST {
        return Err("it is more than a hundred years".to_owned());
    }
    Ok(span)
}

fn level(text: &str) -> Result<Level, String> {
    text.parse().map_err(|_| "one of error, warn, info, debug, trace".to_owned())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;
    use rstest::rstest;

    use super::*;

    #[test]
    fn the_flags_are_well_formed() {
        Args::command().debug_assert();
    }

    #[test]
    fn each_flag_has_its_environment_twin_and_its_help() {
        let command = Args::command();
        let controller = command.find_subcommand("controller").unwrap();
        for flag in controller.get_arguments().filter(|flag| flag.get_id() != "help") {
            let long = flag.get_long().unwrap();
            let twin = format!("UPTAKE_{}", long.to_uppercase().replace('-', "_"));
            assert_eq!(flag.get_env().and_then(|env| env.to_str()), Some(twin.as_str()), "{long}");
            assert!(flag.get_help().is_some() && flag.get_help_heading().is_some(), "{long}");
        }
    }

    #[test]
    fn a_bool_can_be_said_in_all_usual_ways() {
        let canary = |flag: &[&str]| {
            let args = ["uptake", "controller"].iter().chain(flag);
            let Command::Controller(args) = Args::try_parse_from(args).unwrap().command else {
                unreachable!()
            };
            args.canary
        };
        assert!(canary(&["--canary"]) && canary(&["--canary=true"]));
        assert!(!canary(&["--canary=false"]) && !canary(&[]));
    }

    #[rstest]
    #[case("15m", Some(Duration::from_secs(900)))]
    #[case("99y", Some(humantime::parse_duration("99y").unwrap()))]
    #[case("500000000000y", None)]
    #[case("30", None)]
    #[case("", None)]
    fn a_span_of_time_can_be_added_to_any_time(#[case] text: &str, #[case] span: Option<Duration>) {
        assert_eq!(duration(text).ok(), span);
    }

    #[rstest]
    #[case("argoproj.io/v1alpha1/Rollout", Some(vec!["spec", "template"]))]
    #[case("example.org/v1/App=spec.workload.template", Some(vec!["spec", "workload", "template"]))]
    #[case("CloneSet", Some(vec!["spec", "template"]))]
    #[case("KnativeService=spec.x", Some(vec!["spec", "x"]))]
    #[case("Deployment", None)]
    #[case("apps/Deployment", None)]
    #[case("a/v1/../x", None)]
    #[case("a/v1/K=spec..template", None)]
    #[case("a//K", None)]
    fn a_custom_kind_is_named_with_its_templates_place(#[case] text: &str, #[case] path: Option<Vec<&str>>) {
        let read = text.parse::<WorkloadArg>().ok();
        let read = read.as_ref().map(|read| read.template.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(read, path);
    }
}
