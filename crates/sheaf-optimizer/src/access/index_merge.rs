//! Index merge: reading a table by several of its indexes at once.
//!
//! A disjunction whose branches each bind some index is read as their *union*. A conjunction that binds several indexes
//! is read as their *intersection*. Primary keys are collected, sorted and merged (see the access method). The
//! conditions that the ranges of the indexes do not say are tested on the rows.
//!
//! ```text
//!   a = 1 OR b = 2          union(i_a, i_b)          rows of both, each once
//!   a = 1 AND b = 2         intersect(i_a, i_b)      rows that both lead to
//! ```
//!
//! Rows come in primary key order. The whole of the indexes' ranges is read before the first row comes, so a LIMIT does
//! not make it cheaper.

use std::rc::Rc;
use std::sync::Arc;

use datafusion_common::Result;
use sheaf_access::{Fetch, IndexRef, MergeInput, MergeKind, MergeSpec, cancel};
use sheaf_exec::operator::scan_exec::access_error;

use crate::PlannerContext;
use crate::access::disjoint::disjoint;
use crate::access::path::{AccessPath, order_direction};
use crate::access::path_cost::EntryOrder;
use crate::access::ranges::{self, IndexRanges};
use crate::access::table_reference::TableReference;
use crate::access::wanted::Wanted;
use crate::cost::index_condition::conditions_us;
use crate::cost::multi_range_read::MultiRangeRead;
use crate::cost::range_scan::RangeScan;
use crate::cost::sort::{key_sort_us, sort_us};
use crate::estimate::condition::Term;
use crate::estimate::condition::conjuncts;
use crate::estimate::risk::Risk;
use crate::estimate::statistics::{self, layout, tree};
use crate::explain::{ExplainRow, ExtraNote};

/// Indexes that are merged, at most.
const MAX_INPUTS: usize = 16;

/// Branches of an OR that a union is looked for, at most: each takes an index dive into each index.
const MAX_BRANCHES: usize = 1_000;

/// Bytes of primary keys that a merge holds, for each byte of the buffer of a multi-range read. A merge needs all of
/// its keys together, and reads its indexes again for those that do not fit.
const BUFFERS: usize = 64;

/// What of an index goes into a merge.
#[derive(Debug, Clone)]
pub(crate) struct PlannedInput {
    pub index: IndexRef,
    ranges: IndexRanges,
    /// Entries in the ranges.
    entries: f64,
}

/// Indexes that are read together.
#[derive(Debug, Clone)]
pub(crate) struct PlannedMerge {
    kind: MergeKind,
    pub inputs: Vec<PlannedInput>,
}

impl PlannedMerge {
    /// What the access method is asked.
    pub(crate) fn spec(&self, buffer_bytes: usize) -> Arc<MergeSpec> {
        let input = |input: &PlannedInput| MergeInput {
            index: input.index,
            ranges: input.ranges.ranges.as_ref().clone(),
            key_filter: None,
            index_condition: None,
        };
        Arc::new(MergeSpec {
            kind: self.kind,
            inputs: self.inputs.iter().map(input).collect(),
            buffer_bytes: buffer_bytes.saturating_mul(BUFFERS),
            read_buffer_bytes: buffer_bytes,
        })
    }

    /// Whether the entries of each index come in primary key order: MySQL's difference between union and sort_union.
    fn comes_sorted(&self, table: &TableReference<'_>) -> bool {
        self.inputs.iter().all(|input| {
            let declared = input.index.definition(table.table).parts.len();
            input.ranges.ranges.len() == 1 && input.ranges.equal_parts >= declared
        })
    }

    /// Fills in a row of EXPLAIN.
    pub(crate) fn explain(&self, table: &TableReference<'_>, row: &mut ExplainRow) {
        let names: Vec<&str> = self
            .inputs
            .iter()
            .map(|input| table.index_name(input.index))
            .collect();
        let lengths: Vec<String> = self
            .inputs
            .iter()
            .map(|input| {
                let layout = layout(table.table, input.index);
                layout.mysql_key_len(input.ranges.parts).to_string()
            })
            .collect();
        row.key = Some(names.join(","));
        row.key_len = Some(lengths.join(","));
        // The note names the key.
        row.add(match (self.kind, self.comes_sorted(table)) {
            (MergeKind::Union, true) => ExtraNote::UsingUnion,
            (MergeKind::Union, false) => ExtraNote::UsingSortUnion,
            (MergeKind::Intersection, _) => ExtraNote::UsingIntersect,
        });
    }
}

impl TableReference<'_> {
    /// Adds the merges that the conditions, the hints and the switches allow.
    pub(crate) fn add_merges(
        &self,
        context: &PlannerContext,
        wanted: &Wanted,
        paths: &mut Vec<AccessPath>,
    ) -> Result<()> {
        let switch = &context.settings.switch;
        let hints = &self.source.hints;
        let forced = hints.forces_merge();
        // A forced index is meant to be read by itself.
        if !(forced || switch.index_merge) || !hints.rows.force_index.is_empty() {
            return Ok(());
        }
        for filter in 0..self.filters.len() {
            for term in conjuncts(&self.filters[filter].term) {
                if let Term::Or(branches) = term
                    && let Some(merge) = self.union(branches)?
                {
                    let allowed = match merge.comes_sorted(self) {
                        true => switch.index_merge_union,
                        false => switch.index_merge_sort_union,
                    };
                    if forced || allowed {
                        paths.push(self.merge_path(context, merge, wanted)?);
                    }
                }
            }
        }
        if (forced || switch.index_merge_intersection)
            && let Some(merge) = self.intersection()?
        {
            paths.push(self.merge_path(context, merge, wanted)?);
        }
        Ok(())
    }

    /// For each branch the index that it leaves the fewest entries of.
    fn union(&self, branches: &[Term]) -> Result<Option<PlannedMerge>> {
        if branches.len() > MAX_BRANCHES {
            return Ok(None);
        }
        let mut inputs: Vec<PlannedInput> = Vec::new();
        for branch in branches {
            cancel::check_statement().map_err(access_error)?;
            let mut best: Option<PlannedInput> = None;
            for index in self.usable_indexes() {
                let layout = layout(self.table, index);
                let ranges = ranges::index_ranges(std::slice::from_ref(branch), layout);
                if ranges.is_full() {
                    continue;
                }
                let entries = statistics::entries_in(self.table, index, &ranges, self.dive_limit)?;
                if best.as_ref().is_none_or(|known| entries < known.entries) {
                    best = Some(PlannedInput {
                        index,
                        ranges,
                        entries,
                    });
                }
            }
            let Some(best) = best else {
                return Ok(None);
            };
            // Branches of one index are its ranges together.
            let known = inputs.iter().position(|input| input.index == best.index);
            if let Some(known) = known {
                let known = &mut inputs[known];
                let ranges = Arc::make_mut(&mut known.ranges.ranges);
                ranges.extend(best.ranges.ranges.iter().cloned());
                known.ranges.parts = known.ranges.parts.max(best.ranges.parts);
                known.ranges.equal_parts = 0;
                known.entries += best.entries;
            } else {
                inputs.push(best);
            }
        }
        for input in &mut inputs {
            let ranges = Arc::make_mut(&mut input.ranges.ranges);
            *ranges = disjoint(std::mem::take(ranges));
        }
        let merged = (2..=MAX_INPUTS).contains(&inputs.len());
        Ok(merged.then_some(PlannedMerge {
            kind: MergeKind::Union,
            inputs,
        }))
    }

    /// The two indexes that leave the fewest rows together. A third has never been seen to pay: what it saves is a
    /// share of few rows.
    fn intersection(&self) -> Result<Option<PlannedMerge>> {
        let mut inputs = Vec::new();
        for index in self.usable_indexes() {
            let bound = self.bound(index)?;
            // One key of the clustered index says it all.
            if index != IndexRef::Clustered && !bound.ranges.is_full() {
                inputs.push(PlannedInput {
                    index,
                    ranges: bound.ranges.clone(),
                    entries: bound.entries,
                });
            }
        }
        inputs.sort_by(|a, b| a.entries.total_cmp(&b.entries));
        let mut chosen: Option<(f64, PlannedMerge)> = None;
        for (position, first) in inputs.iter().enumerate() {
            for second in &inputs[position + 1..] {
                let adds = |filter: &usize| !first.ranges.consumed.contains(filter);
                if !second.ranges.consumed.iter().any(adds) {
                    continue;
                }
                let inputs = vec![first.clone(), second.clone()];
                let merge = PlannedMerge {
                    kind: MergeKind::Intersection,
                    inputs,
                };
                let rows = self.merged_rows(&merge) + first.entries + second.entries;
                if chosen.as_ref().is_none_or(|(known, _)| rows < *known) {
                    chosen = Some((rows, merge));
                }
            }
        }
        Ok(chosen.map(|(_, merge)| merge))
    }

    fn usable_indexes(&self) -> impl Iterator<Item = IndexRef> {
        self.indexes().filter(|index| {
            let (name, hints) = (self.index_name(*index), &self.source.hints);
            hints.allows(name) && hints.may_merge(name)
        })
    }

    /// Filters that all inputs of an intersection say together.
    fn said_by_merge(&self, merge: &PlannedMerge) -> Vec<usize> {
        if merge.kind == MergeKind::Union {
            return Vec::new();
        }
        let said = |filter: &usize| {
            let mut inputs = merge.inputs.iter();
            inputs.any(|input| input.ranges.consumed.contains(filter))
        };
        (0..self.filters.len()).filter(said).collect()
    }

    /// Estimated rows that a merge fetches.
    fn merged_rows(&self, merge: &PlannedMerge) -> f64 {
        match merge.kind {
            MergeKind::Union => {
                let none: f64 = merge
                    .inputs
                    .iter()
                    .map(|input| 1.0 - (input.entries / self.table_rows).min(1.0))
                    .product();
                self.table_rows * (1.0 - none)
            }
            MergeKind::Intersection => {
                let least = merge.inputs.iter().map(|input| input.entries);
                let together = self.table_rows * self.shares.of(&self.said_by_merge(merge));
                together.min(least.fold(f64::MAX, f64::min))
            }
        }
    }

    /// ```text
    ///   for each index: its ranges + keys x (log2(all keys) x compare / 5 + entry)
    ///     + multi-range read of the rows, in one turn, + conditions
    /// ```
    fn merge_path(
        &self,
        context: &PlannerContext,
        merge: PlannedMerge,
        wanted: &Wanted,
    ) -> Result<AccessPath> {
        let constants = &context.settings.costs;
        let said = self.said_by_merge(&merge);
        let keys: f64 = merge.inputs.iter().map(|input| input.entries).sum();
        let mut total = key_sort_us(constants, keys) + keys * constants.entry_us;
        let mut pages = 0.0;
        for input in &merge.inputs {
            let tree = tree(self.table, input.index);
            let scan = RangeScan {
                ranges: input.ranges.ranges.len() as f64,
                entries: input.entries,
                tree_pages: tree.statistics().leaf_pages as f64,
                tree_entries: tree.statistics().entries as f64,
                pool_pages: tree.pool_pages() as f64,
                resident: statistics::resident_share(tree, &input.ranges.ranges)?,
            };
            pages += scan.pages();
            total += scan.work(constants).elapsed_us(1.0);
        }
        let rows = self.merged_rows(&merge);
        let order = EntryOrder {
            correlation: 0.0,
            places: merge.inputs.len() as f64,
            sorted_runs: Some(1.0),
        };
        // They come in clustered order from end to end.
        let read = MultiRangeRead {
            lookups: self.clustered_lookups(rows, order)?,
            keys_per_turn: rows,
            always_sorts: true,
        };
        total += read.work(constants).elapsed_us(1.0);
        let row_filters: Vec<usize> = (0..self.filters.len())
            .filter(|filter| !said.contains(filter))
            .collect();
        total += conditions_us(constants, rows, self.tests(&row_filters))
            + self.rows.min(rows) * self.projection.len() as f64 * constants.column_us;
        let clustered = layout(self.table, IndexRef::Clustered);
        let ranges = IndexRanges::full();
        let direction = order_direction(&wanted.order, clustered, &ranges, self);
        let ordered = direction == Some(sheaf_storage::Direction::Forward);
        if !ordered && !wanted.order.is_empty() {
            let limit = wanted.limit.or(self.fetch).map(|limit| limit as f64);
            total += sort_us(constants, self.rows, limit.unwrap_or(self.rows));
        }
        Ok(AccessPath {
            row_filters,
            entries: keys,
            walked: rows,
            lookups: rows,
            pages: pages + read.pages(),
            ordered,
            cost_us: total,
            risk: Risk::none(total),
            merge: Some(Rc::new(merge)),
            ..AccessPath::whole(IndexRef::Clustered, ranges, None, Fetch::Covering)
        })
    }
}
