//! A rollout's facts, read from a raw workload.

use serde_json::Value;

use super::{RolloutFacts, Strategy};
use crate::facts::{
    Kind,
    raw::{elements, text},
    text::printable,
};

/// As much of a controller's words as an Event's note (1 KiB) has room for beside ours.
const MAX_MESSAGE: usize = 512;

/// Reads what a workload says of its rollout. What it doesn't say is what the API's defaults make of it, and of a
/// custom kind what the conventions below do.
///
/// | fact | Deployment, StatefulSet | DaemonSet | custom, the first that is there |
/// | --- | --- | --- | --- |
/// | desired | `spec.replicas`, or 1 | `desiredNumberScheduled` | either of them, or there are |
/// | there are | `replicas` | `currentNumberScheduled` | either of them, or desired |
/// | updated | `updatedReplicas` | `updatedNumberScheduled` | either of them, or there are |
/// | ready | `readyReplicas` | `numberReady` | either of them, or updated |
/// | available | `availableReplicas` | `numberAvailable` | either of them, or ready |
/// | observed | `observedGeneration` | `observedGeneration` | it as a number or text, or `metadata.generation` |
///
/// So a custom kind that says nothing of its rollout counts as done, and only its pods tell.
#[must_use]
pub fn facts(kind: &Kind, object: &Value) -> RolloutFacts {
    let spec = object.get("spec").unwrap_or(&Value::Null);
    let status = object.get("status").unwrap_or(&Value::Null);
    let generation = object.get("metadata").and_then(|meta| number(meta, "generation")).unwrap_or(0);
    let observed = number(status, "observedGeneration");
    let counts = match kind {
        Kind::Deployment | Kind::StatefulSet => Counts::of_replicas(spec, status),
        Kind::DaemonSet => Counts::of_nodes(status),
        Kind::Custom(_) => Counts::by_convention(spec, status),
    };
    RolloutFacts {
        generation,
        observed_generation: match kind {
            Kind::Custom(_) => observed.unwrap_or(generation),
            Kind::Deployment | Kind::StatefulSet | Kind::DaemonSet => observed.unwrap_or(0),
        },
        desired: counts.desired,
        replicas: counts.replicas,
        updated: counts.updated,
        ready: counts.ready,
        available: counts.available,
        paused: is_paused(spec),
        strategy: strategy(spec, counts.desired),
        revisions_equal: match kind {
            Kind::StatefulSet => text(status, "currentRevision") == text(status, "updateRevision"),
            Kind::Deployment | Kind::DaemonSet | Kind::Custom(_) => true,
        },
        deadline_exceeded: condition(status, "Progressing")
            .filter(|condition| text(condition, "reason") == Some("ProgressDeadlineExceeded"))
            .map(message),
        replica_failure: condition(status, "ReplicaFailure")
            .filter(|condition| text(condition, "status") == Some("True"))
            .map(message),
    }
}

struct Counts {
    desired: i32,
    replicas: i32,
    updated: i32,
    ready: i32,
    available: i32,
}

impl Counts {
    fn of_replicas(spec: &Value, status: &Value) -> Self {
        Self {
            desired: count(spec, "replicas").unwrap_or(1),
            replicas: count(status, "replicas").unwrap_or(0),
            updated: count(status, "updatedReplicas").unwrap_or(0),
            ready: count(status, "readyReplicas").unwrap_or(0),
            available: count(status, "availableReplicas").unwrap_or(0),
        }
    }

    fn of_nodes(status: &Value) -> Self {
        Self {
            desired: count(status, "desiredNumberScheduled").unwrap_or(0),
            replicas: count(status, "currentNumberScheduled").unwrap_or(0),
            updated: count(status, "updatedNumberScheduled").unwrap_or(0),
            ready: count(status, "numberReady").unwrap_or(0),
            available: count(status, "numberAvailable").unwrap_or(0),
        }
    }

    fn by_convention(spec: &Value, status: &Value) -> Self {
        let first = |names: [&str; 2]| names.into_iter().find_map(|name| count(status, name));
        let there = first(["replicas", "currentNumberScheduled"]);
        let desired = count(spec, "replicas")
            .or_else(|| count(status, "desiredNumberScheduled"))
            .or(there)
            .unwrap_or(1);
        let replicas = there.unwrap_or(desired);
        let updated = first(["updatedReplicas", "updatedNumberScheduled"]).unwrap_or(replicas);
        let ready = first(["readyReplicas", "numberReady"]).unwrap_or(updated);
        let available = first(["availableReplicas", "numberAvailable"]).unwrap_or(ready);
        Self { desired, replicas, updated, ready, available }
    }
}

/// A whole number, or text that is one (Argo Rollouts writes `observedGeneration` so).
fn number(of: &Value, field: &str) -> Option<i64> {
    let value = of.get(field)?;
    value.as_i64().or_else(|| value.as_str().and_then(|text| text.parse().ok()))
}

fn count(of: &Value, field: &str) -> Option<i32> {
    of.get(field).and_then(Value::as_i64).and_then(|count| i32::try_from(count).ok())
}

/// `spec.paused`; or where OpenKruise has it, of a CloneSet in `updateStrategy`, of an Advanced StatefulSet a level below.
fn is_paused(spec: &Value) -> bool {
    let strategy = spec.get("updateStrategy");
    let rolling = strategy.and_then(|strategy| strategy.get("rollingUpdate"));
    let says_so = |of: &Value| of.get("paused").and_then(Value::as_bool).unwrap_or(false);
    [Some(spec), strategy, rolling].into_iter().flatten().any(says_so)
}

/// `spec.updateStrategy` of StatefulSets, DaemonSets and their likes. A Deployment has none, and both of its
/// strategies replace pods by themselves.
fn strategy(spec: &Value, desired: i32) -> Strategy {
    let Some(strategy) = spec.get("updateStrategy") else { return Strategy::Automatic };
    if text(strategy, "type") == Some("OnDelete") {
        return Strategy::OnDelete;
    }
    // A CloneSet has it a level higher, and as a number of pods or a part of them.
    let partition = [strategy.get("rollingUpdate"), Some(strategy)]
        .into_iter()
        .flatten()
        .find_map(|of| count(of, "partition").or_else(|| part_of(text(of, "partition")?, desired)));
    partition.filter(|&ordinal| ordinal > 0).map_or(Strategy::Automatic, Strategy::Partition)
}

/// So many percent, rounded up, as OpenKruise does.
fn part_of(text: &str, desired: i32) -> Option<i32> {
    let percent: i64 = text.strip_suffix('%')?.parse().ok().filter(|percent| (0..=100).contains(percent))?;
    i32::try_from((i64::from(desired) * percent + 99) / 100).ok()
}

fn condition<'a>(status: &'a Value, name: &str) -> Option<&'a Value> {
    elements(status, "conditions").find(|condition| text(condition, "type") == Some(name))
}

fn message(condition: &Value) -> Box<str> {
    printable(text(condition, "message").unwrap_or_default(), MAX_MESSAGE).into()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::facts::CustomKind;

    fn custom() -> Kind {
        Kind::Custom(Arc::new(CustomKind {
            group: "argoproj.io".to_owned(),
            version: "v1alpha1".to_owned(),
            kind: "Rollout".to_owned(),
            template: vec!["spec".to_owned(), "template".to_owned()],
        }))
    }

    fn counts(facts: &RolloutFacts) -> [i32; 5] {
        [facts.desired, facts.replicas, facts.updated, facts.ready, facts.available]
    }

    #[test]
    fn a_deployment() {
        let facts = facts(
            &Kind::Deployment,
            &json!({
                "metadata": {"generation": 7},
                "spec": {"replicas": 3, "paused": true, "strategy": {"type": "Recreate"}},
                "status": {
                    "observedGeneration": 6, "replicas": 4, "updatedReplicas": 2, "readyReplicas": 3, "availableReplicas": 1,
                    "conditions": [
                        {"type": "Available", "status": "False", "reason": "x", "message": "y"},
                        {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded", "message": "timed out"},
                        {"type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "quota"},
                    ],
                },
            }),
        );
        assert_eq!(
            facts,
            RolloutFacts {
                generation: 7,
                observed_generation: 6,
                desired: 3,
                replicas: 4,
                updated: 2,
                ready: 3,
                available: 1,
                paused: true,
                strategy: Strategy::Automatic,
                revisions_equal: true,
                deadline_exceeded: Some("timed out".into()),
                replica_failure: Some("quota".into()),
            }
        );
    }

    #[test]
    fn conditions_that_say_that_all_is_well_are_none() {
        let facts = facts(
            &Kind::Deployment,
            &json!({"status": {"conditions": [
                {"type": "Progressing", "status": "True", "reason": "NewReplicaSetAvailable", "message": "m"},
                {"type": "ReplicaFailure", "status": "False", "message": "m"},
            ]}}),
        );
        assert_eq!((facts.deadline_exceeded, facts.replica_failure), (None, None));
    }

    #[test]
    fn a_stateful_set() {
        let facts = facts(
            &Kind::StatefulSet,
            &json!({
                "metadata": {"generation": 2},
                "spec": {"replicas": 3, "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}},
                "status": {"observedGeneration": 2, "replicas": 3, "updatedReplicas": 1, "readyReplicas": 3,
                    "availableReplicas": 3, "currentRevision": "s-1", "updateRevision": "s-2"},
            }),
        );
        assert_eq!(counts(&facts), [3, 3, 1, 3, 3]);
        assert_eq!((facts.strategy, facts.revisions_equal), (Strategy::Partition(2), false));
    }

    #[test]
    fn a_daemon_set() {
        let facts = facts(
            &Kind::DaemonSet,
            &json!({
                "metadata": {"generation": 2},
                "spec": {"updateStrategy": {"type": "OnDelete"}},
                "status": {"observedGeneration": 2, "desiredNumberScheduled": 5, "currentNumberScheduled": 4,
                    "updatedNumberScheduled": 3, "numberReady": 2, "numberAvailable": 1},
            }),
        );
        assert_eq!(counts(&facts), [5, 4, 3, 2, 1]);
        assert_eq!((facts.strategy, facts.revisions_equal), (Strategy::OnDelete, true));
    }

    #[rstest]
    #[case::deployment(Kind::Deployment, [1, 0, 0, 0, 0])]
    #[case::stateful_set(Kind::StatefulSet, [1, 0, 0, 0, 0])]
    #[case::daemon_set(Kind::DaemonSet, [0, 0, 0, 0, 0])]
    #[case::custom(custom(), [1, 1, 1, 1, 1])]
    fn what_is_absent_is_the_default(#[case] kind: Kind, #[case] expected: [i32; 5]) {
        for nothing in [json!(null), json!({"spec": null, "status": []}), json!({"spec": {"replicas": "x"}})]
        {
            let facts = facts(&kind, &nothing);
            assert_eq!(counts(&facts), expected);
            assert_eq!((facts.generation, facts.observed_generation, facts.paused), (0, 0, false));
        }
    }

    #[rstest]
    #[case::of_replicas(
        json!({"spec": {"replicas": 3}, "status": {"replicas": 4, "updatedReplicas": 2, "readyReplicas": 1, "availableReplicas": 0}}),
        [3, 4, 2, 1, 0]
    )]
    #[case::of_nodes(
        json!({"status": {"desiredNumberScheduled": 3, "currentNumberScheduled": 3, "updatedNumberScheduled": 2, "numberReady": 1, "numberAvailable": 0}}),
        [3, 3, 2, 1, 0]
    )]
    #[case::without_counts_of_updated(json!({"spec": {"replicas": 3}, "status": {"replicas": 2}}), [3, 2, 2, 2, 2])]
    #[case::without_any(json!({"spec": {"replicas": 3}}), [3, 3, 3, 3, 3])]
    fn a_custom_kind_by_convention(#[case] object: Value, #[case] expected: [i32; 5]) {
        assert_eq!(counts(&facts(&custom(), &object)), expected);
    }

    #[rstest]
    #[case::clone_set(json!({"partition": 2}), Strategy::Partition(2))]
    #[case::clone_set_in_percent(json!({"partition": "50%"}), Strategy::Partition(3))]
    #[case::nothing_left(json!({"partition": "0%"}), Strategy::Automatic)]
    #[case::nonsense(json!({"partition": "half"}), Strategy::Automatic)]
    #[case::advanced_stateful_set(json!({"rollingUpdate": {"partition": 4}}), Strategy::Partition(4))]
    #[case::in_place(json!({"type": "InPlaceIfPossible"}), Strategy::Automatic)]
    fn open_kruise_has_its_own_places(#[case] update: Value, #[case] expected: Strategy) {
        let of =
            |update: &Value| facts(&custom(), &json!({"spec": {"replicas": 5, "updateStrategy": update}}));
        assert_eq!(of(&update).strategy, expected);
        assert!(!of(&update).paused);
        for paused in [json!({"paused": true}), json!({"rollingUpdate": {"paused": true}})] {
            assert!(of(&paused).paused);
        }
    }

    #[rstest]
    #[case(json!({"observedGeneration": 6}), 6)]
    #[case(json!({"observedGeneration": "6"}), 6)]
    #[case(json!({"observedGeneration": "6f9cd"}), 7)]
    #[case(json!({}), 7)]
    fn a_custom_kind_may_write_what_it_observed_as_text(#[case] status: Value, #[case] expected: i64) {
        let facts = facts(&custom(), &json!({"metadata": {"generation": 7}, "status": status}));
        assert_eq!(facts.observed_generation, expected);
    }
}
