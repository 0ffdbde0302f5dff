//! What a workload consumes, with the histories of it.

use super::{Consumed, Missing};
use crate::{
    catalog::{
        policy::Mode,
        reference::{Keys, Reference, Rolls},
    },
    facts::SecretId,
    ledger::{History, Part, Value},
};

/// What is known of the values of Secrets.
pub trait Values {
    /// What the Secret's own annotation says; none if it says nothing or isn't known.
    fn mode(&self, secret: &SecretId) -> Option<Mode>;

    /// Whether the Secret is there and its values are nobody's business: of a type that is left out.
    fn is_left_out(&self, secret: &SecretId) -> bool;

    /// Whether the Secret is there.
    fn is_present(&self, secret: &SecretId) -> bool;

    /// The history of a part; none if it isn't known.
    fn history(&self, secret: &SecretId, part: &Part) -> Option<&History>;
}

/// What a workload consumes in references that roll it.
#[derive(Debug, Default)]
pub struct Consumption<'a> {
    /// Of Secrets whose changes roll.
    pub rolling: Vec<Consumed<'a>>,
    /// Of Secrets whose annotation says report.
    pub reported: Vec<Consumed<'a>>,
    /// What is missing that its pods require.
    pub missing: Option<Missing>,
    /// Whether all it consumes is of Secrets whose annotation says off.
    pub all_off: bool,
    /// Something of it has no history yet.
    pub untracked: bool,
}

/// Finds the histories of what references in that namespace consume, of those that roll their workload.
pub fn consumption<'a>(
    namespace: &str,
    references: impl IntoIterator<Item = &'a Reference>,
    values: &'a impl Values,
) -> Consumption<'a> {
    let mut consumption = Consumption { all_off: true, ..Consumption::default() };
    for reference in references.into_iter().filter(|reference| reference.rolls == Rolls::Yes) {
        let secret = SecretId::new(namespace, reference.secret.clone());
        let mode = values.mode(&secret);
        if mode == Some(Mode::Off) {
            continue;
        }
        consumption.all_off = false;
        if values.is_left_out(&secret) {
            continue;
        }
        for part in parts(reference) {
            let Some(history) = values.history(&secret, &part) else {
                consumption.untracked = true;
                continue;
            };
            let absent = history.last().value == Value::Absent;
            if absent && reference.synced {
                // The driver removed it with the last pod, or hasn't made it yet: no pod can get this absence, and
                // none holds another value because of it.
                continue;
            }
            if absent && !reference.optional && consumption.missing.is_none() {
                consumption.missing = Some(missing(&secret, &part, values));
            }
            let into =
                if mode == Some(Mode::Report) { &mut consumption.reported } else { &mut consumption.rolling };
            into.push(Consumed { reference, history, upto: None });
        }
    }
    consumption
}

/// The parts of a Secret that a reference consumes.
#[must_use]
pub fn parts(reference: &Reference) -> Vec<Part> {
    match &reference.keys {
        Keys::All => vec![Part::All],
        Keys::Named(keys) => keys.iter().cloned().map(Part::Key).collect(),
    }
}

fn missing(secret: &SecretId, part: &Part, values: &impl Values) -> Missing {
    let key = match part {
        Part::Key(key) if values.is_present(secret) => Some(key.clone()),
        Part::Key(_) | Part::All => None,
    };
    Missing { secret: secret.name.clone(), key }
}
