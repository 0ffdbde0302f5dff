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

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use serde_json::{Map, Value};

    use super::*;
    use crate::{
        decide::Held,
        facts::{Kind, SecretId, WorkloadId},
        record::{Effect, captured::Captured},
        rollout::Failure,
    };

    fn one_of_each() -> Vec<Record> {
        let secret = || SecretId::new("shop", "db");
        let workload = || WorkloadId::new(Kind::Deployment, "shop", "web");
        let (after, took) = (Duration::from_millis(2250), Duration::from_secs(90));
        let decided = |decision| Record::Decided { workload: workload(), decision };
        let ended = |outcome| Record::RolloutEnded { workload: workload(), outcome, took };
        let written = |result| Record::LedgerWrite { name: "uptake-ledger-head".to_owned(), result };
        let notice =
            |warning| Record::Notice { message: "a \"quoted\" word=x,\nand a line".to_owned(), warning };
        vec![
            Record::SecretChange { secret: secret(), effect: Effect::Rolled, consumed: true },
            Record::SecretChange { secret: secret(), effect: Effect::Unchanged, consumed: false },
            decided(Decision::UpToDate),
            decided(Decision::Hold(Held::OperatorPaused)),
            decided(Decision::Roll),
            Record::Stamped { workload: workload(), stamp: "db@48213 tls@9917".to_owned(), after },
            ended(Outcome::Completed),
            ended(Outcome::Failed(Failure::NoProgress)),
            ended(Outcome::Refused("quota \"pods\" exceeded".to_owned())),
            written(LedgerWriteResult::Ok),
            written(LedgerWriteResult::Conflict),
            notice(true),
            notice(false),
        ]
    }

    /// Takes a field out of a line; whether it was there.
    fn take(line: &mut String, name: &str, value: &Value) -> bool {
        let plain = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mut forms = [format!(" {name}={plain}"), format!(" {name}={plain:?}")].into_iter();
        forms.any(|form| {
            let place = line.find(&form);
            place.is_some_and(|place| {
                line.replace_range(place..place + form.len(), "");
                true
            })
        })
    }

    #[test]
    fn text_and_json_have_the_same_fields() {
        let (text, json) = (Captured::default(), Captured::default());
        let records = one_of_each();
        tracing::subscriber::with_default(text.in_both_forms(&json), || records.iter().for_each(log));
        let (text, json) = (text.text(), json.text());
        assert_eq!((text.lines().count(), json.lines().count()), (records.len(), records.len()), "{text}");
        for (line, object) in text.lines().zip(json.lines()) {
            let mut fields: Map<String, Value> = serde_json::from_str(object).unwrap();
            let mut own = |name: &str| fields.remove(name).unwrap().as_str().unwrap().to_owned();
            let (time, level, message) = (own("timestamp"), own("level"), own("message"));
            let (at, rest) = line.split_once(' ').unwrap();
            // Each form reads the clock for itself.
            assert_eq!(at.get(..10), time.get(..10), "{line}\n{object}");
            let mut rest = rest.to_owned();
            for (name, value) in &fields {
                assert!(take(&mut rest, name, value), "{name} of {object} isn't in {line}");
            }
            assert_eq!(rest.trim_start(), format!("{level} {message}"), "{line} says more than {object}");
        }
    }
}
