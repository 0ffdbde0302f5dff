//! Bugs that are planted in what surrounds the engine, to see that the checks bite. (Bugs in the engine itself are
//! patches, see `planted/`.)

/// A planted bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// Ledger writes are acknowledged and lost.
    LedgerWriteLost,
    /// Half of the deletions are never delivered.
    DeletionsLost,
    /// The answer of a conflict never comes.
    ConflictDropped,
}

pub const BUGS: [Bug; 3] = [Bug::LedgerWriteLost, Bug::DeletionsLost, Bug::ConflictDropped];
