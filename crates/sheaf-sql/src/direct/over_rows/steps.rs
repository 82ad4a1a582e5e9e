//! What is done with the rows, step by step, as EXPLAIN tells it.

use sheaf_optimizer::ExtraNote;
use sqlparser::ast;

use super::OverRows;
use crate::direct::expression::written_condition;
use crate::direct::syntax::select_shape::{has_aggregate_of_rows, has_window_function};

/// What is done with all rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Filter,
    Aggregate,
    FilterGroups,
    ComputeWindows,
    RemoveDuplicates,
    Sort,
}

/// The steps with the conditions and keys of the statement.
pub(in crate::direct) struct ToldSteps {
    /// In their order.
    pub(in crate::direct) texts: Vec<String>,
    /// What rows are tested by once all tables are joined.
    pub(in crate::direct) condition: Option<String>,
}

impl OverRows {
    fn select(&self) -> Option<&ast::Select> {
        select_of(&self.query)
    }

    fn steps(&self) -> Vec<Step> {
        let Some(select) = self.select() else {
            return Vec::new();
        };
        let steps = [
            (select.selection.is_some(), Step::Filter),
            (
                self.has_group_keys() || has_aggregate_of_rows(select),
                Step::Aggregate,
            ),
            (select.having.is_some(), Step::FilterGroups),
            (has_window_function(select), Step::ComputeWindows),
            (select.distinct.is_some(), Step::RemoveDuplicates),
            (self.query.order_by.is_some(), Step::Sort),
        ];
        let done = steps.into_iter().filter(|(is_done, _)| *is_done);
        done.map(|(_, step)| step).collect()
    }

    /// What is done with the rows. `parameter`: what stands for a parameter by its place.
    pub(in crate::direct) fn told_steps(
        &self,
        parameter: &dyn Fn(usize) -> ast::Expr,
    ) -> ToldSteps {
        let query = self.described();
        let query = self.inputs.put_written_into(query, parameter);
        let Some(select) = select_of(&query) else {
            return ToldSteps {
                texts: Vec::new(),
                condition: None,
            };
        };
        let text = |step: Step| match step {
            Step::Filter => told("filter", select.selection.as_ref().map(written_condition)),
            Step::Aggregate => "aggregate".to_string(),
            Step::FilterGroups => told(
                "filter groups",
                select.having.as_ref().map(written_condition),
            ),
            Step::ComputeWindows => "compute window functions".to_string(),
            Step::RemoveDuplicates => "remove duplicates".to_string(),
            Step::Sort => "sort".to_string(),
        };
        ToldSteps {
            texts: self.steps().into_iter().map(text).collect(),
            condition: select.selection.as_ref().map(written_condition),
        }
    }

    /// What EXPLAIN's table says of these steps.
    pub(in crate::direct) fn notes(&self) -> impl Iterator<Item = ExtraNote> {
        let steps = self.steps().into_iter();
        steps.filter_map(|step| match step {
            Step::RemoveDuplicates => Some(ExtraNote::UsingTemporary),
            Step::Aggregate if self.has_group_keys() => Some(ExtraNote::UsingTemporary),
            Step::Sort => Some(ExtraNote::UsingFilesort),
            _ => None,
        })
    }

    /// Whether groups or different rows wait in memory.
    pub(super) fn keeps_groups(&self) -> bool {
        self.notes().any(|note| note == ExtraNote::UsingTemporary)
    }

    fn has_group_keys(&self) -> bool {
        match self.select().map(|select| &select.group_by) {
            Some(ast::GroupByExpr::Expressions(keys, _)) => !keys.is_empty(),
            Some(ast::GroupByExpr::All(_)) => true,
            None => false,
        }
    }
}

fn select_of(query: &ast::Query) -> Option<&ast::Select> {
    match query.body.as_ref() {
        ast::SetExpr::Select(select) => Some(select),
        _ => None,
    }
}

fn told(step: &str, of: Option<String>) -> String {
    match of {
        Some(of) => format!("{step} {of}"),
        None => step.to_string(),
    }
}
