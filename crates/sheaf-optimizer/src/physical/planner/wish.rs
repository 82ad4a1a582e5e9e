//! A wish on its way down: said over the columns of an input.

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, HashMap};
use datafusion_expr::{Expr, Projection, SortExpr};

use crate::access::wanted::Wanted;

/// The wish, said over the projection's input. An order that cannot be said there is dropped.
pub(super) fn through_projection(wanted: &Wanted, projection: &Projection) -> Wanted {
    let mut replacements: HashMap<String, Expr> = HashMap::new();
    for ((qualifier, field), expr) in projection.schema.iter().zip(&projection.expr) {
        let column = datafusion_common::Column::new(qualifier.cloned(), field.name());
        replacements.insert(column.flat_name(), expr.clone().unalias());
    }
    let order = wanted.order.iter().map(|sort| {
        let expr = replace_columns(&sort.expr, &replacements)?;
        Some(SortExpr::new(expr, sort.asc, sort.nulls_first))
    });
    Wanted::said(order.collect(), wanted.limit)
}

/// The wish, said over an input that has the same columns under other qualifiers.
pub(crate) fn through_schema(wanted: &Wanted, outer: &DFSchema, inner: &DFSchema) -> Wanted {
    let mut replacements: HashMap<String, Expr> = HashMap::new();
    for ((qualifier, field), (inner_qualifier, inner_field)) in outer.iter().zip(inner.iter()) {
        let column = datafusion_common::Column::new(qualifier.cloned(), field.name());
        let inner = datafusion_common::Column::new(inner_qualifier.cloned(), inner_field.name());
        replacements.insert(column.flat_name(), Expr::Column(inner));
    }
    let order = wanted.order.iter().map(|sort| {
        let expr = replace_columns(&sort.expr, &replacements)?;
        Some(SortExpr::new(expr, sort.asc, sort.nulls_first))
    });
    Wanted::said(order.collect(), wanted.limit)
}

/// `expr` with its columns replaced; `None` if one has no replacement.
pub(crate) fn replace_columns(expr: &Expr, replacements: &HashMap<String, Expr>) -> Option<Expr> {
    use datafusion_common::tree_node::Transformed;
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
