//! Pure: facts in, decision with its reason out.

pub mod births;
mod consumption;
mod decision;
mod judge;
mod pod;
pub mod read;
mod rules;

pub use births::{Births, Exact, ExactLists};
pub use consumption::{Consumption, Values, consumption, parts};
pub use decision::{Decision, Held, Nothing, ReportOnly, Skipped};
pub use judge::{
    Bench, Consumed, Judgement, Mounted, Verdict, has_started, is_live, judge, trusted, versions,
};
#[cfg(test)]
pub(crate) use pod::MOST_ABOVE;
pub use pod::{OwnerFacts, Owners, PodFacts, Trouble, upwards};
pub use rules::{Facts, Missing, Step, decide};
