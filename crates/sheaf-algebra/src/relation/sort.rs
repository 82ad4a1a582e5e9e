//! Rows in an order: texts by their collation, ENUMs by their numbers, NULL before all others.

use super::{Operator, Relation};
use crate::scalar::Scalar;

#[derive(Clone, Debug)]
pub struct Sort {
    pub input: Box<Relation>,
    pub keys: Vec<SortKey>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct SortKey {
    pub value: Scalar,
    pub descends: bool,
}

impl Relation {
    /// What is constant orders nothing.
    pub fn sort(self, mut keys: Vec<SortKey>) -> Relation {
        keys.retain(|key| key.value.as_literal().is_none());
        match keys.is_empty() {
            true => self,
            false => Operator::Sort(Sort {
                input: Box::new(self),
                keys,
            })
            .into(),
        }
    }
}
