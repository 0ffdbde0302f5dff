//! Fails when Kubernetes grows a field that names a Secret and that the table doesn't know.
//!
//! It walks the schema of `PodSpec` of the pinned `k8s-openapi`, as kubernetes' own test of `VisitPodSecretNames` walks
//! the Go type (`pkg/api/v1/pod/util_test.go`).

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::PodSpec;
use serde_json::Value;

use super::table::{CONTAINERS, ROWS, Row, VOLUMES, Within};

/// Fields that have to do with Secrets and name none in the template's own namespace, each with its reason.
const NO_REFERENCES: [(&str, &str); 1] =
    [("volumes[*].cephfs.secretFile", "a path on the node; the Secret that may stand instead is secretRef")];

#[test]
fn every_field_that_names_a_secret_is_in_the_table() {
    let known: BTreeSet<String> = ROWS
        .iter()
        .flat_map(|row| places(row).into_iter().flat_map(|place| [format!("{place}.{}", row.name), place]))
        .chain(NO_REFERENCES.iter().map(|(path, _)| (*path).to_owned()))
        .collect();
    let unknown: Vec<String> = fields()
        .into_iter()
        .filter(|field| field.names_a_secret && !known.contains(&field.path))
        .map(|field| field.path)
        .collect();
    assert_eq!(unknown, Vec::<String>::new(), "add a row to the table, or the reason why it is no reference");
}

#[test]
fn every_row_of_the_table_is_a_field() {
    let fields: BTreeSet<String> = fields().into_iter().map(|field| field.path).collect();
    let missing: Vec<String> = ROWS
        .iter()
        .flat_map(|row| places(row).into_iter().map(|place| format!("{place}.{}", row.name)))
        .chain(NO_REFERENCES.iter().map(|(path, _)| (*path).to_owned()))
        .filter(|path| !fields.contains(path))
        .collect();
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn the_walk_sees_what_kubernetes_1_36_has() {
    let seen: Vec<String> =
        fields().into_iter().filter(|field| field.names_a_secret).map(|field| field.path).collect();
    assert!(seen.contains(&"initContainers[*].env[*].valueFrom.secretKeyRef".to_owned()), "{seen:?}");
    assert!(seen.contains(&"volumes[*].projected.sources[*].secret".to_owned()), "{seen:?}");
    assert!(seen.contains(&"imagePullSecrets[*]".to_owned()), "{seen:?}");
}

/// Where a row's path lies in a pod's spec.
fn places(row: &Row) -> Vec<String> {
    match row.within {
        Within::Container => CONTAINERS.iter().map(|list| format!("{list}[*].{}", row.path)).collect(),
        Within::Volume => vec![format!("{VOLUMES}[*].{}", row.path)],
        Within::Pod => vec![row.path.to_owned()],
    }
}

struct Field {
    /// Its path in a pod's spec; an array's is that of its elements.
    path: String,
    /// Its name or its type's has to do with Secrets.
    names_a_secret: bool,
}

fn fields() -> Vec<Field> {
    let root = schemars::SchemaGenerator::default().into_root_schema_for::<PodSpec>();
    let root = serde_json::to_value(root).unwrap();
    let mut walk = Walk { root: &root, within: Vec::new(), found: Vec::new() };
    walk.properties(&root, "");
    walk.found
}

struct Walk<'a> {
    root: &'a Value,
    /// The types that the walk is in, so that one that contains itself ends it.
    within: Vec<String>,
    found: Vec<Field>,
}

impl Walk<'_> {
    /// The properties of a schema, with `path` as what stands before them.
    fn properties(&mut self, schema: &Value, path: &str) {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            self.field(name, schema, path);
        }
    }

    fn field(&mut self, name: &str, schema: &Value, path: String) {
        let mut types = Vec::new();
        let (elements, schema) = match schema.get("items") {
            Some(items) => ("[*]", items),
            None => ("", schema),
        };
        let path = path + elements;
        alternatives(schema, &mut types);
        let secret = |text: &str| text.to_lowercase().contains("secret");
        let named: Vec<String> = types.iter().filter_map(|schema| type_name(schema)).collect();
        let names_a_secret = secret(name) || named.iter().any(|name| secret(name));
        self.found.push(Field { path: path.clone(), names_a_secret });
        for schema in types {
            match type_name(schema) {
                None => self.properties(schema, &path),
                Some(name) if self.within.contains(&name) => {}
                Some(name) => {
                    let root = self.root;
                    self.within.push(name.clone());
                    self.properties(&root["$defs"][&name], &path);
                    self.within.pop();
                }
            }
        }
    }
}

/// A schema and those it is made of.
fn alternatives<'a>(schema: &'a Value, all: &mut Vec<&'a Value>) {
    all.push(schema);
    for word in ["allOf", "anyOf", "oneOf"] {
        for alternative in schema[word].as_array().into_iter().flatten() {
            alternatives(alternative, all);
        }
    }
}

/// The name of the type that a schema refers to.
fn type_name(schema: &Value) -> Option<String> {
    Some(schema["$ref"].as_str()?.rsplit('/').next()?.replace("~1", "/"))
}
