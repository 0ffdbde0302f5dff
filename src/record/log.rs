//! Records as log lines: a constant message, everything else in fields, in the words of the metrics.

use super::{LedgerWriteResult, Record};
use crate::{decide::Decision, rollout::Outcome};

/// Logs a record.
pub fn log(record: &Record) {
    match record {
        Record::SecretChange { secret, effect, consumed: true } => {
            tracing::info!(%secret, effect = effect.as_str(), "Secret was examined");
        }
        Record::SecretChange { secret, effect, consumed: false } => {
            tracing::debug!(%secret, effect = effect.as_str(), "Secret was examined");
        }
        Record::Decided { workload, decision } => {
            let (word, reason) = decision.words();
            match decision {
                // What is decided at every look would drown the rest.
                Decision::UpToDate | Decision::NothingToDo(_) | Decision::Skip(_) => {
                    tracing::debug!(%workload, decision = word, reason, "Workload was looked at");
                }
                Decision::Report(_) | Decision::Hold(_) | Decision::Roll => {
                    tracing::info!(%workload, decision = word, reason, "Workload was looked at");
                }
            }
        }
        Record::Stamped { workload, stamp, after } => {
            tracing::info!(%workload, stamp, after_seconds = after.as_secs_f64(), "Rollout was started");
        }
        Record::RolloutEnded { workload, outcome, took } => ended(workload, outcome, took.as_secs_f64()),
        Record::LedgerWrite { name, result } => match result {
            LedgerWriteResult::Ok => tracing::debug!(name, result = result.as_str(), "Ledger was written"),
            LedgerWriteResult::Conflict | LedgerWriteResult::Error => {
                tracing::warn!(name, result = result.as_str(), "Ledger was not written");
            }
        },
        Record::Notice { message, warning: true } => tracing::warn!(notice = message, "Notice"),
        Record::Notice { message, warning: false } => tracing::info!(notice = message, "Notice"),
    }
}

fn ended(workload: &crate::facts::WorkloadId, outcome: &Outcome, took_seconds: f64) {
    let word = outcome.as_str();
    let detail = match outcome {
        Outcome::Completed | Outcome::Superseded | Outcome::Gone => String::new(),
        Outcome::Failed(why) => why.to_string(),
        Outcome::Blocked(by) => by.to_string(),
        Outcome::Refused(words) => words.clone(),
    };
    match outcome {
        Outcome::Completed | Outcome::Superseded | Outcome::Gone => {
            tracing::info!(%workload, outcome = word, took_seconds, "Rollout ended");
        }
        Outcome::Failed(_) | Outcome::Blocked(_) | Outcome::Refused(_) => {
            tracing::warn!(%workload, outcome = word, detail, took_seconds, "Rollout ended");
        }
    }
}
