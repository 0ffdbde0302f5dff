//! By which labels a workload's pods are found, so that a look at it costs what its pods cost and not what its namespace does.
//!
//! The controllers of the API server's own kinds own only what their selector matches: a pod that stops matching is
//! released (kubernetes `pkg/controller/controller_ref_manager.go`). So a list by these labels lacks none of a workload's
//! pods; whose a pod is says its owner as ever.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};

use serde_json::Value;

use crate::facts::Kind;

/// A longer query isn't worth it, and proxies cut what is much longer.
const MOST_BYTES: usize = 2000;

/// The labels that all pods of a workload have: its `matchLabels`, as `key=value,…`, sorted. Empty where they aren't known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selector(Box<str>);

impl Selector {
    /// Of those labels.
    pub fn new<'a>(labels: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let sorted: BTreeMap<&str, &str> = labels.into_iter().collect();
        let all: Vec<String> = sorted.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Self(all.join(",").into())
    }

    /// Of a workload. What selects pods for a custom kind isn't known.
    #[must_use]
    pub fn of(kind: &Kind, object: &Value) -> Self {
        let labels = || object.get("spec")?.get("selector")?.get("matchLabels")?.as_object();
        match kind {
            Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet => {
                let labels = labels().into_iter().flatten();
                Self::new(labels.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?))))
            }
            Kind::Custom(_) => Self::default(),
        }
    }

    fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.split(',').filter_map(|label| label.split_once('='))
    }
}

/// Which of a namespace's pods are listed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Selection {
    /// All of them.
    #[default]
    All,
    /// Those whose labels have one of these values for each key.
    Labels(BTreeMap<Box<str>, BTreeSet<Box<str>>>),
}

impl Selection {
    /// What holds all pods of these workloads, and few others: for each label that all of them have, any of their values.
    pub fn of<'a>(selectors: impl IntoIterator<Item = &'a Selector>) -> Self {
        let mut selectors = selectors.into_iter();
        let mut shared: BTreeMap<Box<str>, BTreeSet<Box<str>>> = BTreeMap::new();
        for (key, value) in selectors.next().into_iter().flat_map(Selector::labels) {
            shared.insert(key.into(), BTreeSet::from([value.into()]));
        }
        for selector in selectors {
            let mut labels: BTreeMap<&str, &str> = selector.labels().collect();
            shared.retain(|key, values| {
                labels.remove(&**key).is_some_and(|value| {
                    values.insert(value.into());
                    true
                })
            });
        }
        let selection = Self::Labels(shared);
        let length = selection.to_string().len();
        if (1..=MOST_BYTES).contains(&length) { selection } else { Self::All }
    }

    /// Whether an object with these labels is among them.
    pub fn matches<'a>(&self, labels: impl Fn(&str) -> Option<&'a str>) -> bool {
        match self {
            Self::All => true,
            Self::Labels(wanted) => {
                wanted.iter().all(|(key, values)| labels(key).is_some_and(|value| values.contains(value)))
            }
        }
    }
}

/// As the API server's `labelSelector`; empty for all.
impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Labels(wanted) = self else { return Ok(()) };
        for (at, (key, values)) in wanted.iter().enumerate() {
            let values: Vec<&str> = values.iter().map(AsRef::as_ref).collect();
            write!(f, "{}{key} in ({})", if at == 0 { "" } else { "," }, values.join(","))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::none(&[], "")]
    #[case::one(&["app=web,tier=front"], "app in (web),tier in (front)")]
    #[case::what_they_share(&["app=web,tier=front", "app=api,team=a"], "app in (api,web)")]
    #[case::nothing_shared(&["app=web", "name=api"], "")]
    #[case::one_is_unknown(&["app=web", ""], "")]
    fn a_selection_holds_what_all_of_them_have(#[case] labels: &[&str], #[case] query: &str) {
        let selectors: Vec<Selector> = labels.iter().map(|labels| Selector((*labels).into())).collect();
        let selection = Selection::of(&selectors);
        assert_eq!(selection.to_string(), query);
        assert_eq!(selection == Selection::All, query.is_empty());
    }

    #[test]
    fn too_many_values_are_all() {
        let names: Vec<String> = (0..400).map(|n| format!("web-{n}")).collect();
        let selectors: Vec<Selector> =
            names.iter().map(|name| Selector::new([("app", name.as_str())])).collect();
        assert_eq!(Selection::of(&selectors), Selection::All);
    }

    #[rstest]
    #[case(Kind::Deployment, json!({"spec": {"selector": {"matchLabels": {"b": "2", "a": "1"}}}}), "a=1,b=2")]
    #[case(Kind::DaemonSet, json!({"spec": {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}}), "")]
    #[case(Kind::StatefulSet, json!({"spec": {}}), "")]
    fn a_workload_selects_by_its_labels(#[case] kind: Kind, #[case] object: Value, #[case] labels: &str) {
        assert_eq!(&*Selector::of(&kind, &object).0, labels);
    }

    proptest! {
        /// Whatever the workloads' labels are: no pod of any of them is left out.
        #[test]
        fn no_pod_of_theirs_is_left_out(
            workloads in proptest::collection::vec(
                proptest::collection::btree_map("[a-d]", "[x-z]", 0..4), 1..6,
            ),
            more in proptest::collection::btree_map("[e-g]", "[x-z]", 0..3),
        ) {
            let selectors: Vec<Selector> = workloads
                .iter()
                .map(|labels| Selector::new(labels.iter().map(|(key, value)| (key.as_str(), value.as_str()))))
                .collect();
            let selection = Selection::of(&selectors);
            for labels in &workloads {
                let label = |key: &str| labels.get(key).or_else(|| more.get(key)).map(String::as_str);
                prop_assert!(selection.matches(label), "{selection}");
            }
        }
    }
}
