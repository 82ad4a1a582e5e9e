//! Places in a plan for values that each of its runs has of its own.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_common::tree_node::TreeNode;
use datafusion_expr::Expr;
use datafusion_expr::expr::Placeholder;

/// A place in a plan that is not bound yet.
pub(crate) fn place(number: usize, field: &FieldRef) -> Expr {
    let field = Arc::new(field.as_ref().clone().with_nullable(true));
    Expr::Placeholder(Placeholder::new_with_field(
        format!("?{number}"),
        Some(field),
    ))
}

/// The number of a place.
pub(crate) fn number_of(expr: &Expr) -> Option<usize> {
    match expr {
        Expr::Placeholder(place) => place.id.strip_prefix('?')?.parse().ok(),
        _ => None,
    }
}

/// Whether something in an expression is a place.
pub(crate) fn has_places(expr: &Expr) -> bool {
    let found = expr.exists(|expr| Ok(matches!(expr, Expr::Placeholder(_))));
    // The closure does not fail.
    found.unwrap_or(true)
}
