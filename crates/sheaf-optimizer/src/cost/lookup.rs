//! Fetching rows from the clustered tree one by one, in the order of a secondary index.

use super::CostConstants;
use super::pages::{
    distinct_pages, pages_at_places, pages_in_no_order, uncached, with_correlation,
};

/// Rows to be fetched, and the tree that they are in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lookups {
    pub lookups: f64,
    /// Rows and leaves of the clustered tree.
    pub rows: f64,
    pub leaves: f64,
    /// Pages that the pool can hold.
    pub pool_pages: f64,
    /// Share of the leaves that is in memory.
    pub resident: f64,
    /// Correlation of the order of the lookups with the tree's, -1 to 1.
    pub correlation: f64,
    /// Ranges or keys of the index that the lookups come from.
    pub places: f64,
    /// The entries of each of so many ranges come in the order of the primary key, because all parts of the index
    /// before it are bound to one value.
    pub sorted_runs: Option<f64>,
}

/// What a key in order pays of the [misses](uncached) of one in no order: its neighbours have brought the inner nodes
/// and the translations of addresses.
const MISSES_IN_ORDER: f64 = 0.5;

/// A lookup in a tree of so many leaves, keys in no order:
///
/// ```text
///   descent + uncached x miss
/// ```
pub(crate) fn lookup_us(constants: &CostConstants, leaves: f64) -> f64 {
    constants.descent_us + uncached(leaves) * constants.miss_us
}

/// The same for the first key of a leaf, keys in order:
///
/// ```text
///   descent + uncached x miss / 2
/// ```
pub(crate) fn next_leaf_us(constants: &CostConstants, leaves: f64) -> f64 {
    constants.descent_us + MISSES_IN_ORDER * uncached(leaves) * constants.miss_us
}

/// What copying a page costs that a descent has just led to, as a share of copying the next one of a scan: part of it
/// is in the processor's cache.
const COPY_SHARE: f64 = 0.5;

/// Copying a page that a descent has led to, to read entries from it.
pub(crate) fn copy_found_us(constants: &CostConstants) -> f64 {
    COPY_SHARE * constants.page_us
}

/// Lookups of sorted keys that visit so many of a tree's leaves:
///
/// ```text
///   visits x next leaf + (lookups - visits) x sorted descent
/// ```
///
/// They descend to each of the leaves once; the others of a leaf are found where the first one was.
pub(crate) fn sorted_descents_us(
    constants: &CostConstants,
    lookups: f64,
    visits: f64,
    leaves: f64,
) -> f64 {
    let visits = visits.min(lookups);
    visits * next_leaf_us(constants, leaves) + (lookups - visits) * constants.sorted_descent_us
}

impl Lookups {
    /// Pages read if none is in memory.
    pub(crate) fn pages(&self) -> f64 {
        let no_order = pages_in_no_order(self.lookups, self.leaves, self.pool_pages);
        let scattered = match self.sorted_runs {
            Some(runs) if runs >= 1.0 => {
                no_order.min(runs * distinct_pages(self.lookups / runs, self.leaves))
            }
            _ => no_order,
        };
        with_correlation(scattered, self.pages_together(), self.correlation)
    }

    /// How often a leaf is visited that is not the one before.
    fn visits(&self) -> f64 {
        let scattered = match self.sorted_runs {
            Some(runs) if runs >= 1.0 => runs * distinct_pages(self.lookups / runs, self.leaves),
            _ => self.lookups,
        };
        with_correlation(scattered, self.pages_together(), self.correlation).min(self.lookups)
    }

    /// Pages read if the index had the order of the tree.
    pub(crate) fn pages_together(&self) -> f64 {
        pages_at_places(self.places, self.lookups, self.rows, self.leaves)
    }

    /// ```text
    ///   visits x lookup + (lookups - visits) x sorted descent, or in order: see [`sorted_descents_us`]
    ///     + pages x missing x random read
    /// ```
    pub(crate) fn cost_us(&self, constants: &CostConstants) -> f64 {
        self.processor_us(constants)
            + self.pages() * (1.0 - self.resident) * constants.random_read_us
    }

    /// The first line of it.
    pub(crate) fn processor_us(&self, constants: &CostConstants) -> f64 {
        let visits = self.visits();
        match self.sorted_runs {
            Some(_) => sorted_descents_us(constants, self.lookups, visits, self.leaves),
            None => {
                visits * lookup_us(constants, self.leaves)
                    + (self.lookups - visits) * constants.sorted_descent_us
            }
        }
    }
}
