//! Tables: of the database, in memory, of the round before, and common ones.

use std::sync::Arc;

use arrow::array::RecordBatch;
use datafusion_common::{DFSchema, Result, internal_err};
use datafusion_expr::TableScan;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use sheaf_exec::operator::recursive_exec::RoundRowsExec;
use sheaf_exec::operator::values_exec::ValuesExec;
use sheaf_exec::{CommonTableSource, MemoryTableSource, SheafTableSource, WorkTableSource};

use super::Planner;
use super::recursive::GUESSED_ROUND_ROWS;
use crate::access::table_reference;
use crate::access::wanted::Wanted;
use crate::estimate::risk::Risk;
use crate::estimate::selectivity;
use crate::explain::ExtraNote;
use crate::planned::{Block, Planned};

impl Planner<'_> {
    pub(super) fn plan_table(
        &mut self,
        scan: &TableScan,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        if let Some(source) = scan.source.downcast_ref::<SheafTableSource>() {
            let table = table_reference::TableReference::new(scan, source, self.context)?;
            return table.plan_scan(self, block, wanted);
        }
        if let Some(source) = scan.source.downcast_ref::<MemoryTableSource>() {
            return self.plan_memory_table(scan, source, block);
        }
        if let Some(source) = scan.source.downcast_ref::<WorkTableSource>() {
            let schema = datafusion_expr::TableSource::schema(source);
            let (name, projection) = (source.name.clone(), scan.projection.clone());
            let mut rounds = self.rounds.iter().rev();
            let Some((_, rows)) = rounds.find(|(of, _)| *of == name) else {
                return internal_err!("{name} is read outside of its recursion");
            };
            let rows = Arc::clone(rows);
            let plan = Arc::new(RoundRowsExec::new(name, &schema, projection, rows)?);
            let mut row = block.row(&source.name, "ALL");
            row.add(ExtraNote::Recursive);
            return Ok(Planned {
                plan,
                rows: GUESSED_ROUND_ROWS,
                cost_us: 0.0,
                risk: Risk::default(),
                explain: vec![row],
            });
        }
        if let Some(source) = CommonTableSource::of(&scan.source) {
            return self.plan_common_table(scan, source, block);
        }
        internal_err!("table {} has a source of an unknown kind", scan.table_name)
    }

    fn plan_memory_table(
        &self,
        scan: &TableScan,
        source: &MemoryTableSource,
        block: &Block,
    ) -> Result<Planned> {
        let table_schema = datafusion_expr::TableSource::schema(source);
        let qualified =
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &table_schema)?;
        let rows: usize = source.batches.iter().map(RecordBatch::num_rows).sum();
        let mut plan: Arc<dyn ExecutionPlan> = Arc::new(ValuesExec::new(
            Arc::clone(&table_schema),
            source.batches.clone(),
        ));
        let mut row = block.row(&source.name, "ALL");
        let selectivity: f64 = scan.filters.iter().map(selectivity::guess).product();
        row.estimate(rows as f64, rows as f64 * selectivity);
        if let Some(filter) = datafusion_expr::utils::conjunction(scan.filters.iter().cloned()) {
            let condition = self.expr(&filter, &qualified, block)?;
            plan = Arc::new(self.filtered(plan, condition)?);
            row.add(ExtraNote::UsingWhere);
        }
        if let Some(columns) = &scan.projection {
            let columns = columns.iter().map(|index| {
                let name = table_schema.field(*index).name();
                ProjectionExpr {
                    expr: Arc::new(datafusion_physical_expr::expressions::Column::new(
                        name, *index,
                    )),
                    alias: name.clone(),
                }
            });
            plan = Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?);
        }
        Ok(Planned {
            plan,
            rows: rows as f64 * selectivity,
            cost_us: 0.0,
            risk: Risk::default(),
            explain: vec![row],
        })
    }
}
