//! Events as the API server takes them.

use serde_json::{Map, Value, json};

use crate::{
    facts::{Time, class_of},
    record::{EventNote, NoteType, ObjectRef, Reason},
};

/// `reportingController` of all Events.
pub const CONTROLLER: &str = "uptake.dev/controller";
/// The API's limit of `note`, in bytes.
const NOTE_LIMIT: usize = 1024;
/// The API's limit of a label's value.
const LABEL_LIMIT: usize = 63;
/// The namespace that the Event lies in: the API demands its object's.
pub fn namespace(note: &EventNote) -> &str {
    &note.regarding.namespace
}

/// The Event's manifest.
pub fn manifest(note: &EventNote, instance: &str) -> Value {
    let mut labels = Map::new();
    if let Some(source) = &note.secret {
        let (label, name) = match class_of(source) {
            Some(class) => ("uptake.dev/secret-provider-class", class),
            None => ("uptake.dev/secret", &**source),
        };
        if name.len() <= LABEL_LIMIT {
            labels.insert(label.to_owned(), name.into());
        }
    }
    let mut event = json!({
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": note.name, "namespace": namespace(note), "labels": labels},
        "eventTime": micro_time(note.at),
        "reportingController": CONTROLLER,
        "reportingInstance": cut(instance, 128),
        "action": action(note.reason),
        "reason": note.reason.as_str(),
        "regarding": reference(&note.regarding),
        "note": cut(&note.note, NOTE_LIMIT),
        "type": match note.reason.note_type() {
            NoteType::Normal => "Normal",
            NoteType::Warning => "Warning",
        },
    });
    if let Some(related) = &note.related {
        event["related"] = reference(related);
    }
    event
}

/// What Uptake was doing: the API demands a word for it.
const fn action(reason: Reason) -> &'static str {
    match reason {
        Reason::RolloutStarted
        | Reason::RolloutCompleted
        | Reason::RolloutFailed
        | Reason::RolloutBlocked
        | Reason::RolloutSuperseded
        | Reason::RolloutRefused
        | Reason::ConsumersRolled => "Roll",
        Reason::RolloutHeld | Reason::BreakerOpen | Reason::ChangesTooFast => "Hold",
        Reason::WouldRoll | Reason::NothingToDo | Reason::StaleAtFirstSight => "Report",
        Reason::InvalidAnnotation | Reason::InventoryUnknown => "Read",
    }
}

fn reference(of: &ObjectRef) -> Value {
    let mut reference = json!({
        "apiVersion": of.api_version, "kind": of.kind, "namespace": &*of.namespace, "name": &*of.name,
    });
    if let Some(uid) = of.uid {
        reference["uid"] = uid.to_string().into();
    }
    reference
}

fn micro_time(at: Time) -> String {
    let at = jiff::Timestamp::from_millisecond(at.0).unwrap_or_default();
    at.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

/// The text's beginning, of at most so many bytes, cut between two characters.
fn cut(text: &str, limit: usize) -> &str {
    if text.len() <= limit {
        return text;
    }
    let end = (0..=limit).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::{Kind, Uid, WorkloadId};

    fn note() -> EventNote {
        let id = WorkloadId::new(Kind::Deployment, "a", "d");
        EventNote {
            name: "d.1".to_owned(),
            regarding: ObjectRef::workload(&id, Uid(1)),
            related: None,
            reason: Reason::RolloutFailed,
            note: "é".repeat(600),
            at: Time(1_700_000_000_250),
            secret: Some("s".repeat(64).into()),
        }
    }

    #[test]
    fn limits_of_the_api_are_kept() {
        let event = manifest(&note(), "pod-0");
        assert_eq!(event["note"].as_str().unwrap().len(), 1024);
        assert_eq!(event["metadata"]["labels"], json!({}));
        assert_eq!(event["eventTime"], "2023-11-14T22:13:20.250000Z");
        assert_eq!(event["type"], "Warning");
        assert_eq!(event["regarding"]["uid"], "00000000-0000-0000-0000-000000000001");
    }

    #[test]
    fn a_note_is_cut_between_characters() {
        assert_eq!(cut("aé", 2), "a");
        assert_eq!(cut("aé", 3), "aé");
    }

    #[test]
    fn an_event_about_a_namespace_lies_in_it() {
        let mut note = note();
        note.regarding = ObjectRef::namespace(&"a".into(), None);
        assert_eq!(namespace(&note), "a");
        assert_eq!(manifest(&note, "x")["regarding"]["namespace"], "a");
    }
}
