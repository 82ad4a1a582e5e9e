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
            Step::Aggregate => match group_keys(select) {
                keys if keys.is_empty() => "aggregate".to_string(),
                keys => told("aggregate by", Some(keys.join(", "))),
            },
            Step::FilterGroups => told(
                "filter groups",
                select.having.as_ref().map(written_condition),
            ),
            Step::ComputeWindows => "compute window functions".to_string(),
            Step::RemoveDuplicates => "remove duplicates".to_string(),
            Step::Sort => told("sort by", Some(sort_keys(&query, select).join(", "))),
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

/// What a key is: a number stands for an item of the list.
fn written_key(key: &ast::Expr, select: &ast::Select) -> String {
    let place = match key {
        ast::Expr::Value(value) => match &value.value {
            ast::Value::Number(digits, _) => digits.parse::<usize>().ok(),
            _ => None,
        },
        _ => None,
    };
    let item = place.and_then(|place| select.projection.get(place.checked_sub(1)?));
    match item {
        Some(ast::SelectItem::UnnamedExpr(expr)) => expr.to_string(),
        Some(ast::SelectItem::ExprWithAlias { alias, .. }) => alias.to_string(),
        _ => key.to_string(),
    }
}

fn group_keys(select: &ast::Select) -> Vec<String> {
    let ast::GroupByExpr::Expressions(keys, _) = &select.group_by else {
        return Vec::new();
    };
    let keys = keys.iter().map(|key| written_key(key, select));
    keys.collect()
}

fn sort_keys(query: &ast::Query, select: &ast::Select) -> Vec<String> {
    let kind = query.order_by.as_ref().map(|order_by| &order_by.kind);
    let Some(ast::OrderByKind::Expressions(items)) = kind else {
        return Vec::new();
    };
    let keys = items.iter().map(|item| {
        let key = written_key(&item.expr, select);
        match item.options.asc {
            Some(false) => format!("{key} DESC"),
            _ => key,
        }
    });
    keys.collect()
}
