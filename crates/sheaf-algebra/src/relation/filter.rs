//! The rows for which a condition is true; not those for which it is unknown.

use super::{Operator, Relation};
use crate::scalar::Scalar;

#[derive(Clone, Debug)]
pub struct Filter {
    pub input: Box<Relation>,
    pub condition: Scalar,
}

impl Relation {
    /// The rows for which the condition is true. A filter of a filter is one.
    pub fn filter(self, condition: Scalar) -> Relation {
        match self.operator {
            Operator::Filter(filter) => Operator::Filter(Filter {
                condition: Scalar::and([filter.condition, condition]),
                input: filter.input,
            })
            .into(),
            _ => Operator::Filter(Filter {
                input: Box::new(self),
                condition,
            })
            .into(),
        }
    }
}
