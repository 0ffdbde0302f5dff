//! What came of a restart. The same answer goes to people and to programs.

use serde::Serialize;

use crate::{
    cli::{Class, Exit, status::render::counted},
    facts::{Name, Namespace},
};

/// The report of `restart`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// All in one word.
    pub status: Status,
    /// How many consumers were to be rolled.
    pub matched: usize,
    /// Those whose rollout the API server acknowledged.
    pub requested: Vec<Requested>,
    /// Those that are not rolled.
    pub failures: Vec<Failure>,
    /// Kinds of which consumers couldn't be found.
    pub discovery_failures: Vec<DiscoveryFailure>,
    /// All in words.
    pub message: String,
    /// What else has to be known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether nothing was changed on purpose.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// With `--wait`: how the rollouts ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outcomes: Vec<OutcomeReport>,
    /// Whether nobody was there to ask, or said anything but that the rights are missing.
    #[serde(skip)]
    pub untold: bool,
}

/// All in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// All consumers are being rolled.
    Requested,
    /// There are none.
    NoTargets,
    /// Some are, and some can't be rolled or found.
    Partial,
    /// None are.
    Failed,
}

/// A consumer that is being rolled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Requested {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its kind.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// The generation that the stamp made.
    pub generation: i64,
}

/// A consumer that isn't rolled.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Failure {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its kind.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// Why, for programs.
    pub reason: Class,
    /// Why, for people.
    pub message: String,
}

/// A kind that couldn't be listed.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiscoveryFailure {
    /// The kind.
    pub kind: Name,
    /// Why, for programs.
    pub reason: Class,
    /// Why, for people.
    pub message: String,
}

/// How a rollout ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OutcomeReport {
    /// Its namespace.
    pub namespace: Namespace,
    /// Its kind.
    pub kind: Name,
    /// Its name.
    pub name: Name,
    /// The word for it; `unfinished` if the time was over.
    pub outcome: &'static str,
    /// More of it.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

/// What was found and done, before it is judged.
#[derive(Debug, Default)]
pub struct Tally {
    /// How many consumers were to be rolled.
    pub matched: usize,
    /// Those that are.
    pub requested: Vec<Requested>,
    /// Those that aren't.
    pub failures: Vec<Failure>,
    /// Kinds that couldn't be listed.
    pub discovery_failures: Vec<DiscoveryFailure>,
    /// Those that opted out.
    pub left_out: Vec<String>,
    /// What else has to be known.
    pub notes: Vec<String>,
    /// Whether the Secret neither exists nor is referenced.
    pub nowhere: bool,
    /// Whether nothing was changed on purpose.
    pub dry_run: bool,
    /// Whether nobody was there to ask, or said anything but that the rights are missing.
    pub untold: bool,
}

/// Judges it. `secret` is what the restart was about.
#[must_use]
pub fn judge(mut tally: Tally, secret: &str) -> Report {
    tally.requested.sort();
    tally.failures.sort();
    tally.discovery_failures.sort();
    let status = status(&tally);
    let message = message(&tally, status, secret);
    if !tally.left_out.is_empty() {
        let names = tally.left_out.join(", ");
        tally.notes.push(format!("opted out and left alone: {names} (--only rolls them nevertheless)"));
    }
    let Tally { matched, requested, failures, discovery_failures, notes, dry_run, untold, .. } = tally;
    Report {
        status,
        matched,
        requested,
        failures,
        discovery_failures,
        message,
        note: (!notes.is_empty()).then(|| notes.join("; ")),
        dry_run,
        outcomes: Vec::new(),
        untold,
    }
}

fn status(tally: &Tally) -> Status {
    let incomplete = !tally.failures.is_empty() || !tally.discovery_failures.is_empty();
    match (incomplete, tally.requested.is_empty()) {
        (true, false) => Status::Partial,
        (true, true) => Status::Failed,
        (false, true) if tally.nowhere => Status::Failed,
        (false, true) => Status::NoTargets,
        (false, false) => Status::Requested,
    }
}

fn message(tally: &Tally, status: Status, secret: &str) -> String {
    let done = if tally.dry_run { "would request" } else { "requested" };
    let count =
        format!("{done} {} of {} for {secret}", tally.requested.len(), counted(tally.matched, "rollout"));
    let kinds: Vec<&str> = tally.discovery_failures.iter().map(|failure| &*failure.kind).collect();
    match status {
        Status::NoTargets => format!("no workload consumes {secret}: nothing to do"),
        Status::Failed if tally.nowhere => format!("{secret} neither exists nor is referenced by anybody"),
        Status::Partial | Status::Failed if !kinds.is_empty() => {
            format!("{count}; not listed: {}", kinds.join(", "))
        }
        Status::Requested | Status::Partial | Status::Failed => count,
    }
}

impl Report {
    /// Takes in how the rollouts ended.
    pub fn end(&mut self, mut outcomes: Vec<OutcomeReport>) {
        outcomes.sort_by(|a, b| (&a.kind, &a.name).cmp(&(&b.kind, &b.name)));
        let completed = outcomes.iter().filter(|one| one.outcome == "completed").count();
        self.message = format!("{completed} of {} completed", counted(self.matched, "rollout"));
        self.outcomes = outcomes;
    }

    /// How the verb ends.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let outcomes = self.outcomes.iter();
        let unfinished = outcomes.clone().any(|one| one.outcome == UNFINISHED);
        let completed = outcomes.filter(|one| one.outcome == "completed").count();
        match self.status {
            Status::Failed if self.untold => Exit::Unknown,
            Status::Failed => Exit::Failed,
            Status::NoTargets => Exit::Done,
            _ if unfinished => Exit::Unknown,
            _ if !self.outcomes.is_empty() && completed == 0 => Exit::Failed,
            Status::Partial => Exit::Partial,
            Status::Requested if completed < self.outcomes.len() => Exit::Partial,
            Status::Requested => Exit::Done,
        }
    }
}

/// The word for a rollout whose end wasn't waited for.
pub const UNFINISHED: &str = "unfinished";

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn requested() -> Vec<Requested> {
        vec![Requested { namespace: "a".into(), kind: "Deployment".into(), name: "d".into(), generation: 2 }]
    }

    fn failures() -> Vec<Failure> {
        let (reason, message) = (Class::Conflict, String::new());
        vec![Failure { namespace: "a".into(), kind: "Deployment".into(), name: "e".into(), reason, message }]
    }

    fn unlisted() -> Vec<DiscoveryFailure> {
        vec![DiscoveryFailure {
            kind: "StatefulSet".into(),
            reason: Class::Forbidden,
            message: String::new(),
        }]
    }

    #[rstest]
    #[case::all(Tally { matched: 1, requested: requested(), ..Tally::default() }, Status::Requested, Exit::Done)]
    #[case::nobody(Tally::default(), Status::NoTargets, Exit::Done)]
    #[case::nowhere(Tally { nowhere: true, ..Tally::default() }, Status::Failed, Exit::Failed)]
    #[case::some(
        Tally { matched: 2, requested: requested(), failures: failures(), ..Tally::default() },
        Status::Partial, Exit::Partial
    )]
    #[case::a_kind_unknown(
        Tally { matched: 1, requested: requested(), discovery_failures: unlisted(), ..Tally::default() },
        Status::Partial, Exit::Partial
    )]
    #[case::none(Tally { matched: 1, failures: failures(), ..Tally::default() }, Status::Failed, Exit::Failed)]
    #[case::a_kind_unknown_and_no_match(
        Tally { discovery_failures: unlisted(), ..Tally::default() }, Status::Failed, Exit::Failed
    )]
    #[case::nobody_to_ask(
        Tally { discovery_failures: unlisted(), untold: true, ..Tally::default() }, Status::Failed, Exit::Unknown
    )]
    fn each_tally_has_its_status(#[case] tally: Tally, #[case] status: Status, #[case] exit: Exit) {
        let report = judge(tally, "secret/s");
        assert_eq!((report.status, report.exit()), (status, exit), "{}", report.message);
    }

    #[rstest]
    #[case(&["completed", "completed"], Exit::Done)]
    #[case(&["completed", "failed"], Exit::Partial)]
    #[case(&["failed", "blocked"], Exit::Failed)]
    #[case(&["completed", UNFINISHED], Exit::Unknown)]
    fn waiting_ends_by_the_outcomes(#[case] outcomes: &[&'static str], #[case] exit: Exit) {
        let mut report = judge(Tally { matched: 2, requested: requested(), ..Tally::default() }, "secret/s");
        report.outcomes = outcomes
            .iter()
            .map(|outcome| OutcomeReport {
                namespace: "a".into(),
                kind: "Deployment".into(),
                name: "d".into(),
                outcome,
                detail: String::new(),
            })
            .collect();
        assert_eq!(report.exit(), exit);
    }
}
