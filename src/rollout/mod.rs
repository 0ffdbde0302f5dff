//! The stamp, and what a rollout's status says of its end.

mod facts;
mod outcome;
pub mod read;
pub mod stamp;
pub mod status;

pub use facts::{RolloutFacts, Strategy};
pub use outcome::{Block, Failure, Outcome};
pub use stamp::{STAMP_ANNOTATION, Stamp};
pub use status::{Progress, State, Waiting, progress, state};
