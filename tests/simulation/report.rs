//! What was reached, counted over all histories.

use std::collections::BTreeMap;

/// How often things happened.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub calls: u64,
    pub changes: u64,
    pub crashes: u64,
    pub rollouts: u64,
    counts: BTreeMap<String, u64>,
}

/// What every long run must reach, each often enough.
const REQUIRED: [&str; 51] = [
    "decision up_to_date nothing_changed",
    "decision nothing_to_do no_pods",
    "decision nothing_to_do no_stale_pod",
    "decision report policy",
    "decision report invalid_annotation",
    "decision report first_sight",
    "decision report attempted",
    "decision skip opted_out",
    "decision skip being_deleted",
    "decision hold settling",
    "decision hold rollout_running",
    "decision hold undecided",
    "decision hold no_free_slot",
    "decision hold missing",
    "decision hold operator_paused",
    "decision hold ledger_unwritable",
    "decision hold inventory_unknown",
    "decision hold backoff",
    "decision hold breaker_open",
    "decision hold canary",
    "decision roll stale_pods",
    "outcome completed",
    "outcome completed_late",
    "outcome failed_deadline",
    "outcome failed_no_progress",
    "outcome failed_reverted",
    "outcome blocked",
    "outcome superseded",
    "outcome refused",
    "outcome gone",
    "fault throttled",
    "fault done_unknown",
    "fault done_late",
    "fault not_done_unknown",
    "fault stamp_conflict",
    "fault ledger_conflict",
    "fault ledger_down",
    "fault expired",
    "fault refused",
    "fault stripped",
    "fault breaker_opened",
    "fault released",
    "fault handover",
    "fault leadership_lost",
    "fault frozen",
    "fault restored",
    "excuse blind_birth",
    "excuse clock_tie",
    "excuse first_sight",
    "stale attempted",
    "stale undecided",
];

/// How often each of them at least.
const ENOUGH: u64 = 20;

impl Tally {
    fn count(&mut self, what: String) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub fn decision(&mut self, word: &str, reason: &str) {
        self.count(format!("decision {word} {reason}"));
    }

    pub fn outcome(&mut self, word: &str) {
        self.count(format!("outcome {word}"));
    }

    pub fn fault(&mut self, word: &str) {
        self.count(format!("fault {word}"));
    }

    pub fn excuse(&mut self, word: &str) {
        self.count(format!("excuse {word}"));
    }

    pub fn stale_reason(&mut self, word: &str) {
        self.count(format!("stale {word}"));
    }

    pub fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.changes += other.changes;
        self.crashes += other.crashes;
        self.rollouts += other.rollouts;
        for (what, count) in &other.counts {
            *self.counts.entry(what.clone()).or_default() += count;
        }
    }

    pub fn print(&self, histories: u64) {
        let mean = |sum: u64| sum as f64 / histories.max(1) as f64;
        println!(
            "{histories} histories; each on average: {:.1} API calls, {:.1} changes, {:.1} crashes, {:.1} rollouts",
            mean(self.calls),
            mean(self.changes),
            mean(self.crashes),
            mean(self.rollouts)
        );
        for (what, count) in &self.counts {
            println!("  {what:<40} {count}");
        }
    }

    /// What wasn't reached often enough.
    pub fn too_few(&self, histories: u64) -> Vec<String> {
        let mut few: Vec<String> = REQUIRED
            .iter()
            .map(|what| (what, self.counts.get(*what).copied().unwrap_or_default()))
            .filter(|(_, count)| *count < ENOUGH)
            .map(|(what, count)| format!("{what}: {count}"))
            .collect();
        for (what, sum, least) in
            [("API calls", self.calls, 50), ("changes", self.changes, 5), ("crashes", self.crashes, 2)]
        {
            if sum < least * histories {
                few.push(format!("{what}: {sum} in {histories} histories, fewer than {least} each"));
            }
        }
        few
    }
}
