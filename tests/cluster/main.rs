//! Tests against a real control plane: see the `support` module for what they stand on.

// Helpers of tests may fail them as tests do; the lints know only the tests themselves.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../support/mod.rs"]
mod support;

mod away;
mod changes;
mod chart;
mod cli;
mod conformance;
mod faults;
mod harness;
mod humans;
mod image;
mod installed_base;
mod leader;
mod least_rights;
mod missing;
mod observability;
mod others;
mod policy;
mod readme;
mod references;
mod rights;
mod rollouts;
mod secrecy;
mod stage;
mod starting;
mod stores;
mod templates;
mod writes;
