//! The operator: joins the rooms that do I/O with the engine, and is the only place that starts tasks.
//!
//! ```text
//! watches ──inputs──►  drive (owns the engine) ──records──► metrics, log
//!                       │  ▲
//!                 calls │  │ answers
//!                       ▼  │
//!                     performer ──► API server
//! ```

mod drive;
mod start;

pub use drive::Drive;
pub use start::{StartError, run};
