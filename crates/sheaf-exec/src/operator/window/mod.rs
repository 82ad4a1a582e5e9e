//! Window functions over rows that come partition by partition, in a bounded part of the query memory.
//!
//! DataFusion's operators keep all rows of the input, or all of the buffers that the strings of the rows lie in, and
//! reserve nothing. This one holds one partition at a time:
//!
//! ```text
//!   batch     | end of p3 | p4 | p5 | p6 | start of p7 |
//!             '-----------'--------------'-------------'
//!               p3 is done    each at      p7 is open:
//!                             once         its rows wait for what follows
//! ```
//!
//! - Partitions that begin and end in one batch are computed from it.
//! - An open partition is [running] where each function knows its values from the rows before and some rows after, such
//!   as ROW_NUMBER or a sum over the last hundred rows. Then only the rows of the frame wait.
//! - Otherwise it is kept [whole], because MAX over a partition is known at its end. A partition that does not fit in
//!   memory goes to a [file](filed), which is read as often and from the side that the functions want. What waits in
//!   memory nevertheless are arguments of functions that need all of them at once, such as NTH_VALUE with IGNORE NULLS
//!   over the whole partition.
//!
//! Everything that waits is reserved. The operator gives error 1041 where neither memory nor a file helps.

mod back_file;
mod edge;
mod filed;
mod functions;
mod peers;
mod rows;
mod running;
#[cfg(test)]
mod tests;
mod whole;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_execution::TaskContext;
use datafusion_execution::memory_pool::{MemoryConsumer, MemoryReservation};
use datafusion_physical_expr::OrderingRequirements;
use datafusion_physical_expr::window::WindowExpr;
use datafusion_physical_plan::distribution_requirements::InputDistributionRequirements;
use datafusion_physical_plan::execution_plan::{
    CardinalityEffect, ChildrenPropertiesMode, ReplaceChildrenOptions,
};
use datafusion_physical_plan::stream::RecordBatchStreamAdapter;
use datafusion_physical_plan::windows::{BoundedWindowAggExec, WindowAggExec};
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, InputOrderMode, PhysicalExpr, PlanProperties,
    SendableRecordBatchStream,
};
use futures::{TryStreamExt, stream};

use crate::operator::node_id::in_place_of;

use functions::Functions;
use rows::Rows;
use running::{Known, Running};
use whole::{Ended, Whole};

/// How the memory of windows is called in errors, see `memory_consumers.rs`.
const CONSUMER: &str = "WindowExec";

/// Puts a [`WindowExec`] in the place of each window operator of DataFusion's.
pub fn bound_windows(plan: Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
    let bounded = plan.transform_up(|node| match WindowExec::of(&node) {
        Some(window) => Ok(Transformed::yes(in_place_of(&node, Arc::new(window)))),
        None => Ok(Transformed::no(node)),
    })?;
    Ok(bounded.data)
}

/// See the module's comment.
#[derive(Debug)]
pub struct WindowExec {
    /// The operator as it is planned. It says everything about its rows but does not run.
    planned: Arc<dyn ExecutionPlan>,
    expressions: Vec<Arc<dyn WindowExpr>>,
}

impl WindowExec {
    /// The same as an operator of DataFusion's, if it is one for windows.
    fn of(planned: &Arc<dyn ExecutionPlan>) -> Option<WindowExec> {
        let expressions = if let Some(window) = planned.downcast_ref::<BoundedWindowAggExec>() {
            // In the other modes rows of several partitions alternate.
            if !matches!(window.input_order_mode, InputOrderMode::Sorted) {
                return None;
            }
            window.window_expr()
        } else {
            planned.downcast_ref::<WindowAggExec>()?.window_expr()
        };
        Some(WindowExec {
            planned: Arc::clone(planned),
            expressions: expressions.to_vec(),
        })
    }

    /// What the functions are computed from, and what rows are divided and ordered by.
    pub(crate) fn arguments_and_keys(&self) -> impl Iterator<Item = Arc<dyn PhysicalExpr>> {
        self.expressions.iter().flat_map(|expression| {
            let keys = expression.partition_by().iter().cloned();
            let order = expression.order_by().iter();
            let order = order.map(|key| Arc::clone(&key.expr));
            expression
                .expressions()
                .into_iter()
                .chain(keys)
                .chain(order)
        })
    }

    /// Whether whole partitions wait for their ends.
    pub fn keeps_partitions(&self) -> bool {
        !self.expressions.iter().all(functions::runs)
    }
}

impl DisplayAs for WindowExec {
    fn fmt_as(&self, format: DisplayFormatType, f: &mut fmt::Formatter) -> fmt::Result {
        self.planned.fmt_as(format, f)
    }
}

impl ExecutionPlan for WindowExec {
    /// That of the operator as it is planned.
    fn name(&self) -> &str {
        self.planned.name()
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.planned.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        self.planned.children()
    }

    fn required_input_ordering(&self) -> Vec<Option<OrderingRequirements>> {
        self.planned.required_input_ordering()
    }

    fn input_distribution_requirements(&self) -> InputDistributionRequirements {
        self.planned.input_distribution_requirements()
    }

    fn maintains_input_order(&self) -> Vec<bool> {
        self.planned.maintains_input_order()
    }

    fn benefits_from_input_partitioning(&self) -> Vec<bool> {
        self.planned.benefits_from_input_partitioning()
    }

    fn cardinality_effect(&self) -> CardinalityEffect {
        CardinalityEffect::Equal
    }

    fn apply_expressions(
        &self,
        visit: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        self.planned.apply_expressions(visit)
    }

    fn replace_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
        options: ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let planned = Arc::clone(&self.planned).replace_children(children, options)?;
        Ok(Arc::new(WindowExec {
            planned,
            expressions: self.expressions.clone(),
        }))
    }

    fn with_new_children(
        self: Arc<Self>,
        children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let options = ReplaceChildrenOptions::new(ChildrenPropertiesMode::Recompute);
        self.replace_children(children, options)
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        let children = self.planned.children();
        let [input] = children.as_slice() else {
            return internal_err!("a window without its input");
        };
        let functions = Functions::new(&self.expressions, &input.schema())?;
        let pool = context.memory_pool();
        let spilled = MemoryConsumer::new(CONSUMER).with_can_spill(!functions.all_run());
        let window = Window {
            schema: self.schema(),
            input: input.execute(partition, Arc::clone(&context))?,
            rows: spilled.register(pool),
            kept: MemoryConsumer::new(CONSUMER).register(pool),
            functions: Arc::new(functions),
            context,
            open: None,
            done: VecDeque::new(),
            done_bytes: 0,
            done_value_bytes: 0,
            is_over: false,
        };
        let rows = stream::try_unfold(window, |mut window| async move {
            let next = window.next().await?;
            Ok(next.map(|batch| (batch, window)))
        });
        Ok(Box::pin(RecordBatchStreamAdapter::new(self.schema(), rows)))
    }
}

/// One run of the operator.
struct Window {
    schema: SchemaRef,
    input: SendableRecordBatchStream,
    functions: Arc<Functions>,
    context: Arc<TaskContext>,
    /// For rows that can go to a file, and for what cannot.
    rows: MemoryReservation,
    kept: MemoryReservation,
    /// The partition that the last row belongs to. Its rows may go on in the next batch.
    open: Option<Open>,
    /// Rows with their values, to be handed on.
    done: VecDeque<Rows>,
    done_bytes: usize,
    done_value_bytes: usize,
    is_over: bool,
}

/// A partition whose end has not come.
struct Open {
    key: Vec<ScalarValue>,
    state: State,
}

enum State {
    Running(Running),
    Whole(Whole),
}

impl Window {
    async fn next(&mut self) -> Result<Option<RecordBatch>> {
        loop {
            if let Some(rows) = self.done.front_mut() {
                if let Some(batch) = rows.next(&self.schema).await? {
                    return Ok(Some(batch));
                }
                self.done_bytes -= rows.bytes;
                self.done_value_bytes -= rows.value_bytes;
                self.done.pop_front();
                self.reserve()?;
                continue;
            }
            if self.is_over {
                return Ok(None);
            }
            match self.input.try_next().await? {
                Some(batch) if batch.num_rows() > 0 => self.take(&batch).await?,
                Some(_) => {}
                None => {
                    self.is_over = true;
                    self.close().await?;
                }
            }
        }
    }

    async fn take(&mut self, batch: &RecordBatch) -> Result<()> {
        let (keys, ranges) = self.functions.partitions(batch)?;
        let mut ranges = ranges.as_slice();
        if let Some(open) = &self.open
            && let Some((first, others)) = ranges.split_first()
        {
            let goes_on = functions::key_at(&keys, first.start)? == open.key;
            if goes_on {
                ranges = others;
                self.extend(slice(batch, first))?;
            }
            if !goes_on || !others.is_empty() {
                self.close().await?;
            }
        }
        let Some((last, closed)) = ranges.split_last() else {
            return Ok(());
        };
        if let Some(first) = closed.first() {
            let all = slice(batch, &(first.start..last.start));
            let lengths = closed.iter().map(Range::len).collect::<Vec<_>>();
            self.finish(self.functions.of_partitions(all, &lengths)?);
        }
        self.open = Some(Open {
            key: functions::key_at(&keys, last.start)?,
            state: match self.functions.all_run() {
                true => State::Running(Running::new(&self.functions)?),
                false => State::Whole(Whole::new(&self.functions)?),
            },
        });
        self.extend(slice(batch, last))
    }

    /// Adds rows to the open partition.
    fn extend(&mut self, rows: RecordBatch) -> Result<()> {
        let Some(open) = &mut self.open else {
            return internal_err!("rows of no partition");
        };
        match &mut open.state {
            State::Running(running) => {
                let known = running.add(&self.functions, rows)?;
                self.finish_all(known);
                self.reserve()
            }
            State::Whole(whole) => {
                whole.add(&self.functions, rows)?;
                let Err(full) = self.reserve() else {
                    return Ok(());
                };
                if self.spill()? {
                    self.reserve()
                } else {
                    Err(full)
                }
            }
        }
    }

    /// Puts the rows that wait into a file. False: they are there already, or that would not help.
    fn spill(&mut self) -> Result<bool> {
        match &mut self.open {
            Some(Open {
                state: State::Whole(whole),
                ..
            }) => whole.spill(&self.functions, &self.context),
            _ => Ok(false),
        }
    }

    /// The open partition has come to its end.
    async fn close(&mut self) -> Result<()> {
        let needed = self.kept.new_empty();
        if let Some(bytes) = self.bytes_to_close()
            && let Err(full) = needed.try_grow(bytes)
        {
            if !self.spill()? {
                return Err(full);
            }
            self.reserve()?;
        }
        let Some(open) = self.open.take() else {
            return Ok(());
        };
        match open.state {
            State::Running(mut running) => {
                let known = running.end(&self.functions)?;
                self.finish_all(known);
            }
            State::Whole(whole) => {
                let rows = match whole.end(&self.functions)? {
                    Ended::Rows(rows) => rows,
                    Ended::Filed(file, constants) => {
                        let kept = &self.kept;
                        Rows::filed(file.end(&self.functions, constants, kept).await?)
                    }
                };
                self.finish(rows);
            }
        }
        self.reserve()
    }

    fn finish(&mut self, rows: Rows) {
        self.done_bytes += rows.bytes;
        self.done_value_bytes += rows.value_bytes;
        self.done.push_back(rows);
    }

    fn finish_all(&mut self, known: Vec<Known>) {
        for (rows, values) in known {
            self.finish(Rows::at_once(rows, values));
        }
    }

    /// What it takes for a moment to compute the values of a partition whose rows are in memory.
    fn bytes_to_close(&self) -> Option<usize> {
        match self.open.as_ref().map(|open| &open.state) {
            Some(State::Whole(whole)) => Some(whole.bytes_to_end(&self.functions)),
            _ => None,
        }
    }

    /// Reserves what waits now.
    fn reserve(&mut self) -> Result<()> {
        let (rows, kept) = match self.open.as_ref().map(|open| &open.state) {
            None => (0, 0),
            Some(State::Running(running)) => (0, running.bytes()),
            Some(State::Whole(whole)) => (whole.rows_bytes(), whole.kept_bytes()),
        };
        self.rows.try_resize(rows + self.done_bytes)?;
        self.kept.try_resize(kept + self.done_value_bytes)
    }
}

fn slice(batch: &RecordBatch, range: &Range<usize>) -> RecordBatch {
    batch.slice(range.start, range.len())
}
