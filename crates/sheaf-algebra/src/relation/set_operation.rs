//! UNION, EXCEPT and INTERSECT, with ALL. What is without ALL is [distinct](Relation::distinct) above.
//!
//! The inputs have columns of the same types, position by position; the binder sees to that. Rows are equal as keys of
//! a [Group](super::Group) are.

use super::{Operator, Relation};
use crate::column::ColumnId;

#[derive(Clone, Debug)]
pub struct SetOperation {
    pub kind: SetKind,
    /// Two or more of a union, otherwise two.
    pub inputs: Vec<Relation>,
    /// The columns of the whole. Those of an input correspond to them in their order.
    pub columns: Vec<ColumnId>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetKind {
    Union,
    Except,
    Intersect,
}

impl Relation {
    pub fn set_operation(kind: SetKind, inputs: Vec<Relation>, columns: Vec<ColumnId>) -> Relation {
        Operator::SetOperation(SetOperation {
            kind,
            inputs,
            columns,
        })
        .into()
    }
}
