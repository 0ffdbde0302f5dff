//! Paths into JSON.

use serde_json::Value;

/// All that lies at a path such as `env[*].valueFrom.secretKeyRef`: each step is a field, `[*]` after it
/// stands for each element of its array. Where something else lies on the way, there is nothing.
pub(super) fn find<'a>(from: &'a Value, path: &str) -> Vec<&'a Value> {
    let mut found = vec![from];
    for step in path.split('.') {
        found = match step.strip_suffix("[*]") {
            Some(field) => {
                found.into_iter().flat_map(|value| crate::facts::raw::elements(value, field)).collect()
            }
            None => found.into_iter().filter_map(|value| value.get(step)).collect(),
        };
    }
    found
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case("a.b", json!({"a": {"b": 1}}), vec![json!(1)])]
    #[case("a[*].b", json!({"a": [{"b": 1}, {"c": 2}, {"b": 3}, null, "x"]}), vec![json!(1), json!(3)])]
    #[case("a[*].b", json!({"a": {"b": 1}}), vec![])]
    #[case("a.b", json!({"a": [{"b": 1}]}), vec![])]
    #[case("a.b", json!("a"), vec![])]
    #[case("a[*].b[*]", json!({"a": [{"b": [1, 2]}, {"b": 3}]}), vec![json!(1), json!(2)])]
    fn a_path_finds_what_lies_there(#[case] path: &str, #[case] from: Value, #[case] expected: Vec<Value>) {
        assert_eq!(find(&from, path), expected.iter().collect::<Vec<_>>());
    }
}
