//! Which workload consumes which Secret, and under which policy.

pub mod beside;
mod effective;
mod index;
pub mod mounted;
pub mod namespace;
pub mod policy;
pub mod read;
pub mod reference;
pub mod references;
mod secret;
mod selector;
mod template;
mod workload;

pub use effective::{Effective, effective};
pub use index::{Applied, Catalog, Inventory};
pub use read::ReadOptions;
pub use secret::{KeyFacts, SecretAnnotations, SecretFacts};
pub use selector::{Selection, Selector};
pub use workload::{Declared, TemplateHash, Workload};
