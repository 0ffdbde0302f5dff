//! The stage itself: if one of these fails, no other cluster test means anything.

mod boot;
mod operator;
mod pods;
mod proxy;
mod trail;
mod webhook;
