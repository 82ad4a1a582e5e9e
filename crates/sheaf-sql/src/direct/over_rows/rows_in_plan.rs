//! A plan with rows in the place of its FROM.

use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, DataFusionError, ScalarValue, TableReference};
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, LogicalPlan, LogicalPlanBuilder};
use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::MemoryTableSource;
use sheaf_exec::operator::values_exec::ValuesExec;

use super::OverRows;
use crate::direct::expression::{INPUTS, PlanInputs};
use crate::error::Result;
use crate::parser::ParsedQuery;

/// The table that the rows are in the plan. No identifier is written like this.
const ROWS: &str = "\0rows";

/// A plan with `rows` in the place of what is below its FROM; `rows` gets the schema that it had. What a scan would
/// leave out, is left out of the rows.
pub(super) fn with_rows(
    plan: LogicalPlan,
    rows: &mut dyn FnMut(&DFSchema) -> datafusion_common::Result<LogicalPlan>,
) -> datafusion_common::Result<LogicalPlan> {
    match plan {
        LogicalPlan::TableScan(scan) => {
            let mut builder = LogicalPlanBuilder::from(rows(&scan.projected_schema)?);
            if let Some(condition) = conjunction(scan.filters) {
                builder = builder.filter(condition)?;
            }
            if let Some(fetch) = scan.fetch {
                builder = builder.limit(0, Some(fetch))?;
            }
            builder.build()
        }
        LogicalPlan::Join(_) | LogicalPlan::SubqueryAlias(_) if !has_filtered_scan(&plan) => {
            rows(plan.schema())
        }
        LogicalPlan::EmptyRelation(nothing) if nothing.produce_one_row => rows(&nothing.schema),
        plan if plan.inputs().len() == 1 => {
            let changed = plan.map_children(|input| with_rows(input, rows).map(Transformed::yes));
            // The rows have no keys, and no sort key or group column is superfluous because of one.
            changed?.data.recompute_schema()
        }
        _ => Err(DataFusionError::Plan("a query without a FROM".into())),
    }
}

/// Whether a table of a FROM is not read whole. The queries of a FROM were run as they are written.
fn has_filtered_scan(from: &LogicalPlan) -> bool {
    match from {
        LogicalPlan::TableScan(scan) => !scan.filters.is_empty() || scan.fetch.is_some(),
        LogicalPlan::Join(join) => has_filtered_scan(&join.left) || has_filtered_scan(&join.right),
        _ => false,
    }
}

/// A query with what it is given as a table, and whether its columns are described as it is.
pub(super) type Written<'a> = (ParsedQuery<'a>, &'a Arc<MemoryTableSource>, bool);

/// The columns of the rows: those that are read, and what is given.
pub(super) fn columns_of_rows<'a>(
    query: &'a OverRows,
    inputs: &'a PlanInputs,
) -> Vec<(&'a str, &'a str)> {
    let read = query.read.iter();
    let read = read.map(|read| (read.alias.as_str(), read.name.as_str()));
    let given = inputs.fields.iter();
    let given = given.map(|field| (INPUTS, field.name().as_str()));
    read.chain(given).collect()
}

pub(super) fn types_of(plan: &LogicalPlan) -> Vec<DataType> {
    let fields = plan.schema().fields().iter();
    fields.map(|field| field.data_type().clone()).collect()
}

/// The rows in the place of a FROM, and their columns.
pub(super) fn rows_as(
    from: &DFSchema,
    query: &OverRows,
    inputs: &PlanInputs,
) -> datafusion_common::Result<(SchemaRef, LogicalPlan)> {
    let (mut fields, mut columns) = (Vec::new(), Vec::new());
    for (number, (table, name)) in columns_of_rows(query, inputs).into_iter().enumerate() {
        let is_it = |(qualifier, field): &(Option<&TableReference>, &Arc<Field>)| {
            qualifier.is_some_and(|qualifier| qualifier.table() == table) && field.name() == name
        };
        let found = from.iter().find(is_it);
        let missing = || DataFusionError::Plan(format!("no column {table}.{name}"));
        let (qualifier, field) = found.ok_or_else(missing)?;
        let own = format!("c{number}");
        fields.push(field.as_ref().clone().with_name(&own));
        let column = Expr::Column(Column::new(Some(ROWS), own));
        columns.push(column.alias_qualified(qualifier.cloned(), name));
    }
    // A key is grouped by together with the columns that depend on it, whether or not they are read.
    for (qualifier, field) in from.iter() {
        let is_read =
            |column: &Expr| column.qualified_name() == (qualifier.cloned(), field.name().clone());
        if !columns.iter().any(is_read) {
            let nothing = Expr::Literal(ScalarValue::try_from(field.data_type())?, None);
            columns.push(nothing.alias_qualified(qualifier.cloned(), field.name()));
        }
    }
    let schema = Arc::new(Schema::new(fields));
    let source = MemoryTableSource::new(ROWS.to_string(), Arc::clone(&schema), Vec::new());
    let scan = LogicalPlanBuilder::scan(TableReference::bare(ROWS), Arc::new(source), None)?;
    Ok((schema, scan.project(columns)?.build()?))
}

/// A plan over these rows, for one run.
pub(super) fn over(
    plan: &Arc<dyn ExecutionPlan>,
    batch: RecordBatch,
) -> Result<Arc<dyn ExecutionPlan>> {
    let over = Arc::clone(plan).transform_up(|plan| {
        let is_rows = plan.downcast_ref::<ValuesExec>().is_some()
            && plan.schema().fields() == batch.schema_ref().fields();
        Ok(match is_rows {
            true => {
                let rows = ValuesExec::new(batch.schema(), vec![batch.clone()]);
                Transformed::yes(Arc::new(rows) as Arc<dyn ExecutionPlan>)
            }
            false => Transformed::no(plan),
        })
    })?;
    Ok(over.data)
}

#[cfg(test)]
mod tests {
    use datafusion_expr::logical_plan::TableScanBuilder;
    use datafusion_expr::{LogicalTableSource, col, lit};

    use super::*;

    fn scan(filters: Vec<Expr>, fetch: Option<usize>) -> LogicalPlan {
        let schema = Arc::new(Schema::new(vec![Field::new("a", DataType::Int32, true)]));
        let source = Arc::new(LogicalTableSource::new(schema));
        let scan = TableScanBuilder::new(TableReference::bare("t"), source);
        let scan = scan.with_filters(filters).with_fetch(fetch).build();
        LogicalPlan::TableScan(scan.unwrap())
    }

    fn one_row(from: &DFSchema) -> datafusion_common::Result<LogicalPlan> {
        let columns = from.iter().map(|(table, field)| {
            let nothing = Expr::Literal(ScalarValue::Int32(None), None);
            nothing.alias_qualified(table.cloned(), field.name())
        });
        LogicalPlanBuilder::empty(true).project(columns)?.build()
    }

    #[test]
    fn rows_keep_what_a_scan_leaves_out() {
        let above = |below: LogicalPlan| {
            let builder = LogicalPlanBuilder::from(below);
            builder.project([col("t.a")]).unwrap().build().unwrap()
        };
        let filtered = above(scan(vec![col("t.a").gt(lit(3))], Some(5)));
        let plan = with_rows(filtered, &mut one_row).unwrap().to_string();
        let lines: Vec<&str> = plan.lines().map(str::trim).collect();
        let expected = [
            "Projection: t.a",
            "Limit: skip=0, fetch=5",
            "Filter: t.a > Int32(3)",
        ];
        assert_eq!(lines[..3], expected, "{plan}");
        let whole = with_rows(above(scan(Vec::new(), None)), &mut one_row).unwrap();
        assert!(!whole.to_string().contains("Filter"), "{whole}");
    }

    #[test]
    fn joined_rows_take_the_place_of_whole_tables_only() {
        let joined = |filters: Vec<Expr>| {
            let one = LogicalPlanBuilder::from(one_row(scan(Vec::new(), None).schema()).unwrap());
            let other = scan(filters, None);
            let joined = one.alias("one").unwrap().cross_join(other);
            joined.unwrap().build().unwrap()
        };
        assert!(with_rows(joined(Vec::new()), &mut one_row).is_ok());
        assert!(with_rows(joined(vec![col("t.a").gt(lit(3))]), &mut one_row).is_err());
    }

    #[test]
    fn nothing_is_not_replaced_by_rows() {
        let nothing = LogicalPlanBuilder::empty(false).build().unwrap();
        assert!(with_rows(nothing, &mut one_row).is_err());
    }
}
