//! The stamp as a patch.

use serde_json::{Value, json};

use crate::facts::{Kind, Uid, Version};

/// The annotation that a pod template is stamped with.
pub const ANNOTATION: &str = "uptake.dev/secret-version";

/// The merge patch that sets the stamp on exactly the inspected object: a stale version or another uid is
/// a conflict (409), and nothing but one annotation changes.
pub fn patch(kind: &Kind, uid: Uid, over: Version, stamp: &str) -> Value {
    let annotated = json!({"metadata": {"annotations": {ANNOTATION: stamp}}});
    let mut patch =
        kind.template_path().into_iter().rev().fold(annotated, |inner, step| json!({step: inner}));
    let identity = json!({"uid": uid.to_string(), "resourceVersion": over.to_string()});
    match patch.get_mut("metadata").and_then(Value::as_object_mut) {
        // A template that is the object itself (a PodTemplate-like kind with an odd path).
        Some(metadata) => metadata.extend(identity.as_object().cloned().unwrap_or_default()),
        None => patch["metadata"] = identity,
    }
    patch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_annotation_of_the_inspected_object_is_set() {
        let uid = Uid::parse("0f9a1b2c-3d4e-5f60-7182-93a4b5c6d7e8");
        assert_eq!(
            patch(&Kind::Deployment, uid, Version(7), "db@5"),
            json!({
                "metadata": {"uid": "0f9a1b2c-3d4e-5f60-7182-93a4b5c6d7e8", "resourceVersion": "7"},
                "spec": {"template": {"metadata": {"annotations": {"uptake.dev/secret-version": "db@5"}}}},
            })
        );
    }
}
