//! Tests against a real control plane: see the `support` module for what they stand on.

#[path = "../support/mod.rs"]
mod support;

mod harness;
