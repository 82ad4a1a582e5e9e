//! Runs plans on the session's workers, and hands over their batches. Small plans run on the session's own thread.
//!
//! Estimates of what operators keep are often low. So a plan that runs out of memory before its first rows come is
//! replaced once, by one that takes less: it has small batches, and sorts that spill.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::RecordBatch;
use datafusion_execution::TaskContext;
use datafusion_expr::LogicalPlan;
use sheaf_exec::memory_pool::Admission;
use sheaf_exec::operator::kept_rows::keeps_rows;
use sheaf_optimizer::{PhysicalQuery, PlannerContext, Trace, plan_physical, rows_of_batch};

use super::limits::THRIFTY_BATCH_ROWS;
use super::plan_work::PlanWork;
use super::{PlannedQuery, ThriftyPlan};
use crate::error::Result;
use crate::parser::ParsedQuery;
use crate::session::workers::Workers;
use crate::session::{Session, SessionHandle};

/// With long values, operators have more than the rows that a scan delivers: keys that are compared, and copies.
const COPIES_OF_ROWS: usize = 8;
/// The part of the query memory that the first rows of a sort may take before all rows are sorted, which can spill.
const SHARE_OF_FIRST_ROWS: usize = 16;
/// A plan that costs less takes little memory, whatever its operators are.
const BIG_COST_US: f64 = 20_000.0;
/// How long a plan that takes less memory waits for what the one before it has had, and how often it looks.
const MOST_GIVING_BACK: Duration = Duration::from_secs(1);
const GIVING_BACK_SLICE: Duration = Duration::from_millis(1);

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
        self.handle.count_reads(planned.reads);
        loop {
            let running = self.handle.show_plan(&planned.physical);
            let work = PlanWork::begin(&planned.physical);
            let plan = Arc::clone(&planned.physical.plan);
            let reserved_before = planned.task.memory_pool().reserved();
            let is_big = planned.physical.cost_us >= BIG_COST_US && keeps_rows(&plan);
            let mut admission = match is_big {
                true => Some(self.admit(&planned.task)?),
                false => None,
            };
            let runtime = self.workers.runtime()?;
            let (task, cancel) = (Arc::clone(&planned.task), self.handle.cancel_flag().clone());
            let mut stream = match planned.physical.is_small {
                true => runtime.run_here(plan, task, cancel),
                false => runtime.run(plan, task, cancel),
            };
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
            let row_bytes = self.workers.runtime()?.row_bytes_seen(&planned.task);
            match planned.thrifty.take() {
                Some(thrifty) if failed.is_out_of_memory() || is_stopped => {
                    tracing::debug!(error = %failed, "a query is planned again with less memory");
                    stream.settle();
                    // Its operators keep what they have reserved as long as the plan is there.
                    drop((running, work));
                    let empty = PhysicalQuery::empty(planned.schema());
                    planned.physical = Arc::new(empty);
                    self.await_given_back(&planned.task, reserved_before)?;
                    if is_stopped && !self.handle.memory().go_on() {
                        return Err(failed.into());
                    }
                    self.plan_thriftily(*thrifty, row_bytes, &mut planned)?;
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

    /// Waits a while until a plan that has ended has given back what its tasks had reserved. They end one by one.
    fn await_given_back(&self, task: &TaskContext, reserved_before: usize) -> Result<()> {
        let began = Instant::now();
        while task.memory_pool().reserved() > reserved_before && began.elapsed() < MOST_GIVING_BACK
        {
            // A statement that was stopped for want of memory goes on.
            if !self.handle.memory().is_stopped() {
                self.handle.cancel_flag().check()?;
            }
            std::thread::sleep(GIVING_BACK_SLICE);
        }
        Ok(())
    }

    /// Waits until the session may run a plan that takes much memory.
    fn admit(&self, task: &TaskContext) -> Result<Admission> {
        let admission = self.workers.runtime()?.admit(task);
        if admission.is_err() {
            self.handle.cancel_flag().check()?;
        }
        Ok(admission?)
    }

    /// Puts a plan that takes less memory in the place of another, which has met rows of so many bytes.
    fn plan_thriftily(
        &self,
        plan: ThriftyPlan,
        row_bytes: usize,
        planned: &mut PlannedQuery,
    ) -> Result<()> {
        let ThriftyPlan {
            query,
            mut context,
            is_measured,
        } = plan;
        let memory_bytes = std::mem::take(&mut context.settings.query_memory_bytes);
        self.take_small_batches(&mut context);
        let settings = &mut context.settings;
        let batch_bytes = settings.batch_string_bytes / COPIES_OF_ROWS;
        let first_bytes = memory_bytes / SHARE_OF_FIRST_ROWS;
        if let Some(first_rows) = first_bytes.checked_div(row_bytes) {
            settings.batch_string_bytes = batch_bytes;
            settings.most_first_rows = settings.most_first_rows.min(first_rows);
            let rows = batch_bytes.checked_div(row_bytes).unwrap_or_default() + 1;
            self.limit_batch_rows(&mut context, rows);
        }
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

    pub(super) fn take_small_batches(&self, context: &mut PlannerContext) {
        self.limit_batch_rows(context, THRIFTY_BATCH_ROWS);
    }

    /// Wide rows and rows with long values come in batches of fewer: a join of 300 columns took 39 MB for 8,192 rows,
    /// in each of its operators.
    pub(super) fn bound_batches(
        &self,
        query: &LogicalPlan,
        context: &mut PlannerContext,
    ) -> Result<()> {
        let settings = &context.settings;
        let little = settings.has_little_memory();
        let rows = rows_of_batch(query, settings.batch_string_bytes, little)?;
        self.limit_batch_rows(context, rows);
        Ok(())
    }

    /// From here on, all that the plan does has batches of no more than so many rows.
    pub(super) fn limit_batch_rows(&self, context: &mut PlannerContext, rows: usize) {
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

impl Session {
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
}
