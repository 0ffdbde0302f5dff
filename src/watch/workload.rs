//! Reads a workload.

use serde_json::Value;

use super::{
    message::Meta,
    read::{LeftOut, Read, Reading},
};
use crate::{
    catalog::Workload,
    catalog::{ReadOptions, read},
    facts::{KNATIVE, Kind, Namespace, Raw, WorkloadId},
};

/// Reads a kind's workloads.
pub struct Workloads {
    /// The kind.
    pub kind: Kind,
    /// The namespaces that are left alone.
    pub ignored: Vec<Namespace>,
    /// How they are read.
    pub options: ReadOptions,
    /// Whether Knative's Services are watched: they roll what they made themselves.
    pub knative: bool,
}

impl Read for Workloads {
    type Item = Workload;
    type Id = WorkloadId;

    fn wants(&self, meta: &Meta) -> bool {
        !self.ignored.iter().any(|ignored| **ignored == *meta.namespace)
    }

    fn read(&self, object: &[u8]) -> Reading<Workload> {
        let Ok(object) = serde_json::from_slice::<Value>(object) else { return Reading::Unreadable };
        if self.knative && is_of_knative(&self.kind, Raw(&object)) {
            return Reading::LeftOut(LeftOut::Usual("it is rolled by its Knative Service".to_owned()));
        }
        match read::workload(&self.kind, &object, &self.options) {
            Ok(workload) => Reading::Item(workload),
            Err(lacks) if lacks.is_of_template() => Reading::LeftOut(LeftOut::Worth(lacks.to_string())),
            Err(_) => Reading::Unreadable,
        }
    }

    fn id(&self, meta: &Meta) -> WorkloadId {
        WorkloadId::new(self.kind.clone(), meta.namespace.as_str(), meta.name.as_str())
    }
}

/// Whether it is a Deployment that a Knative Revision controls: what is changed in it is changed back, and its Service rolls
/// it. That concerns only those who roll Services.
pub fn is_of_knative(kind: &Kind, raw: Raw<'_>) -> bool {
    if *kind != Kind::Deployment {
        return false;
    }
    let owners = raw.meta("ownerReferences").and_then(Value::as_array).into_iter().flatten();
    owners
        .filter_map(|owner| owner.get("apiVersion").and_then(Value::as_str))
        .any(|version| version.split_once('/').is_some_and(|(group, _)| group == KNATIVE))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::facts::CustomKind;

    fn reading(kind: Kind, object: &Value) -> String {
        let workloads = Workloads {
            kind,
            ignored: Vec::new(),
            options: ReadOptions { roll_volumes: true },
            knative: true,
        };
        match workloads.read(object.to_string().as_bytes()) {
            Reading::Item(workload) => workload.id.name.to_string(),
            Reading::Unreadable => "unreadable".to_owned(),
            Reading::LeftOut(LeftOut::Worth(why)) => why,
            Reading::LeftOut(LeftOut::Usual(why)) => format!("({why})"),
        }
    }

    fn custom() -> Kind {
        Kind::Custom(Arc::new(CustomKind {
            group: "argoproj.io".to_owned(),
            version: "v1alpha1".to_owned(),
            kind: "Rollout".to_owned(),
            template: vec!["spec".to_owned(), "template".to_owned()],
        }))
    }

    fn object(spec: &Value) -> Value {
        json!({
            "metadata": {"name": "web", "namespace": "demo", "uid": "u", "resourceVersion": "7"},
            "spec": spec,
        })
    }

    #[test]
    fn a_custom_workload_without_a_template_of_its_own_is_left_out_with_its_reason() {
        let pod = json!({"spec": {"containers": [{"name": "app"}]}});
        assert_eq!(reading(custom(), &object(&json!({"template": pod}))), "web");
        for (spec, words) in [
            (json!({}), "no pod template at spec.template"),
            (json!({"template": null}), "no pod template at spec.template"),
            (json!({"template": {}}), "the pod template at spec.template has no containers"),
            (
                json!({"template": {"spec": {"containers": []}}}),
                "the pod template at spec.template has no containers",
            ),
            (json!({"template": "x"}), "the pod template at spec.template isn't an object"),
            (
                json!({"workloadRef": {"kind": "Deployment", "name": "api"}}),
                "its pod template is another object's (spec.workloadRef): Deployment \"api\"",
            ),
        ] {
            assert_eq!(reading(custom(), &object(&spec)), words);
        }
        assert_eq!(reading(custom(), &json!({"metadata": {}, "spec": {"template": pod}})), "unreadable");
    }

    #[test]
    fn a_deployment_that_knative_made_is_left_to_its_service() {
        let mut deployment = object(&json!({"template": {"spec": {"containers": [{"name": "app"}]}}}));
        assert_eq!(reading(Kind::Deployment, &deployment), "web");
        deployment["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "serving.knative.dev/v1", "kind": "Revision", "name": "web-1", "uid": "r", "controller": true,
        }]);
        assert_eq!(reading(Kind::Deployment, &deployment), "(it is rolled by its Knative Service)");
    }
}
