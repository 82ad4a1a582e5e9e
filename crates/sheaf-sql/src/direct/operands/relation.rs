//! How two values stand to each other, as a comparison says it, and a column to the operands of one.

use std::cmp::Ordering;

use smallvec::SmallVec;
use sqlparser::ast;

use super::operand::Place;

/// `<` and its like. `<>` is tested, and never bound by keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::direct) enum Relation {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

impl Relation {
    pub(in crate::direct) fn of(op: &ast::BinaryOperator) -> Option<Relation> {
        Some(match op {
            ast::BinaryOperator::Eq => Relation::Equal,
            ast::BinaryOperator::NotEq => Relation::NotEqual,
            ast::BinaryOperator::Lt => Relation::Less,
            ast::BinaryOperator::LtEq => Relation::LessOrEqual,
            ast::BinaryOperator::Gt => Relation::Greater,
            ast::BinaryOperator::GtEq => Relation::GreaterOrEqual,
            _ => return None,
        })
    }

    /// The relation of the operands the other way round.
    pub(in crate::direct) fn swapped(self) -> Relation {
        match self {
            Relation::Equal | Relation::NotEqual => self,
            Relation::Less => Relation::Greater,
            Relation::LessOrEqual => Relation::GreaterOrEqual,
            Relation::Greater => Relation::Less,
            Relation::GreaterOrEqual => Relation::LessOrEqual,
        }
    }

    pub(in crate::direct) fn is_upper(self) -> bool {
        matches!(self, Relation::Less | Relation::LessOrEqual)
    }

    pub(in crate::direct) fn is_lower(self) -> bool {
        matches!(self, Relation::Greater | Relation::GreaterOrEqual)
    }

    /// Whether a value that stands so to the operand fulfils the comparison.
    pub(in crate::direct) fn holds(self, order: Ordering) -> bool {
        match self {
            Relation::Equal => order.is_eq(),
            Relation::NotEqual => order.is_ne(),
            Relation::Less => order.is_lt(),
            Relation::LessOrEqual => order.is_le(),
            Relation::Greater => order.is_gt(),
            Relation::GreaterOrEqual => order.is_ge(),
        }
    }
}

/// Relations that hold all, nearly always one.
pub(in crate::direct) type Branch = SmallVec<[(Relation, Place); 1]>;
