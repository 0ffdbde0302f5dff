//! What differs between kinds.

use super::message::Meta;

/// What an object turns out to be.
pub enum Reading<T> {
    /// Its facts.
    Item(T),
    /// It can't be read. No reason is given: it would quote the object.
    Unreadable,
    /// It is well-formed, and nothing to be dealt with, for that reason.
    LeftOut(LeftOut),
}

/// Why an object is left out, in words that quote nothing of what it holds.
pub enum LeftOut {
    /// Somebody should know.
    Worth(String),
    /// It is as it should be.
    Usual(String),
}

impl<T> From<Option<T>> for Reading<T> {
    fn from(item: Option<T>) -> Self {
        item.map_or(Self::Unreadable, Self::Item)
    }
}

/// Reads a kind's objects.
pub trait Read: Send + Sync + 'static {
    /// What is kept of an object.
    type Item: Send + 'static;
    /// Where an object is.
    type Id: Send + 'static;

    /// Whether the object is passed on at all.
    fn wants(&self, meta: &Meta) -> bool;

    /// The object's facts.
    fn read(&self, object: &[u8]) -> Reading<Self::Item>;

    /// The object's place.
    fn id(&self, meta: &Meta) -> Self::Id;
}
