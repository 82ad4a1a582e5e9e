//! SELECT for the client: which way it takes, and how its rows are sent.
//!
//! A SELECT may lock what it finds, by a clause or by its level. It may skip rows that others have locked, and it may
//! count the rows that its LIMIT leaves out.

use std::collections::BTreeMap;

use sheaf_frontend::locking::locks_tables;
use sheaf_optimizer::ExplainRow;
use sheaf_types::error::codes;
use sqlparser::ast;

use crate::error::{Result, SqlError};
use crate::parser::ParsedQuery;
use crate::query::locking_clause::{Locked, lock_wait, locked_rows};
use crate::query::read_plan::Purpose;
use crate::query::run::{MAX_REPLANS, PlannedQuery};
use crate::select::locking_read::LockedRead;
use crate::select::serializable_read::{SerializableRead, plan_and_keep};
use crate::session::Session;
use crate::session::result::ResultSink;

impl Session {
    /// SELECT for the client.
    pub(crate) fn query(
        &mut self,
        query: ParsedQuery<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        match self.plan_or_send(query, sink)? {
            Some((planned, limit)) => self.send_planned(planned, limit, sink),
            None => Ok(()),
        }
    }

    /// The plan of a SELECT for the client, and how many of its rows are sent. `None`: it has run in another way.
    pub(crate) fn plan_or_send(
        &mut self,
        query: ParsedQuery<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<Option<(PlannedQuery, u64)>> {
        self.findings.watch_divisions(self.variables.sql_mode());
        if locked_rows(query.ast) == Locked::Skip && locks_tables(query.ast) {
            self.query_skipping_locked(query, sink)?;
            return Ok(None);
        }
        let counted = without_parentheses(query.ast);
        if counts_all_rows(counted) {
            self.query_counting(query.with(counted), sink)?;
            return Ok(None);
        }
        // A LIMIT of the statement's own comes before the session's.
        let limit = match query.ast.limit_clause {
            Some(_) => u64::MAX,
            None => self.variables.sql_select_limit(),
        };
        let planned = match self.plan_locked(query)? {
            SerializableRead::Result(result) => {
                self.send_locked(result, limit, sink)?;
                return Ok(None);
            }
            SerializableRead::Planned(planned) => planned,
        };
        Ok(Some((planned, limit)))
    }

    /// Plans a SELECT, and locks what its clauses and its level say. The rows that it locks are read again through the
    /// view that showed them. A table that it only reads may have another definition by then. Then it begins again, and
    /// keeps all of them.
    fn plan_locked(&mut self, query: ParsedQuery<'_>) -> Result<SerializableRead> {
        self.with_view_beside_locks(query.ast, |session| session.plan_and_lock(query))
    }

    fn plan_and_lock(&mut self, query: ParsedQuery<'_>) -> Result<SerializableRead> {
        let before = self.warnings.clone();
        for attempt in 0..MAX_REPLANS {
            return match self.lock_rows_of(query, attempt > 0)? {
                Some(LockedRead::Result(result)) => Ok(SerializableRead::Result(result)),
                Some(LockedRead::Rows(view, _guards)) if !self.transactions.reads_lock() => {
                    let planned = self.plan(query, None, Purpose::Locked, Some(view.clone()))?;
                    let mut tables = planned.tables.iter();
                    let wait = self.variables.row_lock_wait(lock_wait(query.ast));
                    if tables.any(|table| table.check_view(&view).is_err())
                        || !self.transactions.lock_asked(&view, &planned, wait)?
                    {
                        self.warnings.clone_from(&before);
                        continue;
                    }
                    Ok(SerializableRead::Planned(planned))
                }
                // What the query reads besides the rows that it locks stays as it is in SERIALIZABLE, too: in other
                // tables, or in other indexes than the search for the rows.
                locked => plan_and_keep(self, query, locked.is_some()),
            };
        }
        Err(SqlError::definition_changed())
    }

    /// Runs the plan of a SELECT and sends the first `limit` of its rows.
    pub(crate) fn send_planned(
        &mut self,
        planned: PlannedQuery,
        limit: u64,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        check_examined_rows(&planned.physical.explain, self.variables.max_join_size())?;
        self.outcome.last_query_cost = planned.physical.cost_us;
        let columns = planned.columns.clone();
        let mut announced = false;
        let mut rows = 0u64;
        self.run_planned(planned, |batch| {
            if !announced {
                sink.columns(&columns)?;
                announced = true;
            }
            let room = usize::try_from(limit - rows).unwrap_or(usize::MAX);
            if room < batch.num_rows() {
                rows = limit;
                if room > 0 {
                    sink.rows(&batch.slice(0, room))?;
                }
                return Ok(());
            }
            rows += batch.num_rows() as u64;
            sink.rows(batch)
        })?;
        if !announced {
            sink.columns(&columns)?;
        }
        self.outcome.found_rows = rows;
        self.end_query(sink)
    }

    /// SELECT SQL_CALC_FOUND_ROWS: it is run to its end for FOUND_ROWS(), and the client gets what LIMIT leaves of it.
    fn query_counting(&mut self, query: ParsedQuery<'_>, sink: &mut dyn ResultSink) -> Result<()> {
        let mut window = self.window_of(query)?;
        let whole = ast::Query {
            limit_clause: None,
            ..query.ast.clone()
        };
        let planned = self.plan_query(query.with(&whole), None)?;
        self.outcome.last_query_cost = planned.physical.cost_us;
        let columns = planned.columns.clone();
        let mut announced = false;
        let mut rows = 0u64;
        self.run_planned(planned, |batch| {
            rows += batch.num_rows() as u64;
            let shown = window.of_next(batch.num_rows());
            if shown.is_empty() {
                return Ok(());
            }
            if !announced {
                sink.columns(&columns)?;
                announced = true;
            }
            sink.rows(&batch.slice(shown.start, shown.len()))
        })?;
        if !announced {
            sink.columns(&columns)?;
        }
        self.outcome.found_rows = rows;
        self.outcome.row_count = -1;
        sink.end_of_rows(self.end_of_rows())
    }
}

/// Error 1104 for a query whose tables are expected to have more combinations of rows than `most`.
fn check_examined_rows(tables: &[ExplainRow], most: u64) -> Result<()> {
    if most == u64::MAX {
        return Ok(());
    }
    let mut examined: BTreeMap<Option<u64>, f64> = BTreeMap::new();
    for table in tables {
        let rows = table.rows.unwrap_or(1).max(1) as f64;
        *examined.entry(table.id).or_insert(1.0) *= rows;
    }
    match examined.values().sum::<f64>() > most as f64 {
        true => Err(SqlError::new(
            codes::TOO_BIG_SELECT,
            "The SELECT would examine more than MAX_JOIN_SIZE rows; check your WHERE and use SET SQL_BIG_SELECTS=1 or SET MAX_JOIN_SIZE=# if the SELECT is okay",
        )),
        false => Ok(()),
    }
}

/// The query in the parentheses around a whole statement.
fn without_parentheses(query: &ast::Query) -> &ast::Query {
    match query.body.as_ref() {
        ast::SetExpr::Query(inside)
            if query.with.is_none()
                && query.order_by.is_none()
                && query.limit_clause.is_none()
                && query.locks.is_empty() =>
        {
            without_parentheses(inside)
        }
        _ => query,
    }
}

/// Whether a query is to find out how many rows it would have without its LIMIT.
fn counts_all_rows(query: &ast::Query) -> bool {
    let mut body = query.body.as_ref();
    let select = loop {
        match body {
            ast::SetExpr::SetOperation { left, .. } => body = left,
            ast::SetExpr::Query(first) => body = &first.body,
            ast::SetExpr::Select(select) => break select,
            _ => return false,
        }
    };
    let modifiers = select.select_modifiers.as_ref();
    let counts = modifiers.is_some_and(|modifiers| modifiers.sql_calc_found_rows);
    counts && query.limit_clause.is_some() && query.locks.is_empty()
}
