//! The API server: the engine's calls are performed here, and nothing is decided here.
//!
//! ```text
//! Call ─► perform ─► api (one request, one answer or one Fault) ─► meter (count, clock) ─► kube::Client
//! ```
//!
//! All requests go through [`Api`], which reads bodies itself: kube's own decoding logs the whole body of an
//! answer that it can't decode, and such a body may hold Secret values.

mod api;
mod between;
mod body;
mod client;
mod clock;
pub mod digest_key;
mod discover;
mod event;
#[cfg(test)]
pub(crate) mod fake;
mod fault;
pub(crate) mod ledger_object;
mod list;
mod meter;
pub mod own_namespace;
pub mod path;
mod perform;
mod plurals;
pub(crate) mod stamp;

pub use api::Api;
pub(crate) use api::{
    READ_LIMIT, WRITE_LIMIT, decode, get, get_object_metadata, is_timeout, patch, send, undecodable,
};
pub use between::{Between, between};
pub use body::Wiped;
pub(crate) use body::next_chunk;
pub use client::{ConnectError, Connected, Connection, connect};
pub use clock::ServerClock;
pub use discover::{collection, look_up, serves, workload};
pub use event::CONTROLLER as EVENT_CONTROLLER;
pub(crate) use fault::{Status, words};
pub(crate) use list::{List, Page};
pub use meter::Meter;
pub use perform::{Performer, PerformerConfig};
