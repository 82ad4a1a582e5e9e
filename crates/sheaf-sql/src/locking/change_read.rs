//! What a change reads of other tables stays as it is until its transaction ends, from REPEATABLE READ on.
//!
//! That is about the query of INSERT … SELECT and about subqueries that values are computed from. They read what is
//! committed now, as plain reads of SERIALIZABLE do (`select/serializable_read.rs`), and lock it in the same way:
//!
//! ```text
//!   view -> plan -> lock what scans search to their ends -> run -> lock what joins looked up, and how far scans came
//!     ^                      |                                                         |
//!     '----------------------+-------------- something there is not what the view shows'
//! ```
//!
//! A query that has begun again too often locks all that it could read before it runs. UPDATE and DELETE lock what they
//! read with the rows that they find (`locking/statement_locks.rs`).

use sheaf_frontend::locking::has_locking_clause;

use crate::error::Result;
use crate::locking::statement_locks::{Lookups, searches_of};
use crate::parser::ParsedQuery;
use crate::query::read_plan::Purpose;
use crate::query::run::PlannedQuery;
use crate::session::Session;

/// How often a query begins again before it locks all that it could read.
const MAX_ATTEMPTS: usize = 8;

impl Session {
    /// Plans a query that a change reads, and has `read` do what is to be done with it. `read` hears whether it has to
    /// run the query: what that has read is locked then. It may be called more than once.
    pub(crate) fn read_for_change<T>(
        &mut self,
        query: ParsedQuery<'_>,
        purpose: Purpose,
        mut read: impl FnMut(&mut Session, PlannedQuery, bool) -> Result<T>,
    ) -> Result<T> {
        if self.transactions.changes_lock_reads() && !has_locking_clause(query.ast) {
            let attempt = |session: &mut Session, (): &mut ()| {
                session.read_and_lock(query, purpose, &mut read)
            };
            if let Some(done) = self.attempts(MAX_ATTEMPTS, &mut (), attempt, |()| Ok(()))? {
                return Ok(done);
            }
        }
        let planned = self.plan(query, None, purpose, None)?;
        read(self, planned, false)
    }

    /// One attempt. `None`: something has come in between.
    fn read_and_lock<T>(
        &mut self,
        query: ParsedQuery<'_>,
        purpose: Purpose,
        read: &mut impl FnMut(&mut Session, PlannedQuery, bool) -> Result<T>,
    ) -> Result<Option<T>> {
        let view = self.transactions.current_view(self.engine.storage())?;
        let planned = self.plan(query, None, purpose, Some(view.clone()))?;
        // What is read here keeps its definition from now on, but it may be newer than the view.
        for table in &planned.tables {
            table.check_view(&view)?;
        }
        let mut searches = searches_of(&planned.physical.plan, Lookups::Noted)?;
        let wait = self.variables.row_lock_wait(None);
        if !self
            .transactions
            .lock_known_searches(&view, &mut searches, wait)?
        {
            return Ok(None);
        }
        let done = read(self, planned, !searches.is_empty())?;
        let is_unchanged = self
            .transactions
            .lock_what_was_searched(&view, searches, wait)?;
        Ok(is_unchanged.then_some(done))
    }
}
