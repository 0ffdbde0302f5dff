//! Least rights: over all that the cluster tests' operators asked of the API server, nothing was forbidden, and every right
//! that the chart gives was used. Runs after them (`make test`), on what their audit logs left.

// Helpers of tests fail them as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/rules.rs"]
mod rules;

mod asked;

use asked::{Asked, Operator, Rights, all};
use serde_json::Value;

#[test]
fn nothing_was_forbidden() {
    let forbidden: Vec<String> = all()
        .iter()
        .filter(|(_, asked)| asked.is_forbidden)
        .map(|(operator, asked)| {
            format!("{} by {:?} in {}", asked.uri, operator.rights, operator.own_namespace)
        })
        .collect();
    assert!(
        forbidden.is_empty(),
        "{} requests: {:#?}",
        forbidden.len(),
        &forbidden[..forbidden.len().min(10)]
    );
}

#[test]
fn every_right_was_used() {
    let all = all();
    let own = |operator: &Operator, asked: &Asked| asked.namespace == operator.own_namespace;
    let elsewhere = |operator: &Operator, asked: &Asked| asked.namespace != operator.own_namespace;
    let mut unused = Vec::new();
    let mut look = |of: Rights, role: &str, rules: &Value, place: &dyn Fn(&Operator, &Asked) -> bool| {
        for right in rights(rules) {
            let used = all.iter().any(|(operator, asked)| {
                operator.rights == of
                    && place(operator, asked)
                    && right.allows(asked, &operator.own_namespace)
            });
            if !used {
                unused.push(format!("{role}: {right:?}"));
            }
        }
    };
    look(Rights::Cluster, "ClusterRole", &rules::cluster_wide(), &elsewhere);
    look(Rights::Rollouts, "ClusterRole for a custom kind", &for_rollouts(), &elsewhere);
    look(Rights::Cluster, "Role in its own namespace", &rules::own(OWN), &own);
    look(Rights::Roles, "Role in watched namespaces", &rules::watched(WATCHED), &elsewhere);
    look(Rights::Roles, "only Role in its own namespace", &rules::own_without_cluster_role(OWN), &own);
    assert!(unused.is_empty(), "rights that nobody used: {unused:#?}");
}

/// A right on the whole cluster is needed only where somebody watches the whole cluster.
#[test]
fn the_whole_cluster_was_watched() {
    let all = all();
    let watched = |of: Rights, rules: &Value| {
        let watched = rights(rules).into_iter().filter(|right| right.verb == "watch");
        watched.map(move |right| (of, right)).collect::<Vec<_>>()
    };
    let watched =
        [watched(Rights::Cluster, &rules::cluster_wide()), watched(Rights::Rollouts, &for_rollouts())];
    let unused: Vec<_> = watched
        .into_iter()
        .flatten()
        .filter(|(of, right)| {
            let is_meant = |asked: &Asked| asked.namespace.is_empty() && right.allows(asked, "");
            !all.iter().any(|(operator, asked)| operator.rights == *of && is_meant(asked))
        })
        .collect();
    assert!(unused.is_empty(), "watched in namespaces only: {unused:#?}");
}

/// What a custom kind adds to the ClusterRole.
fn for_rollouts() -> Value {
    let (with, without) = (rules::cluster_wide_with_rollouts(), rules::cluster_wide());
    let without = without.as_array().expect("a list of rules");
    let added: Vec<Value> = with
        .as_array()
        .expect("a list of rules")
        .iter()
        .filter(|rule| !without.contains(rule))
        .cloned()
        .collect();
    assert_eq!((added.len(), &added[0]["apiGroups"][0]), (1, &"argoproj.io".into()), "{added:?}");
    added.into()
}

#[test]
fn secrets_elsewhere_can_only_be_read() {
    for rules in [rules::cluster_wide(), rules::cluster_wide_with_rollouts(), rules::watched(WATCHED)] {
        let mut verbs: Vec<_> = rights(&rules)
            .into_iter()
            .filter(|right| right.resource == "secrets")
            .map(|right| right.verb)
            .collect();
        verbs.sort_unstable();
        assert_eq!(verbs, ["get", "list", "watch"]);
    }
}

#[test]
fn nothing_is_said_with_a_wildcard() {
    let own = [rules::own(OWN), rules::own_without_cluster_role(OWN)];
    let elsewhere = [rules::cluster_wide(), rules::cluster_wide_with_rollouts(), rules::watched(WATCHED)];
    for rules in elsewhere.iter().chain(&own) {
        assert!(!rules.to_string().contains('*'), "{rules}");
        assert!(rights(rules).iter().all(|right| !right.resource.is_empty()), "{rules}");
    }
}

/// Stand for namespaces in rules: those of the tests have other names.
const OWN: &str = "own";
const WATCHED: &str = "watched";

/// One verb on one resource.
#[derive(Debug)]
struct Right {
    group: String,
    resource: String,
    verb: String,
    names: Vec<String>,
}

impl Right {
    fn allows(&self, asked: &Asked, own_namespace: &str) -> bool {
        let named = |name: &String| match name.as_str() {
            OWN => asked.name == own_namespace,
            WATCHED => asked.name == asked.namespace,
            name => asked.name == name,
        };
        let is_named = self.names.is_empty() || self.names.iter().any(named);
        asked.is_allowed
            && (&*asked.group, &*asked.resource, &*asked.verb) == (&*self.group, &*self.resource, &*self.verb)
            && is_named
    }
}

fn rights(rules: &Value) -> Vec<Right> {
    let texts = |rule: &Value, field: &str| -> Vec<String> {
        let list = rule[field].as_array().map(Vec::as_slice).unwrap_or_default();
        list.iter().map(|text| text.as_str().unwrap_or_default().to_owned()).collect()
    };
    let mut rights = Vec::new();
    for rule in rules.as_array().expect("a list of rules") {
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                for verb in texts(rule, "verbs") {
                    let (group, resource, names) =
                        (group.clone(), resource.clone(), texts(rule, "resourceNames"));
                    rights.push(Right { group, resource, verb, names });
                }
            }
        }
    }
    rights
}
