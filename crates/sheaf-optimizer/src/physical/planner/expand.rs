//! JSON_TABLE: the rows of a document for each row.

use std::sync::Arc;

use datafusion_common::Result;
use datafusion_expr::{EmptyRelation, LogicalPlan, UserDefinedLogicalNodeCore};
use sheaf_exec::json_table::Expand;
use sheaf_exec::operator::expand_exec::ExpandExec;

use super::Planner;
use crate::access::wanted::Wanted;
use crate::estimate::risk::Risk;
use crate::explain::ExtraNote;
use crate::planned::{Block, Planned};

/// How many rows a document has, as far as anyone knows. It is MySQL's guess.
const ROWS_OF_DOCUMENT: f64 = 2.0;

impl Planner<'_> {
    pub(super) fn plan_expand(&mut self, expand: &Expand, block: &Block) -> Result<Planned> {
        let mut input = self.plan(&expand.input, block, &Wanted::default())?;
        let document = self.expr(&expand.document, expand.input.schema(), block)?;
        let is_first = matches!(
            expand.input.as_ref(),
            LogicalPlan::EmptyRelation(EmptyRelation {
                produce_one_row: true,
                ..
            })
        );
        if is_first {
            // It is no query without tables.
            input.explain.clear();
        }
        let rows = input.rows * ROWS_OF_DOCUMENT;
        let costs = &self.context.settings.costs;
        let columns = expand.table.columns.len() as f64;
        let own_us = rows * (costs.joined_row_us + columns * costs.column_us);
        let mut row = block.row(&expand.table.name, "ALL");
        row.estimate(ROWS_OF_DOCUMENT, ROWS_OF_DOCUMENT);
        row.cost(own_us, input.cost_us + own_us, rows);
        row.add(ExtraNote::TableFunction);
        input.explain.push(row);
        let plan = ExpandExec::new(
            Arc::clone(&input.plan),
            document,
            expand.kept_positions()?,
            (Arc::clone(&expand.table), expand.keeps_rows),
            expand.schema().as_arrow(),
            self.context.cancel.clone(),
        );
        Ok(Planned {
            rows,
            cost_us: input.cost_us + own_us,
            risk: Risk {
                unstopped_us: input.risk.unstopped_us + own_us,
                worst_us: input.risk.worst_us + own_us,
            },
            ..input.wrap(plan)
        })
    }
}
