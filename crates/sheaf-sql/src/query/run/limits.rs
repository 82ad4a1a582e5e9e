//! How much memory and time a plan may take, and the settings that it is planned with.
//!
//! Each operator of a plan holds some batches. So the rows and bytes of a batch follow from the query memory, and from
//! how many statements run at once.

use std::sync::Arc;

use datafusion_execution::TaskContext;
use sheaf_exec::functions::limits::ResultLimits;
use sheaf_optimizer::{CommonTables, Expectation, PlannerContext, PlannerSettings};
use sheaf_storage::ReadView;

use crate::engine::Engine;
use crate::session::Session;

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
/// Rows of a batch where memory is short: an operator that spills holds some batches at least.
pub(super) const THRIFTY_BATCH_ROWS: usize = 1024;
/// The part of the query memory that one function may take for the results of a batch, and what it may take at least
/// and at the most. What needs more is evaluated for fewer rows at a time.
const BATCH_RESULT_SHARE: usize = 2;
const MIN_BATCH_RESULT_BYTES: usize = 8 << 20;
const MAX_BATCH_RESULT_BYTES: usize = 256 << 20;

impl Session {
    pub(crate) fn planner_context(&mut self, view: ReadView) -> PlannerContext {
        let settings = PlannerSettings {
            switch: self.variables.optimizer_switch(),
            mrr_buffer_bytes: self.variables.mrr_buffer_bytes(),
            join_buffer_bytes: self.variables.join_buffer_bytes(),
            batch_rows: batch_rows(&self.engine),
            batch_string_bytes: batch_bytes(&self.engine),
            target_partitions: self.workers.threads(),
            query_memory_bytes: self.engine.memory().query_bytes,
            eq_range_index_dive_limit: self.variables.eq_range_index_dive_limit(),
            costs: self.engine.costs(),
            max_recursion_rounds: self.variables.cte_max_recursion_depth(),
            ..PlannerSettings::default()
        };
        let beside_locks = self.statement.beside_locks.as_ref();
        PlannerContext {
            settings,
            counters: Arc::clone(&self.handle.counters),
            view,
            view_beside_locks: beside_locks.map(|beside| beside.view.clone()),
            cancel: self.handle.cancel_flag().clone(),
            task: self.task_context(),
            trace: self.traces.current.clone(),
            expectation: Expectation::Estimates,
            common_tables: CommonTables::default(),
            places: None,
        }
    }

    pub(crate) fn task_context(&mut self) -> Arc<TaskContext> {
        if let Some(task) = self.workers.task() {
            return Arc::clone(task);
        }
        let (rows, limits) = (batch_rows(&self.engine), self.result_limits());
        let task = self.workers.new_task(self.handle.id(), rows, Some(limits));
        self.workers.keep_task(Arc::clone(&task));
        task
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
            numbers: self.outcome.seeded_numbers.clone(),
        }
    }
}

/// Rows of a batch, as many as the query memory allows: each operator of a plan holds some batches.
fn batch_rows(engine: &Engine) -> usize {
    let rows = engine.memory().query_bytes / QUERY_BYTES_OF_A_ROW;
    rows.clamp(THRIFTY_BATCH_ROWS, BATCH_ROWS)
}

/// What a batch may take. Of many statements that run, each has less: all of them may wait for their clients.
fn batch_bytes(engine: &Engine) -> usize {
    let share = engine.memory().query_bytes / BATCH_SHARE;
    let share = share.clamp(LEAST_BATCH_BYTES, MOST_BATCH_BYTES);
    let crowd = engine.crowd().inside() / FEW_STATEMENTS;
    (share / crowd.max(1)).max(LEAST_BATCH_BYTES_IN_CROWD)
}
