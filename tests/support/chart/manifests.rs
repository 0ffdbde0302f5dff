//! The plain manifests: what the chart renders, without what only helm needs.

use super::helm::{Document, Helm};
use crate::support::Result;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// As the base's namespace.yaml has it.
const NAMESPACE: &str = "uptake-system";
/// The watched namespace in the overlay `namespaced`: an example, to be replaced.
const WATCHED: &str = "shop";

/// Templates that have an object in each installation.
const BASE: [&str; 5] =
    ["serviceaccount.yaml", "rbac-own.yaml", "deployment.yaml", "service.yaml", "poddisruptionbudget.yaml"];
const MONITORING: [&str; 3] = ["servicemonitor.yaml", "prometheusrule.yaml", "grafana-dashboard.yaml"];

pub fn all(helm: &Helm) -> Result<BTreeMap<PathBuf, String>> {
    let cluster_wide = helm.template(NAMESPACE, &[])?;
    let namespaced = helm.template(NAMESPACE, &["--set", &format!("namespaces={{{WATCHED}}}")])?;
    let custom_kinds = helm.template(NAMESPACE, &["--set", "workloads={Rollout}"])?;
    let monitoring = ["serviceMonitor", "prometheusRule", "grafanaDashboard"];
    let monitoring: Vec<_> =
        monitoring.iter().flat_map(|what| ["--set".into(), format!("{what}.enabled=true")]).collect();
    let monitoring = helm.template(NAMESPACE, &monitoring.iter().map(String::as_str).collect::<Vec<_>>())?;
    let mut files = BTreeMap::new();
    put(&mut files, "config/base", &BASE, &cluster_wide);
    put(&mut files, "config/overlays/cluster-wide", &["rbac-cluster.yaml"], &cluster_wide);
    put(
        &mut files,
        "config/overlays/namespaced",
        &["rbac-namespaces.yaml", "rbac-own.yaml", "deployment.yaml"],
        &namespaced,
    );
    put(&mut files, "config/overlays/monitoring", &MONITORING, &monitoring);
    put(&mut files, "config/overlays/custom-kinds", &["rbac-cluster.yaml", "deployment.yaml"], &custom_kinds);
    Ok(files)
}

fn put(files: &mut BTreeMap<PathBuf, String>, folder: &str, templates: &[&str], documents: &[Document]) {
    for template in templates {
        let of = documents.iter().filter(|document| document.template == *template);
        let texts: Vec<_> = of.map(|document| plain(&document.text)).collect();
        let header = "# Made from the chart by `make chart`.\n";
        files.insert(Path::new(folder).join(template), format!("{header}{}", texts.join("---\n")));
    }
}

/// Without helm's own labels.
fn plain(text: &str) -> String {
    let helms = ["helm.sh/chart:", "app.kubernetes.io/managed-by: Helm"];
    let lines = text.lines().filter(|line| !helms.iter().any(|own| line.trim_start().starts_with(own)));
    let lines: Vec<_> = lines.map(str::trim_end).collect();
    format!("{}\n", lines.join("\n").trim_end())
}
