//! Columns that a derived table computes of nothing.
//!
//! MySQL puts what a plain derived table computes in the place of its columns. So a constant of it may stand beside
//! aggregates, even where an outer join may miss the derived table, and the column is NULL in some rows:
//!
//! ```text
//! SELECT MAX(t.k), d.c FROM t LEFT JOIN (SELECT k, 'a' AS c FROM u) AS d ON d.k = t.k
//! ```

use crate::column::ColumnId;
use crate::relation::{JoinKind, Operator, Relation};
use crate::scalar::Scalar;

/// A column that is computed of nothing.
pub struct WrittenConstant<'a> {
    pub column: ColumnId,
    pub value: &'a Scalar,
    /// The column is NULL where an outer join finds no row.
    pub may_be_missing: bool,
}

/// The constants of the plain derived tables that a relation joins.
pub fn written(relation: &Relation) -> Vec<WrittenConstant<'_>> {
    let mut found = Vec::new();
    let mut open = vec![(relation, false)];
    while let Some((relation, may_be_missing)) = open.pop() {
        match relation.operator() {
            Operator::Project(project) => {
                for item in &project.items {
                    let is_constant = item.value.columns().is_empty() && !item.value.is_volatile();
                    if is_constant {
                        found.push(WrittenConstant {
                            column: item.column,
                            value: &item.value,
                            may_be_missing,
                        });
                    }
                }
                open.push((&project.input, may_be_missing));
            }
            Operator::Filter(filter) => open.push((&filter.input, may_be_missing)),
            Operator::Join(join) => {
                open.push((&join.left, may_be_missing));
                match join.kind {
                    JoinKind::Inner => open.push((&join.right, may_be_missing)),
                    JoinKind::LeftOuter => open.push((&join.right, true)),
                    JoinKind::Semi | JoinKind::Anti | JoinKind::Mark(_) => {}
                }
            }
            Operator::Scan(_)
            | Operator::Values(_)
            | Operator::Group(_)
            | Operator::Window(_)
            | Operator::Sort(_)
            | Operator::Limit(_)
            | Operator::SetOperation(_)
            | Operator::Recursive(_)
            | Operator::Expand(_)
            | Operator::DependentJoin(_) => {}
        }
    }
    found
}
