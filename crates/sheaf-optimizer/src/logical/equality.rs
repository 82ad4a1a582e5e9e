//! An equality that joins a relation to others.

use datafusion_expr::{BinaryExpr, Expr, Operator};

/// An equality between the relations so far and a new one, `outer = inner` or `outer <=> inner`.
#[derive(Debug, Clone)]
pub(crate) struct Equality {
    /// Position in the list it came from: the graph's predicates, or the relation's own condition.
    pub origin: usize,
    /// The side over the relations so far.
    pub outer: Expr,
    /// The side over the new relation.
    pub inner: Expr,
    /// NULL equals NULL.
    pub null_equals_null: bool,
}

impl Equality {
    pub(crate) fn operator(&self) -> Operator {
        match self.null_equals_null {
            true => Operator::IsNotDistinctFrom,
            false => Operator::Eq,
        }
    }

    /// The condition that it is.
    pub(crate) fn condition(&self) -> Expr {
        let (outer, inner) = (self.outer.clone(), self.inner.clone());
        Expr::BinaryExpr(BinaryExpr::new(
            Box::new(outer),
            self.operator(),
            Box::new(inner),
        ))
    }
}
