//! Index condition: conditions on the columns of a secondary index are tested on its entries, before rows are fetched.
//!
//! It wins whenever a condition on index columns is not part of the range that is read: each entry that fails saves a
//! row lookup, a random page in the worst case. Comparisons with constants are tested on the bytes of each entry in the
//! leaf copy. Other conditions on the index columns are evaluated once per batch of the survivors. Under a
//! case-insensitive collation entries hold the original strings too, so any condition can be evaluated on them.
//!
//! Counts: `Handler_icp_attempts` per entry tested, `Handler_icp_match` per entry that passed both.

use arrow::array::Array;
use sheaf_table::{KeyLayout, Table};

use crate::batch::batch_assembler::Rest;
use crate::batch::materialize::ColumnBuilder;
use crate::condition::Condition;
use crate::condition::columns::{ColumnSource, Source};
use crate::condition::index_entries::EntryBlock;
use crate::condition::key_condition::KeyCondition;
use crate::counters::ScanMetrics;
use crate::error::Result;

/// Entries that are collected before the part of the condition that works on batches is evaluated.
const BATCH_ENTRIES: usize = 4096;

/// A condition on the entries of one secondary index.
pub(crate) struct IndexCondition {
    encoded: Option<KeyCondition>,
    rest: Option<BatchPart>,
}

struct BatchPart {
    rest: Rest,
    builders: Vec<ColumnBuilder>,
    last_part: Option<usize>,
    /// Entries that passed `encoded`, in the order of the scan.
    pending: EntryBlock,
}

impl IndexCondition {
    /// # Errors
    /// `Unsupported` if the condition reads what the index does not hold.
    pub(crate) fn new(table: &Table, position: usize, condition: &Condition) -> Result<Self> {
        let encoded = condition
            .encoded
            .as_ref()
            .map(|encoded| KeyCondition::compile(table, position, encoded))
            .transpose()?;
        let rest = condition.rest.as_ref().map(|rest| {
            let mut columns = Vec::new();
            let rest = Rest::new(table, rest, &mut columns);
            let builders = columns
                .iter()
                .map(|&column| {
                    let source = ColumnSource::new(table, Source::Entries(position), column)?;
                    Ok(ColumnBuilder::new(source, BATCH_ENTRIES))
                })
                .collect::<Result<Vec<_>>>()?;
            let last_part = builders.iter().filter_map(ColumnBuilder::part).max();
            Ok::<_, crate::error::AccessError>(BatchPart {
                rest,
                builders,
                last_part,
                pending: EntryBlock::default(),
            })
        });
        Ok(Self {
            encoded,
            rest: rest.transpose()?,
        })
    }

    /// Tests the selected entries of `block`. Afterwards block and selection hold entries that passed: those of the
    /// block, or with a batch part maybe none for now and those of several blocks later. `last`: no block will follow,
    /// or the caller does not want to wait for one.
    pub(crate) fn filter(
        &mut self,
        layout: &KeyLayout,
        block: &mut EntryBlock,
        selection: &mut Vec<u32>,
        last: bool,
        metrics: &mut ScanMetrics,
    ) -> Result<()> {
        metrics.icp_attempts += selection.len() as u64;
        if let Some(encoded) = &mut self.encoded {
            encoded.retain(layout, block, selection)?;
        }
        if let Some(part) = &mut self.rest {
            part.filter(layout, block, selection, last)?;
        }
        metrics.icp_match += selection.len() as u64;
        Ok(())
    }
}

impl BatchPart {
    fn filter(
        &mut self,
        layout: &KeyLayout,
        block: &mut EntryBlock,
        selection: &mut Vec<u32>,
        last: bool,
    ) -> Result<()> {
        selection
            .iter()
            .for_each(|&entry| self.pending.push_from(block, entry as usize));
        selection.clear();
        let entries = self.pending.len();
        if entries == 0 || (entries < BATCH_ENTRIES && !last) {
            return Ok(());
        }
        block.clear();
        std::mem::swap(block, &mut self.pending);
        selection.extend(0..entries as u32);
        if let Some(part) = self.last_part {
            block.locate(layout, part, selection)?;
        }
        for builder in &mut self.builders {
            builder.append_entries(layout, block, selection)?;
        }
        let columns = self
            .builders
            .iter_mut()
            .map(ColumnBuilder::finish)
            .collect::<Result<Vec<_>>>()?;
        let mask = self.rest.evaluate(&columns, entries)?;
        selection.retain(|&entry| mask.is_valid(entry as usize) && mask.value(entry as usize));
        Ok(())
    }
}
