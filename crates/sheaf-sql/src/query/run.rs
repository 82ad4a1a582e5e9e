//! SELECT: from the syntax tree to rows at the sink.
//!
//! ```text
//!   syntax tree -> bind::logical_plan -> optimizer -> operators -> worker threads -> batches -> sink
//!                        |                                                               ^
//!                        '- tables of the plan: metadata locks until the last batch -----'
//! ```
//!
//! Planning takes no lock on the tables it looks at. Once the plan is known its tables are locked against changes of
//! their definition, and if one changed in between, the statement is planned again.

use std::any::Any;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use arrow::datatypes::{Field, FieldRef, SchemaRef};
use datafusion_execution::TaskContext;
use datafusion_expr::{LogicalPlan, TableSource};
use sheaf_exec::functions::limits::ResultLimits;
use sheaf_exec::memory_pool::Admission;
use sheaf_exec::operator::kept_rows::keeps_rows;
use sheaf_exec::{MemoryTableSource, SheafTableSource, for_each_node};
use sheaf_memory::planning::{self, PlanBytes};
use sheaf_optimizer::{
    CommonTables, Expectation, ExplainRow, PhysicalQuery, PlannerContext, PlannerSettings, Trace,
    optimize_logical, plan_physical, widest_row_bytes,
};
use sheaf_storage::{LockMode, LockWait, ReadView};
use sheaf_table::{ReadGuard, Table};
use sheaf_types::error::codes;
use sqlparser::ast;

use crate::catalog_views::information_schema;
use crate::error::{Result, SqlError};
use crate::isolation::locking_read::{Locked, LockedRead, lock_wait, locked_rows};
use crate::isolation::serializable_read::SerializableRead;
use crate::parser::ParsedQuery;
use crate::query::read_plan::{LockWhen, LocksFor, Purpose, ReadFacts, ReadPlan, ViewFor};
use crate::query::value_extent::text_lengths;
use crate::session::result::{ColumnMeta, Origin, ResultSink, table_flags};
use crate::session::statement_timer::ArmedTimer;
use crate::session::workers::Workers;
use crate::session::{Session, SessionHandle};
use sheaf_frontend::bind::over_rows::{RowQuery, row_query};
use sheaf_frontend::bind::{column_types, logical_plan};
use sheaf_frontend::locking::locks_tables;
use sheaf_frontend::query::{BoundQuery, Header, Listed, QueryContext};

/// Rows of a batch.
const BATCH_ROWS: usize = 8192;
/// A batch has one row for so much query memory, and no more than that: with 64 MiB it has all of [`BATCH_ROWS`].
const QUERY_BYTES_OF_A_ROW: usize = 8 << 10;
/// What a batch takes at most: this part of the query memory, but no less than the one and no more than the other. Each
/// operator of a plan holds some. Up to 512 bytes a row, the rows of batches are as many as without this limit.
const BATCH_SHARE: usize = 16;
const LEAST_BATCH_BYTES: usize = 1 << 20;
const MOST_BATCH_BYTES: usize = 8 << 20;
/// Beside so many other statements, batches are still as large; with more, they are smaller, but no less than that.
const FEW_STATEMENTS: usize = 2;
const LEAST_BATCH_BYTES_IN_CROWD: usize = 64 << 10;
/// However wide rows are, a batch has so many: each batch costs some time for each column.
const LEAST_BATCH_ROWS: usize = 8;
/// A plan that costs less takes little memory, whatever its operators are.
const BIG_COST_US: f64 = 20_000.0;
/// Rows of a batch where memory is short: an operator that spills holds some batches at least.
const THRIFTY_BATCH_ROWS: usize = 1024;
/// The part of the query memory that one function may take for the results of a batch, and what it may take at least
/// and at the most. What needs more is evaluated for fewer rows at a time.
const BATCH_RESULT_SHARE: usize = 2;
const MIN_BATCH_RESULT_BYTES: usize = 8 << 20;
const MAX_BATCH_RESULT_BYTES: usize = 256 << 20;
/// How long a row or a group is taken to be when it is asked whether what a sort or an aggregate keeps fits in memory.
const KEPT_ROW_BYTES: f64 = 256.0;

/// The share of a statement's memory that the first rows of an order may take that a change is limited to.
const FIRST_ROWS_SHARE: f64 = 0.5;
/// How long a plan that takes less memory waits for what the one before it has had, and how often it looks.
const MOST_GIVING_BACK: Duration = Duration::from_secs(1);
const GIVING_BACK_SLICE: Duration = Duration::from_millis(1);
/// How often a statement is planned again because a table changed under it. Each time it has waited for the change.
pub(crate) const MAX_REPLANS: usize = 100;

/// A planned query with the locks that keep its plan valid.
pub(crate) struct PlannedQuery {
    /// Other sessions may look at it while it runs.
    pub(crate) physical: Arc<PhysicalQuery>,
    pub(crate) columns: Vec<ColumnMeta>,
    /// Tables that the query reads.
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) task: Arc<TaskContext>,
    /// The view that it reads through, if it is of SERIALIZABLE and what it reads is still to be locked.
    pub(crate) to_lock: Option<ReadView>,
    /// What queries inside of it lock (FOR UPDATE, FOR SHARE), where the caller locks what it finds.
    pub(crate) asked: Vec<Asked>,
    /// How the statement goes on if there is too little memory for this plan.
    thrifty: Option<Box<ThriftyPlan>>,
    _guards: Vec<ReadGuard>,
    /// Of all that.
    bytes: PlanBytes,
}

/// What a query inside of a statement locks.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) table: Arc<Table>,
    pub(crate) mode: LockMode,
    /// Without NOWAIT.
    pub(crate) waits: bool,
}

/// A query that may be planned once more, with small batches and sorts of all rows where the first ones are wanted.
/// Estimates of what operators keep are often low.
struct ThriftyPlan {
    query: LogicalPlan,
    context: PlannerContext,
    /// For EXPLAIN ANALYZE.
    is_measured: bool,
}

impl PlannedQuery {
    /// How queries inside lock this table, if one does.
    pub(crate) fn asked_of(&self, table: &Arc<Table>) -> Option<Asked> {
        let mut asked = self
            .asked
            .iter()
            .filter(|asked| Arc::ptr_eq(&asked.table, table));
        let mut all = asked.next()?.clone();
        for other in asked {
            all.waits &= other.waits;
            if other.mode == LockMode::Exclusive {
                all.mode = other.mode;
            }
        }
        Some(all)
    }

    pub(crate) fn schema(&self) -> SchemaRef {
        self.physical.schema()
    }

    /// Where the values of each column come from.
    pub(crate) fn origins(&self) -> Vec<Origin> {
        self.columns.iter().map(Origin::from).collect()
    }

    /// Prepares the plan for EXPLAIN ANALYZE, which shows the plan that has run to its end.
    pub(crate) fn measure(&mut self) -> Result<()> {
        if let Some(thrifty) = &mut self.thrifty {
            thrifty.is_measured = true;
        }
        if let Some(physical) = Arc::get_mut(&mut self.physical) {
            physical.measure()?;
        }
        Ok(())
    }

    /// Has EXPLAIN name the keys, too, that `other`, a plan of the same statement, could use.
    pub(crate) fn name_keys_of(&mut self, other: &PlannedQuery) {
        let Some(physical) = Arc::get_mut(&mut self.physical) else {
            return;
        };
        for row in &mut physical.explain {
            let mut others = other.physical.explain.iter();
            if let Some(same) =
                others.find(|other| (other.id, &other.table) == (row.id, &row.table))
            {
                row.name_keys_of(same);
            }
        }
    }
}

/// Runs plans with the parts of a session that this takes. The others are free for what is done with the rows.
pub(crate) struct Runner<'s> {
    handle: &'s Arc<SessionHandle>,
    workers: &'s Workers,
}

impl<'s> Runner<'s> {
    pub(crate) fn new(handle: &'s Arc<SessionHandle>, workers: &'s Workers) -> Runner<'s> {
        Runner { handle, workers }
    }

    /// Runs a plan and hands over its batches. Returns the plan that has run.
    pub(crate) fn run(
        &self,
        planned: PlannedQuery,
        mut take: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<Arc<PhysicalQuery>> {
        self.run_until(planned, |batch| take(batch).map(ControlFlow::Continue))
    }

    /// As [`Self::run`], until `take` has enough. A plan that runs out of memory before its first rows come
    /// makes room for one that needs less.
    pub(crate) fn run_until(
        &self,
        mut planned: PlannedQuery,
        mut take: impl FnMut(&RecordBatch) -> Result<ControlFlow<()>>,
    ) -> Result<Arc<PhysicalQuery>> {
        self.workers.planning().pause();
        loop {
            let _running = self.handle.show_plan(&planned.physical);
            let plan = Arc::clone(&planned.physical.plan);
            let reserved_before = planned.task.memory_pool().reserved();
            let is_big = planned.physical.cost_us >= BIG_COST_US && keeps_rows(&plan);
            let mut admission = match is_big {
                true => Some(self.admit(&planned.task)?),
                false => None,
            };
            let mut stream = self.workers.runtime()?.run(
                plan,
                Arc::clone(&planned.task),
                self.handle.cancel_flag().clone(),
            );
            let failed = loop {
                match stream.next() {
                    None => return Ok(planned.physical),
                    Some(Ok(batch)) => {
                        planned.thrifty = None;
                        // From here on it is big as long as it has much: its client may take its time.
                        drop(admission.take());
                        if take(&batch)?.is_break() {
                            return Ok(planned.physical);
                        }
                    }
                    Some(Err(error)) => break error,
                }
            };
            let is_stopped = self.handle.memory().is_stopped();
            match planned.thrifty.take() {
                Some(thrifty) if failed.is_out_of_memory() || is_stopped => {
                    tracing::debug!(error = %failed, "a query is planned again with less memory");
                    stream.settle();
                    await_given_back(&planned.task, reserved_before);
                    if is_stopped && !self.handle.memory().go_on() {
                        return Err(failed.into());
                    }
                    self.plan_thriftily(*thrifty, &mut planned)?;
                    self.workers.planning().pause();
                    self.handle.counters.sheaf_plan_switches.add(1);
                }
                _ => {
                    tracing::debug!(error = %failed, is_stopped, "a query ends with an error");
                    return Err(failed.into());
                }
            }
        }
    }

    /// Waits until the session may run a plan that takes much memory.
    fn admit(&self, task: &TaskContext) -> Result<Admission> {
        let admission = self.workers.runtime()?.admit(task);
        if admission.is_err() {
            self.handle.cancel_flag().check()?;
        }
        Ok(admission?)
    }

    /// Puts a plan that takes less memory in the place of another.
    fn plan_thriftily(&self, plan: ThriftyPlan, planned: &mut PlannedQuery) -> Result<()> {
        let ThriftyPlan {
            query,
            mut context,
            is_measured,
        } = plan;
        context.settings.query_memory_bytes = 0;
        self.take_small_batches(&mut context);
        context.trace = Trace::default();
        let planning = self.workers.planning();
        let mut bytes = planning.begin_plan();
        let mut physical = planning.during(|| plan_physical(&query, &context))?;
        bytes.is_made();
        if is_measured {
            physical.measure()?;
        }
        planned.physical = Arc::new(physical);
        planned.task = context.task;
        planned.bytes = bytes;
        Ok(())
    }

    fn take_small_batches(&self, context: &mut PlannerContext) {
        self.limit_batch_rows(context, THRIFTY_BATCH_ROWS);
    }

    /// Wide rows come in batches of fewer: a join of 300 columns took 39 MB for 8,192 rows, in each of its operators.
    fn bound_batches(&self, query: &LogicalPlan, context: &mut PlannerContext) -> Result<()> {
        let has_little_memory = context.settings.has_little_memory();
        let row_bytes = widest_row_bytes(query, has_little_memory)?;
        let rows = context.settings.batch_string_bytes / row_bytes.max(1);
        self.limit_batch_rows(context, rows.max(LEAST_BATCH_ROWS));
        Ok(())
    }

    /// From here on, all that the plan does has batches of no more than so many rows.
    fn limit_batch_rows(&self, context: &mut PlannerContext, rows: usize) {
        if rows >= context.settings.batch_rows {
            return;
        }
        context.settings.batch_rows = rows;
        let limits = context.task.session_config().options().extensions.get();
        context.task = self
            .workers
            .new_task(self.handle.id(), rows, limits.cloned());
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
        let before = self.warnings.clone();
        for attempt in 0..MAX_REPLANS {
            return match self.lock_rows_of(query, attempt > 0)? {
                Some(LockedRead::Result(result)) => Ok(SerializableRead::Result(result)),
                Some(LockedRead::Rows(view, _guards)) if !self.transactions.reads_lock() => {
                    let planned = self.plan(query, None, Purpose::Locked, Some(view.clone()))?;
                    let mut tables = planned.tables.iter();
                    let wait = self.row_lock_wait(lock_wait(query.ast));
                    if tables.any(|table| table.check_view(&view).is_err())
                        || !self.lock_asked(&view, &planned, wait)?
                    {
                        self.warnings.clone_from(&before);
                        continue;
                    }
                    Ok(SerializableRead::Planned(planned))
                }
                // What the query reads besides the rows that it locks stays as it is in SERIALIZABLE, too: in other
                // tables, or in other indexes than the search for the rows.
                locked => self.plan_and_keep(query, locked.is_some()),
            };
        }
        Err(SqlError::definition_changed())
    }

    /// [Keeps](Self::keep_definition) all tables that a query reads.
    pub(crate) fn keep_definitions(&mut self, query: ParsedQuery<'_>) -> Result<()> {
        let _bytes = self.workers.planning().begin_plan();
        let lowered = self.lower(query, None, Listed::Items)?;
        for table in tables_of(&lowered.plan)? {
            self.keep_definition(&table)?;
        }
        Ok(())
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

    /// Runs a query and hands over its batches.
    pub(crate) fn run_query(
        &mut self,
        query: ParsedQuery<'_>,
        take: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let planned = self.plan_query(query, None)?;
        self.run_planned(planned, take)?;
        Ok(())
    }

    /// What runs the session's plans.
    pub(crate) fn runner(&self) -> Runner<'_> {
        Runner::new(&self.handle, &self.workers)
    }

    pub(crate) fn run_planned(
        &mut self,
        planned: PlannedQuery,
        take: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<Arc<PhysicalQuery>> {
        self.runner().run(planned, take)
    }

    /// Plans a query and locks its tables against changes of their definition. `extra` is a table that exists for this
    /// query only, as SHOW … WHERE needs it.
    pub(crate) fn plan_query(
        &mut self,
        query: ParsedQuery<'_>,
        extra: Option<&Arc<MemoryTableSource>>,
    ) -> Result<PlannedQuery> {
        self.plan(query, extra, Purpose::Read, None)
    }

    /// Plans a query for EXPLAIN, which locks no rows.
    pub(crate) fn plan_explained(&mut self, query: ParsedQuery<'_>) -> Result<PlannedQuery> {
        let view = self.read_view()?;
        self.plan(query, None, Purpose::Locked, Some(view))
    }

    /// Plans the query of a statement that changes rows: the tables of the outermost FROM have their clustered keys,
    /// and rows come in one order, that of the access path.
    pub(crate) fn plan_change(
        &mut self,
        query: ParsedQuery<'_>,
        view: ReadView,
    ) -> Result<PlannedQuery> {
        self.findings
            .watch_divisions_of_conditions(self.variables.sql_mode());
        self.plan(query, None, Purpose::Change, Some(view))
    }

    pub(crate) fn plan(
        &mut self,
        query: ParsedQuery<'_>,
        extra: Option<&Arc<MemoryTableSource>>,
        purpose: Purpose,
        view: Option<ReadView>,
    ) -> Result<PlannedQuery> {
        // The tables of the attempt before: what it waited for does not change again meanwhile.
        let mut held = Vec::new();
        let planning = Arc::clone(self.workers.planning());
        for _ in 0..MAX_REPLANS {
            let bytes = planning.begin_plan();
            let mut lowered = self.lower(query, extra, purpose.listed())?;
            self.warn_of_hints(std::mem::take(&mut lowered.hint_warnings));
            let sources = tables_of(&lowered.plan)?;
            for table in &sources {
                self.keep_definition(table)?;
            }
            let is_free = purpose.shows_rows() && held.is_empty() && self.holds_no_table();
            let guards = sources
                .iter()
                .enumerate()
                .map(|(n, table)| self.lock_for_read(table, is_free && n == 0))
                .collect::<Result<Vec<_>>>()?;
            if guards
                .iter()
                .zip(&sources)
                .all(|(guard, table)| Arc::ptr_eq(guard, table))
            {
                let obeys_clause = purpose.obeys_locking_clauses() && lowered.locking;
                if obeys_clause {
                    for table in &sources {
                        let definition = &table.definition;
                        self.client
                            .check_may_lock(&definition.database, &definition.name)?;
                    }
                }
                let level_locks = match purpose {
                    Purpose::Insert | Purpose::Values => self.transactions.changes_lock_reads(),
                    _ => self.transactions.reads_lock(),
                };
                let read = ReadPlan::choose(ReadFacts {
                    purpose,
                    has_view: view.is_some(),
                    locks_for: match (obeys_clause, level_locks) {
                        (true, _) => LocksFor::Clause,
                        (false, true) => LocksFor::Level,
                        (false, false) => LocksFor::Nobody,
                    },
                    in_transaction: self.transactions.is_open(),
                    reads_tables: !sources.is_empty(),
                    has_joins: reads_twice(&lowered.plan)?,
                });
                let view = match (view, read.view) {
                    (Some(view), _) => view,
                    (None, ViewFor::Newest) => ReadView::newest(),
                    (None, ViewFor::Current) => {
                        self.transactions.current_view(self.engine.storage())?
                    }
                    (None, ViewFor::Snapshot | ViewFor::Given) => self.read_view()?,
                };
                let to_lock = (read.locks == LockWhen::WhenItHasRun).then(|| view.clone());
                let asked = match purpose.locks_what_it_finds() && lowered.locking {
                    true => self.tables_locked_inside(query.ast),
                    false => Vec::new(),
                };
                let made = (bytes, guards);
                let mut planned =
                    planning.during(|| self.finish_plan(lowered, sources, made, purpose, view))?;
                planned.bytes.is_made();
                planned.to_lock = to_lock;
                planned.asked = asked;
                if read.locks == LockWhen::BeforeItRuns {
                    let mode = self.read_lock_mode(query.ast, purpose == Purpose::Insert)?;
                    let wait = self.row_lock_wait(lock_wait(query.ast));
                    let inside = self.tables_locked_inside(query.ast);
                    let wait_for = |table: &Arc<Table>| {
                        let mut asked = inside.iter().filter(|asked| !asked.waits);
                        match asked.any(|asked| Arc::ptr_eq(&asked.table, table)) {
                            true => LockWait::No,
                            false => wait,
                        }
                    };
                    self.lock_all_it_reads(&planned, mode, wait_for)?;
                }
                let caller_locks = read.view == ViewFor::Given
                    && matches!(purpose, Purpose::Change | Purpose::Insert | Purpose::Values);
                if read.locks != LockWhen::Never || caller_locks {
                    // Another plan would read what is not locked, or find its rows in another order.
                    planned.thrifty = None;
                }
                return Ok(planned);
            }
            held = guards;
        }
        Err(SqlError::definition_changed())
    }

    pub(crate) fn lower(
        &self,
        query: ParsedQuery<'_>,
        extra: Option<&Arc<MemoryTableSource>>,
        listed: Listed,
    ) -> Result<BoundQuery> {
        self.lower_with(query, extra, (listed, false))
    }

    /// As [`Self::lower`], of a query whose FROM is to be replaced by rows: everything else stays above it.
    pub(crate) fn lower_over_rows(
        &self,
        query: ParsedQuery<'_>,
        extra: &Arc<MemoryTableSource>,
    ) -> Result<BoundQuery> {
        self.lower_with(query, Some(extra), (Listed::Items, true))
    }

    /// The same of a query that is a list over a condition; `None` of any other.
    pub(crate) fn bind_row_query(
        &self,
        query: ParsedQuery<'_>,
        extra: &Arc<MemoryTableSource>,
    ) -> Result<Option<RowQuery>> {
        self.bound_with(query, Some(extra), (Listed::Items, true), row_query)
    }

    /// The types of a query's columns.
    pub(crate) fn column_types(&self, query: ParsedQuery<'_>) -> Result<Vec<FieldRef>> {
        self.bound_with(query, None, (Listed::Items, false), column_types)
    }

    fn lower_with(
        &self,
        query: ParsedQuery<'_>,
        extra: Option<&Arc<MemoryTableSource>>,
        flags: (Listed, bool),
    ) -> Result<BoundQuery> {
        self.bound_with(query, extra, flags, logical_plan)
    }

    fn bound_with<T>(
        &self,
        query: ParsedQuery<'_>,
        extra: Option<&Arc<MemoryTableSource>>,
        (listed, is_over_rows): (Listed, bool),
        bind: impl FnOnce(&ast::Query, &QueryContext<'_>) -> Result<T>,
    ) -> Result<T> {
        let virtual_tables =
            |database: &str, table: &str| -> Result<Option<Arc<dyn TableSource>>> {
                if let Some(extra) = extra
                    && extra.name == table
                {
                    return Ok(Some(Arc::clone(extra) as Arc<dyn TableSource>));
                }
                self.client.check_read(database, table)?;
                // The rows come with each run.
                if is_over_rows {
                    return self.shape_of_virtual_table(database, table);
                }
                // Rows are not planned.
                let found = || information_schema::virtual_table(database, table, self);
                let found = planning::aside(found)?;
                Ok(found.map(|(schema, batch)| {
                    Arc::new(MemoryTableSource::new(
                        table.to_string(),
                        schema,
                        vec![batch],
                    )) as Arc<dyn TableSource>
                }))
            };
        let context = QueryContext {
            sql: query.text,
            catalog: self.engine.catalog(),
            session: self,
            parameters: &[],
            virtual_tables: &virtual_tables,
            listed,
            is_over_rows,
        };
        let planning = self.workers.planning();
        planning.during(|| bind(query.ast, &context))
    }

    /// As [`Self::lower`], of a query of which only its columns are asked for: a direct plan of it checks before each
    /// run what the session may read.
    pub(crate) fn lower_shape(&self, query: &ast::Query, text: &str) -> Result<BoundQuery> {
        let context = QueryContext {
            sql: text,
            catalog: self.engine.catalog(),
            session: self,
            parameters: &[],
            virtual_tables: &|database: &str, table: &str| {
                self.shape_of_virtual_table(database, table)
            },
            listed: Listed::Items,
            is_over_rows: false,
        };
        logical_plan(query, &context)
    }

    /// The columns of a table of `information_schema` that direct plans read; `None` if there is no such table.
    fn shape_of_virtual_table(
        &self,
        database: &str,
        table: &str,
    ) -> Result<Option<Arc<dyn TableSource>>> {
        let shape = information_schema::shape_of_definitions(database, table, self)?;
        Ok(shape.map(|schema| {
            let source = MemoryTableSource::new(table.to_string(), schema, Vec::new());
            Arc::new(source) as Arc<dyn TableSource>
        }))
    }

    fn finish_plan(
        &mut self,
        lowered: BoundQuery,
        tables: Vec<Arc<Table>>,
        (bytes, guards): (PlanBytes, Vec<ReadGuard>),
        purpose: Purpose,
        view: ReadView,
    ) -> Result<PlannedQuery> {
        let columns = self.columns_of(&lowered);
        let mut context = self.planner_context(view);
        if purpose == Purpose::Change {
            context.settings.target_partitions = 1;
            // No other plan takes its place when memory is short.
            let memory = context.settings.query_memory_bytes as f64;
            let most = (memory * FIRST_ROWS_SHARE / KEPT_ROW_BYTES) as usize;
            context.settings.most_first_rows = context.settings.most_first_rows.min(most);
        }
        let optimized = optimize_logical(lowered.plan, &context)?;
        self.runner().bound_batches(&optimized, &mut context)?;
        let mut physical = plan_physical(&optimized, &context)?;
        let memory = context.settings.query_memory_bytes as f64;
        if physical.most_kept * KEPT_ROW_BYTES > memory {
            // It spills, and merges what it has spilled: a batch of each run is in memory then.
            let trace = std::mem::take(&mut context.trace);
            self.runner().take_small_batches(&mut context);
            physical = plan_physical(&optimized, &context)?;
            context.trace = trace;
        }
        self.warn_of_conflicts(std::mem::take(&mut physical.conflicting_hints));
        let task = Arc::clone(&context.task);
        let query = optimized;
        Ok(PlannedQuery {
            physical: Arc::new(physical),
            columns,
            tables,
            task,
            to_lock: None,
            asked: Vec::new(),
            thrifty: Some(Box::new(ThriftyPlan {
                query,
                context,
                is_measured: false,
            })),
            _guards: guards,
            bytes,
        })
    }

    /// Columns of a query without running or locking anything, for PREPARE.
    pub(crate) fn describe_query(&self, query: ParsedQuery<'_>) -> Result<Vec<ColumnMeta>> {
        let lowered = self.lower(query, None, Listed::Items)?;
        Ok(self.columns_of(&lowered))
    }

    pub(crate) fn columns_of(&self, query: &BoundQuery) -> Vec<ColumnMeta> {
        let fields = query.plan.schema().fields();
        fields
            .iter()
            .zip(&query.headers)
            .zip(text_lengths(query))
            .map(|((field, header), length)| self.column_of(field, header, length))
            .collect()
    }

    /// How a client is told of a column. `length`: of its texts, if that is known.
    pub(crate) fn column_of(
        &self,
        field: &Field,
        header: &Header,
        length: Option<u32>,
    ) -> ColumnMeta {
        let collation_id = self.result_collation_id();
        let mut meta = ColumnMeta::with_text_length(field, header, collation_id, length);
        if !header.org_name.is_empty()
            && let Ok(table) = self
                .engine
                .catalog()
                .table(&header.database, &header.org_table)
            && let Some(column) = table.definition.column_position(&header.org_name)
        {
            meta.flags |= table_flags(&table.definition, column);
        }
        meta
    }

    pub(crate) fn planner_context(&mut self, view: ReadView) -> PlannerContext {
        let settings = PlannerSettings {
            switch: self.variables.optimizer_switch(),
            mrr_buffer_bytes: self.variables.mrr_buffer_bytes(),
            join_buffer_bytes: self.variables.join_buffer_bytes(),
            batch_rows: self.batch_rows(),
            batch_string_bytes: self.batch_bytes(),
            target_partitions: self.workers.threads(),
            query_memory_bytes: self.engine.memory().query_bytes,
            eq_range_index_dive_limit: self.variables.eq_range_index_dive_limit(),
            costs: self.engine.costs(),
            max_recursion_rounds: self.variables.cte_max_recursion_depth(),
            ..PlannerSettings::default()
        };
        PlannerContext {
            settings,
            counters: Arc::clone(&self.handle.counters),
            view,
            cancel: self.handle.cancel_flag().clone(),
            task: self.task_context(),
            trace: self.traces.current.clone(),
            expectation: Expectation::Estimates,
            common_tables: CommonTables::default(),
        }
    }

    pub(crate) fn task_context(&mut self) -> Arc<TaskContext> {
        if let Some(task) = self.workers.task() {
            return Arc::clone(task);
        }
        let (rows, limits) = (self.batch_rows(), self.result_limits());
        let task = self.workers.new_task(self.handle.id(), rows, Some(limits));
        self.workers.keep_task(Arc::clone(&task));
        task
    }

    /// Rows of a batch, as many as the query memory allows: each operator of a plan holds some batches.
    fn batch_rows(&self) -> usize {
        let rows = self.engine.memory().query_bytes / QUERY_BYTES_OF_A_ROW;
        rows.clamp(THRIFTY_BATCH_ROWS, BATCH_ROWS)
    }

    /// What a batch may take. Of many statements that run, each has less: all of them may wait for their clients.
    fn batch_bytes(&self) -> usize {
        let share = self.engine.memory().query_bytes / BATCH_SHARE;
        let share = share.clamp(LEAST_BATCH_BYTES, MOST_BATCH_BYTES);
        let crowd = self.engine.crowd().inside() / FEW_STATEMENTS;
        (share / crowd.max(1)).max(LEAST_BATCH_BYTES_IN_CROWD)
    }

    /// What the expressions of the session's statements may make.
    pub(crate) fn result_limits(&self) -> ResultLimits {
        let value_bytes = self.variables.max_allowed_packet();
        let share = self.engine.memory().query_bytes / BATCH_RESULT_SHARE;
        let share = share.clamp(MIN_BATCH_RESULT_BYTES, MAX_BATCH_RESULT_BYTES);
        ResultLimits {
            value_bytes,
            batch_bytes: share,
            cancel: self.handle.cancel_flag().clone(),
            oversized: Some(self.findings.oversized_results.clone()),
        }
    }

    /// Measures the time of the running statement, if that is limited, until what is returned is dropped.
    pub(crate) fn limit_time(&self, is_query: bool) -> Option<ArmedTimer> {
        let limit = match is_query {
            true => self.variables.query_time_limit(),
            false => self.variables.statement_time_limit(),
        };
        let limit = limit?;
        self.engine.timer.arm(self.handle(), limit)
    }
}

/// Waits a while until a plan that has ended has given back what its tasks had reserved. They end one by one.
fn await_given_back(task: &TaskContext, reserved_before: usize) {
    let began = Instant::now();
    while task.memory_pool().reserved() > reserved_before && began.elapsed() < MOST_GIVING_BACK {
        std::thread::sleep(GIVING_BACK_SLICE);
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

/// The tables that a plan reads, each once.
fn tables_of(plan: &LogicalPlan) -> Result<Vec<Arc<Table>>> {
    let mut tables: Vec<Arc<Table>> = Vec::new();
    for_each_table(plan, |table| {
        if !tables.iter().any(|known| Arc::ptr_eq(known, table)) {
            tables.push(Arc::clone(table));
        }
    })?;
    Ok(tables)
}

/// Whether a plan names more than one table, or one more than once: else it has no joins.
fn reads_twice(plan: &LogicalPlan) -> Result<bool> {
    let mut reads = 0;
    for_each_table(plan, |_| reads += 1)?;
    Ok(reads > 1)
}

/// Calls `take` with the table of each reference to one.
fn for_each_table(plan: &LogicalPlan, mut take: impl FnMut(&Arc<Table>)) -> Result<()> {
    for_each_node(plan, &mut |node| {
        if let LogicalPlan::TableScan(scan) = node {
            let source: &dyn Any = scan.source.as_ref();
            if let Some(source) = source.downcast_ref::<SheafTableSource>() {
                take(&source.table);
            }
        }
        Ok(())
    })?;
    Ok(())
}
