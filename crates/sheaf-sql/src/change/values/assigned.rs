//! What statements assign to columns: the names, the expressions, and the values as columns hold them.

use sheaf_table::Column;
use sheaf_table::convert::to_column;
use sheaf_types::assignment::{Mode, zero_value};
use sheaf_types::{ColumnIssue, ColumnProblem, ColumnType, Value};
use sqlparser::ast;

use crate::error::Result;
use crate::session::warnings::Warnings;

/// The keyword DEFAULT.
pub(crate) fn is_default(expression: &ast::Expr) -> bool {
    matches!(expression, ast::Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("DEFAULT"))
}

/// An expression as a column of this type would hold it.
pub(crate) fn as_stored(expression: &ast::Expr, ty: &ColumnType) -> Result<ast::Expr> {
    let cast = match (ty.temporal_kind(), ty.clock_digits(), ty.decimal_digits()) {
        (Some(kind), Some(digits), _) => format!("CAST(0 AS {kind}({digits}))"),
        (Some(kind), None, _) => format!("CAST(0 AS {kind})"),
        (None, _, Some((precision, scale))) => format!("CAST(0 AS DECIMAL({precision},{scale}))"),
        _ if ty.integer_range().is_none() => return Ok(expression.clone()),
        _ if ty.is_unsigned() => "CAST(0 AS UNSIGNED)".to_string(),
        _ => "CAST(0 AS SIGNED)".to_string(),
    };
    let mut value = expression.clone();
    if ty.integer_range().is_some() && is_text(&value) {
        // A column rounds the number that a text has; CAST AS SIGNED ends it at the point.
        value = cast_as("CAST(0 AS DECIMAL(38,9))", value)?;
    }
    cast_as(&cast, value)
}

/// A form of CAST with a value of its own.
fn cast_as(form: &str, value: ast::Expr) -> Result<ast::Expr> {
    let mut cast = crate::parser::parse_expression(form, &Default::default())?;
    if let ast::Expr::Cast { expr, .. } = &mut cast {
        **expr = value;
    }
    Ok(cast)
}

fn is_text(value: &ast::Expr) -> bool {
    match value {
        ast::Expr::Value(literal) => matches!(
            literal.value,
            ast::Value::SingleQuotedString(_) | ast::Value::DoubleQuotedString(_)
        ),
        _ => false,
    }
}

/// Converts a value for a column that exists already: NULL is not turned into the next AUTO_INCREMENT value.
pub(crate) fn assign(
    column: &Column,
    value: &Value,
    mode: Mode,
    row: u64,
    warnings: &mut Warnings,
) -> Result<Value> {
    let converted = match value {
        Value::Null if column.auto_increment && !column.nullable => match mode.strict {
            true => Err(ColumnProblem::Null),
            false => Ok((zero_value(&column.ty), Some(ColumnProblem::Null))),
        },
        value => to_column(column, value, mode),
    };
    let (value, problem) = converted.map_err(|problem| issue(column, problem, row))?;
    if let Some(problem) = problem {
        let issue = issue(column, problem.as_warning(), row);
        warnings.add_issue(&issue);
    }
    Ok(value)
}

/// What is wrong with the value of a column.
pub(crate) fn issue(column: &Column, problem: ColumnProblem, row: u64) -> ColumnIssue {
    ColumnIssue {
        problem,
        column: column.name.clone(),
        row,
    }
}

/// `a` of `a`, `t.a` and `d.t.a`.
pub(crate) fn last_part(name: &ast::ObjectName) -> String {
    name.0
        .last()
        .and_then(|part| part.as_ident())
        .map_or_else(|| name.to_string(), |part| part.value.clone())
}
