//! A partition whose functions know their values as its rows come.

use std::collections::VecDeque;

use arrow::array::{Array, ArrayRef, RecordBatch, new_empty_array};
use arrow::compute::concat_batches;
use datafusion_common::utils::memory::{RecordBatchMemoryCounter, get_record_batch_memory_size};
use datafusion_common::{Result, internal_err};
use datafusion_expr::window_state::PartitionBatchState;
use datafusion_physical_expr::window::{
    PartitionBatches, PartitionWindowAggStates, WindowEvalContext,
};

use super::functions::{Functions, joined};
use crate::functions::limits::ask_for;
use crate::operator::compacted_exec::detached;

/// One partition, as DataFusion's functions see it: they know partitions by their keys, and there is one.
pub(super) struct Running {
    /// The columns that functions use, of the rows that frames may still reach.
    frame: PartitionBatches,
    states: Vec<PartitionWindowAggStates>,
    /// Rows without values for all functions.
    waiting: VecDeque<RecordBatch>,
    /// The values of each function for them, as far as they are known.
    values: Vec<Pieces>,
    bytes: usize,
}

/// Rows whose values are known, and the values of each function.
pub(super) type Known = (RecordBatch, Vec<ArrayRef>);

/// Values of one function, in the order of the rows.
#[derive(Default)]
struct Pieces {
    arrays: VecDeque<ArrayRef>,
    rows: usize,
}

impl Pieces {
    fn push(&mut self, array: ArrayRef) {
        if !array.is_empty() {
            self.rows += array.len();
            self.arrays.push_back(array);
        }
    }

    /// The first values, of which there are as many.
    fn take(&mut self, rows: usize) -> Vec<ArrayRef> {
        self.rows -= rows;
        let mut taken = Vec::new();
        let mut missing = rows;
        while missing > 0 {
            let Some(array) = self.arrays.pop_front() else {
                break;
            };
            if array.len() > missing {
                self.arrays
                    .push_front(array.slice(missing, array.len() - missing));
            }
            let length = array.len().min(missing);
            taken.push(array.slice(0, length));
            missing -= length;
        }
        taken
    }
}

impl Running {
    pub(super) fn new(functions: &Functions) -> Result<Running> {
        let mut frame = PartitionBatches::default();
        let schema = functions.used_schema();
        frame.insert(Vec::new(), PartitionBatchState::new(schema.clone()));
        Ok(Running {
            frame,
            states: functions.all.iter().map(|_| Default::default()).collect(),
            waiting: VecDeque::new(),
            values: functions.all.iter().map(|_| Pieces::default()).collect(),
            bytes: 0,
        })
    }

    /// Adds rows. Returns those whose values are known now.
    pub(super) fn add(&mut self, functions: &Functions, rows: RecordBatch) -> Result<Vec<Known>> {
        self.go_on(functions, rows, false)
    }

    /// The rest of the rows: the partition is complete.
    pub(super) fn end(&mut self, functions: &Functions) -> Result<Vec<Known>> {
        let none = RecordBatch::new_empty(functions.input().clone());
        self.go_on(functions, none, true)
    }

    fn go_on(
        &mut self,
        functions: &Functions,
        rows: RecordBatch,
        is_end: bool,
    ) -> Result<Vec<Known>> {
        let used = functions.used_columns(&rows)?;
        let Some(state) = self.frame.values_mut().next() else {
            return internal_err!("a window without its partition");
        };
        state.record_batch = match state.record_batch.num_rows() {
            0 => used,
            _ => {
                // Both are there for a moment, the rows of the frame and their copy.
                ask_for(get_record_batch_memory_size(&state.record_batch))?;
                concat_batches(functions.used_schema(), [&state.record_batch, &used])?
            }
        };
        state.is_end = is_end;
        if rows.num_rows() > 0 {
            self.waiting.push_back(rows);
        }
        self.compute(functions)?;
        let known = self.known(functions)?;
        self.forget()?;
        if let Some(last) = self.waiting.pop_back() {
            // The others were detached when they came.
            self.waiting.push_back(detached(last)?);
        }
        self.count(functions);
        Ok(known)
    }

    fn compute(&mut self, functions: &Functions) -> Result<()> {
        let context = WindowEvalContext::default();
        let each = functions.all.iter().zip(&mut self.states);
        for ((function, states), values) in each.zip(&mut self.values) {
            let expr = &function.expr;
            expr.evaluate_stateful(&self.frame, states, &context)?;
            if let Some(window) = states.values_mut().next() {
                let none = new_empty_array(&function.data_type);
                values.push(std::mem::replace(&mut window.state.out_col, none));
            }
        }
        Ok(())
    }

    /// Forgets the rows before the first one that a frame can still reach.
    fn forget(&mut self) -> Result<()> {
        let windows = self.states.iter().map(|states| states.values().next());
        let reached = windows.map(|window| {
            window.map_or(0, |window| {
                let state = &window.state;
                state
                    .window_frame_range
                    .start
                    .min(state.last_calculated_index)
            })
        });
        let forgotten = reached.min().unwrap_or(0);
        let Some(state) = self.frame.values_mut().next() else {
            return Ok(());
        };
        let left = state.record_batch.num_rows() - forgotten;
        ask_for(get_record_batch_memory_size(&state.record_batch))?;
        // A slice alone would keep the strings of all rows.
        state.record_batch = detached(state.record_batch.slice(forgotten, left))?;
        if forgotten == 0 {
            return Ok(());
        }
        for window in self
            .states
            .iter_mut()
            .flat_map(|states| states.values_mut())
        {
            window.state.prune_state(forgotten);
        }
        Ok(())
    }

    /// The rows whose values are known, whole batches of them.
    fn known(&mut self, functions: &Functions) -> Result<Vec<Known>> {
        let mut known = Vec::new();
        while let Some(batch) = self.waiting.front() {
            let rows = batch.num_rows();
            if self.values.iter().any(|values| values.rows < rows) {
                break;
            }
            let each = functions.all.iter().zip(&mut self.values);
            let values =
                each.map(|(function, values)| joined(&values.take(rows), &function.data_type));
            let values = values.collect::<Result<_>>()?;
            let batch = self.waiting.pop_front();
            known.extend(batch.map(|batch| (batch, values)));
        }
        Ok(known)
    }

    /// Bytes of what waits.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    fn count(&mut self, functions: &Functions) {
        let mut counter = RecordBatchMemoryCounter::new();
        let frame = self.frame.values().map(|state| &state.record_batch);
        let batches: usize = frame
            .chain(&self.waiting)
            .map(|batch| counter.count_batch(batch))
            .sum();
        let arrays = self.values.iter().flat_map(|values| &values.arrays);
        let values: usize = arrays.map(|array| array.get_array_memory_size()).sum();
        // Values of rows that all wait for the same one are computed at the same time.
        let rows = self.waiting.iter().map(RecordBatch::num_rows).sum();
        self.bytes = batches + values + functions.value_bytes(rows);
    }
}
