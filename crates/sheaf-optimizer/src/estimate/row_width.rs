//! How wide the rows of a plan are in a batch.
//!
//! A batch has an array for each column. Numbers lie in it, and of texts a view of 16 bytes. So a row of 300 columns of
//! texts takes 4,800 bytes although all of its texts are empty. Texts themselves are in buffers that batches share,
//! until an operator copies rows: to sort them, to group by them, to write them to a file. So long ones count as well,
//! by what the rows of their table have on average.

use std::any::Any;

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::{LogicalPlan, TableScan};
use sheaf_exec::{SheafTableSource, for_each_node};
use sheaf_types::ColumnType;

/// A view of a text or of bytes.
const VIEW_BYTES: usize = 16;
/// Where the bytes of a value end that has no view.
const OFFSET_BYTES: usize = 4;
/// Rows that are shorter are not long: batches of ordinary rows have as many as without this.
const LONG_ROW_BYTES: u64 = 1 << 10;
/// Nor are those of a table with less than this, whose few rows are no large batch.
const LARGE_TABLE_BYTES: u64 = 1 << 20;

/// Bytes of a row of the widest node of a plan, those of its subqueries included. Where there is little memory, with
/// the long values of two tables: elsewhere batches of few rows would cost all other tables of the plan more.
pub fn widest_row_bytes(plan: &LogicalPlan, has_little_memory: bool) -> Result<usize> {
    let (mut widest, mut longest, mut second) = (0, 0, 0);
    for_each_node(plan, &mut |node| {
        let fields = node.schema().fields();
        let bytes = fields.iter().map(|field| value_bytes(field.data_type()));
        widest = widest.max(bytes.sum());
        if has_little_memory && let LogicalPlan::TableScan(scan) = node {
            let long = long_value_bytes(scan);
            second = second.max(long.min(longest));
            longest = longest.max(long);
        }
        Ok(())
    })?;
    Ok(widest + longest + second)
}

/// What the strings of a row take on average that a scan reads, if rows of its table are long.
fn long_value_bytes(scan: &TableScan) -> usize {
    let source: &dyn Any = scan.source.as_ref();
    let Some(source) = source.downcast_ref::<SheafTableSource>() else {
        return 0;
    };
    let table = &source.table;
    let bytes = table.data_bytes_estimate();
    let row_bytes = bytes / table.row_count_estimate().max(1);
    if bytes < LARGE_TABLE_BYTES || row_bytes < LONG_ROW_BYTES {
        return 0;
    }
    let columns = &table.definition.columns;
    let is_string = |position: usize| {
        let column = columns.get(position);
        column.is_some_and(|column| is_string(&column.ty))
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

fn is_string(ty: &ColumnType) -> bool {
    matches!(
        ty,
        ColumnType::VarChar { .. }
            | ColumnType::Text { .. }
            | ColumnType::VarBinary { .. }
            | ColumnType::Blob { .. }
    )
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
        assert_eq!(
            widest_row_bytes(&all, true).expect("a plan"),
            4 + 16 + 4 + 16
        );
        let pairs = datafusion_expr::LogicalPlanBuilder::from(all)
            .cross_join(table("u").expect("a scan"))
            .and_then(|plan| plan.project(vec![datafusion_expr::lit(1i64)]))
            .and_then(|plan| plan.build())
            .expect("a join");
        assert_eq!(widest_row_bytes(&pairs, true).expect("a plan"), 80);
    }
}
