//! What the parent of a node would like of its rows.

use datafusion_expr::SortExpr;

/// What a parent would like, but does not rely on.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    /// Sort expressions over the node's output.
    pub order: Vec<SortExpr>,
    /// No more than about this many rows will be taken.
    pub limit: Option<usize>,
}

impl Wanted {
    /// An order that cannot be said is dropped. Then all rows will be taken, to be sorted.
    pub(crate) fn said(order: Option<Vec<SortExpr>>, limit: Option<usize>) -> Wanted {
        match order {
            Some(order) => Wanted { order, limit },
            None => Wanted::default(),
        }
    }
}
