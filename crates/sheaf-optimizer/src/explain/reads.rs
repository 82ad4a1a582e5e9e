//! How many tables of a plan are read without a key: MySQL's `Select_scan` and its like.
//!
//! ```text
//!                      the first table of a SELECT      those behind it
//!   as a whole         Select_scan                      Select_full_join
//!   by ranges          Select_range                     Select_full_range_join
//! ```
//!
//! A table of one row, by its key, is none of them: MySQL reads it before all others.

use std::collections::BTreeSet;

use super::{ExplainRow, Reach};

/// See the module's comment.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reads {
    pub scans: u64,
    pub ranges: u64,
    pub full_joins: u64,
    pub full_range_joins: u64,
}

impl Reads {
    /// Those of a plan, by its rows of EXPLAIN.
    pub fn of(rows: &[ExplainRow]) -> Reads {
        let mut reads = Reads::default();
        let mut begun = BTreeSet::new();
        for row in rows {
            let (Some(block), Some(type_)) = (row.id, row.type_.as_deref()) else {
                continue;
            };
            let reach = Reach::of(type_);
            if reach == Reach::OneRow {
                continue;
            }
            let count = match (begun.insert(block), reach) {
                (true, Reach::All) => &mut reads.scans,
                (true, Reach::Ranges) => &mut reads.ranges,
                (false, Reach::All) => &mut reads.full_joins,
                (false, Reach::Ranges) => &mut reads.full_range_joins,
                (_, Reach::OneRow | Reach::Keys) => continue,
            };
            *count += 1;
        }
        reads
    }

    /// Those that have come since.
    pub fn since(self, before: Reads) -> Reads {
        Reads {
            scans: self.scans.saturating_sub(before.scans),
            ranges: self.ranges.saturating_sub(before.ranges),
            full_joins: self.full_joins.saturating_sub(before.full_joins),
            full_range_joins: self
                .full_range_joins
                .saturating_sub(before.full_range_joins),
        }
    }

    pub fn add(&mut self, more: Reads) {
        self.scans += more.scans;
        self.ranges += more.ranges;
        self.full_joins += more.full_joins;
        self.full_range_joins += more.full_range_joins;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_table_of_each_select_is_told_from_those_behind_it() {
        let row = |block, type_| ExplainRow::table(block, "SIMPLE", "t", type_);
        let rows = [
            row(1, "const"),
            row(1, "range"),
            row(1, "ALL"),
            row(1, "ref"),
            row(2, "eq_ref"),
            row(2, "range"),
            row(3, "index"),
        ];
        let expected = Reads {
            scans: 1,
            ranges: 1,
            full_joins: 1,
            full_range_joins: 1,
        };
        assert_eq!(Reads::of(&rows), expected);
    }
}
