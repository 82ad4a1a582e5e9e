//! Logical undo of a statement, in memory.

use crate::error::Result;

/// The before-images of one statement. Dropped without a commit, it rolls back.
pub struct StatementUndo {}

impl StatementUndo {
    /// Keeps the statement's changes.
    pub fn commit(self) {
        unimplemented!()
    }

    /// Takes the statement's changes back, newest first.
    pub fn rollback(self) -> Result<()> {
        unimplemented!()
    }

    /// A mark for [`rollback_to`](Self::rollback_to).
    pub fn savepoint(&self) -> usize {
        unimplemented!()
    }

    /// Takes back the changes made after the mark.
    pub fn rollback_to(&mut self, savepoint: usize) -> Result<()> {
        let _ = savepoint;
        unimplemented!()
    }
}
