//! Finds pod templates in manifests, of whatever kind. Pure.

use serde_json::{Value, json};

use super::yaml::{Content, Node, Place};

/// An object of a manifest.
#[derive(Clone, Debug)]
pub struct Object {
    /// Where it begins.
    pub place: Place,
    /// The whole of it.
    pub value: Value,
    /// Its pod templates.
    pub templates: Vec<Template>,
}

/// A pod template.
#[derive(Clone, Debug, PartialEq)]
pub struct Template {
    /// Where it begins.
    pub place: Place,
    /// Where it lies in its object, field names with dots between; empty for a Pod.
    pub path: String,
    /// The template: `metadata` and `spec`.
    pub value: Value,
}

/// The objects of a document: itself, or the items of a List.
#[must_use]
pub fn objects(document: &Node) -> Vec<Object> {
    if let Content::List(elements) = &document.content {
        return elements.iter().flat_map(objects).collect();
    }
    let is_list = document.get("kind").and_then(Node::text).is_some_and(|kind| kind.ends_with("List"));
    match document.get("items") {
        Some(items) if is_list => items.elements().iter().flat_map(objects).collect(),
        _ if document.get("kind").is_none() => Vec::new(),
        _ => {
            let mut templates = Vec::new();
            find(document, None, &mut Vec::new(), &mut templates);
            vec![Object { place: document.place, value: document.value(), templates }]
        }
    }
}

/// Whatever holds a list of containers is a pod's spec, and what holds that as `spec` is its template: so kinds that nobody
/// has heard of are found too.
fn find<'a>(node: &'a Node, parent: Option<&'a Node>, path: &mut Vec<&'a str>, found: &mut Vec<Template>) {
    match &node.content {
        Content::Scalar(_) => {}
        Content::List(elements) => {
            for element in elements {
                find(element, None, path, found);
            }
        }
        Content::Map(_) if has_containers(node) => found.push(template(node, parent, path)),
        Content::Map(entries) => {
            for (name, child) in entries {
                path.push(name);
                find(child, Some(node), path, found);
                path.pop();
            }
        }
    }
}

fn has_containers(node: &Node) -> bool {
    let containers = node.get("containers").map(Node::elements).unwrap_or_default();
    containers.iter().any(|container| matches!(container.content, Content::Map(_)))
}

fn template(spec: &Node, parent: Option<&Node>, path: &[&str]) -> Template {
    match (parent, path.split_last()) {
        (Some(parent), Some((&"spec", above))) => {
            Template { place: parent.place, path: above.join("."), value: parent.value() }
        }
        _ => Template { place: spec.place, path: path.join("."), value: json!({"spec": spec.value()}) },
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::{super::yaml::documents, *};

    fn paths(text: &str) -> Vec<String> {
        let (documents, _) = documents(text);
        let objects: Vec<Object> = documents.iter().flat_map(objects).collect();
        objects.into_iter().flat_map(|object| object.templates).map(|template| template.path).collect()
    }

    #[rstest]
    #[case("{kind: Pod, spec: {containers: [{name: c}]}}", "")]
    #[case("{kind: Deployment, spec: {template: {spec: {containers: [{name: c}]}}}}", "spec.template")]
    #[case(
        "{kind: CronJob, spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: c}]}}}}}}",
        "spec.jobTemplate.spec.template"
    )]
    #[case("{kind: App, spec: {workload: {template: {spec: {containers: [{}]}}}}}", "spec.workload.template")]
    #[case("{kind: App, spec: {podSpec: {containers: [{name: c}]}}}", "spec.podSpec")]
    #[case(
        "{kind: Flow, spec: {steps: [{template: {spec: {containers: [{name: c}]}}}]}}",
        "spec.steps.template"
    )]
    fn a_template_is_found_in_any_kind(#[case] text: &str, #[case] path: &str) {
        assert_eq!(paths(text), [path]);
    }

    #[rstest]
    #[case("{kind: ConfigMap, data: {containers: x}}")]
    #[case("{kind: CustomResourceDefinition, spec: {properties: {containers: {type: array}}}}")]
    #[case("{kind: X, spec: {containers: [a, b]}}")]
    #[case("just: text")]
    #[case("- 1")]
    fn what_has_none_has_none(#[case] text: &str) {
        assert_eq!(paths(text), Vec::<String>::new());
    }

    #[test]
    fn lists_are_opened_and_places_kept() {
        let text = "kind: List\nitems:\n- kind: Pod\n  spec:\n    containers: [{name: a}]\n- kind: DeploymentList\n  items:\n  - kind: Deployment\n    spec:\n      template:\n        spec: {containers: [{name: b}]}\n";
        let (documents, _) = documents(text);
        let objects = objects(&documents[0]);
        let lines: Vec<usize> = objects.iter().map(|object| object.place.line).collect();
        assert_eq!(lines, [3, 8]);
        assert_eq!(objects[1].templates[0].place.line, 11);
    }
}
