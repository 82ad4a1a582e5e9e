//! Runs plans on the session's workers, and hands over their batches.
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
use sheaf_optimizer::{PhysicalQuery, PlannerContext, Trace, plan_physical, widest_row_bytes};

use super::limits::THRIFTY_BATCH_ROWS;
use super::{PlannedQuery, ThriftyPlan};
use crate::error::Result;
use crate::parser::ParsedQuery;
use crate::session::workers::Workers;
use crate::session::{Session, SessionHandle};

/// However wide rows are, a batch has so many: each batch costs some time for each column.
const LEAST_BATCH_ROWS: usize = 8;
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

    pub(super) fn take_small_batches(&self, context: &mut PlannerContext) {
        self.limit_batch_rows(context, THRIFTY_BATCH_ROWS);
    }

    /// Wide rows come in batches of fewer: a join of 300 columns took 39 MB for 8,192 rows, in each of its operators.
    pub(super) fn bound_batches(
        &self,
        query: &LogicalPlan,
        context: &mut PlannerContext,
    ) -> Result<()> {
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

/// Waits a while until a plan that has ended has given back what its tasks had reserved. They end one by one.
fn await_given_back(task: &TaskContext, reserved_before: usize) {
    let began = Instant::now();
    while task.memory_pool().reserved() > reserved_before && began.elapsed() < MOST_GIVING_BACK {
        std::thread::sleep(GIVING_BACK_SLICE);
    }
}
