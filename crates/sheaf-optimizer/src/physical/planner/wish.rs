//! A wish on its way down: said over the columns of an input.

use datafusion_common::{DFSchema, HashMap};
use datafusion_expr::{Expr, Projection, SortExpr};

use crate::access::wanted::Wanted;
use crate::logical::replace_columns;

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
