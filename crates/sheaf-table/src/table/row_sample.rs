//! Rows of a table, chosen at random leaf by leaf, and kept in memory.
//!
//! What any index of the table would look like is a sort of them
//! ([`HypotheticalIndex`](super::hypothetical_index::HypotheticalIndex)). So one sample answers for all candidates of a
//! table, whatever their columns, order and prefixes.
//!
//! Every leaf is read as it is at that moment, without a lock on rows and without a snapshot. The caller keeps the
//! table from being dropped meanwhile.

use sheaf_storage::KeyRange;

use crate::codec::row_codec::RowView;
use crate::error::Result;
use crate::lock::table_lock::Interrupt;
use crate::statistics::check;
use crate::table::Table;

/// Leaves that are read, at least: rows of one leaf resemble each other.
const LEAST_LEAVES: u64 = 64;

/// What a sample may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleLimits {
    /// About so many rows.
    pub rows: usize,
    /// The most bytes of their keys and values.
    pub bytes: usize,
    /// Chooses the sample: the same seed, the same leaves.
    pub seed: u64,
}

/// A row, by where its bytes end.
#[derive(Debug, Clone, Copy)]
struct SampledRow {
    key_end: usize,
    end: usize,
    leaf: u32,
}

/// See the module's comment.
pub struct RowSample {
    /// Key and value of each row, one behind the other.
    bytes: Vec<u8>,
    rows: Vec<SampledRow>,
    /// Share of the table's leaves, 0 to 1.
    share: f64,
    is_complete: bool,
    /// Rows of the table.
    table_rows: u64,
    /// Share of the table's leaves that was in memory before, 0 to 1.
    resident: f64,
}

/// A row of a sample.
#[derive(Clone, Copy)]
pub(crate) struct SampleEntry<'s> {
    pub key: &'s [u8],
    pub value: &'s [u8],
    /// Which of the leaves it is from.
    pub leaf: u32,
}

impl RowSample {
    /// Reads a sample of a table.
    ///
    /// # Errors
    /// `Interrupted`, and what reading the tree may say.
    pub fn read(
        table: &Table,
        limits: SampleLimits,
        interrupt: Interrupt<'_>,
    ) -> Result<RowSample> {
        let statistics = table.clustered.statistics();
        let leaves = statistics.leaf_pages.max(1);
        let rows_per_leaf = (statistics.entries / leaves).max(1);
        let bytes_per_leaf = (statistics.bytes / leaves).max(1);
        let wanted = (limits.rows as u64)
            .div_ceil(rows_per_leaf)
            .max(LEAST_LEAVES);
        let fit = (limits.bytes as u64 / bytes_per_leaf).max(1);
        let wanted = usize::try_from(wanted.min(fit)).unwrap_or(usize::MAX);
        let resident = table.clustered.resident_share(&KeyRange::all())?;
        let mut leaf_sample = table.clustered.sample_leaves(wanted, limits.seed)?;
        let mut sample = RowSample {
            bytes: Vec::new(),
            rows: Vec::new(),
            share: leaf_sample.share(),
            is_complete: leaf_sample.is_complete(),
            table_rows: statistics.entries,
            resident,
        };
        let mut read = 0;
        let mut key = Vec::new();
        while let Some(leaf) = leaf_sample.next_leaf()? {
            check(interrupt)?;
            read += 1;
            if sample.bytes.len() > limits.bytes {
                sample.is_complete = false;
                sample.share *= f64::from(read) / wanted.max(1) as f64;
                break;
            }
            for entry in 0..leaf.len() {
                leaf.key_into(entry, &mut key);
                sample.bytes.extend_from_slice(&key);
                let key_end = sample.bytes.len();
                sample.bytes.extend_from_slice(leaf.value(entry));
                sample.rows.push(SampledRow {
                    key_end,
                    end: sample.bytes.len(),
                    leaf: read,
                });
            }
        }
        if sample.is_complete {
            sample.table_rows = sample.rows.len() as u64;
        }
        Ok(sample)
    }

    /// About so many of its rows, leaf by leaf: enough for a first look. `None`: it has hardly more.
    pub fn thinned(&self, rows: usize) -> Option<RowSample> {
        let step = u32::try_from(self.rows.len() / rows.max(1)).ok()?;
        if step < 2 {
            return None;
        }
        let mut thinned = RowSample {
            bytes: Vec::new(),
            rows: Vec::new(),
            share: self.share() / f64::from(step),
            is_complete: false,
            table_rows: self.table_rows,
            resident: self.resident,
        };
        for entry in self.entries().filter(|entry| entry.leaf % step == 0) {
            thinned.bytes.extend_from_slice(entry.key);
            let key_end = thinned.bytes.len();
            thinned.bytes.extend_from_slice(entry.value);
            thinned.rows.push(SampledRow {
                key_end,
                end: thinned.bytes.len(),
                leaf: entry.leaf,
            });
        }
        (!thinned.rows.is_empty()).then_some(thinned)
    }

    pub fn len(&self) -> usize {
        self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Whether it has all rows of the table.
    pub fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Rows of the table.
    pub fn table_rows(&self) -> u64 {
        self.table_rows.max(self.rows.len() as u64)
    }

    /// Share of the table's leaves that were read, 0 to 1.
    pub(crate) fn share(&self) -> f64 {
        match self.is_complete {
            true => 1.0,
            false => self.share.clamp(f64::MIN_POSITIVE, 1.0),
        }
    }

    /// Share of the table's leaves that was in memory before they were read, 0 to 1.
    pub fn resident(&self) -> f64 {
        self.resident
    }

    /// What it takes in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.rows.capacity() * size_of::<SampledRow>()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = SampleEntry<'_>> {
        let mut begin = 0;
        self.rows.iter().map(move |row| {
            let entry = SampleEntry {
                key: &self.bytes[begin..row.key_end],
                value: &self.bytes[row.key_end..row.end],
                leaf: row.leaf,
            };
            begin = row.end;
            entry
        })
    }

    /// The average bytes that a column's values take, and whether some are too long to be in their rows. NULLs count
    /// as empty.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn column_bytes(&self, table: &Table, column: usize) -> Result<(f64, bool)> {
        let (mut bytes, mut has_long) = (0, false);
        for entry in self.entries() {
            let row: RowView<'_> = table.view(entry.value)?;
            if row.is_overflow(column) {
                has_long = true;
            } else if !row.is_null(column) {
                bytes += match table.row_layout.fixed(column) {
                    Some((_, width)) => width,
                    None => row.get_bytes(column).len(),
                };
            }
        }
        Ok((bytes as f64 / self.rows.len().max(1) as f64, has_long))
    }
}
