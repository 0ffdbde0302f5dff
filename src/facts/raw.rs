//! What every object has, read from the JSON that the API server serves or a manifest writes.

use serde_json::{Map, Value};

use super::{Name, Namespace, Time, Uid, Version, text::shown};

/// An object as it came. Nothing is taken for granted of it: a custom kind's schema may be anything, and
/// a manifest may be wrong.
#[derive(Clone, Copy, Debug)]
pub struct Raw<'a>(pub &'a Value);

/// What an object lacks. It concerns this object alone: whoever reads a list says so and goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// A field that every object of its kind has isn't there, or isn't of its type.
    #[error("{0} is missing")]
    Missing(&'static str),
    /// A field holds something else than it should.
    #[error("{field} isn't {expected}: {found}")]
    Unfit {
        /// The field.
        field: &'static str,
        /// What it should be.
        expected: &'static str,
        /// What it is, cut and made printable.
        found: String,
    },
    /// There is no pod template where the kind says it lies.
    #[error("no pod template at {0}")]
    NoTemplate(String),
    /// Something else lies there.
    #[error("the pod template at {0} isn't an object")]
    TemplateNotAnObject(String),
    /// It is no template of a pod.
    #[error("the pod template at {0} has no containers")]
    TemplateWithoutContainers(String),
    /// Another object has it, such as an Argo Rollout's `workloadRef`.
    #[error("its pod template is another object's (spec.workloadRef): {0}")]
    TemplateElsewhere(String),
}

impl Unreadable {
    /// Whether the object is well-formed and only has no pod template of its own. The words for it then quote nothing
    /// that could be a value.
    #[must_use]
    pub const fn is_of_template(&self) -> bool {
        match self {
            Self::Missing(_) | Self::Unfit { .. } => false,
            Self::NoTemplate(_)
            | Self::TemplateNotAnObject(_)
            | Self::TemplateWithoutContainers(_)
            | Self::TemplateElsewhere(_) => true,
        }
    }
}

impl<'a> Raw<'a> {
    /// `metadata.name`.
    ///
    /// # Errors
    /// It has none.
    pub fn name(self) -> Result<Name, Unreadable> {
        self.required("name").ok_or(Unreadable::Missing("metadata.name")).map(Name::from)
    }

    /// `metadata.namespace`.
    ///
    /// # Errors
    /// It has none.
    pub fn namespace(self) -> Result<Namespace, Unreadable> {
        self.required("namespace").ok_or(Unreadable::Missing("metadata.namespace")).map(Namespace::from)
    }

    /// `metadata.uid`.
    ///
    /// # Errors
    /// It has none.
    pub fn uid(self) -> Result<Uid, Unreadable> {
        self.required("uid").ok_or(Unreadable::Missing("metadata.uid")).map(Uid::parse)
    }

    /// `metadata.resourceVersion`.
    ///
    /// # Errors
    /// It has none, or not a decimal number.
    pub fn version(self) -> Result<Version, Unreadable> {
        const FIELD: &str = "metadata.resourceVersion";
        let text = self.required("resourceVersion").ok_or(Unreadable::Missing(FIELD))?;
        text.parse().map_err(|_| unfit(FIELD, "a decimal number", text))
    }

    /// `metadata.creationTimestamp`.
    ///
    /// # Errors
    /// It has none, or not a time.
    pub fn created(self) -> Result<Time, Unreadable> {
        const FIELD: &str = "metadata.creationTimestamp";
        let text = self.required("creationTimestamp").ok_or(Unreadable::Missing(FIELD))?;
        Time::parse(text).ok_or_else(|| unfit(FIELD, "a time", text))
    }

    /// Whether it is being deleted.
    #[must_use]
    pub fn deleting(self) -> bool {
        self.meta("deletionTimestamp").is_some_and(|at| !at.is_null())
    }

    /// `metadata.annotations`.
    #[must_use]
    pub fn annotations(self) -> Option<&'a Map<String, Value>> {
        self.meta("annotations").and_then(Value::as_object)
    }

    /// The text of one annotation.
    #[must_use]
    pub fn annotation(self, name: &str) -> Option<&'a str> {
        self.annotations().and_then(|all| all.get(name)).and_then(Value::as_str)
    }

    /// A field of `metadata`.
    #[must_use]
    pub fn meta(self, field: &str) -> Option<&'a Value> {
        self.0.get("metadata").and_then(|meta| meta.get(field))
    }

    fn required(self, field: &str) -> Option<&'a str> {
        self.meta(field).and_then(Value::as_str).filter(|text| !text.is_empty())
    }
}

fn unfit(field: &'static str, expected: &'static str, found: &str) -> Unreadable {
    Unreadable::Unfit { field, expected, found: shown(found) }
}

/// A field's elements; none if it isn't an array.
pub fn elements<'a>(of: &'a Value, field: &str) -> impl Iterator<Item = &'a Value> {
    of.get(field).and_then(Value::as_array).into_iter().flatten()
}

/// A field's text, unless it is empty or isn't text.
#[must_use]
pub fn text<'a>(of: &'a Value, field: &str) -> Option<&'a str> {
    of.get(field).and_then(Value::as_str).filter(|text| !text.is_empty())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::nothing(json!(null), "metadata.resourceVersion is missing")]
    #[case::no_object(json!([1]), "metadata.resourceVersion is missing")]
    #[case::a_number(json!({"metadata": {"resourceVersion": 7}}), "metadata.resourceVersion is missing")]
    #[case::empty(json!({"metadata": {"resourceVersion": ""}}), "metadata.resourceVersion is missing")]
    #[case::no_number(
        json!({"metadata": {"resourceVersion": "x\n"}}),
        r#"metadata.resourceVersion isn't a decimal number: "x\n""#
    )]
    fn what_an_object_lacks_is_named(#[case] object: Value, #[case] words: &str) {
        assert_eq!(Raw(&object).version().unwrap_err().to_string(), words);
    }

    #[test]
    fn what_it_has_is_read() {
        let object = json!({"metadata": {
            "name": "n", "namespace": "ns", "uid": "u", "resourceVersion": "7",
            "creationTimestamp": "2026-12-01T03:21:07Z", "deletionTimestamp": null, "annotations": {"a": "b", "c": 1},
        }});
        let raw = Raw(&object);
        assert_eq!(raw.name().unwrap().as_ref(), "n");
        assert_eq!(raw.namespace().unwrap().as_ref(), "ns");
        assert_eq!(raw.uid(), Ok(Uid::parse("u")));
        assert_eq!(raw.version(), Ok(Version(7)));
        assert_eq!(raw.created().unwrap().to_string(), "2026-12-01T03:21:07Z");
        assert!(!raw.deleting());
        assert_eq!((raw.annotation("a"), raw.annotation("c")), (Some("b"), None));
    }
}
