//! Where a restarted workload stands. Pure.

use super::perform::Stamped;
use crate::{
    catalog::Workload,
    rollout::{Block, Failure, Outcome, State, state},
};

/// Where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It goes on; what it waits for.
    GoesOn(String),
    /// Its controller is done: the pods have to agree.
    Done,
    /// Pods can't be made; it may be that somebody acts.
    Stuck(Block),
    /// It ended.
    Ended(Outcome),
}

/// Where a workload stands, as it is now; none if it is gone.
#[must_use]
pub fn standing(stamped: &Stamped, now: Option<&Workload>) -> Standing {
    let before = &stamped.workload;
    let Some(now) = now.filter(|now| now.uid == before.uid) else { return Standing::Ended(Outcome::Gone) };
    if now.template != before.template {
        return Standing::Ended(Outcome::Superseded);
    }
    match now.stamp.as_deref() {
        Some(stamp) if stamp == stamped.stamp => {}
        // Another restart, or the operator: its pods are younger still.
        Some(_) => return Standing::Ended(Outcome::Superseded),
        None => {
            let writer = now.last_writer.as_deref().map(str::to_owned);
            return Standing::Ended(Outcome::Failed(Failure::Reverted(writer)));
        }
    }
    match state(&now.rollout) {
        State::NotObserved => Standing::GoesOn("its controller to see the new template".to_owned()),
        State::Running(waiting) => Standing::GoesOn(waiting.to_string()),
        State::Done => Standing::Done,
        State::DeadlineExceeded(words) => Standing::Ended(Outcome::Failed(Failure::DeadlineExceeded(words))),
        State::Blocked(block @ Block::ReplicaFailure(_)) => Standing::Stuck(block),
        State::Blocked(block) => Standing::Ended(Outcome::Blocked(block)),
    }
}

/// An outcome's details, in words for people.
#[must_use]
pub fn detail(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Completed => String::new(),
        Outcome::Failed(failure) => failure.to_string(),
        Outcome::Blocked(block) => block.to_string(),
        Outcome::Superseded => "the template was changed again by somebody else".to_owned(),
        Outcome::Refused(words) => words.clone(),
        Outcome::Gone => "it was deleted".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::{
        catalog::{ReadOptions, read},
        facts::Kind,
        rollout::STAMP_ANNOTATION,
    };

    fn object(stamp: Option<&str>, status: &Value) -> Value {
        let annotations = stamp.map_or(json!({}), |stamp| json!({STAMP_ANNOTATION: stamp}));
        json!({
            "metadata": {"name": "web", "namespace": "a", "uid": "u", "resourceVersion": "1", "generation": 2},
            "spec": {"replicas": 1, "template": {"metadata": {"annotations": annotations}, "spec": {}}},
            "status": status,
        })
    }

    fn read(object: &Value) -> Workload {
        read::workload(&Kind::Deployment, object, &ReadOptions { roll_volumes: true }).unwrap()
    }

    fn done() -> Value {
        json!({"observedGeneration": 2, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1})
    }

    fn stamped() -> Stamped {
        Stamped { workload: read(&object(Some("s"), &json!({}))), stamp: "s".to_owned() }
    }

    #[test]
    fn it_goes_on_until_its_controller_is_done() {
        let of = |status: &Value| standing(&stamped(), Some(&read(&object(Some("s"), status))));
        assert!(matches!(of(&json!({"observedGeneration": 1})), Standing::GoesOn(_)));
        assert!(matches!(of(&json!({"observedGeneration": 2})), Standing::GoesOn(_)));
        assert_eq!(of(&done()), Standing::Done);
    }

    #[test]
    fn whoever_takes_the_stamp_away_or_changes_the_template_ends_it() {
        assert_eq!(standing(&stamped(), None), Standing::Ended(Outcome::Gone));
        let taken = read(&object(None, &done()));
        assert_eq!(
            standing(&stamped(), Some(&taken)),
            Standing::Ended(Outcome::Failed(Failure::Reverted(None)))
        );
        let mut other = object(Some("s"), &done());
        other["spec"]["template"]["spec"] = json!({"containers": []});
        assert_eq!(standing(&stamped(), Some(&read(&other))), Standing::Ended(Outcome::Superseded));
        let again = read(&object(Some("t"), &done()));
        assert_eq!(standing(&stamped(), Some(&again)), Standing::Ended(Outcome::Superseded));
    }
}
