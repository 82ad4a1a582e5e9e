//! Expressions that statements assign to columns.

use sheaf_types::ColumnType;
use sqlparser::ast;

use crate::error::Result;

/// The keyword DEFAULT.
pub(crate) fn is_default(expression: &ast::Expr) -> bool {
    matches!(expression, ast::Expr::Identifier(name)
        if name.quote_style.is_none() && name.value.eq_ignore_ascii_case("DEFAULT"))
}

/// An expression as a column of this type would hold it.
pub(crate) fn as_stored(expression: &ast::Expr, ty: &ColumnType) -> Result<ast::Expr> {
    let cast = match ty {
        ColumnType::Decimal {
            precision, scale, ..
        } => format!("CAST(0 AS DECIMAL({precision},{scale}))"),
        ColumnType::Date => "CAST(0 AS DATE)".to_string(),
        ColumnType::Time { fsp } => format!("CAST(0 AS TIME({fsp}))"),
        ColumnType::DateTime { fsp } | ColumnType::Timestamp { fsp } => {
            format!("CAST(0 AS DATETIME({fsp}))")
        }
        ty if ty.integer_range().is_some() && ty.is_unsigned() => "CAST(0 AS UNSIGNED)".to_string(),
        ty if ty.integer_range().is_some() => "CAST(0 AS SIGNED)".to_string(),
        _ => return Ok(expression.clone()),
    };
    let mut cast = crate::parser::parse_expression(&cast, &Default::default())?;
    if let ast::Expr::Cast { expr, .. } = &mut cast {
        **expr = expression.clone();
    }
    Ok(cast)
}
