//! EXPLAIN: the plan that a statement would run with, and EXPLAIN ANALYZE: the plan with what happened.

use std::sync::Arc;

use datafusion_physical_plan::display::DisplayableExecutionPlan;
use datafusion_physical_plan::displayable;
use sheaf_optimizer::ExplainRow;
use sqlparser::ast;

use crate::error::{Result, SqlError};
use crate::parser::statement::{Explain, ExplainFormat, Statement};
use crate::result::ResultSink;
use crate::rows::{Cell, Cells, Rows};
use crate::session::Session;

impl Session {
    pub(crate) fn explain(
        &mut self,
        explain: Explain,
        text: &str,
        sink: &mut dyn ResultSink,
    ) -> Result<()> {
        let insert_target = match &explain.statement {
            Statement::Insert(insert) => Some(insert.table.to_string().replace('`', "")),
            _ => None,
        };
        let is_direct = match self.direct_plan(&explain.statement, text) {
            Some(plan) => self.would_run_directly(&plan)?,
            None => false,
        };
        let query = match explain.statement {
            Statement::Query(query) => Some(query),
            Statement::Insert(insert) => {
                let source = insert.source;
                source.filter(|source| !matches!(source.body.as_ref(), ast::SetExpr::Values(_)))
            }
            _ => return Err(SqlError::not_supported_yet("EXPLAIN of this statement")),
        };
        if explain.analyze && insert_target.is_some() {
            return Err(SqlError::not_supported_yet(
                "EXPLAIN ANALYZE of a statement that writes",
            ));
        }
        match explain.format {
            ExplainFormat::Traditional => {
                let mut rows = traditional();
                if let Some(table) = insert_target {
                    rows.push(insert_row(&table));
                }
                if let Some(query) = query {
                    let planned = self.plan_query(&query, text, None)?;
                    for row in planned.explain_rows() {
                        rows.push(cells_of(row, is_direct));
                    }
                }
                rows.send(sink, self.result_collation_id(), self.end_of_rows())
            }
            ExplainFormat::Tree => {
                let query = query.ok_or_else(|| {
                    SqlError::not_supported_yet("EXPLAIN FORMAT=TREE of INSERT ... VALUES")
                })?;
                let planned = self.plan_query(&query, text, None)?;
                let plan = Arc::clone(&planned.physical.plan);
                let tree = if explain.analyze {
                    self.run_planned(planned, |_| Ok(()))?;
                    DisplayableExecutionPlan::with_metrics(plan.as_ref())
                        .indent(false)
                        .to_string()
                } else {
                    displayable(plan.as_ref()).indent(false).to_string()
                };
                let mut rows = Rows::new([("EXPLAIN", Cells::Text(u32::MAX))]);
                rows.push(vec![tree.into()]);
                rows.send(sink, self.result_collation_id(), self.end_of_rows())
            }
            ExplainFormat::Json => Err(SqlError::not_supported_yet("EXPLAIN FORMAT=JSON")),
        }
    }
}

/// MySQL's twelve columns.
fn traditional() -> Rows {
    Rows::new([
        ("id", Cells::Unsigned),
        ("select_type", Cells::Text(19)),
        ("table", Cells::Text(64)),
        ("partitions", Cells::Text(1024)),
        ("type", Cells::Text(10)),
        ("possible_keys", Cells::Text(1024)),
        ("key", Cells::Text(64)),
        ("key_len", Cells::Text(1024)),
        ("ref", Cells::Text(1024)),
        ("rows", Cells::Unsigned),
        ("filtered", Cells::Text(10)),
        ("Extra", Cells::Text(255)),
    ])
}

/// `is_direct`: the statement does not run as a vectorised plan, which its note says.
fn cells_of(row: &ExplainRow, is_direct: bool) -> Vec<Cell> {
    let notes = row.extra.iter().map(String::as_str);
    let notes: Vec<&str> = notes.chain(is_direct.then_some("Direct")).collect();
    let extra = (!notes.is_empty()).then(|| notes.join("; "));
    vec![
        row.id.into(),
        row.select_type.clone().into(),
        row.table.clone().into(),
        row.partitions.clone().into(),
        row.type_.clone().into(),
        row.possible_keys.clone().into(),
        row.key.clone().into(),
        row.key_len.clone().into(),
        row.ref_.clone().into(),
        row.rows.into(),
        row.filtered.map(|filtered| format!("{filtered:.2}")).into(),
        extra.into(),
    ]
}

fn insert_row(table: &str) -> Vec<Cell> {
    let mut cells = vec![Cell::Null; 12];
    cells[0] = 1u64.into();
    cells[1] = "INSERT".into();
    cells[2] = table.into();
    cells[4] = "ALL".into();
    cells
}
