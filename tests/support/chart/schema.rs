//! The JSON schema of the values: what isn't named is refused.

use super::values::{Described, Section};
use serde_json::{Value, json};

pub fn text(sections: &[Section]) -> String {
    let mut schema = group();
    schema["$schema"] = json!("http://json-schema.org/draft-07/schema#");
    schema["title"] = json!("Values of the chart uptake");
    for value in sections.iter().flat_map(|section| &section.values) {
        let mut at = &mut schema;
        let (name, groups) = value.path.split_last().expect("a path has a name");
        for name in groups {
            let known = &mut at["properties"][name.as_str()];
            if known.is_null() {
                *known = group();
            }
            at = known;
        }
        at["properties"][name.as_str()] = property(value);
    }
    serde_json::to_string_pretty(&schema).expect("it is JSON") + "\n"
}

fn group() -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": {} })
}

fn property(value: &Described) -> Value {
    let mut property = json!({ "description": value.description, "default": value.default });
    property["type"] = json!(match value.default {
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
        Value::String(_) | Value::Null => "string",
    });
    for (key, said) in value.schema.iter().filter_map(Value::as_object).flatten() {
        property[key] = said.clone();
    }
    property
}
