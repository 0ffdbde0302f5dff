//! Reads a Secret: values are hashed at once and wiped.

use std::{collections::BTreeMap, fmt};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::{
    Deserialize, Deserializer,
    de::{self, IgnoredAny, MapAccess, Visitor},
};
use zeroize::Zeroizing;

use super::{
    message::Meta,
    read::{Read, Reading},
};
use crate::{
    catalog::{KeyFacts, SecretAnnotations, SecretFacts},
    facts::{Namespace, SecretId, Time, Uid},
    ledger::DigestKey,
};

/// Reads Secrets as facts.
pub struct Secrets {
    /// Under which values are hashed.
    pub key: DigestKey,
    /// The namespaces that are left alone.
    pub ignored: Vec<Namespace>,
}

impl Read for Secrets {
    type Item = SecretFacts;
    type Id = SecretId;

    fn wants(&self, meta: &Meta) -> bool {
        !self.ignored.iter().any(|ignored| **ignored == *meta.namespace)
    }

    fn read(&self, object: &[u8]) -> Reading<SecretFacts> {
        read(object, &self.key).into()
    }

    fn id(&self, meta: &Meta) -> SecretId {
        SecretId::new(meta.namespace.as_str(), meta.name.as_str())
    }
}

/// The facts of a Secret; none if it can't be read. The reason isn't given: it would quote values.
#[must_use]
pub fn read(object: &[u8], key: &DigestKey) -> Option<SecretFacts> {
    let secret: Object = serde_json::from_slice(object).ok()?;
    let Metadata { name, namespace, uid, resource_version, creation_timestamp, annotations, managed_fields } =
        secret.metadata;
    let data = secret.data.unwrap_or_default();
    let written = Written::of(managed_fields.unwrap_or_default());
    let all = key.of_all(&namespace, &name, Some(data.iter().map(|(name, value)| (&**name, &value.0))));
    let keys = data.iter().map(|(key_name, value)| KeyFacts {
        name: (&**key_name).into(),
        digest: key.of_key(&namespace, &name, key_name, Some(&value.0)),
        written: written.keys.get(&**key_name).copied(),
    });
    Some(SecretFacts {
        keys: keys.collect(),
        id: SecretId::new(namespace, name),
        uid: Uid::parse(&uid),
        version: resource_version.parse().ok()?,
        created: Time::parse(&creation_timestamp)?,
        all,
        written: written.any,
        annotations: annotations.unwrap_or_default().0,
    })
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    /// Sorted by key, in bytes, as the digest over all wants it.
    #[serde(default)]
    data: Option<BTreeMap<Box<str>, Value>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    name: String,
    namespace: String,
    uid: String,
    resource_version: String,
    creation_timestamp: String,
    #[serde(default)]
    annotations: Option<Annotations>,
    #[serde(default)]
    managed_fields: Option<Vec<Managed>>,
}

/// A value, decoded from base64 and wiped when it is dropped.
#[derive(Default)]
pub struct Value(pub Zeroizing<Vec<u8>>);

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Value(..)")
    }
}

impl<'de> Deserialize<'de> for Value {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Base64;
        impl Visitor<'_> for Base64 {
            type Value = Value;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("base64")
            }

            // Decoded from where it stands: no copy of the text is made.
            fn visit_str<E: de::Error>(self, text: &str) -> Result<Value, E> {
                let bytes = BASE64_STANDARD.decode(text).map_err(|_| E::custom("not base64"))?;
                Ok(Value(Zeroizing::new(bytes)))
            }

            // Go writes an empty value as null when it was never a slice.
            fn visit_unit<E: de::Error>(self) -> Result<Value, E> {
                Ok(Value::default())
            }
        }
        from.deserialize_any(Base64)
    }
}

/// Of all annotations only ours: kubectl's last-applied one holds a copy of all values.
#[derive(Default)]
struct Annotations(SecretAnnotations);

/// An unparsed annotation is kept up to this length; any longer one means nothing, and neither does its beginning.
const ANNOTATION_LIMIT: usize = 256;

impl<'de> Deserialize<'de> for Annotations {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Ours {
            #[serde(default, rename = "uptake.dev/rollout")]
            rollout: Option<String>,
            #[serde(default, rename = "uptake.dev/release")]
            release: Option<String>,
        }
        let Ours { rollout, release } = Ours::deserialize(from)?;
        Ok(Self(SecretAnnotations {
            rollout: rollout.map(|text| cut(&text)),
            release: release.map(|text| cut(&text)),
        }))
    }
}

/// The text's beginning, short enough to be kept.
pub(super) fn cut(text: &str) -> Box<str> {
    text.chars().take(ANNOTATION_LIMIT).collect::<String>().into()
}

#[derive(Deserialize)]
struct Managed {
    #[serde(default)]
    time: Option<String>,
    #[serde(default, rename = "fieldsV1")]
    fields: Option<Fields>,
}

#[derive(Deserialize)]
struct Fields {
    #[serde(default, rename = "f:data")]
    data: Option<KeyNames>,
    #[serde(default, rename = "f:stringData")]
    string_data: Option<KeyNames>,
}

/// The keys that an entry owns.
struct KeyNames(Vec<Box<str>>);

impl<'de> Deserialize<'de> for KeyNames {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct Names;
        impl<'de> Visitor<'de> for Names {
            type Value = KeyNames;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a set of fields")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<KeyNames, A::Error> {
                let mut names = Vec::new();
                while let Some((field, IgnoredAny)) = map.next_entry::<String, IgnoredAny>()? {
                    names.extend(field.strip_prefix("f:").map(Into::into));
                }
                Ok(KeyNames(names))
            }
        }
        from.deserialize_map(Names)
    }
}

/// When data was last written, as far as `managedFields` tell: the latest time of all entries that own it.
#[derive(Default)]
struct Written {
    any: Option<Time>,
    keys: BTreeMap<Box<str>, Time>,
}

impl Written {
    fn of(entries: Vec<Managed>) -> Self {
        let mut written = Self::default();
        for Managed { time, fields } in entries {
            let (Some(time), Some(fields)) = (time.as_deref().and_then(Time::parse), fields) else {
                continue;
            };
            for KeyNames(names) in [fields.data, fields.string_data].into_iter().flatten() {
                written.any = written.any.max(Some(time));
                for name in names {
                    let latest = written.keys.entry(name).or_insert(time);
                    *latest = time.max(*latest);
                }
            }
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{facts::Version, ledger::KEY_BYTES};

    fn key() -> DigestKey {
        DigestKey::new([1; KEY_BYTES])
    }

    fn secret() -> serde_json::Value {
        json!({
            "apiVersion": "v1", "kind": "Secret", "type": "Opaque",
            "metadata": {
                "name": "db", "namespace": "demo", "uid": "u", "resourceVersion": "7",
                "creationTimestamp": "2026-12-01T00:00:00Z",
                "annotations": {"uptake.dev/rollout": "off", "other": "x"},
                "managedFields": [
                    {"manager": "a", "time": "2026-12-01T00:00:05Z",
                     "fieldsV1": {"f:data": {".": {}, "f:user": {}, "f:password": {}}, "f:type": {}}},
                    {"manager": "b", "time": "2026-12-01T00:00:09Z",
                     "fieldsV1": {"f:stringData": {"f:password": {}}}},
                    {"manager": "c", "time": "2026-12-01T00:00:30Z",
                     "fieldsV1": {"f:metadata": {"f:labels": {"f:x": {}}}}},
                ],
            },
            "data": {"user": "YQ==", "password": "aHVudGVyMg==", "empty": "", "null": null},
        })
    }

    fn facts(secret: &serde_json::Value) -> Option<SecretFacts> {
        read(secret.to_string().as_bytes(), &key())
    }

    #[test]
    fn values_are_hashed_and_keys_are_sorted() {
        let facts = facts(&secret()).unwrap();
        let names: Vec<_> = facts.keys.iter().map(|key| &*key.name).collect();
        assert_eq!(names, ["empty", "null", "password", "user"]);
        let password = key().of_key("demo", "db", "password", Some(b"hunter2"));
        assert_eq!(facts.key("password").unwrap().digest, password);
        let data = [("empty", ""), ("null", ""), ("password", "hunter2"), ("user", "a")];
        assert_eq!(facts.all, key().of_all("demo", "db", Some(data.into_iter())));
        assert_eq!(facts.version, Version(7));
        assert_eq!(facts.annotations.rollout.as_deref(), Some("off"));
    }

    #[test]
    fn the_latest_time_of_all_owners_counts_and_only_of_data() {
        let facts = facts(&secret()).unwrap();
        let at = |text: &str| Time::parse(&format!("2026-12-01T00:00:{text}Z"));
        assert_eq!(facts.key("password").unwrap().written, at("09"));
        assert_eq!(facts.key("user").unwrap().written, at("05"));
        assert_eq!(facts.key("empty").unwrap().written, None);
        assert_eq!(facts.written, at("09"));
    }

    #[test]
    fn a_secret_without_data_is_an_empty_one() {
        let mut none = secret();
        none["data"] = serde_json::Value::Null;
        let mut empty = secret();
        empty["data"] = json!({});
        assert_eq!(facts(&none).unwrap().all, facts(&empty).unwrap().all);
    }

    #[test]
    fn a_value_that_is_no_base64_makes_it_unreadable() {
        let mut bad = secret();
        bad["data"]["password"] = "%hunter2%".into();
        assert_eq!(facts(&bad), None);
    }

    #[test]
    fn a_long_annotation_is_cut() {
        let mut long = secret();
        long["metadata"]["annotations"]["uptake.dev/rollout"] = "é".repeat(200_000).into();
        assert_eq!(facts(&long).unwrap().annotations.rollout.unwrap().chars().count(), ANNOTATION_LIMIT);
    }

    #[test]
    fn no_value_is_printed() {
        assert_eq!(format!("{:?}", Value(Zeroizing::new(b"hunter2".to_vec()))), "Value(..)");
    }
}
