//! What stands in GROUP BY, and what ANY_VALUE is.
//!
//! It is looked at before anything is bound:
//!
//! ```text
//!   SELECT a, COUNT(*) FROM t GROUP BY 2    error 1056: an aggregate makes no groups
//!   SELECT ANY_VALUE(a) FROM t              SELECT a FROM t: it is no aggregate, so it makes no group either
//! ```

use std::ops::ControlFlow;

use sheaf_types::error::codes;
use sqlparser::ast::{
    Expr, FunctionArg, FunctionArgExpr, FunctionArguments, GroupByExpr, OrderBy, OrderByKind,
    Query, Select, SelectItem,
};

use super::arguments::invalid_group_function;
use crate::error::{Result, SqlError};
use crate::syntax::{aggregate_name, is_position, is_same, number_digits, object_text};
use crate::walk::{ExpressionVisitor, walk_expression};

/// ANY_VALUE is a value of a group where there are groups, and of a row otherwise.
const ANY_VALUE: &str = "any_value";

fn called(expression: &Expr) -> Option<String> {
    match expression {
        Expr::Function(call) if call.over.is_none() => {
            Some(object_text(&call.name).to_ascii_lowercase())
        }
        _ => None,
    }
}

/// Whether this is an aggregate, which makes a group of all rows if nothing else does.
fn is_grouping(expression: &Expr) -> bool {
    called(expression).is_some_and(|name| name != ANY_VALUE && aggregate_name(&name).is_some())
}

/// Aggregates in an expression, outside of its subqueries.
#[derive(Default)]
struct Found {
    /// Open subqueries.
    inside: usize,
    has_aggregate: bool,
    has_any_value: bool,
    has_window_function: bool,
}

impl ExpressionVisitor for Found {
    fn enter_query(&mut self, _query: &Query) {
        self.inside += 1;
    }

    fn leave_query(&mut self) {
        self.inside -= 1;
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.inside == 0 {
            self.has_aggregate |= is_grouping(expression);
            self.has_window_function |=
                matches!(expression, Expr::Function(call) if call.over.is_some());
            self.has_any_value |= called(expression).is_some_and(|name| name == ANY_VALUE);
        }
        ControlFlow::Continue(())
    }
}

/// Whether an expression has an aggregate of its own.
fn has_aggregate(expression: &Expr) -> bool {
    let mut found = Found::default();
    walk_expression(&mut expression.clone(), &mut found);
    found.has_aggregate
}

/// Puts the values of rows in the place of ANY_VALUE.
struct OfRows {
    inside: usize,
}

impl ExpressionVisitor for OfRows {
    fn enter_query(&mut self, _query: &Query) {
        self.inside += 1;
    }

    fn leave_query(&mut self) {
        self.inside -= 1;
    }

    fn leave_expression(&mut self, expression: &mut Expr) -> ControlFlow<()> {
        if self.inside == 0
            && called(expression).is_some_and(|name| name == ANY_VALUE)
            && let Expr::Function(call) = expression
            && let FunctionArguments::List(list) = &call.args
            && let [FunctionArg::Unnamed(FunctionArgExpr::Expr(value))] = list.args.as_slice()
        {
            *expression = Expr::Nested(Box::new(value.clone()));
        }
        ControlFlow::Continue(())
    }
}

fn of_items(items: &mut [SelectItem]) -> impl Iterator<Item = &mut Expr> {
    items.iter_mut().filter_map(|item| match item {
        SelectItem::UnnamedExpr(expr) | SelectItem::ExprWithAlias { expr, .. } => Some(expr),
        _ => None,
    })
}

fn of_block<'s>(
    select: &'s mut Select,
    order_by: Option<&'s mut OrderBy>,
) -> impl Iterator<Item = &'s mut Expr> {
    let items = of_items(&mut select.projection);
    let orders = match order_by.map(|order_by| &mut order_by.kind) {
        Some(OrderByKind::Expressions(orders)) => orders.as_mut_slice(),
        _ => &mut [],
    };
    items
        .chain(&mut select.having)
        .chain(orders.iter_mut().map(|order| &mut order.expr))
}

/// Whether ANY_VALUE may be a value of a row in a statement of this text: it is there.
pub fn has_any_value(text: &str) -> bool {
    let mut windows = text.as_bytes().windows(ANY_VALUE.len());
    windows.any(|window| window.eq_ignore_ascii_case(ANY_VALUE.as_bytes()))
}

/// Makes values of rows of ANY_VALUE in a block without groups.
pub fn any_values_of_rows(select: &mut Select, mut order_by: Option<&mut OrderBy>) {
    if !matches!(&select.group_by, GroupByExpr::Expressions(groups, _) if groups.is_empty()) {
        return;
    }
    let mut found = Found::default();
    for expression in of_block(select, order_by.as_deref_mut()) {
        walk_expression(expression, &mut found);
    }
    if found.has_any_value && !found.has_aggregate {
        for expression in of_block(select, order_by) {
            walk_expression(expression, &mut OfRows { inside: 0 });
        }
    }
}

/// The same of a list without a query.
pub fn any_values_of_items(items: &mut [SelectItem]) {
    for expression in of_items(items) {
        walk_expression(expression, &mut OfRows { inside: 0 });
    }
}

/// 1056.
pub fn cannot_group_on(name: &str) -> SqlError {
    SqlError::new(codes::WRONG_GROUP_FIELD, format!("Can't group on '{name}'"))
}

/// What stands in GROUP BY. `is_column`: whether a name means a column, and not the item that has it as its alias.
///
/// # Errors
/// 1056 for an item that is an aggregate, 1111 for an aggregate.
pub fn check_groups(
    groups: &[Expr],
    items: &[SelectItem],
    is_column: impl Fn(&str) -> bool,
) -> Result<()> {
    let is_wildcard = |item: &SelectItem| {
        !matches!(
            item,
            SelectItem::UnnamedExpr(_) | SelectItem::ExprWithAlias { .. }
        )
    };
    for group in groups {
        let item = if is_position(group) {
            let position = number_digits(group).and_then(|digits| digits.parse::<usize>().ok());
            let before = position.and_then(|position| items.get(..position));
            // A wildcard stands for any number of columns.
            let before = before.filter(|before| !before.iter().any(is_wildcard));
            before.and_then(<[SelectItem]>::last)
        } else if let Expr::Identifier(name) = group {
            let is_named = |item: &&SelectItem| matches!(item, SelectItem::ExprWithAlias { alias, .. } if is_same(&alias.value, &name.value));
            let mut items = items.iter();
            items.find(is_named).filter(|_| !is_column(&name.value))
        } else if has_aggregate(group) {
            return Err(invalid_group_function());
        } else {
            None
        };
        match item {
            Some(SelectItem::UnnamedExpr(expr)) if has_aggregate(expr) => {
                return Err(cannot_group_on(&expr.to_string()));
            }
            Some(SelectItem::ExprWithAlias { expr, alias }) if has_aggregate(expr) => {
                return Err(cannot_group_on(&alias.value));
            }
            _ => {}
        }
    }
    Ok(())
}
