//! Alerts, the dashboard and the metrics page speak of the same metrics.

use crate::stage::Stage;
use crate::stage::reader;
use crate::support::chart::{folder, helm::output, root};
use crate::support::cluster::tool;
use crate::support::http;
use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;
use uptake::facts::{Kind, WorkloadId};
use uptake::record::{Gauges, Metrics, Record, Watch};
use uptake::rollout::Outcome;

async fn promtool(arguments: &[&str], input: &str) -> String {
    let program = tokio::task::spawn_blocking(|| tool("promtool")).await.unwrap().unwrap();
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(root())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    output(child.wait_with_output().unwrap(), arguments).unwrap_or_else(|error| panic!("{error}"))
}

#[tokio::test]
async fn the_alerts_fire_when_they_should() {
    promtool(&["check", "rules", "--lint=all", "--lint-fatal", "charts/uptake/files/alerts.yaml"], "").await;
    promtool(&["test", "rules", "tests/cluster/alerts.yaml"], "").await;
}

#[test]
fn every_alert_is_tested() {
    let tests = fs::read_to_string(root().join("tests/cluster/alerts.yaml")).unwrap();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        assert!(tests.contains(&format!("alertname: {name}\n")), "{name} has no test");
    }
}

#[tokio::test]
async fn the_metrics_page_is_as_prometheus_wants_it() {
    let stage = Stage::set("metrics").await;
    let web = reader("web");
    stage.run(&[&web]).await;
    let operator = stage.operator().await;
    stage.rotate("two").await;
    stage.wait_outcomes("RolloutCompleted", &web, 1).await;
    let (status, page) = http::get(operator.address(), "/metrics").await.unwrap();
    assert!(status.is_success());
    promtool(&["check", "metrics"], &page).await;
    let unknown: Vec<_> = families(&page).difference(&families(&full_page())).cloned().collect();
    assert!(unknown.is_empty(), "{unknown:?}");
}

fn alerts() -> Vec<serde_json::Value> {
    let text = fs::read_to_string(folder().join("files/alerts.yaml")).unwrap();
    let file: serde_json::Value = serde_saphyr::from_str(&text).unwrap();
    file["groups"][0]["rules"].as_array().unwrap().clone()
}

/// A page on which every metric has something to say.
fn full_page() -> String {
    let metrics = Metrics::new().unwrap();
    let workload = WorkloadId::new(Kind::Deployment, "shop", "web");
    metrics.requests().with_label_values(&["get", "200"]).inc();
    metrics.count(&Record::RolloutEnded {
        workload: workload.clone(),
        outcome: Outcome::Completed,
        took: Duration::from_secs(3),
    });
    let state = Gauges {
        stale_pods: vec![(workload, 1)],
        held: vec![("settling", 1)],
        pending: 1,
        in_flight: 1,
        synced: vec![(Watch::Secrets, Ok(()))],
        ledger: Ok(()),
    };
    String::from_utf8(metrics.text(&state).unwrap()).unwrap()
}

/// The names of what stands on a page, as queries may say them.
fn families(page: &str) -> BTreeSet<String> {
    let types = page.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '));
    types
        .flat_map(|(name, kind)| match kind {
            "histogram" => ["bucket", "sum", "count"].map(|part| format!("{name}_{part}")).to_vec(),
            _ => vec![name.to_owned()],
        })
        .collect()
}

/// The metrics that a query names.
fn named(query: &str) -> BTreeSet<String> {
    let words = query.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.starts_with("uptake_")).map(ToOwned::to_owned).collect()
}

#[test]
fn every_query_names_metrics_that_exist() {
    let known = families(&full_page());
    let text = fs::read_to_string(folder().join("files/dashboard.json")).unwrap();
    let dashboard: serde_json::Value = serde_json::from_str(&text).unwrap();
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let targets = panels.flat_map(|panel| panel["targets"].as_array().unwrap().clone());
    let queries: Vec<String> = targets.map(|target| target["expr"].as_str().unwrap().to_owned()).collect();
    assert!(queries.len() >= 15, "{queries:?}");
    let alerts = alerts();
    let exprs = alerts.iter().map(|alert| alert["expr"].as_str().unwrap().to_owned());
    let mut used = BTreeSet::new();
    for query in queries.iter().cloned().chain(exprs) {
        let names = named(&query);
        assert!(!names.is_empty() && names.is_subset(&known), "{query} names {names:?}, there are {known:?}");
        used.extend(names);
    }
    let shown: BTreeSet<String> = queries.iter().flat_map(|query| named(query)).collect();
    let hidden: Vec<_> = known
        .iter()
        .filter(|name| !name.ends_with("_sum") && !name.ends_with("_count") && !shown.contains(*name))
        .collect();
    assert!(hidden.is_empty(), "metrics that the dashboard doesn't show: {hidden:?}");
}
