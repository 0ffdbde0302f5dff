//! The words that every room speaks: names, versions, times.

mod kind;
mod name;
pub mod raw;
pub mod text;
mod time;
mod uid;
mod version;

pub use kind::{CustomKind, KNATIVE, KNOWN_KINDS, Kind, KnownKind};
pub use name::{
    Name, Namespace, SecretId, WorkloadId, class_of, class_source, is_covered, is_dns_label,
    is_dns_subdomain, is_source,
};
pub use raw::{Raw, Unreadable};
pub use time::{Mono, Now, Time};
pub use uid::Uid;
pub use version::Version;
