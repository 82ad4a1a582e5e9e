//! Rows that wait until their generated columns are computed and their CHECKs looked at.
//!
//! To evaluate an expression for a row costs some allocations, whatever the expression is. So a statement that brings
//! many rows collects some, and computes each column, and each CHECK, for all of them at once.

use sheaf_types::Value;

/// Rows that are computed at once.
const MAX_ROWS: usize = 256;
/// Bytes of texts beyond which no further row waits.
const MAX_BYTES: usize = 1 << 20;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct WaitingRows {
    /// The first `count` of them wait; the others are memory that is used again.
    pub(crate) rows: Vec<Vec<Value>>,
    pub(crate) count: usize,
    bytes: usize,
}

impl WaitingRows {
    pub(crate) fn push(&mut self, row: &[Value]) {
        self.count_bytes(row);
        match self.rows.get_mut(self.count) {
            Some(kept) => kept.clone_from_slice(row),
            None => self.rows.push(row.to_vec()),
        }
        self.count += 1;
    }

    /// Counts what is kept beside the rows, too.
    pub(crate) fn count_bytes(&mut self, row: &[Value]) {
        self.bytes += row.iter().map(Value::string_bytes).sum::<usize>();
    }

    /// Whether no further row shall wait.
    pub(crate) fn are_many(&self) -> bool {
        self.count >= MAX_ROWS || self.bytes >= MAX_BYTES
    }

    pub(crate) fn forget(&mut self) {
        if self.bytes >= MAX_BYTES {
            self.rows.clear();
        }
        (self.count, self.bytes) = (0, 0);
    }
}
