//! What WHERE, DISTINCT, ORDER BY and LIMIT say of the rows of one table.

use std::fmt::Display;
use std::sync::Arc;

use sheaf_storage::Direction;
use sheaf_table::{Table, TableDefinition};
use sheaf_types::Value;
use sqlparser::ast;

use crate::direct::access::{Access, Comparison, conditions, filter_of};
use crate::direct::expression::Expressions;
use crate::direct::operands::operand::Operand;
use crate::direct::rows::order::{OrderItem, SortKey, descends};
use crate::direct::shown::row::Item;
use crate::direct::shown::select_list::is_called;
use crate::direct::syntax::names::{ColumnNames, Names};

/// What a WHERE says: comparisons of columns with operands, and the rest. `None` if a row alone does not decide.
pub(in crate::direct) fn condition(
    selection: Option<&ast::Expr>,
    names: &Names<'_>,
) -> Option<(Vec<Comparison>, Option<Arc<Expressions>>)> {
    let Some(selection) = selection else {
        return Some((Vec::new(), None));
    };
    let (comparisons, others) = conditions(selection, names, false);
    let table = names.table()?;
    if !Access::binds_any(table, &comparisons) {
        let (by_rows, others) = conditions(selection, names, true);
        let access = Access::choose(table, &by_rows, true, None);
        if access.is_some_and(|access| access.is_by_rows()) {
            return Some((by_rows, filter_of(names, &others)?));
        }
    }
    Some((comparisons, filter_of(names, &others)?))
}

/// Columns that are read, with those of a filter.
pub(super) fn with_columns_of(
    filter: &Option<Arc<Expressions>>,
    mut read: Vec<usize>,
) -> Vec<usize> {
    if let Some(filter) = filter {
        read.extend(filter.columns());
    }
    read
}

/// The key of DISTINCT: what is shown beyond the columns that rows are ordered by, which tell rows apart as well.
pub(super) fn distinct_key(
    definition: &TableDefinition,
    items: &[Item],
    wanted: &[OrderItem],
) -> Option<SortKey> {
    // MySQL orders a DISTINCT by what it shows.
    let columns = items.iter().filter_map(Item::stored);
    let is_shown = |wanted: &OrderItem| columns.clone().any(|column| column == wanted.column);
    if !wanted.iter().all(is_shown) {
        return None;
    }
    let is_ordered = |column: &usize| wanted.iter().any(|wanted| wanted.column == *column);
    let rest = columns.filter(|column| !is_ordered(column));
    let rest = rest.map(|column| OrderItem {
        column,
        descending: false,
    });
    SortKey::new(definition, rest.collect())
}

fn unnested(mut expr: &ast::Expr) -> &ast::Expr {
    while let ast::Expr::Nested(inner) = expr {
        expr = inner;
    }
    expr
}

pub(super) fn order_items(
    order_by: &ast::OrderBy,
    select: &ast::Select,
    names: &Names<'_>,
) -> Option<Vec<OrderItem>> {
    let has_alias = select
        .projection
        .iter()
        .any(|item| matches!(item, ast::SelectItem::ExprWithAlias { .. }));
    let ast::OrderByKind::Expressions(items) = &order_by.kind else {
        return None;
    };
    // An alias hides a column.
    if has_alias || order_by.interpolate.is_some() {
        return None;
    }
    let item = |item: &ast::OrderByExpr| {
        let descending = descends(item)?;
        if let ast::Expr::Identifier(name) = unnested(&item.expr)
            && select
                .projection
                .iter()
                .any(|item| is_called(item, &name.value))
        {
            return None;
        }
        let column = names.column(&item.expr)?;
        Some(OrderItem { column, descending })
    };
    items.iter().map(item).collect()
}

/// The direction in which the index gives the wanted order; `None` if it does not.
pub(in crate::direct) fn index_order(
    table: &Table,
    access: &Access,
    wanted: &[OrderItem],
) -> Option<Direction> {
    let constant: Vec<usize> = access.constant_columns().collect();
    let mut wanted = wanted
        .iter()
        .filter(|item| !constant.contains(&item.column))
        .peekable();
    if access.is_single() || wanted.peek().is_none() {
        return Some(Direction::Forward);
    }
    // Keys of an IN list are ascending, but each of an index that is not unique stands for several entries of any order
    // behind it.
    if !access.is_one_range() && !access.is_unique && !access.is_by_rows() {
        return None;
    }
    let descending = wanted.peek().is_some_and(|item| item.descending);
    let layout = access.layout(table);
    let mut parts = layout
        .parts
        .iter()
        .filter(|part| part.column.is_none_or(|column| !constant.contains(&column)));
    for item in wanted {
        let part = parts.next()?;
        let is_it = part.column == Some(item.column)
            && part.prefix_length.is_none()
            && item.descending == descending;
        if !is_it {
            return None;
        }
    }
    Some(match descending {
        true => Direction::Backward,
        false => Direction::Forward,
    })
}

pub(in crate::direct) fn limit_and_offset(
    clause: &ast::LimitClause,
) -> Option<(Option<Operand>, Option<Operand>)> {
    match clause {
        ast::LimitClause::LimitOffset {
            limit: Some(limit),
            offset,
            limit_by,
        } if limit_by.is_empty() => {
            let offset = match offset {
                Some(offset) => Some(Operand::of(&offset.value)?),
                None => None,
            };
            Some((Some(Operand::of(limit)?), offset))
        }
        ast::LimitClause::OffsetCommaLimit { offset, limit } => {
            Some((Some(Operand::of(limit)?), Some(Operand::of(offset)?)))
        }
        _ => None,
    }
}

/// Whether a clause may divide. Where that is an error, operators watch which divisions rows come to.
pub(in crate::direct) fn may_divide(clause: &impl Display) -> bool {
    let written = clause.to_string().to_ascii_lowercase();
    let divisions = ["/", "%", " div ", "mod"];
    divisions.iter().any(|division| written.contains(division))
}

/// A number of rows; `None` if it is none.
pub(in crate::direct) fn row_count(
    operand: Option<&Operand>,
    parameters: &[Value],
    default: u64,
) -> Option<u64> {
    let Some(operand) = operand else {
        return Some(default);
    };
    match operand.value(parameters) {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::UInt(number) => Some(*number),
        _ => None,
    }
}
