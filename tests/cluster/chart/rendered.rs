//! What the chart renders, without a cluster.

use super::{helm, values_files};
use crate::support::chart::{folder, generated, helm::Document, root};
use clap::{CommandFactory as _, Parser as _};
use std::collections::BTreeSet;
use std::fs;
use uptake::args::{Args, Command};
use uptake::config::Config;
use uptake::facts::KNOWN_KINDS;

#[tokio::test]
async fn what_is_made_from_the_chart_is_up_to_date() {
    for (path, text) in generated(&helm().await).unwrap() {
        let is = fs::read_to_string(root().join(&path)).unwrap_or_default();
        assert!(is == text, "{} isn't what the chart makes: run `make chart`", path.display());
    }
}

#[tokio::test]
async fn it_lints_strictly_with_every_values_file() {
    let helm = helm().await;
    let chart = folder().display().to_string();
    for (_, path) in values_files() {
        helm.run(&["lint", "--strict", &chart, "--values", &path]).unwrap();
    }
}

#[tokio::test]
async fn wrong_values_are_refused_in_words() {
    let helm = helm().await;
    for (value, words) in [
        ("replicas=3", "additional properties 'replicas' not allowed"),
        ("config.setle=5s", "at '/config': additional properties 'setle' not allowed"),
        ("replicaCount=two", "at '/replicaCount': got string, want integer"),
        ("config.settle=soon", "at '/config/settle': 'soon' does not match pattern"),
        ("config.defaultRollout=yes", "value must be one of 'auto', 'report', 'off'"),
        ("config.logLevel=loud", "value must be one of 'error', 'warn', 'info', 'debug', 'trace'"),
        ("namespaces={Shop}", "at '/namespaces/0': 'Shop' does not match pattern"),
        ("image.digest=latest", "at '/image/digest': 'latest' does not match pattern"),
        ("service.port=99999", "at '/service/port': maximum: got 99,999, want 65,535"),
        ("workloads[0].group=a", "at '/workloads/0': missing properties 'version', 'kind', 'plural'"),
        ("nodeSelector.size=5", "at '/nodeSelector/size': got number, want string"),
        ("config.settle=1m", "config.settle (1m) is longer than config.settleMax (30s)"),
        (
            "config.settle=1m1ms,config.settleMax=1m",
            "config.settle (1m1ms) is longer than config.settleMax (1m)",
        ),
        ("config.rolloutTimeout=999ms", "config.rolloutTimeout (999ms) is less than 1s"),
        ("workloads={Rollout,Rollout}", "at '/workloads': items at 0 and 1 are equal"),
        (
            "leaderElection.enabled=false",
            "leaderElection.enabled must be true with a replicaCount of more than 1",
        ),
        ("serviceMonitor.enabled=true,service.enabled=false", "serviceMonitor.enabled needs service.enabled"),
    ] {
        let said = helm.template("uptake-system", &["--set", value]).expect_err(value).to_string();
        assert!(said.contains(words), "{value}: {said}");
    }
}

fn arguments(documents: &[Document]) -> Vec<String> {
    let deployment = documents.iter().find(|document| document.template == "deployment.yaml").unwrap();
    serde_json::from_value(deployment.object["spec"]["template"]["spec"]["containers"][0]["args"].clone())
        .unwrap()
}

fn config(arguments: &[String]) -> Config {
    let program = std::iter::once("uptake").chain(arguments.iter().map(String::as_str));
    let Command::Controller(args) = Args::try_parse_from(program).unwrap().command else {
        panic!("{arguments:?}")
    };
    Config::try_from(*args).unwrap()
}

#[tokio::test]
async fn the_charts_defaults_are_the_programs() {
    let rendered = config(&arguments(&helm().await.template("uptake-system", &[]).unwrap()));
    let program = ["controller", "--leader-elect", "--own-namespace=uptake-system"].map(String::from);
    assert_eq!(rendered, config(&program));
}

/// The pod says where the cluster is.
const NOT_IN_THE_CHART: [&str; 2] = ["kubeconfig", "context"];

#[tokio::test]
async fn every_flag_has_its_value_and_every_values_file_makes_flags_that_fit() {
    let helm = helm().await;
    let mut given = BTreeSet::new();
    for (_, path) in values_files() {
        let arguments = arguments(&helm.template("uptake-system", &["--values", &path]).unwrap());
        config(&arguments);
        given.extend(
            arguments.iter().filter_map(|flag| Some(flag.strip_prefix("--")?.split('=').next()?.to_owned())),
        );
    }
    let command = Args::command();
    let flags =
        command.find_subcommand("controller").unwrap().get_arguments().filter_map(clap::Arg::get_long);
    let missing: Vec<_> = flags
        .filter(|flag| *flag != "help" && !NOT_IN_THE_CHART.contains(flag) && !given.contains(*flag))
        .collect();
    assert!(missing.is_empty(), "flags that the chart can't set: {missing:?}");
}

/// `VERB GROUP/RESOURCE` of each rule of the ClusterRole.
fn rights(documents: &[Document]) -> BTreeSet<String> {
    let role = documents.iter().find(|document| document.object["kind"] == "ClusterRole").unwrap();
    let texts = |rule: &serde_json::Value, field: &str| -> Vec<String> {
        serde_json::from_value(rule[field].clone()).unwrap()
    };
    let mut rights = BTreeSet::new();
    for rule in role.object["rules"].as_array().unwrap() {
        for (verb, resource) in texts(rule, "verbs")
            .iter()
            .flat_map(|verb| texts(rule, "resources").into_iter().map(move |of| (verb, of)))
        {
            rights.insert(format!("{verb} {}/{resource}", rule["apiGroups"][0].as_str().unwrap()));
        }
    }
    rights
}

/// What a kind needs beside the usual: its own rights, and lists of what stands between it and its pods.
#[tokio::test]
async fn every_kind_that_is_known_by_name_gets_its_rights_and_no_others() {
    let helm = helm().await;
    let usual = rights(&helm.template("uptake-system", &[]).unwrap());
    for known in KNOWN_KINDS {
        let set = format!("workloads={{{}}}", known.name);
        let documents = helm.template("uptake-system", &["--set", &set]).unwrap();
        let config = config(&arguments(&documents));
        assert_eq!(config.workloads.len(), 1, "{known:?}");
        let plural = format!("{}s", known.kind.to_lowercase());
        let own = ["get", "list", "watch", "patch"].map(|verb| format!("{verb} {}/{plural}", known.group));
        let between = uptake::cluster::between(&config.kinds()).into_iter().map(|between| {
            let group = between.group_version.strip_prefix("/apis/").and_then(|path| path.split('/').next());
            format!("list {}/{}", group.unwrap_or_default(), between.plural)
        });
        let wanted: BTreeSet<String> = own.into_iter().chain(between).collect();
        let given = rights(&documents);
        assert_eq!(given, usual.union(&wanted).cloned().collect(), "{known:?}");
    }
}

#[tokio::test]
async fn with_a_list_of_namespaces_nothing_concerns_the_whole_cluster() {
    let documents = helm().await.template("uptake-system", &["--set", "namespaces={shop,web}"]).unwrap();
    let of_cluster: Vec<_> = documents
        .iter()
        .filter(|document| document.object["metadata"]["namespace"].is_null())
        .map(|document| &document.text)
        .collect();
    assert!(of_cluster.is_empty(), "{of_cluster:?}");
}

#[test]
fn one_version_is_in_all_places() {
    let chart: serde_json::Value =
        serde_saphyr::from_str(&fs::read_to_string(folder().join("Chart.yaml")).unwrap()).unwrap();
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!((chart["version"].as_str(), chart["appVersion"].as_str()), (Some(version), Some(version)));
    let changes = fs::read_to_string(root().join("CHANGELOG.md")).unwrap();
    assert!(changes.contains("## [Unreleased]") || changes.contains(&format!("## [{version}]")));
}
