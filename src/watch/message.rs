//! What a watch's lines and a list's pages say, before objects are read. Nothing here has a `Debug`.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::{cluster::Status, facts::Version};

/// A line of a watch.
pub enum Message<'a> {
    /// An object, new or changed.
    Applied(Meta, &'a [u8]),
    /// An object is gone; as of that version.
    Deleted(Meta, Version),
    /// All up to this version has been delivered.
    Bookmark {
        /// The version.
        version: Version,
        /// Whether it ends the initial list.
        initial_end: bool,
    },
    /// The server ends the watch.
    Error(Status),
}

/// The identity of an object.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Meta {
    /// Its name.
    #[serde(default)]
    pub name: String,
    /// Its namespace; empty for objects without one.
    #[serde(default)]
    pub namespace: String,
    /// Its version, as it stands.
    #[serde(default)]
    resource_version: String,
    #[serde(default)]
    annotations: Option<InitialEnd>,
}

impl Meta {
    /// The object's identity; none if it has none.
    pub fn of(object: &[u8]) -> Option<Self> {
        serde_json::from_slice::<Identified>(object).ok().map(|identified| identified.metadata)
    }

    /// The object's version.
    pub fn version(&self) -> Option<Version> {
        self.resource_version.parse().ok()
    }
}

#[derive(Deserialize)]
struct Identified {
    metadata: Meta,
}

/// Of all annotations only this one: others may hold copies of values (kubectl's last-applied).
#[derive(Deserialize)]
struct InitialEnd {
    #[serde(default, rename = "k8s.io/initial-events-end")]
    initial_end: Option<String>,
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    event: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

impl<'a> Message<'a> {
    /// Reads a line; none if it isn't one. The reason isn't given: it would quote the line.
    pub fn read(line: &'a [u8]) -> Option<Self> {
        let line: Line<'a> = serde_json::from_slice(line).ok()?;
        let object = line.object.get().as_bytes();
        if line.event == "ERROR" {
            return Status::read(object).map(Self::Error);
        }
        let meta = Meta::of(object)?;
        let version = meta.version()?;
        match line.event {
            "ADDED" | "MODIFIED" => Some(Self::Applied(meta, object)),
            "DELETED" => Some(Self::Deleted(meta, version)),
            "BOOKMARK" => {
                let end = meta.annotations.and_then(|annotations| annotations.initial_end);
                Some(Self::Bookmark { version, initial_end: end.as_deref() == Some("true") })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_initial_list_ends_with_a_marked_bookmark() {
        let line = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9","annotations":{"k8s.io/initial-events-end":"true"}}}}"#;
        assert!(matches!(
            Message::read(line),
            Some(Message::Bookmark { version: Version(9), initial_end: true })
        ));
        let line = br#"{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}"#;
        assert!(matches!(Message::read(line), Some(Message::Bookmark { initial_end: false, .. })));
    }

    #[test]
    fn what_is_no_message_is_none() {
        for line in [
            "",
            "{}",
            r#"{"type":"ADDED"}"#,
            r#"{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"x"}}}"#,
            r#"{"type":"ADDED","object":{"metadata":{"name":"a","#,
            r#"{"type":"LATER","object":{"metadata":{"name":"a","resourceVersion":"1"}}}"#,
        ] {
            assert!(Message::read(line.as_bytes()).is_none(), "{line}");
        }
    }
}
