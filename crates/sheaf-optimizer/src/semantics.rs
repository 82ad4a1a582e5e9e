//! How MySQL's semantics look in a typed plan, as far as the planner has to recognise them.

use crate::literal::text_of;
use datafusion_common::ScalarValue;
use datafusion_expr::Expr;
use sheaf_table::{Collation, Column, ColumnType, TableDefinition};

/// Name of the function that gives the collation key of a string.
const COLLATION_KEY: &str = "ck";

/// The string and the collation of a collation key `ck(string, collation)`.
pub(crate) fn collation_key(expr: &Expr) -> Option<(&Expr, Collation)> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    if call.func.name() != COLLATION_KEY {
        return None;
    }
    match call.args.as_slice() {
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

/// The constant that `expr` stands for, looking through the collation key of a literal.
pub(crate) fn constant(expr: &Expr) -> Option<ScalarValue> {
    match expr {
        Expr::Literal(value, _) => Some(value.clone()),
        Expr::Alias(alias) => constant(&alias.expr),
        _ => None,
    }
}

/// The expression by which rows sort when they come in the order of `column` in an index: the column, or the collation
/// key of a string. `None` for an ENUM, which has its numbers in the index and its labels in the plan.
pub(crate) fn order_key(column: &Column, expr: Expr) -> Option<Expr> {
    match column.ty.collation() {
        None => Some(expr),
        Some(_) => None,
    }
}

/// The table column in whose index order `expr` sorts.
pub(crate) fn ordered_column(expr: &Expr, table: &TableDefinition) -> Option<usize> {
    let (expr, collation) = match collation_key(expr) {
        Some((inner, collation)) => (inner, Some(collation)),
        None => (expr, None),
    };
    let Expr::Column(column) = expr else {
        return None;
    };
    let position = table.column_position(&column.name)?;
    let ty = &table.columns[position].ty;
    (ty.collation() == collation && !matches!(ty, ColumnType::Enum { .. })).then_some(position)
}

/// The string expression and the fixed text that a LIKE condition demands at its start; under the collation of the
/// string. `None` if `expr` is no LIKE with a constant pattern.
pub(crate) fn like_prefix(expr: &Expr) -> Option<(&Expr, String)> {
    let Expr::Like(like) = expr else {
        return None;
    };
    if like.negated || like.case_insensitive {
        return None;
    }
    let pattern = constant(&like.pattern)?;
    let pattern = crate::literal::text_of(&pattern)?;
    Some((
        &like.expr,
        fixed_start(pattern, like.escape_char.unwrap_or('\\')),
    ))
}

/// The text of a pattern before its first wildcard, with escapes undone.
pub(crate) fn fixed_start(pattern: &str, escape: char) -> String {
    let mut text = String::new();
    let mut characters = pattern.chars();
    while let Some(character) = characters.next() {
        match character {
            '%' | '_' => break,
            c if c == escape => text.extend(characters.next()),
            c => text.push(c),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pattern_starts() {
        assert_eq!(fixed_start("abc%", '\\'), "abc");
        assert_eq!(fixed_start("a_c%", '\\'), "a");
        assert_eq!(fixed_start("50\\%off%", '\\'), "50%off");
        assert_eq!(fixed_start("%x", '\\'), "");
    }
}
