//! The stage itself: if one of these fails, no other cluster test means anything.

mod boot;
mod pods;
mod proxy;
mod trail;
