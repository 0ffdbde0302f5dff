//! Which workload consumes which Secret, and under which policy.

mod index;
pub mod namespace;
pub mod policy;
pub mod read;
pub mod reference;
pub mod references;
mod secret;
mod template;
mod workload;

pub use index::{Applied, Catalog, Inventory};
pub use read::ReadOptions;
pub use secret::{KeyFacts, SecretAnnotations, SecretFacts};
pub use workload::{TemplateHash, Workload};
