//! How many groups a grouping makes.
//!
//! If each of D values occurs in N / D of a table's N rows, n of these rows have `D (1 - (1 - n/N)^(N/D))` different ones: all D
//! if n is N, and n if D is, the values being those of a key. D is the product of what the statistics say of each
//! column, wherever below it comes from, and N what the largest of these tables has. That takes columns to be independent;
//! what depends on another column makes D too large, and more than N are not taken for possible.
//!
//! An expression, and a column that was never analyzed, is guessed to have the same value in [`ROWS_PER_VALUE`] rows.

use std::sync::Arc;

use datafusion_common::Column;
use datafusion_expr::{Aggregate, Expr, LogicalPlan};
use sheaf_exec::SheafTableSource;

use crate::aggregate::grouping_sets;
use crate::join_graph::plain_column;

/// Guess of how many rows have the same value.
const ROWS_PER_VALUE: f64 = 10.0;

/// Estimated groups of `rows` input rows.
pub(crate) fn group_rows(aggregate: &Aggregate, rows: f64) -> f64 {
    match grouping_sets(&aggregate.group_expr) {
        Some(sets) => {
            let groups = sets.iter().map(|set| groups_of(set, aggregate, rows));
            groups.sum::<f64>().max(1.0)
        }
        None => groups_of(&aggregate.group_expr, aggregate, rows),
    }
}

fn groups_of(exprs: &[Expr], aggregate: &Aggregate, rows: f64) -> f64 {
    let mut values = 1.0;
    let mut table_rows = rows.max(1.0);
    for expr in exprs {
        match plain_column(expr).and_then(|column| stored(&aggregate.input, column)) {
            Some(stored) => {
                values *= stored.values.max(1.0);
                table_rows = table_rows.max(stored.rows);
            }
            None => values *= (rows / ROWS_PER_VALUE).max(1.0),
        }
        values = values.min(table_rows);
    }
    let left_out = 1.0 - (rows / table_rows).min(1.0);
    let groups = values * (1.0 - left_out.powf(table_rows / values));
    groups.clamp(1.0, rows.max(1.0))
}

/// What is known of a stored column.
struct Stored {
    /// Distinct values, NULL counted as one.
    values: f64,
    /// Rows of its table.
    rows: f64,
}

/// The stored column that a column of `plan` is; `None` if it is none or if its table was never analyzed.
fn stored(plan: &Arc<LogicalPlan>, column: &Column) -> Option<Stored> {
    let position = plan.schema().index_of_column(column).ok()?;
    match plan.as_ref() {
        LogicalPlan::TableScan(scan) => {
            let source = scan.source.downcast_ref::<SheafTableSource>()?;
            let number = match &scan.projection {
                Some(projection) => *projection.get(position)?,
                None => position,
            };
            let estimator = source.table.column_estimator(number)?;
            let null = f64::from(u8::from(estimator.null() > 0.0));
            Some(Stored {
                values: estimator.statistics().distinct.value as f64 + null,
                rows: source.table.clustered.statistics().entries as f64,
            })
        }
        LogicalPlan::SubqueryAlias(alias) => {
            let below = Column::from(alias.input.schema().qualified_field(position));
            stored(&alias.input, &below)
        }
        LogicalPlan::Projection(projection) => {
            let below = plain_column(projection.expr.get(position)?)?;
            stored(&projection.input, below)
        }
        LogicalPlan::Aggregate(aggregate) => {
            let below = plain_column(aggregate.group_expr.get(position)?)?;
            stored(&aggregate.input, below)
        }
        LogicalPlan::Filter(filter) => stored(&filter.input, column),
        LogicalPlan::Sort(sort) => stored(&sort.input, column),
        LogicalPlan::Limit(limit) => stored(&limit.input, column),
        LogicalPlan::Join(join) => [&join.left, &join.right]
            .into_iter()
            .find(|side| side.schema().index_of_column(column).is_ok())
            .and_then(|side| stored(side, column)),
        _ => None,
    }
}
