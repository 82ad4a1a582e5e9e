//! What the log says of a change: which transaction made it, and what it did to a key.

/// What was done to a key. The numbers are the log's format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Change {
    /// A new entry was added.
    Insert = 0,
    /// A ghost was made an entry again.
    Revive = 1,
    /// A value was replaced.
    Update = 2,
    /// An entry was made a ghost.
    Delete = 3,
    /// A part of a value was replaced by as many bytes. Only the log and what recovery reads from it know this change.
    /// A transaction that goes on keeps the whole value before, for readers that still see it.
    UpdatePart = 4,
}

impl Change {
    /// The change of this number.
    pub(crate) fn from_byte(byte: u8) -> Option<Change> {
        match byte {
            0 => Some(Change::Insert),
            1 => Some(Change::Revive),
            2 => Some(Change::Update),
            3 => Some(Change::Delete),
            4 => Some(Change::UpdatePart),
            _ => None,
        }
    }
}

/// The number of a transaction. No two transactions of a storage share one; 0 is none. Not a timestamp: what a snapshot
/// sees is decided by the order of commits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TransactionId(pub u64);

impl std::fmt::Display for TransactionId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}", self.0)
    }
}
