//! Joins of sides that are computed independently of each other.
//!
//! The condition is all that a pair has to meet. Which of its parts are pairs of `=` and `<=>` between the sides, that
//! can be keys of a hash table or of an index, is read off it ([`Join::pairs`]): it changes when rules move conditions.

use super::{Operator, Relation};
use crate::column::ColumnId;
use crate::column_set::ColumnSet;
use crate::scalar::{Comparison, Scalar, ScalarKind};

#[derive(Clone, Debug)]
pub struct Join {
    pub kind: JoinKind,
    pub left: Box<Relation>,
    pub right: Box<Relation>,
    /// `None`: all pairs.
    pub condition: Option<Scalar>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JoinKind {
    Inner,
    /// Rows of the left side without a partner come with NULL in all columns of the right.
    LeftOuter,
    /// Rows of the left side that have a partner, once each.
    Semi,
    /// Rows of the left side that have none.
    Anti,
    /// All rows of the left side, and a column that is true where they have a partner. Of two values: the condition is
    /// never unknown, or what it is then does not matter.
    Mark(ColumnId),
}

/// An equality between the sides of a join.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// Of columns of the left side.
    pub left: &'a Scalar,
    pub right: &'a Scalar,
    /// `<=>`.
    pub null_safe: bool,
}

impl Join {
    /// The equalities between the sides.
    pub fn pairs(&self) -> Vec<Pair<'_>> {
        let (left, right) = (self.left.column_set(), self.right.column_set());
        let conjuncts = self.condition.iter().flat_map(Scalar::conjuncts);
        conjuncts
            .filter_map(|conjunct| pair(conjunct, &left, &right))
            .collect()
    }
}

fn pair<'a>(conjunct: &'a Scalar, left: &ColumnSet, right: &ColumnSet) -> Option<Pair<'a>> {
    let ScalarKind::Comparison {
        operator,
        left: one,
        right: other,
    } = conjunct.kind()
    else {
        return None;
    };
    let null_safe = match operator {
        Comparison::Equal => false,
        Comparison::NullSafeEqual => true,
        _ => return None,
    };
    let (of_one, of_other) = (one.columns(), other.columns());
    if of_one.is_empty() || of_other.is_empty() {
        return None;
    }
    let (one, other) = match (of_one.is_subset(left), of_other.is_subset(right)) {
        (true, true) => (one, other),
        _ if of_one.is_subset(right) && of_other.is_subset(left) => (other, one),
        _ => return None,
    };
    Some(Pair {
        left: one,
        right: other,
        null_safe,
    })
}

impl Relation {
    pub fn join(self, kind: JoinKind, right: Relation, condition: Option<Scalar>) -> Relation {
        Operator::Join(Join {
            kind,
            left: Box::new(self),
            right: Box::new(right),
            condition,
        })
        .into()
    }
}
