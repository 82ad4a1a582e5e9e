//! An index that is not there: a sorted sample of the entries that it would have.
//!
//! ```text
//!   random leaves of the clustered tree -> rows -> keys by the index's own codec -> sorted
//!
//!   index dive        binary search of both bounds, times rows per sampled row
//!   distinct keys     as for the columns of an analyzed table, prefix by prefix
//!   size              bytes of the sampled entries, those that a leaf has once left out, times rows per sampled row
//! ```
//!
//! The keys are those that a real index would store, so key ranges, prefixes, collations and skew between columns need
//! no rules of their own. HypoPG, which has statistics of single columns only, cannot see that two columns go together.
//!
//! A table with such indexes ([`Table::with_hypothetical_indexes`]) is for planning alone. The clustered tree stands
//! where their trees would be, and a plan that uses them must not run.

use std::ops::Bound;
use std::sync::Arc;

use sheaf_storage::{Direction, KeyRange, PAGE_SIZE, Tree, TreeStatistics};

use crate::codec::key_codec::KeyLayout;
use crate::codec::row_codec::ValueRef;
use crate::definition::schema::{Index, IndexPart, TableDefinition};
use crate::error::Result;
use crate::lock::table_lock::Interrupt;
use crate::statistics::check;
use crate::statistics::distinct::{DistinctValues, EXACT_VALUES};
use crate::statistics::hyper_log_log::hash;
use crate::table::Table;
use crate::table::row_sample::RowSample;

/// A leaf has a slot and a header for each entry, in bytes.
const ENTRY_OVERHEAD_BYTES: f64 = 10.0;

/// The share of a leaf that entries take when the index is built.
const LEAF_FILL: f64 = 0.9;

/// Children of an inner page, about.
const FANOUT: f64 = 200.0;

/// Sampled entries in a range of single values, below which the average of all values says more than the count.
const FEW_ENTRIES: f64 = 8.0;

/// Rows that are encoded between two looks whether the statement shall stop.
const ROWS_PER_CHECK: usize = 1024;

/// The first id of a hypothetical index: no real one has it, so no statistics are taken for its own.
const FIRST_ID: u32 = 1 << 31;

/// See the module's comment.
pub struct HypotheticalIndex {
    pub definition: Index,
    layout: KeyLayout,
    bytes: Vec<u8>,
    /// Where the key of each entry is in `bytes`, in key order.
    keys: Vec<(u32, u32)>,
    /// Entries of the index.
    entries: u64,
    /// Entries of the index for each one of the sample.
    weight: f64,
    /// Average bytes of an entry, its place in a leaf included.
    whole_entry_bytes: f64,
    /// Average bytes of these that its leaf has once.
    common_bytes: f64,
    /// Estimated distinct values of the first 1, 2, ... parts, those of the primary key included.
    distinct: Vec<f64>,
    /// Share of its leaves that is taken to be in memory: that of the table's, 0 to 1.
    resident: f64,
}

impl HypotheticalIndex {
    /// What an index of these parts would look like. `number` tells the indexes of one table apart.
    ///
    /// # Errors
    /// `Interrupted`, `Corrupt`.
    pub fn new(
        table: &Table,
        (name, number): (String, u32),
        parts: Vec<IndexPart>,
        sample: &RowSample,
        interrupt: Interrupt<'_>,
    ) -> Result<HypotheticalIndex> {
        let definition = Index {
            id: FIRST_ID | number,
            name,
            parts,
            unique: false,
            primary: false,
            tree: table.definition.primary.tree,
            comment: String::new(),
            invisible: false,
        };
        let layout = KeyLayout::secondary(&table.definition, &definition);
        let mut index = HypotheticalIndex {
            definition,
            bytes: Vec::new(),
            keys: Vec::with_capacity(sample.len()),
            entries: 0,
            weight: 1.0,
            whole_entry_bytes: 0.0,
            common_bytes: 0.0,
            distinct: Vec::new(),
            resident: sample.resident(),
            layout,
        };
        index.encode(table, sample, interrupt)?;
        Ok(index)
    }

    fn encode(
        &mut self,
        table: &Table,
        sample: &RowSample,
        interrupt: Interrupt<'_>,
    ) -> Result<()> {
        let parts = self.layout.parts.len();
        let mut prefixes: Vec<DistinctValues> = Vec::new();
        prefixes.resize_with(parts, || DistinctValues::new(EXACT_VALUES / parts));
        let (mut offsets, mut payload) = (Vec::new(), Vec::new());
        let (mut leaf, mut payload_bytes) = (None, 0);
        let is_complete = sample.is_complete();
        for (position, entry) in sample.entries().enumerate() {
            if position.is_multiple_of(ROWS_PER_CHECK) {
                check(interrupt)?;
            }
            if leaf.is_some_and(|known| known != entry.leaf) {
                for prefix in &mut prefixes {
                    prefix.end_leaf(is_complete);
                }
            }
            leaf = Some(entry.leaf);
            let row = table.view(entry.value)?;
            let columns = self.layout.parts.iter().filter_map(|part| part.column);
            if columns.clone().any(|column| row.is_overflow(column)) {
                // A long value is not read. The others stand for its row.
                continue;
            }
            let row_id = match table.definition.has_hidden_row_id() {
                true => table.clustered_layout.decode_i64(0, entry.key).unwrap_or(0) as u64,
                false => 0,
            };
            let begin = self.bytes.len();
            payload.clear();
            let values = |column: usize| -> ValueRef<'_> { row.value_ref(column) };
            self.layout
                .encode_entry(values, row_id, &mut self.bytes, &mut payload);
            payload_bytes += payload.len();
            let key = &self.bytes[begin..];
            self.layout.part_offsets(key, &mut offsets)?;
            for (prefix, end) in prefixes.iter_mut().zip(offsets.iter().skip(1)) {
                prefix.add(hash(&key[..*end]));
            }
            let place = (u32::try_from(begin), u32::try_from(self.bytes.len()));
            let (Ok(begin), Ok(end)) = place else {
                // The sample is much smaller.
                break;
            };
            self.keys.push((begin, end));
        }
        self.bytes.shrink_to_fit();
        for prefix in &mut prefixes {
            prefix.end_leaf(is_complete);
        }
        self.sort();
        let sampled = self.keys.len().max(1) as f64;
        self.entries = sample.table_rows();
        self.weight = (self.entries as f64 / sampled).max(1.0);
        let whole = (self.bytes.len() + payload_bytes) as f64 / sampled + ENTRY_OVERHEAD_BYTES;
        self.common_bytes = self.common_bytes(PAGE_SIZE as f64 * LEAF_FILL / whole);
        self.whole_entry_bytes = whole;
        let mut least = 1.0_f64;
        self.distinct = prefixes
            .into_iter()
            .map(|prefix| {
                let estimate = prefix.estimate(sample.share(), self.entries);
                // A longer prefix has at least as many values.
                least = least.max(estimate.value as f64);
                least
            })
            .collect();
        Ok(())
    }

    /// Sorts the keys. Most differ in their first bytes, which are compared as a number.
    fn sort(&mut self) {
        let bytes = &self.bytes;
        let begins = |place: (u32, u32)| {
            let key = key_at(bytes, place);
            let mut first = [0; size_of::<u64>()];
            let length = key.len().min(first.len());
            first[..length].copy_from_slice(&key[..length]);
            (u64::from_be_bytes(first), place)
        };
        let mut keys: Vec<(u64, (u32, u32))> =
            self.keys.iter().map(|place| begins(*place)).collect();
        keys.sort_unstable_by(|(first, place), (of_other, other)| {
            let rest = || key_at(bytes, *place).cmp(key_at(bytes, *other));
            first.cmp(of_other).then_with(rest)
        });
        self.keys.clear();
        self.keys.extend(keys.into_iter().map(|(_, place)| place));
    }

    /// Average bytes that the keys of a leaf of so many entries begin with, and that it has once.
    fn common_bytes(&self, entries_of_leaf: f64) -> f64 {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a small positive number"
        )]
        let sampled_of_leaf = (entries_of_leaf / self.weight).max(1.0) as usize;
        let (mut common, mut leaves) = (0, 0);
        let mut first = 0;
        while first + sampled_of_leaf < self.keys.len() {
            let pair = (self.key(first), self.key(first + sampled_of_leaf));
            let equal = pair.0.iter().zip(pair.1).take_while(|(a, b)| a == b);
            common += equal.count();
            leaves += 1;
            first += sampled_of_leaf;
        }
        common as f64 / f64::from(leaves.max(1))
    }

    fn key(&self, position: usize) -> &[u8] {
        key_at(&self.bytes, self.keys[position])
    }

    /// Sampled entries in front of those for which `is_behind` is true.
    fn entries_before(&self, is_behind: impl Fn(&[u8]) -> bool) -> usize {
        let bytes = &self.bytes;
        self.keys
            .partition_point(|place| !is_behind(key_at(bytes, *place)))
    }

    /// The positions of the sampled entries in a range.
    fn sampled_in(&self, range: &KeyRange) -> std::ops::Range<usize> {
        let begin = match &range.lower {
            Bound::Unbounded => 0,
            _ => self.entries_before(|key| !range.is_below(key)),
        };
        let end = match &range.upper {
            Bound::Unbounded => self.keys.len(),
            _ => self.entries_before(|key| range.is_above(key)),
        };
        begin..end.max(begin)
    }

    /// Estimated entries of the index in a range: an index dive.
    ///
    /// Of few entries in the sample, or none, little follows. Then single values of whole parts are taken to have as
    /// many entries as the average, but no more than the sample makes likely.
    pub fn estimate_entries(&self, range: &KeyRange) -> u64 {
        let sampled = self.sampled_in(range).len() as f64;
        if self.weight <= 1.0 || sampled >= FEW_ENTRIES {
            return (sampled * self.weight).round() as u64;
        }
        let seen = sampled.max(0.5) * self.weight;
        let estimate = match self.parts_of_prefix(range) {
            Some(parts) => {
                let average = self.rows_per_key(parts);
                average.clamp(sampled, (sampled + 1.0) * self.weight)
            }
            None => seen,
        };
        estimate.round().max(1.0) as u64
    }

    /// How many whole parts the keys of a range have in common; `None`: it is no range of a single prefix.
    fn parts_of_prefix(&self, range: &KeyRange) -> Option<usize> {
        let Bound::Included(prefix) = &range.lower else {
            return None;
        };
        if KeyRange::prefix(prefix).upper != range.upper {
            return None;
        }
        let (mut begin, mut parts) = (0, 0);
        while begin < prefix.len() {
            if parts == self.layout.parts.len() {
                return None;
            }
            begin += self.layout.part_length(parts, &prefix[begin..]).ok()?;
            parts += 1;
        }
        (begin == prefix.len() && parts > 0).then_some(parts)
    }

    /// The first entry of the sample in a range, going in a direction.
    pub fn first_key(&self, range: &KeyRange, direction: Direction) -> Option<Vec<u8>> {
        let sampled = self.sampled_in(range);
        let position = match direction {
            Direction::Forward => sampled.clone().next(),
            Direction::Backward => sampled.clone().next_back(),
        };
        position.map(|position| self.key(position).to_vec())
    }

    /// Average entries that share a key of the first `parts` parts, at least 1.
    pub fn rows_per_key(&self, parts: usize) -> f64 {
        let distinct = match parts.checked_sub(1) {
            None => 1.0,
            Some(last) => self.distinct.get(last).copied().unwrap_or(f64::MAX),
        };
        (self.entries as f64 / distinct.max(1.0)).max(1.0)
    }

    /// Estimated distinct keys of the first `parts` parts.
    pub fn distinct_keys(&self, parts: usize) -> f64 {
        self.entries as f64 / self.rows_per_key(parts)
    }

    /// Entries of the index for each one of the sample.
    pub fn weight(&self) -> f64 {
        self.weight
    }

    /// How its keys are encoded.
    pub fn layout(&self) -> &KeyLayout {
        &self.layout
    }

    /// Average bytes of an entry.
    pub fn entry_bytes(&self) -> f64 {
        self.whole_entry_bytes - self.common_bytes
    }

    /// The bytes of all entries, what leaves have once counted each time: the less, the shorter are the keys.
    pub fn whole_bytes(&self) -> f64 {
        self.entries as f64 * self.whole_entry_bytes
    }

    /// The size that the tree would have.
    pub fn statistics(&self) -> TreeStatistics {
        let bytes = self.entries as f64 * self.entry_bytes();
        let leaf_pages = (bytes / (PAGE_SIZE as f64 * LEAF_FILL)).ceil().max(1.0);
        let (mut inner_pages, mut height, mut level) = (0.0, 1, leaf_pages);
        while level > 1.0 {
            level = (level / FANOUT).ceil();
            inner_pages += level;
            height += 1;
        }
        TreeStatistics {
            entries: self.entries,
            leaf_pages: leaf_pages as u64,
            inner_pages: inner_pages as u64,
            height,
            bytes: ((leaf_pages + inner_pages) * PAGE_SIZE as f64) as u64,
        }
    }

    /// What it takes in memory, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.bytes.capacity() + self.keys.capacity() * size_of::<(u32, u32)>()
    }
}

fn key_at(bytes: &[u8], (begin, end): (u32, u32)) -> &[u8] {
    &bytes[begin as usize..end as usize]
}

/// The tree of an index, or what stands for the tree of a hypothetical one.
#[derive(Clone, Copy)]
pub enum IndexTree<'t> {
    Real(&'t Arc<Tree>),
    /// With the clustered tree.
    Hypothetical(&'t HypotheticalIndex, &'t Arc<Tree>),
}

impl IndexTree<'_> {
    /// As [`Tree::statistics`].
    pub fn statistics(self) -> TreeStatistics {
        match self {
            IndexTree::Real(tree) => tree.statistics(),
            IndexTree::Hypothetical(index, _) => index.statistics(),
        }
    }

    /// Pages that the pool can hold.
    pub fn pool_pages(self) -> u64 {
        match self {
            IndexTree::Real(tree) | IndexTree::Hypothetical(_, tree) => tree.pool_pages(),
        }
    }

    /// An index dive.
    ///
    /// # Errors
    /// What reading the tree may say.
    pub fn estimate_entries(self, range: &KeyRange) -> sheaf_storage::Result<u64> {
        match self {
            IndexTree::Real(tree) => tree.estimate_entries(range),
            IndexTree::Hypothetical(index, _) => Ok(index.estimate_entries(range)),
        }
    }

    /// Share of the leaves in a range that is in memory.
    ///
    /// # Errors
    /// What reading the tree may say.
    pub fn resident_share(self, range: &KeyRange) -> sheaf_storage::Result<f64> {
        match self {
            IndexTree::Real(tree) => tree.resident_share(range),
            IndexTree::Hypothetical(index, _) => Ok(index.resident),
        }
    }
}

impl Table {
    /// This version of the table as if it had more indexes, to plan with. See [the
    /// module](crate::table::hypothetical_index).
    pub fn with_hypothetical_indexes(&self, indexes: Vec<Arc<HypotheticalIndex>>) -> Table {
        let mut definition: TableDefinition = self.definition.clone();
        let mut secondary = self.secondary.clone();
        let mut layouts = self.secondary_layouts.clone();
        for index in &indexes {
            definition.secondary.push(index.definition.clone());
            secondary.push(Arc::clone(&self.clustered));
            layouts.push(index.layout.clone());
        }
        self.varied(definition, (secondary, layouts), indexes)
    }

    /// The tree of a secondary index, by position.
    pub fn secondary_tree(&self, position: usize) -> IndexTree<'_> {
        let real = self.secondary.len() - self.hypothetical.len();
        let hypothetical = position.checked_sub(real);
        match hypothetical.and_then(|position| self.hypothetical.get(position)) {
            Some(index) => IndexTree::Hypothetical(index, &self.clustered),
            None => IndexTree::Real(&self.secondary[position]),
        }
    }

    /// Whether a secondary index, by position, is only thought of. Those come behind the real ones.
    pub fn is_hypothetical(&self, position: usize) -> bool {
        position >= self.secondary.len() - self.hypothetical.len()
    }
}
