//! Which workload consumes which Secret, and under which policy.

pub mod namespace;
pub mod policy;
pub mod reference;
mod secret;
mod workload;

pub use secret::{KeyFacts, SecretAnnotations, SecretFacts};
pub use workload::{TemplateHash, Workload};
