//! One leader: of several replicas, the holder of the Lease `uptake` in Uptake's own namespace decides and writes.
//!
//! | file | does |
//! | --- | --- |
//! | `candidacy` | what to do about the Lease next; pure |
//! | `lease` | does it: reads and writes the Lease |
//! | `term` | whether this process may write, asked at the moment of writing |
//!
//! What makes two leaders impossible, as far as clocks run at one speed:
//!
//! - Every write of the Lease names the version that it replaces, so of two candidates one gets a conflict.
//! - The holder counts its claim from before it sent the request that renewed it, by its own monotonic clock; it
//!   begins no write when that has run out, and ends.
//! - A candidate counts a foreign claim from when it saw it change last, by its own monotonic clock, and waits a
//!   little longer. The times in the Lease are for people: nobody's wall clock decides anything.
//!
//! A write that was begun in time may reach the store late. It names the version of the object that was inspected,
//! as all of them do, so it fails where the next leader wrote meanwhile.

mod candidacy;
mod lease;
mod term;

pub use candidacy::{Candidacy, Observed, Step, Timing};
pub use lease::{Lease, Lost, NAME};
pub use term::{Claim, Term};
