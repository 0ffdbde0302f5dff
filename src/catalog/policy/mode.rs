//! What Uptake may do with a workload, and whose word decides it.

use super::{Problem, WorkloadPolicy, annotation};
use crate::facts::text::shown;

/// `uptake.dev/rollout`: what Uptake may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Roll.
    Auto,
    /// Report what would be rolled.
    Report,
    /// Nothing.
    Off,
}

impl Mode {
    /// Reads the annotation's value: `auto`, `report` or `off`, exactly. `TRUE`, `Off` or `off ` might mean
    /// anything, so they are problems and not guesses.
    ///
    /// # Errors
    /// It is none of them.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        match text {
            "auto" => Ok(Self::Auto),
            "report" => Ok(Self::Report),
            "off" => Ok(Self::Off),
            other => Err(Problem::new(
                annotation::ROLLOUT,
                format!("{} is none of auto, report, off", shown(other)),
            )),
        }
    }

    /// The word for it, as annotations write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Report => "report",
            Self::Off => "off",
        }
    }
}

/// Reads `uptake.dev/rollout` of a Secret or a Namespace. One that can't be read counts as `report`.
#[must_use]
pub fn rollout(text: Option<&str>) -> (Option<Mode>, Option<Problem>) {
    match text.map(Mode::parse) {
        None => (None, None),
        Some(Ok(mode)) => (Some(mode), None),
        Some(Err(problem)) => (Some(Mode::Report), Some(problem)),
    }
}

/// Reads `uptake.dev/paused`: `true` or `false`, exactly.
///
/// # Errors
/// It is neither.
pub fn paused(text: &str) -> Result<bool, Problem> {
    match text {
        "true" => Ok(true),
        "false" => Ok(false),
        other => Err(Problem::new(annotation::PAUSED, format!("{} is neither true nor false", shown(other)))),
    }
}

/// Whose word decided a [`Mode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Source {
    /// The workload's annotation.
    Workload,
    /// Something of the workload can't be understood, or is too much.
    Problem,
    /// The Secret's annotation.
    Secret,
    /// The Namespace's annotation.
    Namespace,
    /// The operator's `--default-rollout`.
    Default,
}

/// What Uptake may do with a workload because of a change of one Secret, and whose word that is.
///
/// The first row that applies decides:
///
/// | # | workload | problems | Secret | Namespace | is | by |
/// | --- | --- | --- | --- | --- | --- | --- |
/// | 1 | `off` | any | any | any | `off` | workload |
/// | 2 | any | any | `off` | any | `off` | Secret |
/// | 3 | any | some | any | any | `report` | problem |
/// | 4 | one | none | any | any | the workload's, or 7 | workload |
/// | 5 | none | none | any | one | the Namespace's, or 7 | Namespace |
/// | 6 | none | none | any | none | the default, or 7 | default |
/// | 7 | | | `report` | | `report` where 4 to 6 say `auto` | Secret |
///
/// A Secret can only hold back: its owner knows that it must not roll anything (rows 2 and 7), but `auto` on
/// it doesn't speak for the workloads' owners, so it decides nothing.
#[must_use]
pub fn effective(
    workload: &WorkloadPolicy,
    secret: Option<Mode>,
    namespace: Option<Mode>,
    default: Mode,
) -> (Mode, Source) {
    if workload.rollout == Some(Mode::Off) {
        return (Mode::Off, Source::Workload);
    }
    if secret == Some(Mode::Off) {
        return (Mode::Off, Source::Secret);
    }
    if !workload.problems.is_empty() {
        return (Mode::Report, Source::Problem);
    }
    let said = match (workload.rollout, namespace) {
        (Some(mode), _) => (mode, Source::Workload),
        (None, Some(mode)) => (mode, Source::Namespace),
        (None, None) => (default, Source::Default),
    };
    match (said, secret) {
        ((Mode::Auto, _), Some(Mode::Report)) => (Mode::Report, Source::Secret),
        (said, _) => said,
    }
}

#[cfg(test)]
mod tests {
    use proptest::{option, prelude::*, sample::select};
    use rstest::rstest;

    use super::*;

    const MODES: [Mode; 3] = [Mode::Auto, Mode::Report, Mode::Off];

    fn workload(rollout: Option<Mode>, troubled: bool) -> WorkloadPolicy {
        let problems = if troubled { vec![Problem::new("x", "y")] } else { vec![] };
        WorkloadPolicy { rollout, problems: problems.into(), ..WorkloadPolicy::default() }
    }

    #[test]
    fn the_words_are_read_exactly() {
        for mode in MODES {
            assert_eq!(Mode::parse(mode.as_str()), Ok(mode));
        }
    }

    #[rstest]
    #[case("TRUE ", r#""TRUE " is none of auto, report, off"#)]
    #[case("[", r#""[" is none of auto, report, off"#)]
    #[case("", r#""" is none of auto, report, off"#)]
    #[case("Off", r#""Off" is none of auto, report, off"#)]
    #[case("off\n", r#""off\n" is none of auto, report, off"#)]
    fn anything_else_is_a_problem_that_shows_it(#[case] text: &str, #[case] message: &str) {
        assert_eq!(Mode::parse(text), Err(Problem::new(annotation::ROLLOUT, message)));
        let (mode, problem) = rollout(Some(text));
        assert_eq!((mode, problem.is_some()), (Some(Mode::Report), true));
    }

    #[test]
    fn the_message_stays_short() {
        let problem = Mode::parse(&"[".repeat(200 * 1024)).unwrap_err();
        assert!(problem.message.chars().count() < 100, "{}", problem.message);
    }

    #[test]
    fn without_the_annotation_nobody_said_anything() {
        assert_eq!(rollout(None), (None, None));
        assert_eq!(rollout(Some("off")), (Some(Mode::Off), None));
    }

    #[test]
    fn paused_is_true_or_false() {
        assert_eq!(paused("true"), Ok(true));
        assert_eq!(paused("false"), Ok(false));
        for bad in ["", "True", "1", "true "] {
            assert_eq!(paused(bad).unwrap_err().of, annotation::PAUSED);
        }
    }

    #[rstest]
    #[case::workload_off(Some(Mode::Off), true, Some(Mode::Off), None, (Mode::Off, Source::Workload))]
    #[case::secret_off(Some(Mode::Auto), true, Some(Mode::Off), None, (Mode::Off, Source::Secret))]
    #[case::problem(Some(Mode::Auto), true, Some(Mode::Report), None, (Mode::Report, Source::Problem))]
    #[case::secret_report(Some(Mode::Auto), false, Some(Mode::Report), None, (Mode::Report, Source::Secret))]
    #[case::namespace_off(None, false, Some(Mode::Report), Some(Mode::Off), (Mode::Off, Source::Namespace))]
    #[case::workload(Some(Mode::Auto), false, None, Some(Mode::Off), (Mode::Auto, Source::Workload))]
    #[case::namespace(None, false, Some(Mode::Auto), Some(Mode::Report), (Mode::Report, Source::Namespace))]
    #[case::default(None, false, Some(Mode::Auto), None, (Mode::Auto, Source::Default))]
    fn each_row_of_the_table(
        #[case] rollout: Option<Mode>,
        #[case] troubled: bool,
        #[case] secret: Option<Mode>,
        #[case] namespace: Option<Mode>,
        #[case] expected: (Mode, Source),
    ) {
        assert_eq!(effective(&workload(rollout, troubled), secret, namespace, Mode::Auto), expected);
    }

    proptest! {
        #[test]
        fn the_rules_hold_for_every_combination(
            rollout in option::of(select(&MODES[..])),
            troubled: bool,
            secret in option::of(select(&MODES[..])),
            namespace in option::of(select(&MODES[..])),
            default in select(&MODES[..]),
        ) {
            let (mode, source) = effective(&workload(rollout, troubled), secret, namespace, default);
            let off = rollout == Some(Mode::Off) || secret == Some(Mode::Off);
            // Off on the workload or the Secret, and neither a problem nor anybody else, switches off for certain.
            prop_assert!(!off || mode == Mode::Off);
            // A typo neither rolls nor hides.
            prop_assert!(!troubled || off || mode == Mode::Report);
            // A Secret only holds back: without it, the mode is never stricter.
            let (without, _) = effective(&workload(rollout, troubled), None, namespace, default);
            prop_assert!(mode >= without);
            prop_assert!(secret != Some(Mode::Auto) || mode == without);
            // Whoever decided did say that.
            let said = match source {
                Source::Workload => rollout,
                Source::Problem => troubled.then_some(Mode::Report),
                Source::Secret => secret,
                Source::Namespace => namespace,
                Source::Default => Some(default),
            };
            prop_assert_eq!(said, Some(mode));
        }
    }
}
