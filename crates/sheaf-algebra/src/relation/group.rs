//! Groups: one row for all rows whose keys are equal, NULL being equal to NULL.
//!
//! Texts are equal by their collation, so of a key the group shows the value of any of its rows. Without keys there is
//! one group, even of no rows. Without aggregates it is DISTINCT.
//!
//! WITH ROLLUP there are groups by all keys, by all but the last, and so on, down to the group of all rows. Keys that a
//! group does not have are NULL, and a column tells which these are: the bit of the last key is the lowest. The group
//! of all rows is there, also of no rows.

use super::{Operator, Relation};
use crate::column::ColumnId;
use crate::scalar::Aggregate;

#[derive(Clone, Debug)]
pub struct Group {
    pub input: Box<Relation>,
    /// Columns of the input.
    pub keys: Vec<ColumnId>,
    /// Columns of the input of which the group gives the value of any of its rows: the keys determine them, or
    /// ONLY_FULL_GROUP_BY is off.
    pub carried: Vec<ColumnId>,
    pub aggregates: Vec<(ColumnId, Aggregate)>,
    /// The column that tells which keys are rolled up.
    pub rollup: Option<ColumnId>,
}

impl Group {
    /// It tells what rows differ in, and nothing else.
    pub fn is_distinct(&self) -> bool {
        !self.keys.is_empty()
            && self.rollup.is_none()
            && self.aggregates.is_empty()
            && self.carried.is_empty()
    }
}

impl Relation {
    pub fn group(
        self,
        keys: Vec<ColumnId>,
        carried: Vec<ColumnId>,
        aggregates: Vec<(ColumnId, Aggregate)>,
    ) -> Relation {
        Operator::Group(Group {
            input: Box::new(self),
            keys,
            carried,
            aggregates,
            rollup: None,
        })
        .into()
    }

    /// As [`Self::group`], WITH ROLLUP.
    pub fn rollup(
        self,
        keys: Vec<ColumnId>,
        carried: Vec<ColumnId>,
        aggregates: Vec<(ColumnId, Aggregate)>,
        level: ColumnId,
    ) -> Relation {
        Operator::Group(Group {
            input: Box::new(self),
            keys,
            carried,
            aggregates,
            rollup: Some(level),
        })
        .into()
    }

    /// The rows that differ in what `columns` show.
    pub fn distinct(self, columns: Vec<ColumnId>) -> Relation {
        self.group(columns, Vec::new(), Vec::new())
    }
}
