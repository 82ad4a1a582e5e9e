//! How MySQL's semantics look in a typed plan, as far as the planner has to recognise them.

use datafusion_common::ScalarValue;
use datafusion_expr::Expr;
use sheaf_exec::functions::collation::{self, COLLATION_KEY};
use sheaf_exec::functions::{as_function, scalar_function};
use sheaf_exec::long_literal::literal_of;
use sheaf_table::{Column, TableDefinition};
use sheaf_types::column_type::MAX_SET_LABELS;
use sheaf_types::{Collation, ColumnType};

use crate::logical::literal::text_of;

/// Gives the number of an ENUM's label.
const ENUM_NUMBER: &str = "$enum_number";

/// The arguments of a call of one of our functions.
fn arguments<'e>(expr: &'e Expr, name: &str) -> Option<&'e [Expr]> {
    match expr {
        Expr::ScalarFunction(call) if as_function(&call.func)?.name == name => Some(&call.args),
        _ => None,
    }
}

/// The string and the collation of a collation key `ck(string, collation)`.
pub(crate) fn collation_key(expr: &Expr) -> Option<(&Expr, Collation)> {
    match arguments(expr, COLLATION_KEY)? {
        [string, Expr::Literal(collation, _)] => {
            Some((string, Collation::parse(text_of(collation)?)?))
        }
        _ => None,
    }
}

/// The string under a collation key.
pub(crate) fn key_argument(expr: &Expr) -> Option<&Expr> {
    collation_key(expr).map(|(string, _)| string)
}

/// The collation of a collation key.
pub(crate) fn collation_of_key(expr: &Expr) -> Option<Collation> {
    collation_key(expr).map(|(_, collation)| collation)
}

/// The column that a side of an equality is made of, under casts and a collation key.
pub(crate) fn compared_column(expr: &Expr) -> Option<&datafusion_common::Column> {
    match expr {
        Expr::Column(column) => Some(column),
        Expr::Cast(cast) => compared_column(&cast.expr),
        Expr::Alias(alias) => compared_column(&alias.expr),
        other => key_argument(other).and_then(compared_column),
    }
}

/// The expression by which rows sort when they come in the order of `column` in an index: the column, the collation
/// key of a string, the number of an ENUM's label.
pub(crate) fn order_key(column: &Column, expr: Expr) -> Option<Expr> {
    match (&column.ty, column.ty.collation()) {
        (ty, _) if ty.has_labels() => has_order_of_numbers(ty)
            .then(|| scalar_function(ENUM_NUMBER))
            .flatten()
            .map(|number| number.call(vec![expr])),
        (_, Some(collation)) => Some(collation::collation_key(expr, collation)),
        (_, None) => Some(expr),
    }
}

/// Whether an index of an ENUM or SET has the order of its numbers. To MySQL the number of 64 members is below zero.
fn has_order_of_numbers(ty: &ColumnType) -> bool {
    match ty.set_labels() {
        Some(labels) => labels.len() < MAX_SET_LABELS,
        None => ty.has_labels(),
    }
}

/// The table column in whose index order `expr` sorts.
pub(crate) fn ordered_column(expr: &Expr, table: &TableDefinition) -> Option<usize> {
    let position = |expr: &Expr| match expr {
        Expr::Column(column) => table.position_in_plan(&column.name),
        _ => None,
    };
    let is_enum = |column: &usize| table.columns[*column].ty.has_labels();
    if let Some([column]) = arguments(expr, ENUM_NUMBER) {
        let is_ordered = |column: &usize| has_order_of_numbers(&table.columns[*column].ty);
        return position(column).filter(is_ordered);
    }
    let (expr, collation) = match collation_key(expr) {
        Some((inner, collation)) => (inner, Some(collation)),
        None => (expr, None),
    };
    position(expr)
        .filter(|column| table.columns[*column].ty.collation() == collation && !is_enum(column))
}

/// The constant that `expr` stands for.
pub(crate) fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Alias(alias) => constant(&alias.expr),
        _ => literal_of(expr).cloned(),
    }
}
