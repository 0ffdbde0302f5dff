//! The stamp, and what becomes of all else in a template.

use crate::stage::{ROLLED, Stage, VALUE, reader};
use crate::support::proxy::{Fault, Proxy, write_of};
use crate::support::wait::eventually;
use crate::support::workload::Workload;
use serde_json::{Map, Value, json};
use std::time::Duration;

const STAMP: &str = "uptake.dev/secret-version";

/// Long enough for somebody else's write to come between a read and a write.
const MEANWHILE: Duration = Duration::from_secs(2);

fn annotations(object: &Value) -> Map<String, Value> {
    object
        .pointer("/spec/template/metadata/annotations")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default()
}

/// What a user's manifest says, without what the API server and the controllers write into it.
fn said(mut object: Value) -> Value {
    object.as_object_mut().unwrap().remove("status");
    let metadata = object["metadata"].as_object_mut().unwrap();
    for written in ["generation", "resourceVersion", "managedFields"] {
        metadata.remove(written);
    }
    if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
        annotations.remove("deployment.kubernetes.io/revision");
    }
    object
}

/// Changes the Secret, and what the workload is afterwards differs by the stamp only.
async fn only_the_stamp_is_added(stage: &Stage, web: &Workload, value: &str) {
    let mut before = stage.ns.get(web).await;
    let trace = stage.trace(web).await;
    stage.rotate(value).await;
    stage.wait_rolled_once(web, &trace, value).await;
    let after = stage.ns.get(web).await;
    let stamp = annotations(&after)[STAMP].clone();
    assert!(stamp.as_str().is_some_and(|stamp| stamp.starts_with("db@")), "{stamp}");
    before["spec"]["template"]["metadata"]["annotations"][STAMP] = stamp;
    assert_eq!(said(after), said(before));
}

/// Case 5, as far as the API server keeps fields that it doesn't know.
#[tokio::test]
async fn fields_newer_than_any_client_library_stay() {
    let stage = Stage::set("newer").await;
    let web = reader("web")
        .set(
            "/spec/template/spec/initContainers",
            json!([{ "name": "side", "image": "app:1", "restartPolicy": "Always" }]),
        )
        .set(
            "/spec/template/spec/containers/0/lifecycle",
            json!({ "preStop": { "sleep": { "seconds": 0 } } }),
        )
        .set(
            "/spec/template/spec/containers/0/resizePolicy",
            json!([{ "resourceName": "cpu", "restartPolicy": "NotRequired" }]),
        )
        .set("/spec/template/spec/hostUsers", json!(false));
    stage.run(&[&web]).await;
    let _operator = stage.operator().await;
    only_the_stamp_is_added(&stage, &web, "two").await;
    only_the_stamp_is_added(&stage, &web, "three").await;
}

/// Case 16.
#[tokio::test]
async fn foreign_annotations_stay() {
    let stage = Stage::set("foreign").await;
    let notes = (0..5).map(|number| (format!("example.org/note-{number}"), format!("\"{number}\"\n")));
    let web = &notes.fold(reader("web"), |web, (name, value)| web.template_annotation(&name, &value));
    stage.run(&[web]).await;
    let _operator = stage.operator().await;
    only_the_stamp_is_added(&stage, web, "two").await;
    assert_eq!(annotations(&stage.ns.get(web).await).len(), 6);
}

/// Case 16.
#[tokio::test]
async fn a_template_without_annotations_gets_the_stamp() {
    let stage = Stage::set("without").await;
    let none = &reader("none");
    let null = &reader("null").set("/spec/template/metadata/annotations", Value::Null);
    let empty = &reader("empty").set("/spec/template/metadata/annotations", json!({}));
    let all = [none, null, empty];
    stage.run(&all).await;
    let _operator = stage.operator().await;
    stage.rotate("two").await;
    for workload in all {
        stage.wait_values(workload, VALUE, "two").await;
        assert_eq!(annotations(&stage.ns.get(workload).await).keys().collect::<Vec<_>>(), [STAMP]);
        assert_eq!(stage.ns.revisions(workload).await, 2);
    }
}

/// The stage, its Deployment, and the stamp on its way when somebody else writes this patch.
async fn a_write_comes_between(prefix: &str, patch: &Value) -> (Stage, Workload) {
    let mut stage = Stage::set(prefix).await;
    let proxy = Proxy::start(stage.cluster).await;
    stage.install = stage.install.via(&proxy);
    let web = reader("web").template_annotation("example.org/first", "1");
    stage.run(&[&web]).await;
    let _operator = stage.operator().await;
    let late = proxy.on(write_of("deployments"), Fault::Delay(MEANWHILE)).times(1);
    stage.rotate("two").await;
    eventually(ROLLED, || async { (late.hits() > 0).then_some(()).ok_or("no stamp") }).await;
    stage.ns.merge(&web, patch).await;
    stage.wait_values(&web, VALUE, "two").await;
    stage.witness().await;
    (stage, web)
}

/// Case 16.
#[tokio::test]
async fn an_annotation_of_the_workload_added_between_read_and_write_stays() {
    let patch = json!({ "metadata": { "annotations": { "example.org/between": "1" } } });
    let (stage, web) = a_write_comes_between("between", &patch).await;
    let object = stage.ns.get(&web).await;
    assert_eq!(object["metadata"]["annotations"]["example.org/between"], "1");
    assert_eq!(annotations(&object).keys().collect::<Vec<_>>(), ["example.org/first", STAMP]);
    assert_eq!(stage.ns.revisions(&web).await, 2);
}

/// Case 16: that annotation rolls the workload by itself, so nothing is left to be rolled.
#[tokio::test]
async fn an_annotation_of_the_template_added_between_read_and_write_stays_and_rolls_alone() {
    let patch =
        json!({ "spec": { "template": { "metadata": { "annotations": { "example.org/between": "1" } } } } });
    let (stage, web) = a_write_comes_between("template", &patch).await;
    let annotations = annotations(&stage.ns.get(&web).await);
    assert_eq!(annotations["example.org/between"], "1");
    assert_eq!(annotations["example.org/first"], "1");
    assert_eq!(stage.ns.revisions(&web).await, 2);
}
