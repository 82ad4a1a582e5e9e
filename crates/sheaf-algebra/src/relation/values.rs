//! Rows as the statement writes them. One row without columns is what a SELECT without FROM selects from.

use super::{Operator, Relation};
use crate::column::ColumnId;
use crate::scalar::Scalar;

#[derive(Clone, Debug)]
pub struct Values {
    pub columns: Vec<ColumnId>,
    /// As many values each as there are columns, position by position of one type.
    pub rows: Vec<Vec<Scalar>>,
}

impl Relation {
    /// One row without columns.
    pub fn unit() -> Relation {
        Operator::Values(Values {
            columns: Vec::new(),
            rows: vec![Vec::new()],
        })
        .into()
    }

    /// Whether it is [`unit`](Self::unit).
    pub fn is_unit(&self) -> bool {
        matches!(self.operator(), Operator::Values(values) if values.columns.is_empty() && values.rows.len() == 1)
    }
}
