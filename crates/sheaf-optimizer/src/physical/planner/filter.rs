//! Filters and projections.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::{Filter, Projection};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::filter::{FilterExec, FilterExecBuilder};
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_exec::plan_size::check_room_for_list;

use super::Planner;
use super::wish::through_projection;
use crate::access::wanted::Wanted;
use crate::estimate::selectivity;
use crate::planned::{Block, Planned};

impl Planner<'_> {
    pub(super) fn plan_projection(
        &mut self,
        projection: &Projection,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let input = self.plan(
            &projection.input,
            block,
            &through_projection(wanted, projection),
        )?;
        let expressions =
            projection
                .expr
                .iter()
                .zip(projection.schema.fields())
                .map(|(expr, field)| {
                    // A list may have many thousands of them.
                    self.context.cancel.check().map_err(access_error)?;
                    let expr = self.expr(expr, projection.input.schema(), block)?;
                    Ok(ProjectionExpr {
                        expr,
                        alias: field.name().clone(),
                    })
                });
        let expressions = expressions.collect::<Result<Vec<_>>>()?;
        check_room_for_list(expressions.len())?;
        let plan = ProjectionExec::try_new_with_schema_metadata(
            expressions,
            Arc::clone(&input.plan),
            projection.schema.as_arrow(),
        )?;
        Ok(input.wrap(plan))
    }

    pub(super) fn plan_filter(
        &mut self,
        filter: &Filter,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let input = self.plan(
            &filter.input,
            block,
            &Wanted {
                order: wanted.order.clone(),
                limit: None,
            },
        )?;
        let predicate = self.expr(&filter.predicate, filter.input.schema(), block)?;
        let rows = input.rows * selectivity::guess(&filter.predicate);
        let plan = self.filtered(Arc::clone(&input.plan), predicate)?;
        Ok(Planned {
            rows,
            ..input.wrap(plan)
        })
    }

    /// The rows that satisfy a condition. They come in batches of as many rows as any others: by itself, FilterExec
    /// puts 8,192 of them together, however long they are.
    pub(crate) fn filtered(
        &self,
        rows: Arc<dyn ExecutionPlan>,
        condition: Arc<dyn PhysicalExpr>,
    ) -> Result<FilterExec> {
        FilterExecBuilder::new(condition, rows)
            .with_batch_size(self.context.settings.batch_rows)
            .build()
    }
}
