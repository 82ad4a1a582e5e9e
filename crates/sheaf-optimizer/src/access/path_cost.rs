//! What an access path is estimated to cost: which of the functions in [`crate::cost`] apply to it, and to what.

use datafusion_common::Result;
use sheaf_access::{Fetch, IndexRef, SortKeys};

use crate::PlannerContext;
use crate::access::path::AccessPath;
use crate::access::table_reference::TableReference;
use crate::access::wanted::Wanted;
use crate::cost::index_condition::conditions_us;
use crate::cost::jumps::JumpingWalk;
use crate::cost::lookup::{Lookups, lookup_us};
use crate::cost::multi_range_read::MultiRangeRead;
use crate::cost::range_scan::RangeScan;
use crate::cost::sort::sort_us;
use crate::cost::work::Work;
use crate::estimate::condition::Term;
use crate::estimate::risk::{Expectation, Risk};
use crate::estimate::statistics::{layout, tree};

/// In which order the entries that an index delivers lead to rows.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EntryOrder {
    /// With the clustered order, -1 to 1.
    pub correlation: f64,
    /// See [`Lookups::places`].
    pub places: f64,
    /// See [`Lookups::sorted_runs`].
    pub sorted_runs: Option<f64>,
}

/// What it takes to get the rows that entries lead to.
#[derive(Debug, Clone, Copy, Default)]
struct Fetching {
    /// Leaves read, if none is in memory.
    pages: f64,
    work: Work,
    /// A phase of its own, during which no entries are read.
    in_turns: bool,
    /// Share of the path that is read before the first row comes.
    least_share: f64,
}

impl TableReference<'_> {
    /// Fills in what a path is estimated to read, and its cost for a parent that wants `wanted`.
    pub(crate) fn estimate(
        &self,
        context: &PlannerContext,
        path: &mut AccessPath,
        wanted: &Wanted,
    ) -> Result<()> {
        let constants = &context.settings.costs;
        let statistics = tree(self.table, path.index).statistics();
        let scan = RangeScan {
            ranges: path.ranges.ranges.len() as f64,
            entries: path.entries,
            tree_pages: statistics.leaf_pages as f64,
            tree_entries: statistics.entries as f64,
            pool_pages: tree(self.table, path.index).pool_pages() as f64,
            resident: path.resident,
        };
        let walk = self.jumping_walk(path, scan)?;
        path.walked = walk.map_or(path.entries, |walk| walk.matches);
        path.pages = walk.map_or_else(|| scan.pages(), |walk| walk.pages());
        path.lookups = self.lookups(path);
        let columns = self.rows.min(path.entries) * self.projection.len() as f64;
        let mut walking = walk.map_or_else(|| scan.work(constants), |walk| walk.work(constants));
        walking.worker_us += conditions_us(constants, path.walked, self.tests(&path.index_filters));
        let delivering = Work::of_workers(columns * constants.column_us);
        let workers = self.partitions(context, path, wanted)? as f64;
        // Of a share of the walk.
        let work_us = |fetching: &Fetching, share: f64| {
            let (walking, delivering) = (walking.share(share), delivering.share(share));
            let fetched = fetching.work + delivering;
            match fetching.in_turns {
                true => walking.elapsed_us(workers) + fetched.elapsed_us(workers),
                false => (walking + fetched).elapsed_us(workers),
            }
        };
        let fetching = self.fetching(context, path, path.lookups, path.walked)?;
        path.pages += fetching.pages;
        let unstopped_us = work_us(&fetching, 1.0);
        let mut total = unstopped_us;
        let worst_us = match path.lookups < path.walked && path.lookups > 0.0 {
            true => {
                let all = self.fetching(context, path, path.walked, path.walked)?;
                work_us(&all, 1.0)
            }
            false => unstopped_us,
        };
        let limit = match context.expectation {
            Expectation::Estimates => wanted.limit.or(self.fetch).map(|limit| limit as f64),
            Expectation::NoEarlyStop | Expectation::Worst => None,
        };
        let mut sorting_us = 0.0;
        if path.ordered || wanted.order.is_empty() {
            // Stops when enough rows have come. The first lookups find fewer pages in memory than the later ones.
            if let Some(limit) = limit {
                let walked = self
                    .match_positions(path)?
                    .walked(limit, self.rows)
                    .max(fetching.least_share);
                let first = lookup_us(constants, scan.tree_pages)
                    + (1.0 - path.resident) * constants.random_read_us;
                let stopped =
                    self.fetching(context, path, path.lookups * walked, path.walked * walked)?;
                total = work_us(&stopped, walked).clamp(first.min(total), total);
            }
        } else {
            sorting_us = sort_us(constants, self.rows, limit.unwrap_or(self.rows));
        }
        path.risk = Risk {
            unstopped_us: unstopped_us + sorting_us,
            worst_us: worst_us + sorting_us,
        };
        path.cost_us = match context.expectation {
            Expectation::Worst => path.risk.worst_us,
            _ => total + sorting_us,
        };
        Ok(())
    }

    /// What it costs to get the rows of a path that fetches so many for so many entries, and to test them.
    fn fetching(
        &self,
        context: &PlannerContext,
        path: &AccessPath,
        lookups: f64,
        walked: f64,
    ) -> Result<Fetching> {
        let constants = &context.settings.costs;
        let tested = match path.fetch {
            Fetch::Covering => walked,
            _ => lookups,
        };
        let conditions_us = conditions_us(constants, tested, self.tests(&path.row_filters));
        if lookups == 0.0 {
            return Ok(Fetching {
                work: Work::of_workers(conditions_us),
                ..Fetching::default()
            });
        }
        let order = self.entry_order(path);
        let rows = self.clustered_lookups(lookups, order)?;
        Ok(match path.fetch {
            Fetch::MultiRange { sort, buffer_bytes } => {
                let read = self.multi_range_read(rows, sort, buffer_bytes);
                Fetching {
                    pages: read.pages(),
                    work: read.work(constants) + Work::of_workers(conditions_us),
                    in_turns: true,
                    least_share: (read.keys_per_turn / lookups).min(1.0),
                }
            }
            _ => Fetching {
                pages: rows.pages(),
                work: Work::of_workers(rows.cost_us(constants) + conditions_us),
                in_turns: false,
                least_share: 0.0,
            },
        })
    }

    /// Rows that a path fetches from the clustered tree.
    pub(crate) fn lookups(&self, path: &AccessPath) -> f64 {
        if matches!(path.fetch, Fetch::Covering) {
            return 0.0;
        }
        let mut given = path.key_filters();
        // A LIKE is tested again, but what its beginning leaves is in the ranges already.
        given.extend((0..self.filters.len()).filter(|filter| {
            let term = &self.filters[*filter].term;
            matches!(term, Term::Column { column, set, .. }
                if set.starts_with.is_some() && !path.ranges.says_all_of(*column))
        }));
        path.walked * self.shares.kept(&path.index_filters, &given)
    }

    /// What a path with jumps is estimated to walk over; `None` if it has none.
    pub(crate) fn jumping_walk(
        &self,
        path: &AccessPath,
        scan: RangeScan,
    ) -> Result<Option<JumpingWalk>> {
        let Some(jumps) = &path.jumps else {
            return Ok(None);
        };
        let declared = path.index.definition(self.table).parts.len();
        let mut keys = Vec::new();
        for parts in 0..=jumps.key_parts() {
            keys.push(match parts {
                0 => 1.0,
                parts if parts > declared => path.entries,
                parts => path.entries / self.rows_per_key(path.index, parts)?,
            });
        }
        let parts = &layout(self.table, path.index).parts;
        let share = |part: usize| {
            let is_said = |filter: &usize| match &self.filters[*filter].term {
                Term::Column { column, .. } => parts[part].column == Some(*column),
                _ => false,
            };
            let said: Vec<usize> = (0..self.filters.len()).filter(is_said).collect();
            self.shares.of(&said)
        };
        let kept = self.shares.kept(&jumps.consumed, &path.ranges.consumed);
        Ok(Some(JumpingWalk {
            scan,
            matches: path.entries * kept,
            jumps: jumps.estimate(path.entries, |parts| keys[parts].max(1.0), share),
        }))
    }

    /// Lookups of so many rows in the clustered tree, in this order.
    pub(crate) fn clustered_lookups(&self, lookups: f64, order: EntryOrder) -> Result<Lookups> {
        let clustered = &self.table.clustered;
        Ok(Lookups {
            lookups,
            rows: self.table_rows,
            leaves: clustered.statistics().leaf_pages as f64,
            pool_pages: clustered.pool_pages() as f64,
            resident: self.resident(IndexRef::Clustered)?,
            correlation: order.correlation,
            places: order.places,
            sorted_runs: order.sorted_runs,
        })
    }

    /// The same as a multi-range read with a buffer of so many bytes.
    pub(crate) fn multi_range_read(
        &self,
        lookups: Lookups,
        sort: SortKeys,
        buffer_bytes: usize,
    ) -> MultiRangeRead {
        MultiRangeRead {
            lookups,
            keys_per_turn: self.keys_per_turn(buffer_bytes),
            always_sorts: sort == SortKeys::Always,
        }
    }

    /// Primary keys that fit in so many bytes.
    pub(crate) fn keys_per_turn(&self, buffer_bytes: usize) -> f64 {
        let layout = &self.table.clustered_layout;
        let key_bytes = layout.mysql_key_len(layout.parts.len()).max(1);
        buffer_bytes as f64 / f64::from(key_bytes)
    }

    /// In which order a path's entries lead to rows.
    ///
    /// Behind the last declared part of an index comes the primary key, so the entries of a range that binds all parts
    /// to single values lead to rows in clustered order. Otherwise the first part that is not bound to one value
    /// decides, as far as its column goes with the clustered order.
    fn entry_order(&self, path: &AccessPath) -> EntryOrder {
        let declared = path.index.definition(self.table).parts.len();
        let places = path.ranges.ranges.len() as f64;
        if path.ranges.equal_parts >= declared {
            let correlation = self.part_correlation(path.index, 0);
            return EntryOrder {
                correlation,
                places,
                sorted_runs: Some(places),
            };
        }
        EntryOrder {
            correlation: self.part_correlation(path.index, path.ranges.constant_parts),
            places,
            sorted_runs: None,
        }
    }

    /// Correlation of the column of an index's part with the clustered order, -1 to 1.
    pub(crate) fn part_correlation(&self, index: IndexRef, part: usize) -> f64 {
        let part = layout(self.table, index).parts.get(part);
        let column = part.and_then(|part| part.column);
        column.map_or(0.0, |column| self.correlation(column))
    }
}
