//! Joins whose right side is computed for each row of the left: subqueries, and lateral derived tables.
//!
//! The right side's free columns are columns of the left side, or of a query further out. When none of them is of the
//! left side, it is an ordinary join. [`crate::rules::unnest`] gets there.
//!
//! ```text
//!   WHERE EXISTS (q)            Filter m,            mark join m of q
//!   WHERE x NOT IN (q)          Filter NOT m,        mark join m of q by x = y
//!   WHERE x > ALL (q)           Filter NOT m,        mark join m of q by x <= y
//!   SELECT (q)                  Project y,           single join y of q
//!   FROM t, LATERAL (q)         inner join
//! ```

use super::{Operator, Relation};
use crate::column::ColumnId;
use crate::scalar::Scalar;

#[derive(Clone, Debug)]
pub struct DependentJoin {
    pub kind: DependentKind,
    pub left: Box<Relation>,
    pub right: Box<Relation>,
    pub condition: Option<Scalar>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DependentKind {
    Inner,
    LeftOuter,
    Semi,
    Anti,
    /// All rows of the left side, and a column: true where the condition is true for a row of the right side, otherwise
    /// unknown where it is unknown for one, otherwise false.
    Mark(ColumnId),
    /// All rows of the left side, and a column: true where the condition is true for a row of the right side, otherwise
    /// false. It takes the place of a mark that is not denied.
    Found(ColumnId),
    /// All rows of the left side, and this column of the only row of the right side, or NULL if that has no row. Error
    /// 1242 if it has several.
    Single(ColumnId),
}

impl Relation {
    pub fn dependent_join(
        self,
        kind: DependentKind,
        right: Relation,
        condition: Option<Scalar>,
    ) -> Relation {
        Operator::DependentJoin(DependentJoin {
            kind,
            left: Box::new(self),
            right: Box::new(right),
            condition,
        })
        .into()
    }
}
