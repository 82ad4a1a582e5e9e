//! What a locking read sees of tables that it does not lock.
//!
//! It sees the newest rows of the tables that it locks. In REPEATABLE READ all others are seen as plain reads see them,
//! through the transaction's own view. So one query may see two states of a table:
//!
//! ```text
//!   SELECT * FROM t WHERE v > (SELECT MAX(v) FROM t) FOR UPDATE
//!                 |                          |
//!                 newest, locked             as the transaction's first read saw it
//! ```
//!
//! These others stand in queries inside of the statement, or in its FROM where OF leaves them out. A view is locked as
//! a whole, but for queries inside of its own. The binder marks them (`SheafTableSource::is_beside_locks`).

use std::ops::ControlFlow;

use sheaf_frontend::walk::{ExpressionVisitor, walk_query};
use sheaf_storage::ReadView;
use sqlparser::ast;

use crate::error::Result;
use crate::select::locking_read::{named_by, rows_of};
use crate::session::Session;
use crate::session::running::BesideLocks;

impl Session {
    /// How a locking read sees the tables that it does not lock: in queries inside of it, and those of its FROM that OF
    /// leaves out. In REPEATABLE READ that is the view of plain reads, as in MySQL and MariaDB. `None`: there are none,
    /// or they are locked, too, or read as those that are.
    fn beside_locks(&mut self, query: &ast::Query) -> Result<Option<BesideLocks>> {
        if query.locks.is_empty() || !self.transactions.reads_repeat() {
            return Ok(None);
        }
        let tables = match (rows_of(query), query.body.as_ref()) {
            (Some(from), _) => from.tables,
            (None, ast::SetExpr::Select(select)) if query.with.is_some() => select.from.clone(),
            _ => return Ok(None),
        };
        // Common table expressions have no references, and stand in queries of their own.
        let references = self.references_of(&tables);
        let has_view =
            references.is_ok_and(|references| references.0.iter().any(|one| one.view.is_some()));
        let reads_others = has_view || names_beside_locks(query);
        if !reads_others || !self.tables_locked_inside(query)?.is_empty() {
            return Ok(None);
        }
        let locks = query.locks.iter();
        Ok(Some(BesideLocks {
            locked: locks
                .map(|lock| named_by(lock).map(str::to_string))
                .collect(),
            view: self.read_view()?,
        }))
    }

    /// Runs what plans a locking read: tables that it does not lock are seen as plain reads see them.
    pub(crate) fn with_view_beside_locks<T>(
        &mut self,
        query: &ast::Query,
        run: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        self.statement.beside_locks = self.beside_locks(query)?;
        let outcome = run(self);
        self.statement.beside_locks = None;
        outcome
    }

    /// The view through which a locking read of the open transaction sees tables that it does not lock; `None`: that
    /// through which it sees the others.
    pub(crate) fn view_beside_locks(&mut self) -> Result<Option<ReadView>> {
        match self.transactions.reads_repeat() {
            true => Ok(Some(self.read_view()?)),
            false => Ok(None),
        }
    }
}

/// Whether a locking read may name tables that it does not lock: in queries inside of it, or beside those of its OF.
pub(crate) fn names_beside_locks(query: &ast::Query) -> bool {
    struct Queries(usize);
    impl ExpressionVisitor for Queries {
        fn enter_query(&mut self, _query: &ast::Query) {
            self.0 += 1;
        }

        fn leave_expression(&mut self, _expression: &mut ast::Expr) -> ControlFlow<()> {
            ControlFlow::Continue(())
        }
    }
    let mut queries = Queries(0);
    walk_query(&mut query.clone(), &mut queries);
    queries.0 > 1 || query.locks.iter().any(|lock| lock.of.is_some())
}
