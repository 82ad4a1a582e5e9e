//! From a query to a plan of operators, with the locks that keep it valid.
//!
//! The tables that a query reads are known when it is bound. Then they are locked against changes of their definition.
//! If one has changed meanwhile, the query is bound again, while the locks of the attempt before are held.

use std::any::Any;
use std::sync::Arc;

use datafusion_expr::LogicalPlan;
use sheaf_exec::operator::kept_rows::{keeps_lengthened_texts, sorts_lengthened_texts};
use sheaf_exec::{MemoryTableSource, SheafTableSource, for_each_node};
use sheaf_frontend::query::{BoundQuery, Listed};
use sheaf_memory::planning::PlanBytes;
use sheaf_optimizer::advisor::table_needs;
use sheaf_optimizer::{PlannerContext, Reads, longest_row_bytes, optimize_logical, plan_physical};
use sheaf_storage::{LockWait, ReadView};
use sheaf_table::{QualifiedName, ReadGuard, Table};
use sheaf_types::text::quoting::quoted_name;

use super::{MAX_REPLANS, PlannedQuery, ThriftyPlan};
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::parser::{Parsed, ParsedQuery, Statement, parse_statement};
use crate::query::locking_clause::lock_wait;
use crate::query::read_plan::{LockWhen, LocksFor, Purpose, ReadFacts, ReadPlan, ViewFor};
use crate::session::Session;
use crate::session::hypothesis::OptimizedQuery;

/// How long a row or a group is taken to be when it is asked whether what a sort or an aggregate keeps fits in memory.
const KEPT_ROW_BYTES: f64 = 256.0;
/// Rows of a batch with texts of which it is not known how long functions make them.
const LENGTHENED_ROWS: usize = 64;
/// Rows of a batch where such texts are kept or told apart, and memory is short or no other plan may follow. Workers
/// put some batches together: with texts of 7 KB and 64M, a batch of 3,000 rows was a third of the memory.
const KEPT_LENGTHENED_ROWS: usize = 256;
/// A statement that has less memory than this sorts in one stream what does not fit in it.
const SORTS_OF_WORKERS_BYTES: usize = 32 << 20;
/// So many copies of a long row are counted.
const LONG_ROW_COPIES: usize = 8;

impl Session {
    /// [Keeps](Self::keep_definition) all tables that a query reads.
    pub(crate) fn keep_definitions(&mut self, query: ParsedQuery<'_>) -> Result<()> {
        let _bytes = self.workers.planning().begin_plan();
        let lowered = self.lower(query, None, Listed::Items)?;
        for table in tables_of(&lowered.plan)? {
            self.keep_definition(&table)?;
        }
        Ok(())
    }

    /// The tables that a view reads, and those of the views in it.
    pub(crate) fn tables_of_view(
        &self,
        (database, name): &QualifiedName,
    ) -> Result<Vec<Arc<Table>>> {
        let text = format!(
            "SELECT * FROM {}.{}",
            quoted_name(database),
            quoted_name(name)
        );
        let Statement::Query(query) = parse_statement(&text, &SheafDialect::default())? else {
            return Ok(Vec::new());
        };
        let lowered = self.lower(Parsed::new(&query, &text), None, Listed::Items)?;
        tables_of(&lowered.plan)
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
            self.warnings
                .warn_of_hints(std::mem::take(&mut lowered.hint_warnings));
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
                .all(|(guard, table)| guard.is_version_of(table))
            {
                let obeys_clause = purpose.obeys_locking_clauses() && lowered.locking;
                if obeys_clause {
                    let definitions = sources.iter().map(|table| &table.definition);
                    for definition in definitions.filter(|table| !table.is_temporary()) {
                        self.client
                            .check_may_lock(&definition.database, &definition.name)?;
                    }
                }
                let level_locks = match purpose.feeds_a_statement() {
                    true => self.transactions.changes_lock_reads(),
                    false => self.transactions.reads_lock(),
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
                let inside = match lowered.locking {
                    true => self.tables_locked_inside(query.ast)?,
                    false => Vec::new(),
                };
                let made = (bytes, guards);
                let mut planned =
                    planning.during(|| self.finish_plan(lowered, sources, made, purpose, view))?;
                planned.bytes.is_made();
                planned.to_lock = to_lock;
                if purpose.locks_what_it_finds() {
                    planned.asked.clone_from(&inside);
                }
                if read.locks == LockWhen::BeforeItRuns {
                    let mode = self.read_lock_mode(query.ast, purpose == Purpose::Insert)?;
                    let wait = self.variables.row_lock_wait(lock_wait(query.ast));
                    let wait_for = |table: &Arc<Table>| {
                        let mut asked = inside.iter().filter(|asked| !asked.waits);
                        match asked.any(|asked| Arc::ptr_eq(&asked.table, table)) {
                            true => LockWait::No,
                            false => wait,
                        }
                    };
                    self.transactions
                        .lock_all_it_reads(&planned, mode, wait_for)?;
                }
                let is_of_change = purpose.feeds_a_statement() || purpose == Purpose::Change;
                let caller_locks = read.view == ViewFor::Given && is_of_change;
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
        }
        let optimized = optimize_logical(lowered.plan, &context)?;
        if let Some(notes) = &mut self.statement.hypothesis.notes {
            notes.needs.extend(table_needs(&optimized)?);
        }
        // No other plan may take its place when memory is short.
        let is_final = !matches!(purpose, Purpose::Read | Purpose::Kept { .. });
        let mut row_bytes = KEPT_ROW_BYTES;
        if is_final {
            // A long value is in a row, in its key, and in what is read with it.
            let long = LONG_ROW_COPIES * longest_row_bytes(&optimized)?;
            row_bytes = row_bytes.max(long as f64);
        }
        self.runner().bound_batches(&optimized, &mut context)?;
        let mut physical = plan_physical(&optimized, &context)?;
        if is_final && sorts_lengthened_texts(&physical.plan) {
            self.runner()
                .limit_batch_rows(&mut context, LENGTHENED_ROWS);
            physical = plan_physical(&optimized, &context)?;
        }
        let is_tight = is_final || context.settings.has_little_memory();
        if is_tight && keeps_lengthened_texts(&physical.plan) {
            let trace = std::mem::take(&mut context.trace);
            self.runner()
                .limit_batch_rows(&mut context, KEPT_LENGTHENED_ROWS);
            physical = plan_physical(&optimized, &context)?;
            context.trace = trace;
        }
        let memory = context.settings.query_memory_bytes as f64;
        if physical.most_kept * row_bytes > memory {
            // It spills, and merges what it has spilled: a batch of each run is in memory then.
            let trace = std::mem::take(&mut context.trace);
            self.runner().take_small_batches(&mut context);
            context.settings.sorts_in_one_stream =
                context.settings.query_memory_bytes < SORTS_OF_WORKERS_BYTES;
            physical = plan_physical(&optimized, &context)?;
            context.trace = trace;
        }
        self.warnings
            .warn_of_conflicts(std::mem::take(&mut physical.conflicting_hints));
        if let Some(notes) = &mut self.statement.hypothesis.notes {
            notes.queries.push(OptimizedQuery {
                plan: optimized.clone(),
                context: PlannerContext {
                    // It does not run.
                    view: ReadView::newest(),
                    ..context.clone()
                },
                tables: tables.clone(),
            });
        }
        // A change of one table is no SELECT.
        let reads = match purpose == Purpose::Change && tables.len() == 1 {
            true => Reads::default(),
            false => Reads::of(&physical.explain),
        };
        let task = Arc::clone(&context.task);
        let query = optimized;
        Ok(PlannedQuery {
            reads,
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
}

/// The tables that a plan reads, each once.
pub(crate) fn tables_of(plan: &LogicalPlan) -> Result<Vec<Arc<Table>>> {
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
