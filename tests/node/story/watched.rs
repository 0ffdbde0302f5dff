//! A Prometheus that scrapes both replicas and knows the chart's alerts.

use std::{fs, path::Path};

use serde_json::json;

use super::prelude::*;

const ADDRESS: &str = "127.0.0.1:29090";
/// The alerts wait for minutes; a story doesn't.
const PATIENCE_OF_ALERTS: &str = "5s";

/// Goes with the node.
pub struct Prometheus<'a> {
    node: &'a Node,
}

impl<'a> Prometheus<'a> {
    pub fn start(stage: &Stage, node: &'a Node) -> Result<Self> {
        stage.chapter("Prometheus scrapes both replicas");
        let folder = node.folder.join("prometheus");
        fs::create_dir(&folder)?;
        fs::write(folder.join("rules.yaml"), rules(node)?)?;
        fs::write(folder.join("prometheus.yaml"), scraped(node, &folder.join("rules.yaml"))?)?;
        node.start_inside(
            "prometheus",
            Path::new("prometheus"),
            &[
                &format!("--config.file={}", folder.join("prometheus.yaml").display()),
                &format!("--storage.tsdb.path={}", folder.join("data").display()),
                &format!("--web.listen-address={ADDRESS}"),
            ],
        )?;
        let prometheus = Self { node };
        until(PATIENCE, || {
            let up = prometheus.ask("sum(up{job=\"uptake\"})")?;
            if value(&up) == Some("2") { Ok(()) } else { Err(format!("up: {up}").into()) }
        })?;
        stage.act("promtool query instant 'max by (pod) (uptake_leader)'");
        let leaders = prometheus.ask("max by (pod) (uptake_leader)")?;
        for sample in leaders.as_array().into_iter().flatten() {
            stage.output(&format!("{} {}", sample["metric"]["pod"], sample["value"][1]));
        }
        check(value(&prometheus.ask("sum(uptake_leader)")?) == Some("1"), "one replica leads")?;
        stage.fact("both are scraped");
        Ok(prometheus)
    }

    pub fn fires(&self, stage: &Stage, alert: &str) -> Result<()> {
        let firing = until(PATIENCE, || {
            let firing = self.firing(alert)?;
            firing.ok_or_else(|| format!("{alert} doesn't fire").into())
        })?;
        stage.output(&format!("ALERTS {firing}"));
        stage.fact(&format!("Prometheus: {alert} fires"));
        Ok(())
    }

    pub fn clears(&self, stage: &Stage, alert: &str) -> Result<()> {
        until(PATIENCE, || match self.firing(alert)? {
            None => Ok(()),
            Some(firing) => Err(format!("still {firing}").into()),
        })?;
        stage.fact(&format!("Prometheus: {alert} is clear"));
        Ok(())
    }

    fn firing(&self, alert: &str) -> Result<Option<String>> {
        let query = format!("ALERTS{{alertname=\"{alert}\",alertstate=\"firing\"}}");
        let found = self.ask(&query)?;
        Ok(found.get(0).map(|sample| sample["metric"].to_string()))
    }

    fn ask(&self, query: &str) -> Result<Value> {
        let mut command = self.node.program("promtool");
        let answer =
            said(command.args(["query", "instant", "--format=json", &format!("http://{ADDRESS}"), query]))?;
        Ok(serde_json::from_str(&answer)?)
    }
}

fn value(samples: &Value) -> Option<&str> {
    samples.get(0)?.get("value")?.get(1)?.as_str()
}

/// The chart's alerts, with less patience.
fn rules(node: &Node) -> Result<String> {
    let manifest = uptake::rendered(
        node,
        &["--set", "prometheusRule.enabled=true", "--show-only", "templates/prometheusrule.yaml"],
    )?;
    let mut rule: Value = serde_saphyr::from_str(&manifest)?;
    let groups = rule.pointer_mut("/spec/groups").ok_or("a PrometheusRule without groups")?;
    for alert in groups
        .as_array_mut()
        .into_iter()
        .flatten()
        .flat_map(|group| group.get_mut("rules").and_then(Value::as_array_mut).into_iter().flatten())
    {
        if alert.get("for").is_some() {
            alert["for"] = json!(PATIENCE_OF_ALERTS);
        }
    }
    // JSON is YAML.
    Ok(json!({ "groups": groups }).to_string())
}

/// Debian's Prometheus is built without the discovery of Kubernetes: its targets are named.
fn scraped(node: &Node, rules: &Path) -> Result<String> {
    let targets = uptake::replicas(node)?.into_iter().map(|replica| {
        json!({
            "targets": [format!("{}:8080", replica.address)],
            "labels": { "namespace": uptake::NAMESPACE, "pod": replica.pod },
        })
    });
    let config = json!({
        "global": { "scrape_interval": "1s", "evaluation_interval": "1s" },
        "rule_files": [rules],
        "scrape_configs": [{ "job_name": "uptake", "static_configs": targets.collect::<Vec<Value>>() }],
    });
    Ok(config.to_string())
}
