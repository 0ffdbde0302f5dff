//! Pure: facts in, decision with its reason out.

mod decision;
mod pod;
pub mod read;

pub use decision::{Decision, Held, Nothing, ReportOnly, Skipped};
pub use pod::{OwnerFacts, PodFacts, Trouble};
