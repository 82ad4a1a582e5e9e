//! A recursive common table expression: the rows of the first part, and those of the second part over these, over the
//! rows that came of them, and so on, until none come.
//!
//! The second part reads the rows of the round before it by a [Scan](super::Scan), whose source is a
//! [`WorkTableSource`](sheaf_exec::WorkTableSource) of this name.

use super::{Operator, Relation};
use crate::column::ColumnId;

#[derive(Clone, Debug)]
pub struct Recursive {
    pub name: String,
    pub first: Box<Relation>,
    pub round: Box<Relation>,
    /// The columns of the whole, with the names that the second part reads. Those of both parts correspond to them in
    /// their order.
    pub columns: Vec<ColumnId>,
    /// Rows that have come already do not come again (UNION without ALL).
    pub is_distinct: bool,
}

impl Recursive {
    pub fn relation(self) -> Relation {
        Operator::Recursive(self).into()
    }
}
