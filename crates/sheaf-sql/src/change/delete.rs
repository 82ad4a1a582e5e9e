//! DELETE, from one table and from several.
//!
//! ```text
//!   SELECT keys [, RETURNING items] -> spool -> for each row: delete it
//! ```

use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_access::IndexUse;
use sheaf_frontend::walk::{ExpressionVisitor, walk_expression, walk_tables};
use sheaf_storage::{LockMode, ReadView};
use sheaf_table::{ChangeSet, Privileges, Table};
use sheaf_types::Value;
use sqlparser::ast;

use crate::change::find::change_query::{
    ChangeQuery, References, add_items, is_ignorable, key_of, position_of, returned_items,
};
use crate::error::{Result, SqlError};
use crate::isolation::transaction::StatementTransaction;
use crate::locking::statement_locks::Others;
use crate::parser::change::name_of;
use crate::parser::statement::Delete;
use crate::parser::{Parsed, ParsedQuery};
use crate::query::batch_spool::WaitingResult;
use crate::query::row_spool::{SpooledRows, collect_keys_and_result, collect_rows};
use crate::query::run::PlannedQuery;
use crate::session::result::ResultSink;
use crate::session::warnings::Warnings;
use crate::session::{Session, SessionHandle};

/// What a DELETE did.
pub(crate) struct Deleted {
    pub(crate) rows: u64,
    /// Rows that its query found, and the first column of the last of them.
    pub(crate) found: usize,
    pub(crate) last: Option<Value>,
}

impl Session {
    pub(crate) fn delete(
        &mut self,
        delete: Parsed<'_, Delete>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let Parsed { ast: delete, text } = delete;
        // Otherwise what it changes has to be known first.
        if !self.temporary.has_any() {
            self.check_writable(false)?;
        }
        let database = self.database.clone();
        let (references, targets, locked) =
            self.lock_for_change((&delete.tables, &[]), Privileges::DELETE, |references| {
                let targets = targets_of(references, &delete, database.as_deref())?;
                Ok((targets.clone(), targets))
            })?;
        let parsed = Parsed::new(&delete, text);
        let outcome = self.delete_locked(parsed, (&references, &locked), targets);
        self.transactions.keep_tables(locked);
        let (deleted, returned) = outcome?;
        match returned {
            None => self.ok(sink, deleted, String::new()),
            Some(mut returned) => {
                // Rows leave while the statement runs.
                self.transactions.finish_commit(&self.handle.counters)?;
                sink.columns(&returned.columns)?;
                while let Some(batch) = returned.batches.next_batch()? {
                    sink.rows(&batch)?;
                }
                self.end_query(sink)
            }
        }
    }

    fn delete_locked(
        &mut self,
        parsed: Parsed<'_, &Delete>,
        (references, locked): (&References, &ChangeSet),
        targets: Vec<usize>,
    ) -> Result<(u64, Option<WaitingResult>)> {
        let delete = parsed.ast;
        let (tables, query) = delete_query(parsed, references, &targets)?;
        let query = parsed.with(query.as_ref());
        if !delete.ignore && self.variables.sql_mode().is_strict() {
            self.findings.refuse();
        }
        self.check_safe_update(query, references, targets, "DELETE")?;
        let mut statement = self.begin_changes(locked)?;
        let outcome = self.delete_until_stable(&mut statement, delete, (&tables, locked), query);
        self.end_changes(statement, outcome)
    }

    /// The tables that a DELETE without RETURNING changes, and the query that finds their rows.
    pub(crate) fn delete_to_find(
        &self,
        delete: &Delete,
    ) -> Result<(Vec<Arc<Table>>, Box<ast::Query>)> {
        let references = self.references_of(&delete.tables)?;
        references.check_no_views()?;
        let targets = targets_of(&references, delete, self.database.as_deref())?;
        delete_query(Parsed::new(delete, ""), &references, &targets)
    }

    /// The plan that finds the rows of a DELETE, and the tables that it deletes from, for EXPLAIN.
    pub(crate) fn plan_delete(
        &mut self,
        delete: Parsed<'_, &Delete>,
    ) -> Result<(PlannedQuery, Vec<String>)> {
        let references = self.references_of(&delete.ast.tables)?;
        let targets = targets_of(&references, delete.ast, self.database.as_deref())?;
        // What may not be done is not explained.
        for target in &targets {
            self.check_may_change(&references.0[*target], Privileges::DELETE)?;
        }
        let changed = targets
            .iter()
            .map(|target| references.0[*target].alias.clone());
        let changed = changed.collect();
        let (_, query) = delete_query(delete, &references, &targets)?;
        let view = self.read_view()?;
        Ok((self.plan_change(delete.with(&query), view)?, changed))
    }

    /// Finds rows and deletes them, again and again until no other transaction comes between.
    fn delete_until_stable(
        &mut self,
        statement: &mut StatementTransaction,
        delete: &Delete,
        (tables, locked): (&[Arc<Table>], &ChangeSet),
        query: ParsedQuery<'_>,
    ) -> Result<(u64, Option<WaitingResult>)> {
        self.until_stable(statement, |session, statement| {
            let view = statement.changes().view_to_lock()?;
            let planned = session.plan_change(query, view.clone())?;
            let mut searches = statement.searches_to_lock(&planned, tables, Others::Locked)?;
            let (rows, returned) = match &delete.returning {
                None => (collect_rows(session, planned)?, None),
                Some(_) => {
                    let (rows, returned) = collect_keys_and_result(session, planned, 1)?;
                    (rows, Some(returned))
                }
            };
            let outcome = delete_rows(
                (statement, &session.handle),
                (tables, locked),
                (rows, &view),
                delete.ignore.then_some(&mut session.warnings),
            );
            let Some(deleted) = outcome? else {
                return Ok(None);
            };
            let last = match &deleted.last {
                Some(key) => key_of(key)?,
                None => None,
            };
            let found = (deleted.found, last);
            let is_stable = statement.lock_searches(&view, &mut searches, found)?;
            Ok(is_stable.then_some((deleted.rows, returned)))
        })
    }
}

/// `None`: a row is not what the view shows.
pub(crate) fn delete_rows(
    (transaction, handle): (&mut StatementTransaction, &SessionHandle),
    (tables, locked): (&[Arc<Table>], &ChangeSet),
    (mut rows, view): (SpooledRows, &ReadView),
    mut ignore: Option<&mut Warnings>,
) -> Result<Option<Deleted>> {
    let mut deleted = 0;
    let mut found = Vec::new();
    let mut number = 0u64;
    while rows.next(&mut found)? {
        handle.cancel_flag().check()?;
        number += 1;
        for (table, key) in tables.iter().zip(&found) {
            let Some(key) = key_of(key)? else {
                continue;
            };
            let Some(is_new) = transaction.lock_row(view, table, key, LockMode::Exclusive)? else {
                return Ok(None);
            };
            let position = position_of(locked, table)?;
            match locked.delete(transaction.changes(), position, key) {
                Ok(true) => {
                    deleted += 1;
                    let one = IndexUse {
                        deleted: 1,
                        ..IndexUse::default()
                    };
                    handle.counters.index_uses.add(table.clustered.id(), one);
                    transaction.row_is_changed(table, key, is_new);
                }
                // A row that a join finds again is gone already.
                Ok(false) => {}
                Err(error) => match &mut ignore {
                    Some(warnings) if is_ignorable(&error) => {
                        transaction.tells_of_others();
                        warnings.warn(error.mysql_code(), error.to_string());
                    }
                    _ => return Err(error.into()),
                },
            }
        }
    }
    handle.counters.handler_delete.add(deleted);
    Ok(Some(Deleted {
        rows: deleted,
        found: usize::try_from(number).unwrap_or(usize::MAX),
        last: found.into_iter().next(),
    }))
}

/// The references to delete from. `database`: where tables are that are named without one. Error 1093 for one that a
/// subquery reads, in the forms for several tables.
fn targets_of(
    references: &References,
    delete: &Delete,
    database: Option<&str>,
) -> Result<Vec<usize>> {
    if delete.targets.is_empty() {
        let single = delete.tables.len() == 1 && delete.tables[0].joins.is_empty();
        return match single {
            true => Ok(vec![0]),
            false => Err(SqlError::parse_error("", 1)),
        };
    }
    let mut targets = Vec::new();
    for name in &delete.targets {
        let target = references.find(name, database)?;
        references.0[target].changeable("DELETE")?;
        if targets.contains(&target) {
            return Err(SqlError::non_unique_table(&name.table));
        }
        targets.push(target);
    }
    let read = ReadTables::of(delete, database);
    for target in &targets {
        let target = &references.0[*target];
        let table = target.changeable("DELETE")?;
        let (database, name) = (&table.definition.database, &table.definition.name);
        if read
            .iter()
            .any(|read| read.0 == *database && read.1 == *name)
        {
            return Err(SqlError::target_is_read(&target.alias));
        }
    }
    Ok(targets)
}

/// Databases and names of the tables that subqueries of a DELETE read, but for those in derived tables.
struct ReadTables<'a> {
    database: Option<&'a str>,
    queries: usize,
    derived: usize,
    found: Vec<(String, String)>,
}

impl ReadTables<'_> {
    fn of(delete: &Delete, database: Option<&str>) -> Vec<(String, String)> {
        let mut read = ReadTables {
            database,
            queries: 0,
            derived: 0,
            found: Vec::new(),
        };
        walk_tables(&mut delete.tables.clone(), &mut read);
        if let Some(condition) = &delete.selection {
            walk_expression(&mut condition.clone(), &mut read);
        }
        read.found
    }
}

impl ExpressionVisitor for ReadTables<'_> {
    fn enter_query(&mut self, _query: &ast::Query) {
        self.queries += 1;
    }

    fn leave_query(&mut self) {
        self.queries -= 1;
    }

    fn enter_table(&mut self, table: &ast::TableFactor) {
        match table {
            ast::TableFactor::Derived { .. } => self.derived += 1,
            ast::TableFactor::Table { name, .. } if self.queries > 0 && self.derived == 0 => {
                let Ok(name) = name_of(name) else {
                    return;
                };
                let database = name.database.as_deref().or(self.database);
                let database = database.unwrap_or_default().to_owned();
                self.found.push((database, name.table));
            }
            _ => {}
        }
    }

    fn leave_table(&mut self, table: &mut ast::TableFactor) {
        if matches!(table, ast::TableFactor::Derived { .. }) {
            self.derived -= 1;
        }
    }

    fn leave_expression(&mut self, _expression: &mut ast::Expr) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

/// The tables to delete from, and the query that finds their rows.
fn delete_query(
    parsed: Parsed<'_, &Delete>,
    references: &References,
    targets: &[usize],
) -> Result<(Vec<Arc<Table>>, Box<ast::Query>)> {
    let delete = parsed.ast;
    let mut projection: Vec<ast::Expr> = Vec::new();
    let mut tables = Vec::new();
    for target in targets {
        let reference = &references.0[*target];
        tables.push(Arc::clone(reference.changeable("DELETE")?));
        projection.push(reference.key());
    }
    let mut query = ChangeQuery {
        hints: &delete.hints,
        projection,
        from: &delete.tables,
        selection: &delete.selection,
        order_by: &delete.order_by,
        limit: &delete.limit,
    }
    .build()?;
    if let Some(items) = &delete.returning {
        let items = returned_items(parsed.with(items.as_slice()), &tables[0]);
        add_items(&mut query, &items, &tables[0].definition.columns);
    }
    Ok((tables, query))
}
