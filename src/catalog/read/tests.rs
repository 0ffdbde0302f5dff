#![expect(clippy::needless_pass_by_value, reason = "a literal reads better without a borrow")]

use std::sync::Arc;

use proptest::{prelude::*, sample::select};
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::{
    catalog::{
        policy::{Mode, Problem, annotation},
        reference::{Keys, Rolls, Via},
    },
    facts::{CustomKind, Uid, Version},
};

const OPTIONS: ReadOptions = ReadOptions { roll_volumes: true };

fn custom(template: &[&str]) -> Kind {
    Kind::Custom(Arc::new(CustomKind {
        group: "example.com".to_owned(),
        version: "v1".to_owned(),
        kind: "App".to_owned(),
        template: template.iter().map(|&step| step.to_owned()).collect(),
    }))
}

fn deployment() -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": "demo",
            "uid": "0f9a1b2c-3d4e-5f60-7182-93a4b5c6d7e8",
            "resourceVersion": "48213",
            "generation": 2,
            "annotations": {"uptake.dev/rollout": "report"},
        },
        "spec": {
            "replicas": 2,
            "template": {
                "metadata": {"annotations": {"uptake.dev/secret-version": "db@7"}},
                "spec": {
                    "serviceAccountName": "runner",
                    "containers": [{"name": "c", "envFrom": [{"secretRef": {"name": "db"}}]}],
                },
            },
        },
        "status": {"observedGeneration": 2, "replicas": 2, "updatedReplicas": 1},
    })
}

fn read(object: &Value) -> Result<Workload, Unreadable> {
    workload(&Kind::Deployment, object, &OPTIONS)
}

/// The Deployment with another value at a path (`/metadata/name`).
fn with(path: &str, value: Value) -> Value {
    let mut object = deployment();
    let (parent, field) = path.rsplit_once('/').unwrap();
    object.pointer_mut(parent).unwrap()[field] = value;
    object
}

#[test]
fn a_workload_is_read_whole() {
    let object = deployment();
    let Workload {
        id,
        uid,
        version,
        deleting,
        declared,
        references,
        reference_count,
        policy,
        template,
        stamp,
        selector,
        service_account,
        rollout,
        last_writer,
    } = read(&object).unwrap();
    assert_eq!(id.to_string(), "demo/Deployment/web");
    assert_eq!(uid, Uid::parse("0f9a1b2c-3d4e-5f60-7182-93a4b5c6d7e8"));
    assert_eq!(version, Version(48_213));
    assert!(!deleting);
    assert_eq!(selector, Selector::of(&Kind::Deployment, &object));
    assert_eq!((references.len(), reference_count), (1, 1));
    assert_eq!((&declared.references, declared.count), (&references, 1));
    assert_eq!(
        (&*references[0].secret, &references[0].keys, references[0].via),
        ("db", &Keys::All, Via::EnvFrom)
    );
    assert_eq!((policy.rollout, policy.problems.len()), (Some(Mode::Report), 0));
    assert_eq!(template, template::hash(&object["spec"]["template"]));
    assert_eq!(stamp.as_deref(), Some("db@7"));
    assert_eq!(service_account.as_ref(), "runner");
    assert_eq!((rollout.desired, rollout.updated), (2, 1));
    assert_eq!(last_writer, None);
}

#[test]
fn one_that_is_being_deleted_says_so() {
    let object = with("/metadata/deletionTimestamp", json!("2026-12-01T00:00:00Z"));
    assert!(read(&object).unwrap().deleting);
}

#[rstest]
#[case("/metadata/name", json!(null), "metadata.name is missing")]
#[case("/metadata/namespace", json!(""), "metadata.namespace is missing")]
#[case("/metadata/uid", json!(7), "metadata.uid is missing")]
#[case("/metadata/resourceVersion", json!("x"), "metadata.resourceVersion isn't a decimal number: \"x\"")]
#[case("/spec/template", json!(null), "no pod template at spec.template")]
#[case("/spec/template", json!([]), "the pod template at spec.template isn't an object")]
fn what_makes_it_unreadable_is_named(#[case] path: &str, #[case] value: Value, #[case] words: &str) {
    assert_eq!(read(&with(path, value)).unwrap_err().to_string(), words);
}

#[test]
fn one_bad_object_does_not_fail_a_list() {
    let list = [deployment(), json!("no object"), json!({}), deployment()];
    assert_eq!(list.iter().filter_map(|object| read(object).ok()).count(), 2);
}

#[test]
fn a_custom_kind_has_its_template_where_it_says() {
    let mut object = deployment();
    let template = object["spec"]["template"].take();
    object["spec"]["jobs"] = json!({"pod": template});
    let read = workload(&custom(&["spec", "jobs", "pod"]), &object, &OPTIONS).unwrap();
    assert_eq!(read.id.to_string(), "demo/App/web");
    assert_eq!(read.references.len(), 1);
    let elsewhere = workload(&custom(&["spec", "pod"]), &object, &OPTIONS);
    assert_eq!(elsewhere, Err(Unreadable::NoTemplate("spec.pod".to_owned())));
}

#[test]
fn annotations_are_read_from_the_workload_and_not_from_its_template() {
    let object = with("/spec/template/metadata", json!({"annotations": {"uptake.dev/rollout": "off"}}));
    assert_eq!(read(&object).unwrap().policy.rollout, Some(Mode::Report));
}

#[test]
fn annotations_shape_the_references() {
    let object = with(
        "/metadata/annotations",
        json!({"uptake.dev/secrets": "api", "uptake.dev/ignore-secrets": "db"}),
    );
    let read = read(&object).unwrap();
    let found: Vec<(&str, Via, Rolls)> = read
        .references
        .iter()
        .map(|reference| (&*reference.secret, reference.via, reference.rolls))
        .collect();
    assert_eq!(found, [("api", Via::Annotation, Rolls::Yes), ("db", Via::EnvFrom, Rolls::Ignored)]);
}

#[test]
fn too_many_references_are_a_problem_of_the_workload() {
    let many: Vec<Value> = (0..5000).map(|n| json!({"secretRef": {"name": format!("s{n}")}})).collect();
    let read =
        read(&with("/spec/template/spec/containers", json!([{"name": "c", "envFrom": many}]))).unwrap();
    assert_eq!((read.references.len(), read.reference_count), (1000, 5000));
    assert_eq!(read.policy.problems.iter().map(|problem| problem.of).collect::<Vec<_>>(), ["spec.template"]);
}

#[rstest]
#[case(annotation::ROLLOUT)]
#[case(annotation::SETTLE)]
#[case(annotation::SECRETS)]
#[case(annotation::IGNORE_SECRETS)]
#[case(annotation::RELOADS)]
fn each_annotation_of_ours_may_be_anything(#[case] name: &str) {
    for value in ["[".to_owned(), "x".repeat(200 * 1024), "TRUE ".to_owned()] {
        let read = read(&with("/metadata/annotations", json!({name: value}))).unwrap();
        let problems: Vec<&Problem> = read.policy.problems.iter().collect();
        assert_eq!(problems.iter().map(|problem| problem.of).collect::<Vec<_>>(), [name]);
        assert!(problems[0].message.len() < 200, "{}", problems[0].message);
        assert_eq!(read.references.len(), 1);
    }
}

mod writers {
    use super::*;

    fn entry(manager: &str, time: &str, fields: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": fields})
    }

    fn template() -> Value {
        json!({"f:spec": {"f:template": {"f:metadata": {}}}})
    }

    fn last(entries: Value) -> Option<String> {
        read(&with("/metadata/managedFields", entries)).unwrap().last_writer.map(|name| name.to_string())
    }

    #[test]
    fn the_latest_that_owns_some_of_the_template() {
        let entries = json!([
            entry("kubectl", "2026-12-01T00:00:01Z", template()),
            entry("argocd", "2026-12-01T00:00:03Z", template()),
            entry("helm", "2026-12-01T00:00:02Z", template()),
            entry("hpa", "2026-12-01T00:00:09Z", json!({"f:spec": {"f:replicas": {}}})),
        ]);
        assert_eq!(last(entries).as_deref(), Some("argocd"));
    }

    #[test]
    fn not_uptake_itself() {
        let entries = json!([
            entry("kubectl", "2026-12-01T00:00:01Z", template()),
            entry("uptake", "2026-12-01T00:00:02Z", template()),
        ]);
        assert_eq!(last(entries).as_deref(), Some("kubectl"));
    }

    #[test]
    fn or_else_the_latest_that_wrote_the_object() {
        let mut status = entry("controller", "2026-12-01T00:00:09Z", json!({"f:status": {}}));
        status["subresource"] = json!("status");
        let entries = json!([
            entry("kubectl", "2026-12-01T00:00:01Z", json!({"f:metadata": {}})),
            entry("helm", "2026-12-01T00:00:02Z", json!({"f:metadata": {}})),
            entry("uptake", "2026-12-01T00:00:03Z", template()),
            status,
        ]);
        assert_eq!(last(entries).as_deref(), Some("helm"));
    }

    #[rstest]
    #[case(json!(null))]
    #[case(json!("x"))]
    #[case(json!([null, 1, {"manager": 7, "fieldsV1": {"f:spec": {"f:template": {}}}}]))]
    fn or_nobody_knows(#[case] entries: Value) {
        assert_eq!(last(entries), None);
    }

    #[test]
    fn an_entry_without_a_time_is_older_than_any() {
        let entries = json!([
            entry("kubectl", "2026-12-01T00:00:01Z", template()),
            {"manager": "old", "operation": "Update", "fieldsV1": template()},
        ]);
        assert_eq!(last(entries).as_deref(), Some("kubectl"));
    }
}

proptest! {
    #[test]
    fn no_object_is_too_odd(
        path in select(&[
            "/metadata", "/metadata/annotations", "/metadata/managedFields", "/metadata/generation", "/spec",
            "/spec/replicas", "/spec/updateStrategy", "/spec/paused", "/spec/template", "/spec/template/metadata",
            "/spec/template/spec", "/spec/template/spec/containers", "/status", "/status/conditions", "/status/replicas",
        ][..]),
        value in select(vec![
            json!(null), json!(true), json!(-1), json!(1e300), json!(u64::MAX), json!("é"), json!([]), json!([[]]),
            json!([null]), json!({}), json!({"a": null}), json!([{"type": "Progressing", "reason": []}]),
        ]),
        which in 0..4_usize,
    ) {
        let kind = if which < 3 { Kind::BUILTIN[which].clone() } else { custom(&["spec", "template"]) };
        let object = with(path, value);
        if let Ok(read) = workload(&kind, &object, &OPTIONS) {
            let _ = crate::rollout::state(&read.rollout);
        }
    }
}
