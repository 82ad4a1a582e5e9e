//! Joined rows that wait for the end of their round, to be put into the order of the outer rows.

use arrow::array::{RecordBatch, UInt32Array};
use arrow::compute::{concat_batches, take_record_batch};
use arrow::datatypes::SchemaRef;
use datafusion_common::Result;
use datafusion_execution::memory_pool::MemoryReservation;

/// The joined rows of a round that are held back to be put into the order of the outer rows.
pub(super) struct Held {
    /// With the outer row, by its number in the round, of each joined row.
    pub(super) matches: Vec<(UInt32Array, RecordBatch)>,
    pub(super) reservation: MemoryReservation,
}

impl Held {
    pub(super) fn push(&mut self, outer: UInt32Array, batch: RecordBatch) -> Result<()> {
        self.reservation.try_grow(batch.get_array_memory_size())?;
        self.matches.push((outer, batch));
        Ok(())
    }

    /// All of them in the order of their outer rows.
    pub(super) fn take(&mut self, schema: &SchemaRef) -> Result<RecordBatch> {
        let matches = std::mem::take(&mut self.matches);
        let (outer, batches): (Vec<_>, Vec<_>) = matches.into_iter().unzip();
        let batch = concat_batches(schema, &batches)?;
        let numbers: Vec<u32> = outer
            .iter()
            .flat_map(|rows| rows.values())
            .copied()
            .collect();
        // What comes next is the statement's, and accounted for where it is kept.
        self.reservation.free();
        // Rows without columns are in any order, and Arrow's take refuses them.
        if numbers.is_sorted() || schema.fields().is_empty() {
            return Ok(batch);
        }
        let mut order: Vec<u32> = (0..).take(numbers.len()).collect();
        order.sort_by_key(|row| numbers[*row as usize]);
        Ok(take_record_batch(&batch, &UInt32Array::from(order))?)
    }
}
