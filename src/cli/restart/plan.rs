//! Who is rolled, and with which stamp. Pure.

use std::time::Duration;

use crate::{
    catalog::{
        Workload,
        policy::Mode,
        reference::{Reference, Rolls},
    },
    cli::target::ConsumerTarget,
    facts::{Kind, Name, Time, Version},
    rollout::Stamp,
};

/// Whether a workload is rolled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// It is.
    Target,
    /// It consumes the Secret, and opted out.
    LeftOut,
    /// It has nothing to do with it, or isn't among those that were asked for.
    NotMeant,
}

/// The kinds to look at: of those that `--only` doesn't name nobody is meant, and the right to list them may be missing.
#[must_use]
pub fn kinds(mut known: Vec<Kind>, only: &[ConsumerTarget]) -> Vec<Kind> {
    known.retain(|kind| only.is_empty() || only.iter().any(|only| only.is_kind(kind.as_str())));
    known
}

/// Chooses. Every reference counts, also those that roll nothing by themselves (pull secrets, storage credentials): a
/// person asked for it. Who opted out is left alone, unless a person named it.
#[must_use]
pub fn choose(workload: &Workload, secret: &str, only: &[ConsumerTarget]) -> Choice {
    let mut references =
        workload.references.iter().filter(|reference| *reference.secret == *secret).peekable();
    let named = only.iter().any(|only| only.is(workload.id.kind.as_str(), &workload.id.name));
    if references.peek().is_none() || workload.deleting || (!only.is_empty() && !named) {
        return Choice::NotMeant;
    }
    let ignored = references.all(|reference: &Reference| reference.rolls == Rolls::Ignored);
    let opted_out = workload.policy.rollout == Some(Mode::Off) || ignored;
    if opted_out && !named { Choice::LeftOut } else { Choice::Target }
}

/// The stamp: what the template was stamped with already, the Secret's version now, and the time, which makes it differ
/// from what stands there. A version that may not be read is named as 0: nothing is claimed by it.
#[must_use]
pub fn stamp(stands: Option<&str>, secret: &Name, version: Option<Version>, at: Time) -> String {
    let before = stands.and_then(Stamp::parse).unwrap_or_default();
    let others = before.iter().map(|(name, version)| (name.clone(), version));
    let stamp: Stamp = others.chain([(secret.clone(), version.unwrap_or_default())]).collect();
    let text = stamp.restarted(at);
    // Within one second.
    if stands == Some(text.as_str()) { stamp.restarted(at + Duration::from_secs(1)) } else { text }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::catalog::{ReadOptions, read};

    fn workload(annotations: &serde_json::Value, spec: &serde_json::Value) -> Workload {
        let object = json!({
            "metadata": {"name": "web", "namespace": "a", "uid": "u", "resourceVersion": "1", "annotations": annotations},
            "spec": {"template": {"spec": spec}},
        });
        read::workload(&Kind::Deployment, &object, &ReadOptions { roll_volumes: true }).unwrap()
    }

    fn env() -> serde_json::Value {
        let from = json!({"secretKeyRef": {"name": "db", "key": "k"}});
        json!({"containers": [{"name": "c", "env": [{"name": "A", "valueFrom": from}]}]})
    }

    #[rstest]
    #[case(&[], &["Deployment", "StatefulSet", "DaemonSet"])]
    #[case(&["deploy/web", "deploy/api"], &["Deployment"])]
    #[case(&["sts/db", "rollout/web"], &["StatefulSet"])]
    #[case(&["rollout/web"], &[])]
    fn only_kinds_of_which_somebody_is_meant_are_looked_at(
        #[case] only: &[&str],
        #[case] looked_at: &[&str],
    ) {
        let only: Vec<ConsumerTarget> = only.iter().map(|only| only.parse().unwrap()).collect();
        let known = [Kind::Deployment, Kind::StatefulSet, Kind::DaemonSet].to_vec();
        let kinds = kinds(known, &only);
        assert_eq!(kinds.iter().map(Kind::as_str).collect::<Vec<_>>(), looked_at);
    }

    #[rstest]
    #[case::consumer(json!({}), env(), &[], Choice::Target)]
    #[case::pull_secret(json!({}), json!({"imagePullSecrets": [{"name": "db"}]}), &[], Choice::Target)]
    #[case::reported(json!({"uptake.dev/rollout": "report"}), env(), &[], Choice::Target)]
    #[case::opted_out(json!({"uptake.dev/rollout": "off"}), env(), &[], Choice::LeftOut)]
    #[case::ignored(json!({"uptake.dev/ignore-secrets": "db"}), env(), &[], Choice::LeftOut)]
    #[case::opted_out_and_named(json!({"uptake.dev/rollout": "off"}), env(), &["deploy/web"], Choice::Target)]
    #[case::another_is_named(json!({}), env(), &["deploy/other"], Choice::NotMeant)]
    #[case::no_consumer(json!({}), json!({}), &[], Choice::NotMeant)]
    fn who_is_rolled(
        #[case] annotations: serde_json::Value,
        #[case] spec: serde_json::Value,
        #[case] only: &[&str],
        #[case] choice: Choice,
    ) {
        let only: Vec<ConsumerTarget> = only.iter().map(|text| text.parse().unwrap()).collect();
        assert_eq!(choose(&workload(&annotations, &spec), "db", &only), choice);
    }

    #[test]
    fn the_stamp_keeps_what_is_known_and_differs_from_what_stands() {
        let at = Time::parse("2026-12-01T03:21:07Z").unwrap();
        let of = |stands: Option<&str>| stamp(stands, &"db".into(), Some(Version(9)), at);
        assert_eq!(of(None), "db@9 +2026-12-01T03:21:07Z");
        assert_eq!(of(Some("db@5 tls@7")), "db@9 tls@7 +2026-12-01T03:21:07Z");
        assert_eq!(of(Some("foreign")), "db@9 +2026-12-01T03:21:07Z");
        assert_eq!(of(Some("db@9 +2026-12-01T03:21:07Z")), "db@9 +2026-12-01T03:21:08Z");
        assert_eq!(stamp(None, &"db".into(), None, at), "db@0 +2026-12-01T03:21:07Z");
    }
}
