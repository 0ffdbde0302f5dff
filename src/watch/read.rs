//! What differs between kinds.

use super::message::Meta;

/// Reads a kind's objects.
pub trait Read: Send + Sync + 'static {
    /// What is kept of an object.
    type Item: Send + 'static;
    /// Where an object is.
    type Id: Send + 'static;

    /// Whether the object is passed on at all.
    fn wants(&self, meta: &Meta) -> bool;

    /// The object's facts; none if it can't be read. No reason is given: it would quote the object.
    fn item(&self, object: &[u8]) -> Option<Self::Item>;

    /// The object's place.
    fn id(&self, meta: &Meta) -> Self::Id;
}
