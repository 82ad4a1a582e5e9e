//! Lists and conditions that are computed row by row, because they assign user variables.

use std::sync::Arc;

use datafusion_common::Result;
use sheaf_exec::operator::row_by_row_exec::RowByRowExec;
use sheaf_exec::row_by_row::RowByRow;

use super::Planner;
use crate::access::wanted::Wanted;
use crate::planned::{Block, Planned};

impl Planner<'_> {
    /// Rows come one by one in the order of the input, or of the table: from one worker.
    pub(super) fn plan_row_by_row(&mut self, rows: &RowByRow, block: &Block) -> Result<Planned> {
        let mut context = self.context.clone();
        context.settings.target_partitions = 1;
        let mut planner = Planner {
            context: &context,
            properties: self.properties.clone(),
            notes: std::mem::take(&mut self.notes),
            blocks: self.blocks,
            conflicting_hints: std::mem::take(&mut self.conflicting_hints),
            budget: self.budget.take(),
            repeats: self.repeats,
            rounds: self.rounds.clone(),
            most_kept: self.most_kept,
            sorts_long_texts: self.sorts_long_texts,
        };
        let input = planner.plan(&rows.input, block, &Wanted::default());
        (self.notes, self.blocks) = (planner.notes, planner.blocks);
        self.conflicting_hints = planner.conflicting_hints;
        (self.budget, self.most_kept) = (planner.budget, planner.most_kept);
        self.sorts_long_texts = planner.sorts_long_texts;
        let input = input?;
        let plan = Arc::clone(&input.plan);
        Ok(input.wrap(RowByRowExec::new(plan, rows.step)))
    }
}
