//! Where the matching rows lie along a walk in order. That decides whether a LIMIT stops the walk early.
//!
//! Three sources, the better ones first:
//!
//! - **An index that the conditions bind completely.** Behind its parts come primary keys, so the first and the last
//!   entry of each of its ranges are the first and the last match in the clustered order. Looking at both ends of a
//!   range costs two descents, and tells for certain that all matches lie at the far end.
//! - **Correlation.** A condition on a column that is correlated with the order of the walk leaves a part of the walk.
//!   With a correlation of 1, the rows between the 60th and the 70th percentile of the column are those between 60% and
//!   70% of the way. With a correlation of c, that counts with weight c^2.
//! - **Large groups.** Entries with the same values in all parts of an index are in clustered order. Where the walk
//!   itself does not go with the conditions, its first group may, and a large one is most of what a small LIMIT reads.
//!
//! Otherwise matches are taken to be spread evenly from end to end.

use std::ops::Bound;

use datafusion_common::Result;
use sheaf_access::IndexRef;
use sheaf_storage::{Direction, KeyRange, ReadAhead};
use sheaf_table::IndexTree;

use crate::access::path::AccessPath;
use crate::access::table_reference::TableReference;
use crate::cost::early_stop::{MatchPositions, Piece};
use crate::estimate::column_set::{ColumnSet, Interval};
use crate::estimate::condition::Term;
use crate::estimate::statistics::{layout, storage_error, tree};

/// Ranges of an index both ends of which are looked at, at most.
const MAX_RANGES: usize = 8;

/// Leaves without entries that are passed by on the way to the end of a range, at most.
const MAX_EMPTY_LEAVES: usize = 4;

/// Columns whose correlation with the walk is less say nothing about it.
const LEAST_CORRELATION: f64 = 0.2;

impl TableReference<'_> {
    /// Where the matches lie along the path.
    pub(crate) fn match_positions(&self, path: &AccessPath) -> Result<MatchPositions> {
        let open: Vec<usize> = [path.index_filters.as_slice(), &path.row_filters].concat();
        if open.is_empty() {
            return Ok(MatchPositions::default());
        }
        let along = |spread: MatchPositions| match path.direction {
            Direction::Forward => spread,
            Direction::Backward => spread.reversed(),
        };
        if path.index == IndexRef::Clustered {
            let spread = self.clustered_spread(&open)?;
            return Ok(along(self.within_ranges(path, spread)?));
        }
        let of_walk = self.part_correlation(path.index, path.ranges.constant_parts);
        let spread = self.correlated_spread(of_walk, &open);
        let spread = self.within_ranges(path, spread)?;
        if spread != MatchPositions::default() {
            return Ok(along(spread));
        }
        let in_group = along(self.clustered_spread(&open)?);
        if in_group == MatchPositions::default() {
            return Ok(in_group);
        }
        Ok(in_group.in_first_group(self.first_group(path)?))
    }

    /// Where the matches of conditions lie along the clustered order.
    fn clustered_spread(&self, open: &[usize]) -> Result<MatchPositions> {
        Ok(match self.ends_of_matches(open)? {
            Some(ends) => ends,
            None => self.correlated_spread(1.0, open),
        })
    }

    /// Share of the walk that has the same values in all declared parts of its index as the first entry; 0: not known.
    fn first_group(&self, path: &AccessPath) -> Result<f64> {
        let [range] = path.ranges.ranges.as_slice() else {
            return Ok(0.0);
        };
        let Some(first) = self.first_key(path.index, range, path.direction)? else {
            return Ok(0.0);
        };
        let declared = path.index.definition(self.table).parts.len();
        let Ok(values) = layout(self.table, path.index).leading_parts(&first, declared) else {
            return Ok(0.0);
        };
        let group = tree(self.table, path.index).estimate_entries(&KeyRange::prefix(values));
        Ok((group.map_err(storage_error)? as f64 / path.entries.max(1.0)).min(1.0))
    }

    /// The first and the last match in the clustered order, from an index whose parts are all bound to single values by
    /// conditions among `open`.
    fn ends_of_matches(&self, open: &[usize]) -> Result<Option<MatchPositions>> {
        let mut known: Option<MatchPositions> = None;
        for index in self.indexes().filter(|index| *index != IndexRef::Clustered) {
            let declared = index.definition(self.table).parts.len();
            let bound = self.bound(index)?;
            let layout = layout(self.table, index);
            let parts = &layout.parts[..declared];
            // Conditions on the primary key, which follows, are the walk's own.
            let is_open = open.iter().any(|filter| {
                let columns = &self.filters[*filter].columns;
                columns
                    .iter()
                    .any(|column| parts.iter().any(|part| part.column == Some(*column)))
            });
            let count = bound.ranges.ranges.len();
            if bound.ranges.equal_parts < declared || count > MAX_RANGES || !is_open {
                continue;
            }
            let mut pieces = Vec::new();
            for range in bound.ranges.ranges.iter() {
                let first = self.end_of(index, range, Direction::Forward)?;
                let last = self.end_of(index, range, Direction::Backward)?;
                if let (Some(first), Some(last)) = (first, last) {
                    let entries = tree(self.table, index).estimate_entries(range);
                    pieces.push(Piece {
                        first: self.position(Bound::Excluded(first))?,
                        last: self.position(Bound::Included(last))?,
                        share: entries.map_err(storage_error)? as f64,
                    });
                }
            }
            let all: f64 = pieces.iter().map(|piece| piece.share).sum();
            for piece in &mut pieces {
                piece.share /= all.max(f64::MIN_POSITIVE);
            }
            let found = MatchPositions { pieces };
            known = Some(match known {
                Some(known) => known.intersect(&found),
                None => found,
            });
        }
        Ok(known)
    }

    /// The clustered key of the first or last entry in a range of a secondary index; `None` if there is none, or none
    /// near.
    fn end_of(
        &self,
        index: IndexRef,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Option<Vec<u8>>> {
        let Some(key) = self.first_key(index, range, direction)? else {
            return Ok(None);
        };
        let mut clustered = Vec::new();
        let found = layout(self.table, index).primary_key_into(&key, &mut clustered);
        Ok(found.is_ok().then_some(clustered))
    }

    /// The key of the first entry of a walk over a range; `None` if there is none, or none near.
    fn first_key(
        &self,
        index: IndexRef,
        range: &KeyRange,
        direction: Direction,
    ) -> Result<Option<Vec<u8>>> {
        let tree = match tree(self.table, index) {
            IndexTree::Real(tree) => tree,
            IndexTree::Hypothetical(index, _) => return Ok(index.first_key(range, direction)),
        };
        let mut cursor = tree.scan(range.clone(), direction, ReadAhead::Off);
        for _ in 0..MAX_EMPTY_LEAVES {
            let Some(leaf) = cursor.next_leaf().map_err(storage_error)? else {
                return Ok(None);
            };
            let Some(last) = leaf.len().checked_sub(1) else {
                continue;
            };
            let entry = match direction {
                Direction::Forward => 0,
                Direction::Backward => last,
            };
            let mut key = Vec::new();
            leaf.key_into(entry, &mut key);
            return Ok(Some(key));
        }
        Ok(None)
    }

    /// Share of the rows from the first one to a key of the clustered tree.
    fn position(&self, upper: Bound<Vec<u8>>) -> Result<f64> {
        let range = KeyRange {
            lower: Bound::Unbounded,
            upper,
        };
        let clustered = &self.table.clustered;
        let before = clustered.estimate_entries(&range).map_err(storage_error)?;
        Ok((before as f64 / self.table_rows).min(1.0))
    }

    /// What conditions on columns that go with the order of a walk leave of it, if the walk goes with the clustered
    /// order as far as `of_walk` says.
    fn correlated_spread(&self, of_walk: f64, open: &[usize]) -> MatchPositions {
        let mut spread = MatchPositions::default();
        for filter in open {
            let Term::Column { column, set, .. } = &self.filters[*filter].term else {
                continue;
            };
            let correlation = self.correlation(*column) * of_walk;
            if correlation.abs() < LEAST_CORRELATION {
                continue;
            }
            let Some(percentiles) = self.percentiles(*column, set) else {
                continue;
            };
            let along = match correlation < 0.0 {
                true => percentiles.reversed(),
                false => percentiles,
            };
            spread = spread.intersect(&along.weakened(correlation * correlation));
        }
        spread
    }

    /// Between which shares of a column's values a set lies; `None` if nothing is known.
    fn percentiles(&self, column: usize, set: &ColumnSet) -> Option<MatchPositions> {
        let ranges = set.intervals.iter().filter_map(|interval| match interval {
            Interval::Null => None,
            Interval::Range { lower, upper } => Some((lower, upper)),
        });
        let ranges: Vec<_> = ranges.collect();
        let (lower, upper) = (ranges.first()?.0, ranges.last()?.1);
        let not_null = (1.0 - self.nulls(column)).max(f64::MIN_POSITIVE);
        let share = |lower, upper| {
            let share = self.share_of_set(column, &ColumnSet::between(lower, upper))?;
            Some((share / not_null).clamp(0.0, 1.0))
        };
        let below = match lower {
            Bound::Unbounded => 0.0,
            Bound::Included(value) => share(Bound::Unbounded, Bound::Excluded(value.clone()))?,
            Bound::Excluded(value) => share(Bound::Unbounded, Bound::Included(value.clone()))?,
        };
        let above = match upper {
            Bound::Unbounded => 0.0,
            Bound::Included(value) => share(Bound::Excluded(value.clone()), Bound::Unbounded)?,
            Bound::Excluded(value) => share(Bound::Included(value.clone()), Bound::Unbounded)?,
        };
        Some(MatchPositions::between(below.min(1.0 - above), 1.0 - above))
    }

    /// A spread along the whole index as one along the single range that the path reads of it.
    fn within_ranges(&self, path: &AccessPath, spread: MatchPositions) -> Result<MatchPositions> {
        let [range] = path.ranges.ranges.as_slice() else {
            return Ok(MatchPositions::default());
        };
        if path.ranges.is_full() {
            return Ok(spread);
        }
        if path.ranges.constant_parts > 0 {
            // A part of the index in which the order begins anew.
            return Ok(MatchPositions::default());
        }
        let tree = tree(self.table, path.index);
        let before = match &range.lower {
            Bound::Unbounded => 0,
            Bound::Included(key) | Bound::Excluded(key) => tree
                .estimate_entries(&KeyRange {
                    lower: Bound::Unbounded,
                    upper: Bound::Excluded(key.clone()),
                })
                .map_err(storage_error)?,
        };
        let start = before as f64 / self.table_rows;
        Ok(spread.within(start, path.entries / self.table_rows))
    }
}
