//! The stamp, and what a rollout's status says of its end.

mod facts;
mod outcome;

pub use facts::{RolloutFacts, Strategy};
pub use outcome::{Block, Failure, Outcome};
