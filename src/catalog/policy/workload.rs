//! A workload's annotations.

use std::time::Duration;

use serde_json::{Map, Value};

use super::{Problem, ReferenceAnnotations, Reloads, WorkloadPolicy, annotation, mode::Mode, names};
use crate::{
    facts::text::{printable, shown},
    rollout::STAMP_ANNOTATION,
};

/// The longest time that a workload may ask to settle; changes that come too fast double it up to here too.
const MAX_SETTLE: Duration = Duration::from_secs(600);

/// As much of a reason as reports show.
const MAX_REASON: usize = 256;

/// Reads the annotations of a workload (its own, not its template's).
///
/// One that starts with `uptake.dev/` and isn't known is a problem too: a misspelt `uptake.dev/rollout: off`
/// must not roll. The stamp belongs on templates and pods, but tools that copy annotations around bring it here;
/// it means nothing here and hurts nobody.
#[must_use]
pub fn parse(annotations: Option<&Map<String, Value>>) -> (WorkloadPolicy, ReferenceAnnotations) {
    let mut read = Reader::default();
    for (name, value) in annotations.into_iter().flatten() {
        if name.starts_with(annotation::PREFIX) {
            read.annotation(name, value);
        }
    }
    read.finish()
}

#[derive(Default)]
struct Reader {
    policy: WorkloadPolicy,
    references: ReferenceAnnotations,
    problems: Vec<Problem>,
    /// The first unknown one, and how many there are.
    unknown: Option<(String, usize)>,
}

/// How the text of an annotation is read into the rest.
type Read = fn(&mut Reader, &str);

/// The annotations that a workload may have.
const KNOWN: [(&str, Read); 6] = [
    (annotation::ROLLOUT, Reader::rollout),
    (annotation::SETTLE, Reader::settle),
    (annotation::REASON, Reader::reason),
    (annotation::SECRETS, Reader::secrets),
    (annotation::IGNORE_SECRETS, Reader::ignore_secrets),
    (annotation::RELOADS, Reader::reloads),
];

impl Reader {
    fn annotation(&mut self, name: &str, value: &Value) {
        if name == STAMP_ANNOTATION {
            return;
        }
        match (KNOWN.iter().find(|(known, _)| *known == name), value) {
            (None, _) => {
                self.unknown.get_or_insert_with(|| (shown(name), 0)).1 += 1;
            }
            (Some((_, read)), Value::String(text)) => read(self, text),
            // The API server refuses it; a manifest may have forgotten the quotes around `true` or `30`.
            (Some((known, _)), _) => self.problems.push(Problem::new(known, "its value isn't text")),
        }
    }

    fn rollout(&mut self, text: &str) {
        match Mode::parse(text) {
            Ok(mode) => self.policy.rollout = Some(mode),
            Err(problem) => self.problems.push(problem),
        }
    }

    fn settle(&mut self, text: &str) {
        match humantime::parse_duration(text) {
            Ok(settle) if settle <= MAX_SETTLE => self.policy.settle = Some(settle),
            Ok(_) => self.problems.push(Problem::new(
                annotation::SETTLE,
                format!("{} is more than {}", shown(text), humantime::format_duration(MAX_SETTLE)),
            )),
            Err(_) => self.problems.push(Problem::new(
                annotation::SETTLE,
                format!("{} isn't a duration such as 30s or 1m30s", shown(text)),
            )),
        }
    }

    fn reason(&mut self, text: &str) {
        self.policy.reason = Some(printable(text, MAX_REASON).into());
    }

    fn secrets(&mut self, text: &str) {
        self.references.secrets = self.names(annotation::SECRETS, text, false).names;
    }

    fn ignore_secrets(&mut self, text: &str) {
        self.references.ignored = self.names(annotation::IGNORE_SECRETS, text, false).names;
    }

    fn reloads(&mut self, text: &str) {
        let listed = self.names(annotation::RELOADS, text, true);
        self.references.reloads = if listed.all { Reloads::All } else { Reloads::Named(listed.names) };
    }

    fn names(&mut self, of: &'static str, text: &str, star: bool) -> names::Listed {
        let mut listed = names::parse(of, text, star);
        self.problems.extend(listed.problem.take());
        listed
    }

    fn finish(mut self) -> (WorkloadPolicy, ReferenceAnnotations) {
        if let Some((first, count)) = self.unknown {
            let more = if count > 1 { format!(", nor are {} others", count - 1) } else { String::new() };
            self.problems.push(Problem::new(
                "metadata.annotations",
                format!("{first} isn't an annotation that a workload can have{more}"),
            ));
        }
        self.policy.problems = self.problems.into();
        (self.policy, self.references)
    }
}

#[cfg(test)]
#[expect(clippy::needless_pass_by_value, reason = "a literal reads better without a borrow")]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn read(annotations: Value) -> (WorkloadPolicy, ReferenceAnnotations) {
        parse(annotations.as_object())
    }

    fn problems(annotations: Value) -> Vec<(&'static str, String)> {
        read(annotations).0.problems.iter().map(|problem| (problem.of, problem.message.to_string())).collect()
    }

    fn names(of: &std::collections::BTreeSet<crate::facts::Name>) -> Vec<&str> {
        of.iter().map(AsRef::as_ref).collect()
    }

    #[test]
    fn everything_that_a_workload_may_ask_for() {
        let (policy, references) = read(json!({
            "uptake.dev/rollout": "off",
            "uptake.dev/settle": "30s",
            "uptake.dev/reason": "owned by the DBAs",
            "uptake.dev/secrets": "api, token",
            "uptake.dev/ignore-secrets": "noise",
            "uptake.dev/reloads": "tls",
            "uptake.dev/secret-version": "anything",
            "example.com/rollout": "[",
        }));
        assert_eq!(policy.rollout, Some(Mode::Off));
        assert_eq!(policy.settle, Some(Duration::from_secs(30)));
        assert_eq!(policy.reason.as_deref(), Some("owned by the DBAs"));
        assert_eq!(policy.problems.as_ref(), []);
        assert_eq!(names(&references.secrets), ["api", "token"]);
        assert_eq!(names(&references.ignored), ["noise"]);
        assert!(references.reloads.contain("tls") && !references.reloads.contain("tl"));
    }

    #[test]
    fn no_annotations_ask_for_nothing() {
        assert_eq!(parse(None), (WorkloadPolicy::default(), ReferenceAnnotations::default()));
        assert_eq!(read(json!({})), (WorkloadPolicy::default(), ReferenceAnnotations::default()));
    }

    #[rstest]
    #[case("0s", 0)]
    #[case("30s", 30_000)]
    #[case("2m", 120_000)]
    #[case("1m30s", 90_000)]
    #[case("1m 30s", 90_000)]
    #[case("500ms", 500)]
    #[case("10m", 600_000)]
    fn settle_is_a_duration(#[case] text: &str, #[case] millis: u64) {
        let (policy, _) = read(json!({"uptake.dev/settle": text}));
        assert_eq!(policy.problems.as_ref(), []);
        assert_eq!(policy.settle, Some(Duration::from_millis(millis)));
    }

    #[rstest]
    #[case::too_long("10m1s", "is more than 10m")]
    #[case::far_too_long("99999999999999999y", "isn't a duration such as 30s or 1m30s")]
    #[case::negative("-1s", "isn't a duration such as 30s or 1m30s")]
    #[case::no_unit("30", "isn't a duration such as 30s or 1m30s")]
    #[case::empty("", "isn't a duration such as 30s or 1m30s")]
    #[case::nonsense("[", "isn't a duration such as 30s or 1m30s")]
    fn other_settle_times_are_problems(#[case] text: &str, #[case] message: &str) {
        assert_eq!(
            problems(json!({"uptake.dev/settle": text})),
            [("uptake.dev/settle", format!("\"{text}\" {message}"))]
        );
    }

    #[rstest]
    #[case::rollout("uptake.dev/rollout", "TRUE ")]
    #[case::settle("uptake.dev/settle", "[")]
    #[case::secrets("uptake.dev/secrets", "*")]
    #[case::ignore_secrets("uptake.dev/ignore-secrets", "*")]
    #[case::reloads("uptake.dev/reloads", "[")]
    fn a_bad_value_is_a_problem_of_its_annotation(#[case] annotation: &str, #[case] text: &str) {
        let found = problems(json!({annotation: text}));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, annotation);
    }

    #[test]
    fn a_value_that_lost_its_quotes_is_a_problem() {
        assert_eq!(
            problems(json!({"uptake.dev/rollout": true})),
            [("uptake.dev/rollout", "its value isn't text".to_owned())]
        );
    }

    #[test]
    fn a_misspelt_annotation_is_a_problem() {
        assert_eq!(
            problems(json!({"uptake.dev/rolout": "off"})),
            [(
                "metadata.annotations",
                r#""uptake.dev/rolout" isn't an annotation that a workload can have"#.to_owned()
            )]
        );
    }

    #[test]
    fn many_misspelt_annotations_are_one_problem() {
        let many: Map<String, Value> = (0..1000).map(|n| (format!("uptake.dev/x{n}"), json!(""))).collect();
        let found = problems(Value::Object(many));
        assert_eq!(found.len(), 1);
        assert!(found[0].1.ends_with("nor are 999 others"), "{}", found[0].1);
    }

    #[test]
    fn a_reason_is_cut() {
        let (policy, _) = read(json!({"uptake.dev/reason": "x".repeat(200 * 1024)}));
        assert_eq!(policy.problems.as_ref(), []);
        assert_eq!(policy.reason.unwrap().chars().count(), MAX_REASON + 1);
    }

    #[test]
    fn a_star_reloads_everything() {
        assert_eq!(read(json!({"uptake.dev/reloads": "*"})).1.reloads, Reloads::All);
    }

    proptest! {
        #[test]
        fn no_value_is_too_odd(which in 0..KNOWN.len(), text in any::<String>()) {
            let (policy, _) = read(json!({KNOWN[which].0: text}));
            prop_assert!(policy.problems.len() <= 1);
            prop_assert!(policy.problems.iter().all(|problem| problem.message.chars().count() < 160));
        }
    }
}
