//! The checked settings of the operator, made from what the user typed. Pure.

use std::{net::SocketAddr, time::Duration};

use tracing::Level;

use crate::{
    args::{ControllerArgs, DefaultRollout, FirstSightArg, TriggerArg, WorkloadArg},
    catalog::ReadOptions,
    catalog::policy::Mode,
    cluster::{self, Connection, PerformerConfig},
    engine::{EngineConfig, FirstSight, Trigger},
    facts::{Kind, Namespace, Uid, is_dns_label},
    ledger::DigestKey,
    record::LogFormat,
    watch::WatchConfig,
};

/// Settings that are right each by itself, and wrong together.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ConfigError {
    /// The shortest settle time is longer than the longest.
    #[error("--settle {} is longer than --settle-max {}", humantime::format_duration(*.0), humantime::format_duration(*.1))]
    SettleBeyondMax(Duration, Duration),
    /// No rollout could make progress.
    #[error("--rollout-timeout must be at least 1s")]
    NoTimeForRollout,
    /// A namespace can't be both.
    #[error(
        "namespace {0:?} is both in --namespace and in --ignore-namespace (whose default is kube-system: \
         --ignore-namespace= leaves none alone)"
    )]
    WatchedAndIgnored(Namespace),
    /// It is no name.
    #[error("{flag} {name:?} is no name of a namespace")]
    NoNamespace {
        /// The flag.
        flag: &'static str,
        /// What was given.
        name: String,
    },
    /// A kind that is watched already.
    #[error("--workload {0} is named twice, or is one of the kinds that are always watched")]
    KindTwice(String),
}

/// The settings of the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where the cluster is.
    pub connection: Connection,
    /// Uptake's own namespace, if it was given.
    pub own_namespace: Option<Namespace>,
    /// Where metrics and probes are served.
    pub http_addr: SocketAddr,
    /// Whether replicas elect a leader.
    pub leader_elect: bool,
    /// How logs are written.
    pub log_format: LogFormat,
    /// Up to which level.
    pub log_level: Level,
    /// Custom kinds.
    pub workloads: Vec<WorkloadArg>,
    /// The watched namespaces; none means all.
    pub namespaces: Vec<Namespace>,
    /// The namespaces that are left alone.
    pub ignore_namespaces: Vec<Namespace>,
    /// How workloads are read.
    pub roll_volumes: bool,
    /// What the engine is told.
    pub rolling: Rolling,
}

/// The settings of rolling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rolling {
    settle: Duration,
    settle_max: Duration,
    max_concurrent_rollouts: usize,
    canary: bool,
    default_rollout: Mode,
    first_sight: FirstSight,
    trigger: Trigger,
    rollout_timeout: Duration,
}

/// What is only known when the cluster has been asked.
#[derive(Clone, Debug)]
pub struct Found {
    /// Uptake's own namespace.
    pub own_namespace: Namespace,
    /// Its identity.
    pub own_namespace_uid: Uid,
    /// The digest key.
    pub digest_key: DigestKey,
    /// The pod's name.
    pub instance: String,
    /// A random number.
    pub seed: u64,
}

impl TryFrom<ControllerArgs> for Config {
    type Error = ConfigError;

    fn try_from(args: ControllerArgs) -> Result<Self, ConfigError> {
        let ControllerArgs {
            settle,
            settle_max,
            max_concurrent_rollouts,
            canary,
            default_rollout,
            first_sight,
            trigger,
            roll_volumes,
            rollout_timeout,
            workloads,
            namespaces,
            ignore_namespaces,
            own_namespace,
            http_addr,
            leader_elect,
            log_format,
            log_level,
            kubeconfig,
            context,
        } = args;
        if settle > settle_max {
            return Err(ConfigError::SettleBeyondMax(settle, settle_max));
        }
        if rollout_timeout < Duration::from_secs(1) {
            return Err(ConfigError::NoTimeForRollout);
        }
        check_kinds(&workloads)?;
        let namespaces = names("--namespace", namespaces)?;
        let ignore_namespaces = names("--ignore-namespace", ignore_namespaces)?;
        if let Some(both) = namespaces.iter().find(|name| ignore_namespaces.contains(name)) {
            return Err(ConfigError::WatchedAndIgnored(both.clone()));
        }
        let own_namespace = names("--own-namespace", own_namespace.into_iter().collect())?.into_iter().next();
        Ok(Self {
            connection: Connection { kubeconfig, context },
            own_namespace,
            http_addr,
            leader_elect,
            log_format,
            log_level,
            workloads,
            namespaces,
            ignore_namespaces,
            roll_volumes,
            rolling: Rolling {
                settle,
                settle_max,
                max_concurrent_rollouts,
                canary,
                default_rollout: mode(default_rollout),
                first_sight: sight(first_sight),
                trigger: what(trigger),
                rollout_timeout,
            },
        })
    }
}

impl Config {
    /// All watched kinds.
    #[must_use]
    pub fn kinds(&self) -> Vec<Kind> {
        Kind::BUILTIN.into_iter().chain(self.workloads.iter().map(WorkloadArg::to_kind)).collect()
    }

    /// What the engine is told.
    #[must_use]
    pub fn engine(&self, found: &Found) -> EngineConfig {
        let Rolling {
            settle,
            settle_max,
            max_concurrent_rollouts,
            canary,
            default_rollout,
            first_sight,
            trigger,
            rollout_timeout,
        } = self.rolling;
        EngineConfig {
            settle,
            settle_max,
            max_concurrent_rollouts,
            canary,
            default_rollout,
            first_sight,
            trigger,
            rollout_timeout,
            kinds: self.kinds(),
            roll_volumes: self.roll_volumes,
            namespaces: self.namespaces.clone(),
            ignore_namespaces: self.ignore_namespaces.clone(),
            own_namespace: found.own_namespace.clone(),
            own_namespace_uid: found.own_namespace_uid,
            digest_key: found.digest_key.clone(),
        }
    }

    /// What the watches are told.
    #[must_use]
    pub fn watch(&self, found: &Found) -> WatchConfig {
        WatchConfig {
            namespaces: self.namespaces.clone(),
            ignore_namespaces: self.ignore_namespaces.clone(),
            own_namespace: found.own_namespace.clone(),
            kinds: self.kinds(),
            digest_key: found.digest_key.clone(),
            read: self.read(),
            seed: found.seed,
        }
    }

    /// What the performer is told.
    #[must_use]
    pub fn performer(&self, found: &Found) -> PerformerConfig {
        PerformerConfig {
            own_namespace: found.own_namespace.clone(),
            namespaces: self.namespaces.clone(),
            instance: found.instance.clone(),
            digest_key: found.digest_key.clone(),
            read: self.read(),
            between: cluster::between(&self.kinds()),
        }
    }

    const fn read(&self) -> ReadOptions {
        ReadOptions { roll_volumes: self.roll_volumes }
    }
}

/// Whether each kind is named once: twice it would be rolled twice.
///
/// # Errors
/// One is named twice, or is one that is rolled anyway.
pub fn check_kinds(workloads: &[WorkloadArg]) -> Result<(), ConfigError> {
    let place = |workload: &WorkloadArg| (workload.group.clone(), workload.kind.clone());
    let builtin = |workload: &WorkloadArg| {
        Kind::BUILTIN.iter().any(|kind| kind.group() == workload.group && kind.as_str() == workload.kind)
    };
    let twice = workloads.iter().enumerate().find(|(at, workload)| {
        builtin(workload) || workloads[..*at].iter().any(|other| place(other) == place(workload))
    });
    match twice {
        Some((_, workload)) => Err(ConfigError::KindTwice(format!("{}/{}", workload.group, workload.kind))),
        None => Ok(()),
    }
}

/// The names, each once. An empty one is none: so a flag with a default can be emptied.
fn names(flag: &'static str, given: Vec<String>) -> Result<Vec<Namespace>, ConfigError> {
    let mut names: Vec<Namespace> = Vec::new();
    for name in given.into_iter().filter(|name| !name.is_empty()) {
        if !is_dns_label(&name) {
            return Err(ConfigError::NoNamespace { flag, name });
        }
        if !names.iter().any(|known| **known == *name) {
            names.push(name.into());
        }
    }
    Ok(names)
}

const fn mode(arg: DefaultRollout) -> Mode {
    match arg {
        DefaultRollout::Auto => Mode::Auto,
        DefaultRollout::Report => Mode::Report,
        DefaultRollout::Off => Mode::Off,
    }
}

const fn sight(arg: FirstSightArg) -> FirstSight {
    match arg {
        FirstSightArg::Report => FirstSight::Report,
        FirstSightArg::Roll => FirstSight::Roll,
        FirstSightArg::Trust => FirstSight::Trust,
    }
}

const fn what(arg: TriggerArg) -> Trigger {
    match arg {
        TriggerArg::Data => Trigger::Data,
        TriggerArg::ResourceVersion => Trigger::ResourceVersion,
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::args::{Args, Command};

    fn config(flags: &[&str]) -> Result<Config, ConfigError> {
        let args = Args::try_parse_from(["uptake", "controller"].iter().chain(flags)).unwrap();
        let Command::Controller(args) = args.command else { unreachable!() };
        Config::try_from(*args)
    }

    #[test]
    fn the_defaults_fit_together() {
        let config = config(&[]).unwrap();
        assert_eq!(config.rolling.settle, Duration::from_secs(2));
        assert_eq!(config.ignore_namespaces, ["kube-system".into()]);
        assert!(config.namespaces.is_empty());
        assert!(config.http_addr.ip().is_unspecified() && config.http_addr.is_ipv6());
    }

    #[test]
    fn settings_that_contradict_each_other_name_both_flags() {
        let error = config(&["--settle", "1m"]).unwrap_err().to_string();
        assert_eq!(error, "--settle 1m is longer than --settle-max 30s");
        let error = config(&["--namespace", "kube-system"]).unwrap_err().to_string();
        assert!(error.contains("--namespace") && error.contains("--ignore-namespace"), "{error}");
        assert_eq!(config(&["--rollout-timeout", "0s"]), Err(ConfigError::NoTimeForRollout));
    }

    #[test]
    fn a_flag_with_a_default_can_be_emptied() {
        let config = config(&["--ignore-namespace=", "--namespace=kube-system,a", "--namespace=a"]).unwrap();
        assert!(config.ignore_namespaces.is_empty());
        assert_eq!(config.namespaces, ["kube-system".into(), "a".into()]);
    }

    #[test]
    fn names_are_names() {
        for bad in ["A", "-a", "a/b", &"a".repeat(64)] {
            let error = config(&[&format!("--namespace={bad}")]).unwrap_err();
            assert_eq!(error, ConfigError::NoNamespace { flag: "--namespace", name: bad.to_owned() });
        }
    }

    #[test]
    fn a_kind_is_watched_once() {
        assert!(config(&["--workload", "a/v1/K", "--workload", "b/v1/K"]).is_ok());
        assert!(config(&["--workload", "a/v1/K,a/v2/K"]).is_err());
        assert!(config(&["--workload", "apps/v1/Deployment"]).is_err());
    }
}
