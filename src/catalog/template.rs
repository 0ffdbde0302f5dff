//! A pod template's identity.
//!
//! The hash is kept in the ledger and compared after restarts and upgrades of Uptake, so neither its encoding nor its
//! function may depend on a build: it is the first 8 bytes of SHA-256 over an encoding of its own, in which
//! fields are sorted by name and every part says its type and length.

use serde_json::{Map, Number, Value};
use sha2::{Digest, Sha256};

use super::TemplateHash;
use crate::rollout::STAMP_ANNOTATION;

/// The hash of a pod template without the stamp. Annotations and metadata that hold nothing else are as none, and so
/// is a `creationTimestamp: null`, which older clients write and custom kinds keep.
#[must_use]
pub fn hash(template: &Value) -> TemplateHash {
    let mut sha = Sha256::new();
    encode(&mut sha, &plain(template.clone()));
    TemplateHash(sha.finalize().iter().take(8).fold(0, |sum, &byte| sum << 8 | u64::from(byte)))
}

fn plain(mut template: Value) -> Value {
    if let Some(fields) = template.as_object_mut() {
        if let Some(meta) = fields.get_mut("metadata").and_then(Value::as_object_mut) {
            if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
                annotations.remove(STAMP_ANNOTATION);
            }
            drop_if(meta, "annotations", is_empty);
            drop_if(meta, "creationTimestamp", Value::is_null);
        }
        drop_if(fields, "metadata", is_empty);
    }
    template
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_object().is_some_and(Map::is_empty)
}

fn drop_if(fields: &mut Map<String, Value>, name: &str, condition: fn(&Value) -> bool) {
    if fields.get(name).is_some_and(condition) {
        fields.remove(name);
    }
}

fn encode(sha: &mut Sha256, value: &Value) {
    match value {
        Value::Null => part(sha, b'0', 0),
        Value::Bool(is) => part(sha, b'b', usize::from(*is)),
        Value::Number(number) => bytes(sha, b'n', digits(number).as_bytes()),
        Value::String(text) => bytes(sha, b's', text.as_bytes()),
        Value::Array(elements) => {
            part(sha, b'a', elements.len());
            for element in elements {
                encode(sha, element);
            }
        }
        Value::Object(fields) => {
            // Whether a map is sorted depends on features of serde_json that any dependency may turn on.
            let mut fields: Vec<(&String, &Value)> = fields.iter().collect();
            fields.sort_unstable_by_key(|(name, _)| *name);
            part(sha, b'o', fields.len());
            for (name, value) in fields {
                bytes(sha, b'f', name.as_bytes());
                encode(sha, value);
            }
        }
    }
}

/// A number's text, of whole numbers the decimal one and of others their bits, which no printing library changes.
fn digits(number: &Number) -> String {
    number
        .as_i64()
        .map(|whole| whole.to_string())
        .or_else(|| number.as_u64().map(|whole| whole.to_string()))
        .or_else(|| number.as_f64().map(|float| format!("{:016x}f", float.to_bits())))
        .unwrap_or_else(|| number.to_string())
}

fn part(sha: &mut Sha256, tag: u8, length: usize) {
    sha.update([tag]);
    sha.update((length as u64).to_be_bytes());
}

fn bytes(sha: &mut Sha256, tag: u8, content: &[u8]) {
    part(sha, tag, content.len());
    sha.update(content);
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_hash_is_pinned() {
        // It stands in ledgers: another one would make every running rollout look superseded.
        let template =
            json!({"spec": {"b": [1, -2, 0.5, null, true], "a": "é"}, "metadata": {"labels": {"x": "y"}}});
        assert_eq!(hash(&template), TemplateHash(0xf278_8703_9225_9e73));
    }

    #[rstest]
    #[case::absent(json!({"spec": {}}))]
    #[case::metadata_null(json!({"spec": {}, "metadata": null}))]
    #[case::metadata_empty(json!({"spec": {}, "metadata": {}}))]
    #[case::annotations_null(json!({"spec": {}, "metadata": {"annotations": null}}))]
    #[case::annotations_empty(json!({"spec": {}, "metadata": {"annotations": {}}}))]
    #[case::stamped(json!({"spec": {}, "metadata": {"annotations": {"uptake.dev/secret-version": "db@1"}}}))]
    #[case::creation_null(json!({"metadata": {"creationTimestamp": null}, "spec": {}}))]
    fn the_stamp_and_what_it_leaves_behind_do_not_count(#[case] template: Value) {
        assert_eq!(hash(&template), hash(&json!({"spec": {}})));
    }

    #[test]
    fn the_stamp_among_others_does_not_count() {
        let of = |annotations: Value| hash(&json!({"metadata": {"annotations": annotations}}));
        assert_eq!(of(json!({"a": "b", "uptake.dev/secret-version": "db@1"})), of(json!({"a": "b"})));
    }

    #[rstest]
    #[case(json!({"spec": {"a": "1"}}), json!({"spec": {"a": 1}}))]
    #[case(json!({"spec": {"a": ""}}), json!({"spec": {}}))]
    #[case(json!({"spec": {"a": "bc"}}), json!({"spec": {"ab": "c"}}))]
    #[case(json!({"spec": ["a", "b"]}), json!({"spec": ["ab"]}))]
    #[case(json!({"spec": [[], "a"]}), json!({"spec": [["a"]]}))]
    #[case(json!({"spec": false}), json!({"spec": null}))]
    #[case(json!({"spec": 1}), json!({"spec": 1.0}))]
    #[case(
        json!({"metadata": {"annotations": {"kubectl.kubernetes.io/restartedAt": "2026"}}}),
        json!({"metadata": {"annotations": {}}})
    )]
    fn anything_else_counts(#[case] one: Value, #[case] other: Value) {
        assert_ne!(hash(&one), hash(&other));
    }

    #[test]
    fn the_order_of_fields_does_not_count_and_that_of_elements_does() {
        let parse = |text: &str| hash(&serde_json::from_str(text).unwrap());
        assert_eq!(parse(r#"{"a": 1, "b": {"c": 2, "d": 3}}"#), parse(r#"{"b": {"d": 3, "c": 2}, "a": 1}"#));
        assert_ne!(parse("[1, 2]"), parse("[2, 1]"));
    }
}
