//! What survives a crash of anything: histories of values as digests, marks of workloads.

mod digest;

pub use digest::{Digest, DigestKey, KEY_BYTES, SCHEME};
