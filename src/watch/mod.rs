//! API streams turned into facts.
//!
//! One loop ([`follow`]) serves every kind; what differs is how an object is read ([`Read`]). The loop
//! is our own and not `kube_runtime::watcher`, because the ledger needs what that one hides: the version
//! of a list, bookmarks, and for certain whether a watch is unbroken (a reconnection that resumes at the last
//! version is; a fresh list isn't). Only its backoff is used.
//!
//! ```text
//! lines ─► message ─► secret | workload | namespace | beside ─► follow ─► merge ─► the engine's inputs
//! (bytes)  (JSON)     (facts; Secret values hashed)             (a loop    (one sequence
//!                                                               a part)    a kind)
//! ```
//!
//! Secret values are hashed in [`secret`] and wiped; no text that the API server sent as an object is ever
//! quoted, in no error and at no log level.

mod beside;
mod follow;
mod lines;
mod merge;
mod message;
mod namespace;
mod outlet;
mod read;
pub mod secret;
pub(crate) mod start;
pub(crate) mod workload;

pub use follow::{Target, follow};
pub use merge::Merge;
pub use read::Read;
pub use start::{WatchConfig, start};
