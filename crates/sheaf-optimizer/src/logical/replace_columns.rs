//! Other expressions in the place of columns.

use datafusion_common::HashMap;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::Expr;

/// `expr` with its columns replaced; `None` if one has no replacement.
pub(crate) fn replace_columns(expr: &Expr, replacements: &HashMap<String, Expr>) -> Option<Expr> {
    let mut complete = true;
    let replaced = expr.clone().transform(|expr| {
        let Expr::Column(column) = &expr else {
            return Ok(Transformed::no(expr));
        };
        match replacements.get(&column.flat_name()) {
            // The replacement is final: it may contain a column of the same name.
            Some(new) => Ok(Transformed::new(new.clone(), true, TreeNodeRecursion::Jump)),
            None => {
                complete = false;
                Ok(Transformed::no(expr))
            }
        }
    });
    replaced
        .ok()
        .filter(|_| complete)
        .map(|replaced| replaced.data)
}
