//! Subqueries that run for each row.

use std::sync::Arc;

use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::{SortExpr, UserDefinedLogicalNodeCore};
use datafusion_physical_expr::PhysicalExpr;
use sheaf_exec::operator::apply_exec::ApplyExec;
use sheaf_exec::operator::apply_rows_exec::ApplyRowsExec;

use super::Planner;
use crate::access::wanted::Wanted;
use crate::logical::apply::{Applied, Apply};
use crate::physical::applied_subquery::AppliedSubquery;
use crate::planned::{Block, Planned};

impl Planner<'_> {
    pub(super) fn plan_apply(
        &mut self,
        apply: &Apply,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let own = apply.input.schema().fields().len();
        let applied = apply.schema().columns().split_off(own);
        let names_value = |sort: &SortExpr| {
            let mut columns = sort.expr.column_refs().into_iter();
            columns.any(|column| applied.contains(column))
        };
        let wanted = match wanted.order.iter().any(names_value) {
            true => Wanted::default(),
            false => wanted.clone(),
        };
        let wanted = match apply.kind {
            Applied::Value => wanted,
            // A row may have none.
            Applied::Rows { .. } => Wanted {
                limit: None,
                ..wanted
            },
        };
        let mut input = self.plan(&apply.input, block, &wanted)?;
        let schema = apply.input.schema();
        let parameters = apply.parameters.iter();
        let parameters: Vec<Arc<dyn PhysicalExpr>> = parameters
            .map(|parameter| self.expr(parameter, schema, block))
            .collect::<Result<_>>()?;
        let subquery = AppliedSubquery::new(apply, self.context)?;
        // A plan for some values shows how it will be planned.
        let examples = parameters.iter().map(|parameter| {
            let data_type = parameter.data_type(input.plan.schema().as_ref())?;
            ScalarValue::new_default(&data_type)
        });
        let example = subquery.with_values(&examples.collect::<Result<Vec<_>>>()?)?;
        let select_type = match (&apply.kind, apply.outer.is_empty()) {
            (Applied::Value, true) => "UNCACHEABLE SUBQUERY",
            (Applied::Value, false) => "DEPENDENT SUBQUERY",
            (Applied::Rows { .. }, _) => "DEPENDENT DERIVED",
        };
        let example = self.plan_block(&example, select_type)?;
        input.cost_us += example.cost_us * input.rows;
        input.explain.extend(example.explain);
        if let Applied::Rows { keeps_rows } = apply.kind {
            let plan = ApplyRowsExec::new(
                Arc::clone(&input.plan),
                parameters,
                (Arc::new(subquery), keeps_rows),
                self.context.cancel.clone(),
                applied_schema(&input.plan.schema(), &apply.schema().fields()[own..]),
            );
            // The values of the example may find none.
            let of_each = example.rows.max(1.0);
            let rows = input.rows * of_each;
            return Ok(Planned {
                rows,
                ..input.wrap(plan)
            });
        }
        let plan = ApplyExec::new(
            Arc::clone(&input.plan),
            parameters,
            Arc::new(subquery),
            self.context.cancel.clone(),
            applied_schema(&input.plan.schema(), &apply.schema().fields()[own..]),
        );
        Ok(input.wrap(plan))
    }
}

/// The columns of the outer rows as they come, which may be NULL where the logical plan rules that out, and the value.
fn applied_schema(outer: &SchemaRef, applied: &[FieldRef]) -> SchemaRef {
    let fields = outer.fields().iter().chain(applied).cloned();
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}
