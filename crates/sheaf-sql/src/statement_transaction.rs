//! What one statement changes: all of it, or nothing.
//!
//! Every statement that writes rows gets its changes' transaction here and nowhere else. Each statement is a
//! transaction of its own: it commits when the statement ends well, and a statement that fails takes back what it
//! did, also when it is dropped on the way out of an error.

use sheaf_storage::Transaction;

use crate::error::Result;
use crate::session::Session;

/// The changes of the running statement.
pub(crate) struct StatementTransaction {
    changes: Transaction,
}

impl StatementTransaction {
    /// Where tables note what they change.
    pub(crate) fn changes(&mut self) -> &mut Transaction {
        &mut self.changes
    }

    /// The statement ended well.
    pub(crate) fn commit(self) -> Result<()> {
        Ok(self.changes.commit()?)
    }

    /// The statement failed: nothing of it remains.
    pub(crate) fn rollback(self) -> Result<()> {
        Ok(self.changes.rollback()?)
    }
}

impl Session {
    /// Begins the changes of a statement.
    pub(crate) fn begin_changes(&self) -> StatementTransaction {
        StatementTransaction {
            changes: self.engine.storage().begin_transaction(),
        }
    }

    /// Ends the changes of a statement as it ended itself: keeps them, or takes them back and reports why.
    pub(crate) fn end_changes<T>(
        &self,
        transaction: StatementTransaction,
        outcome: Result<T>,
    ) -> Result<T> {
        let counters = &self.handle.counters;
        match outcome {
            Ok(done) => {
                transaction.commit()?;
                counters.handler_commit.add(1);
                Ok(done)
            }
            Err(error) => {
                counters.handler_rollback.add(1);
                transaction.rollback()?;
                Err(error)
            }
        }
    }
}
