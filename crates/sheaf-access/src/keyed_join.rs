//! Keyed join: the inner side of a join through an index, many outer keys at a time (Batched Key Access).

use std::sync::Arc;

use arrow::array::{RecordBatch, UInt32Array};
use arrow::datatypes::SchemaRef;

use crate::arrow_types::projected_schema;
use crate::cancel::CancelFlag;
use crate::counters::SessionCounters;
use crate::error::Result;
use crate::scan::ScanMetrics;
use crate::spec::KeyedLookupSpec;

/// Looks up the rows that match a buffer full of keys.
///
/// Use: [`push`](Self::push) keys until it is [`full`](Self::full) or the outer rows end, [`run`](Self::run), then
/// [`next_batch`](Self::next_batch) until it gives `None`; then push again.
pub struct KeyedLookup {
    schema: SchemaRef,
}

impl KeyedLookup {
    /// An empty buffer.
    pub fn new(
        spec: Arc<KeyedLookupSpec>,
        counters: Arc<SessionCounters>,
        cancel: CancelFlag,
    ) -> Result<Self> {
        let _ = (counters, cancel);
        Ok(Self {
            schema: projected_schema(&spec.table.definition, &spec.projection),
        })
    }

    /// The schema of the inner batches.
    pub fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    /// Adds the encoded key of an outer row. The row number comes back with each match. A key with a NULL part
    /// matches nothing and need not be pushed.
    pub fn push(&mut self, encoded_key: &[u8], outer_row: u32) {
        let _ = (encoded_key, outer_row);
        unimplemented!("the access methods land next")
    }

    /// Whether the buffer holds `buffer_bytes` of keys.
    pub fn full(&self) -> bool {
        unimplemented!("the access methods land next")
    }

    /// Starts to look up the keys pushed so far.
    pub fn run(&mut self) -> Result<()> {
        unimplemented!("the access methods land next")
    }

    /// The next matches: for each row of the batch, the outer row that it belongs to. Never empty; `None` when the
    /// buffer is worked off. Matches come in no particular order.
    pub fn next_batch(&mut self) -> Result<Option<(UInt32Array, RecordBatch)>> {
        unimplemented!("the access methods land next")
    }

    /// What it did so far, over all runs.
    pub fn metrics(&self) -> ScanMetrics {
        ScanMetrics::default()
    }
}
