//! A subquery that gives something else each time that it is computed. It is computed for each row of the left side,
//! even if it takes nothing from it:
//!
//! ```text
//!   SELECT id, (SELECT uuid()) FROM o               project id, uuid() (o)
//!   SELECT id, (SELECT max(rand()) FROM t) FROM o   single v (o, group: v := max(rand()) of t), run for each row
//!   WHERE EXISTS (SELECT 1 FROM t WHERE rand() < x) filter v = 2 (single v (o, group: v := max(..) of t ..))
//! ```
//!
//! Derived tables inside are computed once: the binder keeps their rows apart.

use datafusion_common::Result;

use super::Unnesting;
use crate::relation::{DependentJoin, DependentKind, Item, Operator, Relation};

impl Unnesting<'_> {
    /// `Err`: it is the same each time, or it is no subquery of an expression.
    pub(super) fn varying(
        &mut self,
        mut join: DependentJoin,
    ) -> Result<std::result::Result<Relation, Box<DependentJoin>>> {
        let is_of_rows = matches!(join.kind, DependentKind::Inner | DependentKind::LeftOuter);
        if is_of_rows || !join.right.varies() {
            return Ok(Err(Box::new(join)));
        }
        let relation = match join.kind {
            DependentKind::Single(value) if is_computed_row(&join.right) => {
                let outer = join.left.column_set();
                self.single(join, value, &outer)?
            }
            DependentKind::Single(_) => Operator::DependentJoin(join).into(),
            _ => {
                if join.condition.is_none() {
                    // The first row decides.
                    join.right = Box::new(join.right.limit(0, Some(1)));
                }
                self.counted(join)?
            }
        };
        Ok(Ok(relation))
    }
}

/// Whether it is one row that is computed without tables, if there is a row, and nothing of it is computed twice when
/// the one expression takes the place of the other.
fn is_computed_row(relation: &Relation) -> bool {
    let is_column = |item: &Item| item.value.as_column().is_some();
    match relation.operator() {
        Operator::Project(project) if project.items.iter().all(is_column) => {
            is_computed_row(&project.input)
        }
        Operator::Project(project) => is_row(&project.input),
        _ => false,
    }
}

fn is_row(relation: &Relation) -> bool {
    match relation.operator() {
        Operator::Filter(filter) => is_row(&filter.input),
        Operator::Values(values) => values.columns.is_empty() && values.rows.len() == 1,
        _ => false,
    }
}
