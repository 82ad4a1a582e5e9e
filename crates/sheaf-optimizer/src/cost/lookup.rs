//! Fetching rows from the clustered tree one by one, in the order of a secondary index.

use super::CostConstants;
use super::pages::{distinct_pages, pages_at_places, pages_in_no_order, with_correlation};

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
    /// The entries of each of so many ranges come in the order of the primary key, because all parts of the index before
    /// it are bound to one value.
    pub sorted_runs: Option<f64>,
}

/// ```text
///   pages x descent + (lookups - pages) x sorted descent
/// ```
///
/// Sorted keys descend to each of the leaves once; the others of a leaf are found in what was copied of it.
pub(crate) fn sorted_descents_us(constants: &CostConstants, lookups: f64, pages: f64) -> f64 {
    let to_leaves = pages.min(lookups);
    to_leaves * constants.descent_us + (lookups - to_leaves) * constants.sorted_descent_us
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

    /// Pages read if the index had the order of the tree.
    pub(crate) fn pages_together(&self) -> f64 {
        pages_at_places(self.places, self.lookups, self.rows, self.leaves)
    }

    /// ```text
    ///   lookups x descent, or in order: see [`sorted_descents_us`]
    ///     + pages x missing x random read
    /// ```
    pub(crate) fn cost_us(&self, constants: &CostConstants) -> f64 {
        let descents_us = match self.sorted_runs {
            Some(_) => sorted_descents_us(constants, self.lookups, self.pages()),
            None => self.lookups * constants.descent_us,
        };
        descents_us + self.pages() * (1.0 - self.resident) * constants.random_read_us
    }
}
