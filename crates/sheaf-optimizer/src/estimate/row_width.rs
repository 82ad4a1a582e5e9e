//! How wide the rows of a plan are in a batch, whatever is in them.
//!
//! A batch has an array for each column. Numbers lie in it, and of texts a view of 16 bytes. So a row of 300 columns of
//! texts takes 4,800 bytes although all of its texts are empty. What longer texts take besides is bounded where scans
//! read them ([`sheaf_access::BatchSize`]).

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_expr::LogicalPlan;
use sheaf_exec::for_each_node;

/// A view of a text or of bytes.
const VIEW_BYTES: usize = 16;
/// Where the bytes of a value end that has no view.
const OFFSET_BYTES: usize = 4;

/// Bytes of a row of the widest node of a plan, those of its subqueries included.
pub fn widest_row_bytes(plan: &LogicalPlan) -> Result<usize> {
    let mut widest = 0;
    for_each_node(plan, &mut |node| {
        let fields = node.schema().fields();
        let bytes = fields.iter().map(|field| value_bytes(field.data_type()));
        widest = widest.max(bytes.sum());
        Ok(())
    })?;
    Ok(widest)
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
        assert_eq!(widest_row_bytes(&all).expect("a plan"), 4 + 16 + 4 + 16);
        let pairs = datafusion_expr::LogicalPlanBuilder::from(all)
            .cross_join(table("u").expect("a scan"))
            .and_then(|plan| plan.project(vec![datafusion_expr::lit(1i64)]))
            .and_then(|plan| plan.build())
            .expect("a join");
        assert_eq!(widest_row_bytes(&pairs).expect("a plan"), 80);
    }
}
