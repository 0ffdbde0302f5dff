//! What the chart renders is what the API server takes.

use super::{helm, values_files};
use crate::stage::ROLLED;
use crate::support::chart::helm::{Document, output};
use crate::support::chart::root;
use crate::support::cluster::Cluster;
use crate::support::objects::Namespace;
use crate::support::wait::eventually;
use serde_json::{Value, json};
use std::io::Write as _;
use std::process::Stdio;

const CRDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cluster/crds/monitoring.yaml");

/// A namespace that takes restricted pods only, on a cluster that knows the monitoring kinds.
async fn restricted<'a>(cluster: &'a Cluster, prefix: &str) -> Namespace<'a> {
    // Another test may be making them.
    eventually(ROLLED, || async { kubectl(cluster, &["apply", "-f", CRDS], "") }).await;
    // A CRD that is established may still not be served by the next request.
    eventually(ROLLED, || async {
        kubectl(cluster, &["get", "servicemonitors,podmonitors,prometheusrules", "-A"], "")
    })
    .await;
    let labels = json!({ "labels": { "pod-security.kubernetes.io/enforce": "restricted" } });
    Namespace::create_with(cluster, prefix, labels).await
}

fn kubectl(cluster: &Cluster, arguments: &[&str], input: &str) -> crate::support::Result<String> {
    let mut kubectl = cluster.kubectl(&cluster.admin());
    kubectl.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = kubectl.spawn()?;
    child.stdin.take().expect("a pipe").write_all(input.as_bytes())?;
    output(child.wait_with_output()?, arguments)
}

/// The pod of a rendered Deployment; what only a node can refuse is left out.
fn pod_of(documents: &[Document]) -> Option<Value> {
    let deployment = documents.iter().find(|document| document.template == "deployment.yaml")?;
    let template = &deployment.object["spec"]["template"];
    // hostNetwork is what the restricted standard forbids.
    (template["spec"]["hostNetwork"] != true).then(|| {
        let mut spec = template["spec"].clone();
        spec["serviceAccountName"] = json!("default");
        json!({ "apiVersion": "v1", "kind": "Pod", "metadata": { "name": "one-of-uptake", "namespace": deployment.object["metadata"]["namespace"] }, "spec": spec })
    })
}

#[tokio::test]
async fn every_values_file_makes_objects_that_the_api_server_takes() {
    let cluster = Cluster::shared().await;
    let ns = restricted(cluster, "manifests").await;
    let helm = helm().await;
    for (name, path) in values_files() {
        let documents = helm.template(&ns.name, &["--values", &path]).unwrap();
        let mut texts: Vec<String> = documents.iter().map(|document| document.text.clone()).collect();
        texts.extend(pod_of(&documents).map(|pod| pod.to_string()));
        let dry = ["apply", "--dry-run=server", "-f", "-"];
        let said =
            kubectl(cluster, &dry, &texts.join("\n---\n")).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(
            said.contains("deployment.apps/") && said.lines().count() >= documents.len(),
            "{name}: {said}"
        );
    }
}

#[tokio::test]
async fn every_overlay_makes_objects_that_the_api_server_takes() {
    let cluster = Cluster::shared().await;
    // The overlays' own namespaces aren't there: theirs are replaced by one that is.
    let ns = restricted(cluster, "overlays").await;
    for (overlay, kinds) in [
        (
            "cluster-wide",
            vec!["clusterrole.rbac", "deployment.apps", "poddisruptionbudget.policy", "namespace/"],
        ),
        ("namespaced", vec!["role.rbac", "deployment.apps"]),
        ("custom-kinds", vec!["clusterrole.rbac", "deployment.apps"]),
        ("monitoring", vec!["servicemonitor.monitoring", "prometheusrule.monitoring", "configmap/"]),
    ] {
        let folder = root().join("config/overlays").join(overlay).display().to_string();
        let text = kubectl(cluster, &["kustomize", &folder], "").unwrap();
        assert_eq!(text.contains("kind: ClusterRole\n"), overlay != "namespaced", "{overlay}");
        let text = text.replace("namespace: uptake-system", &format!("namespace: {}", ns.name));
        let text = text.replace("namespace: shop", &format!("namespace: {}", ns.name));
        let said = kubectl(cluster, &["apply", "--dry-run=server", "-f", "-"], &text).unwrap();
        assert!(kinds.iter().all(|kind| said.contains(kind)), "{overlay}: {said}");
    }
}
