//! How wide the rows of a plan are in a batch.
//!
//! A batch has an array for each column. Numbers lie in it, and of texts a view of 16 bytes. So a row of 300 columns of
//! texts takes 4,800 bytes although all of its texts are empty. Texts themselves are in buffers that batches share,
//! until an operator copies rows: to sort them, to group by them, to write them to a file. So long ones count as well,
//! by what the rows of their table have on average.

use std::any::Any;

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::expr::GroupingSet;
use datafusion_expr::{Expr, LogicalPlan, TableScan};
use sheaf_exec::operator::bounded_projection::MOST_COPIES;
use sheaf_exec::{SheafTableSource, for_each_node};

use crate::settings::PlannerSettings;

/// A view of a text or of bytes.
const VIEW_BYTES: usize = 16;
/// Where the bytes of a value end that has no view.
const OFFSET_BYTES: usize = 4;
/// Rows that are shorter are not long: batches of ordinary rows have as many as without this. Where there is memory
/// enough, batches of few rows would cost all other tables of the plan more than they save.
const LONG_ROW_BYTES: u64 = 1 << 10;
const LONG_ROW_BYTES_OF_LARGE_BATCHES: u64 = 4 << 10;
/// However wide rows are, a batch has so many, unless it is values that make them wide: each batch costs some time for
/// each column.
const LEAST_BATCH_ROWS: usize = 8;
/// Nor are those of a table with less than this, whose few rows are no large batch.
const LARGE_TABLE_BYTES: u64 = 1 << 20;
/// Texts that are made of the strings of a batch may take this part of the query memory.
const SHARE_OF_COPIES: usize = 4;

/// How many rows a batch of a plan has, if it is to take no more than so many bytes. The widest node of the plan
/// counts, those of its subqueries included, and the long values of two tables.
pub fn rows_of_batch(
    plan: &LogicalPlan,
    batch_bytes: usize,
    has_little_memory: bool,
) -> Result<usize> {
    let long_row_bytes = match has_little_memory {
        true => LONG_ROW_BYTES,
        false => LONG_ROW_BYTES_OF_LARGE_BATCHES,
    };
    let Widths { widest, long } = widths(plan, long_row_bytes)?;
    let rows = batch_bytes / (widest + long).max(1);
    Ok(match long > 0 {
        // A scan ends a batch behind the row that fills it, and no operator should cut that off.
        true => rows + 1,
        false => rows.max(LEAST_BATCH_ROWS),
    })
}

/// What a row of a plan takes on average, long or not.
pub(crate) fn row_bytes(plan: &LogicalPlan) -> Result<usize> {
    let Widths { widest, long } = widths(plan, 0)?;
    Ok(widest + long)
}

/// How many copies of the strings of a batch all workers have room for, in texts that are made of them. With little
/// memory that is not estimated.
pub(crate) fn copies_with_room(plan: &LogicalPlan, settings: &PlannerSettings) -> usize {
    if settings.has_little_memory() {
        return MOST_COPIES;
    }
    let Ok(row_bytes) = row_bytes(plan) else {
        return MOST_COPIES;
    };
    let batch_bytes = row_bytes.saturating_mul(settings.batch_rows);
    let batch_bytes = batch_bytes.min(settings.batch_string_bytes);
    let of_workers = batch_bytes.saturating_mul(settings.target_partitions);
    let copies = settings.query_memory_bytes / SHARE_OF_COPIES / of_workers.max(1);
    copies.max(MOST_COPIES)
}

/// What rows of a plan take.
struct Widths {
    /// Without their strings, at its widest node.
    widest: usize,
    /// Their strings on average, of the two tables that have the longest ones. 0 if none has long rows.
    long: usize,
}

fn widths(plan: &LogicalPlan, long_row_bytes: u64) -> Result<Widths> {
    let (mut widest, mut longest, mut second) = (0, 0, 0);
    for_each_node(plan, &mut |node| {
        let fields = node.schema().fields();
        let bytes = fields.iter().map(|field| value_bytes(field.data_type()));
        widest = widest.max(bytes.sum::<usize>() * rows_of_row(node));
        if let LogicalPlan::TableScan(scan) = node {
            let long = long_value_bytes(scan, long_row_bytes);
            second = second.max(long.min(longest));
            longest = longest.max(long);
        }
        Ok(())
    })?;
    let long = longest + second;
    Ok(Widths { widest, long })
}

/// What the strings of a row take on average, of the table below a plan whose rows are the longest; 0 if none are long.
pub fn longest_row_bytes(plan: &LogicalPlan) -> Result<usize> {
    let mut longest = 0;
    for_each_node(plan, &mut |node| {
        if let LogicalPlan::TableScan(scan) = node {
            longest = longest.max(long_value_bytes(scan, LONG_ROW_BYTES_OF_LARGE_BATCHES));
        }
        Ok(())
    })?;
    Ok(longest)
}

/// How many rows an operator makes of each that it gets before it groups them: one for each grouping set.
fn rows_of_row(node: &LogicalPlan) -> usize {
    let LogicalPlan::Aggregate(aggregate) = node else {
        return 1;
    };
    match aggregate.group_expr.first() {
        Some(Expr::GroupingSet(GroupingSet::Rollup(keys))) => keys.len() + 1,
        Some(Expr::GroupingSet(GroupingSet::GroupingSets(sets))) => sets.len().max(1),
        _ => 1,
    }
}

/// What the strings of a row take on average that a scan reads, if rows of its table are long.
fn long_value_bytes(scan: &TableScan, long_row_bytes: u64) -> usize {
    let source: &dyn Any = scan.source.as_ref();
    let Some(source) = source.downcast_ref::<SheafTableSource>() else {
        return 0;
    };
    let table = &source.table;
    let bytes = table.data_bytes_estimate();
    let row_bytes = bytes / table.row_count_estimate().max(1);
    if bytes < LARGE_TABLE_BYTES || row_bytes < long_row_bytes {
        return 0;
    }
    let columns = &table.definition.columns;
    let is_string = |position: usize| {
        let column = columns.get(position);
        column.is_some_and(|column| column.ty.is_varying())
    };
    let all = (0..columns.len()).filter(|column| is_string(*column));
    let all = all.count().max(1);
    let read = match &scan.projection {
        Some(projection) => projection
            .iter()
            .filter(|column| is_string(**column))
            .count(),
        None => all,
    };
    row_bytes as usize * read / all
}

fn value_bytes(data_type: &DataType) -> usize {
    match data_type {
        DataType::Utf8View | DataType::BinaryView => VIEW_BYTES,
        data_type => data_type.primitive_width().unwrap_or(OFFSET_BYTES),
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::{Field, Schema};
    use datafusion_expr::logical_plan::builder::table_scan;

    use super::*;

    #[test]
    fn the_widest_node_counts() {
        let field = |name: &str, data_type| Field::new(name, data_type, true);
        let schema = Schema::new(vec![
            field("a", DataType::Int32),
            field("b", DataType::Utf8View),
            field("c", DataType::Binary),
            field("d", DataType::Decimal128(10, 2)),
        ]);
        let table = |name| table_scan(Some(name), &schema, None)?.build();
        let all = table("t").expect("a scan");
        assert_eq!(rows_of_batch(&all, 40_000, true).expect("a plan"), 1_000);
        let pairs = datafusion_expr::LogicalPlanBuilder::from(all)
            .cross_join(table("u").expect("a scan"))
            .and_then(|plan| plan.project(vec![datafusion_expr::lit(1i64)]))
            .and_then(|plan| plan.build())
            .expect("a join");
        assert_eq!(rows_of_batch(&pairs, 8_000, true).expect("a plan"), 100);
        assert_eq!(rows_of_batch(&pairs, 80, true).expect("a plan"), 8);
    }
}
