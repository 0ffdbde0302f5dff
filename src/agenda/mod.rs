//! When a workload is looked at: settling, backoff, slots.

mod backoff;
mod queue;
mod settle;
mod slots;

pub use backoff::Backoff;
pub use queue::Queue;
pub use settle::{SETTLE_LIMIT, Settle, SettleTimes, TOO_MANY, WINDOW};
pub use slots::Slots;
