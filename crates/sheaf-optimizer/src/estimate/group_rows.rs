//! How many groups a grouping makes.
//!
//! If each of D values occurs in N / D of a table's N rows, n of these rows have `D (1 - (1 - n/N)^(N/D))` different
//! ones. That is all D if n is N, and n if D is N, as for a key.
//!
//! N is the rows of the largest base table that contributes a grouping column, wherever below that table is. D is the
//! product of the distinct counts of the statistics:
//!
//! - for columns that an index begins with, in any order, the number of prefixes (`zip` decides `city`, and the index
//!   of both knows it);
//! - for every other column, the number of its values.
//!
//! The columns of one table together have at most as many values as the table has rows. Beyond that columns are taken
//! to be independent.
//!
//! An expression, and a column that was never analyzed, is guessed to have the same value in [`ROWS_PER_VALUE`] rows.

use std::sync::Arc;

use datafusion_common::Column;
use datafusion_expr::{Aggregate, Expr, LogicalPlan};
use sheaf_exec::SheafTableSource;

use crate::logical::grouping_sets::grouping_sets;
use crate::logical::join_graph::plain_column;

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
    let mut tables: Vec<Grouped> = Vec::new();
    for expr in exprs {
        match plain_column(expr).and_then(|column| stored(&aggregate.input, column)) {
            Some(stored) => match tables
                .iter_mut()
                .find(|table| table.source.reference == stored.source.reference)
            {
                Some(table) => table.columns.push(stored.column),
                None => tables.push(Grouped {
                    source: stored.source,
                    columns: vec![stored.column],
                }),
            },
            None => values *= (rows / ROWS_PER_VALUE).max(1.0),
        }
    }
    let mut table_rows = rows.max(1.0);
    for table in tables {
        table_rows = table_rows.max(table.rows());
        values *= table.values();
    }
    let values = values.min(table_rows);
    let left_out = 1.0 - (rows / table_rows).min(1.0);
    let groups = values * (1.0 - left_out.powf(table_rows / values));
    groups.clamp(1.0, rows.max(1.0))
}

/// Columns of one occurrence of a table in the query, by which rows are grouped.
struct Grouped<'a> {
    source: &'a SheafTableSource,
    columns: Vec<usize>,
}

impl Grouped<'_> {
    fn rows(&self) -> f64 {
        self.source.table.clustered.statistics().entries as f64
    }

    /// Distinct combinations of the columns' values in the table, NULL counted as a value.
    fn values(mut self) -> f64 {
        let mut values = 1.0;
        while let Some((parts, prefixes)) = self.longest_prefix() {
            values *= prefixes.max(1.0);
            self.columns.retain(|column| !parts.contains(column));
        }
        for column in &self.columns {
            // It is analyzed: see `stored`.
            let Some(estimator) = self.source.table.column_estimator(*column) else {
                continue;
            };
            let null = u64::from(estimator.null() > 0.0);
            values *= (estimator.statistics().distinct.value + null).max(1) as f64;
        }
        values.min(self.rows().max(1.0))
    }

    /// Of the columns those that the most parts of an index begin with, two at least, and how many prefixes they make.
    fn longest_prefix(&self) -> Option<(Vec<usize>, f64)> {
        let table = &self.source.table;
        let definition = &table.definition;
        let primary = std::iter::once((None, &definition.primary));
        let secondary = definition.secondary.iter().enumerate();
        let secondary = secondary.map(|(position, index)| (Some(position), index));
        let mut longest = None;
        let mut most = 1;
        let indexes = primary.chain(secondary);
        for (position, index) in indexes.filter(|(_, index)| self.source.uses(index)) {
            let parts = index.parts.iter().take_while(|part| {
                part.prefix_length.is_none() && self.columns.contains(&part.column)
            });
            let parts: Vec<_> = parts.map(|part| part.column).collect();
            if parts.len() > most
                && let Some(prefixes) = table.distinct_prefixes(position)
                && let Some(prefixes) = prefixes.get(parts.len() - 1)
            {
                most = parts.len();
                longest = Some((parts, *prefixes as f64));
            }
        }
        longest
    }
}

/// A column of a table that was analyzed.
struct Stored<'a> {
    source: &'a SheafTableSource,
    column: usize,
}

/// The stored column that a column of `plan` is; `None` if it is none or if its table was never analyzed.
fn stored<'a>(plan: &'a Arc<LogicalPlan>, column: &Column) -> Option<Stored<'a>> {
    let position = plan.schema().index_of_column(column).ok()?;
    match plan.as_ref() {
        LogicalPlan::TableScan(scan) => {
            let source = scan.source.downcast_ref::<SheafTableSource>()?;
            let number = match &scan.projection {
                Some(projection) => *projection.get(position)?,
                None => position,
            };
            source.table.column_estimator(number)?;
            Some(Stored {
                source,
                column: number,
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
