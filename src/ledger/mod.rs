//! What survives a crash of anything: histories of values as digests, marks of workloads.

mod book;
mod digest;
mod history;
mod marks;
mod page;
mod record;
mod settings;
mod sheet;
mod sighting;

pub use book::{Book, Edit, Findings, Full, PAGE_BYTES, PAGES, Ticket, Write};
pub use digest::{Digest, DigestKey, KEY_BYTES, SCHEME};
pub use history::{ENTRIES, Entry, History, Moment, Point, Sight, Since, Value};
pub use marks::{Attempt, Ended, Marks, Untold, Versions, kind_id};
pub use page::{Cover, HEAD, Head, Page, SCHEMA, page_name, page_number, short_hash};
pub use record::{Part, SecretRecord};
pub use settings::Settings;
pub use sheet::{GROUP, SETTLING, Sheet, Urgency};
pub use sighting::{Sighting, Sightings};
