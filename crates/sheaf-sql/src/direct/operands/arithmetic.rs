//! Arithmetic of whole numbers, in what keys are compared with: `id > ? - 20`, `n.id = o.a + 1`.
//!
//! Sums, differences and products of whole numbers are exact. All rules of MySQL's typing agree on them as long as they
//! are BIGINTs, and not negative where one of the numbers is unsigned. Whatever else comes out of them has no value
//! here: whether it is an error (1690), or a number of another type, is for the vectorised path to say.

use sheaf_types::Value;
use sqlparser::ast;

/// An expression over whole numbers, which its leaves give.
#[derive(Clone, Debug)]
pub(in crate::direct) enum Arithmetic<L> {
    Leaf(L),
    Negated(Box<Arithmetic<L>>),
    Both(Operation, Box<[Arithmetic<L>; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::direct) enum Operation {
    Add,
    Subtract,
    Multiply,
}

/// A whole number.
#[derive(Clone, Copy, Debug)]
struct Number {
    /// `None`: NULL.
    value: Option<i128>,
    /// It is, or is computed of, what may be of an unsigned type.
    is_unsigned: bool,
}

impl<L> Arithmetic<L> {
    /// `None` for any other expression. `leaf` tells what a part of it is that is no arithmetic.
    pub(in crate::direct) fn of(
        expr: &ast::Expr,
        leaf: &mut dyn FnMut(&ast::Expr) -> Option<L>,
    ) -> Option<Arithmetic<L>> {
        if let Some(leaf) = leaf(expr) {
            return Some(Arithmetic::Leaf(leaf));
        }
        match expr {
            ast::Expr::Nested(inner) => Arithmetic::of(inner, leaf),
            ast::Expr::UnaryOp {
                op: ast::UnaryOperator::Minus,
                expr: inner,
            } => Some(Arithmetic::Negated(Box::new(Arithmetic::of(inner, leaf)?))),
            ast::Expr::BinaryOp { left, op, right } => {
                let operation = match op {
                    ast::BinaryOperator::Plus => Operation::Add,
                    ast::BinaryOperator::Minus => Operation::Subtract,
                    ast::BinaryOperator::Multiply => Operation::Multiply,
                    _ => return None,
                };
                let sides = [Arithmetic::of(left, leaf)?, Arithmetic::of(right, leaf)?];
                Some(Arithmetic::Both(operation, Box::new(sides)))
            }
            _ => None,
        }
    }

    /// The same of other leaves.
    pub(in crate::direct) fn map<M>(&self, to: &mut dyn FnMut(&L) -> M) -> Arithmetic<M> {
        match self {
            Arithmetic::Leaf(leaf) => Arithmetic::Leaf(to(leaf)),
            Arithmetic::Negated(inner) => Arithmetic::Negated(Box::new(inner.map(to))),
            Arithmetic::Both(operation, sides) => {
                let [left, right] = sides.as_ref();
                Arithmetic::Both(*operation, Box::new([left.map(to), right.map(to)]))
            }
        }
    }

    /// Whether something holds for all leaves.
    pub(in crate::direct) fn all(&self, holds: &mut dyn FnMut(&L) -> bool) -> bool {
        match self {
            Arithmetic::Leaf(leaf) => holds(leaf),
            Arithmetic::Negated(inner) => inner.all(holds),
            Arithmetic::Both(_, sides) => sides.iter().all(|side| side.all(holds)),
        }
    }

    /// As a statement has it. `leaf` writes the leaves.
    pub(in crate::direct) fn text(&self, leaf: &dyn Fn(&L) -> String) -> String {
        match self {
            Arithmetic::Leaf(own) => leaf(own),
            Arithmetic::Negated(inner) => format!("-({})", inner.text(leaf)),
            Arithmetic::Both(operation, sides) => {
                let [left, right] = sides.as_ref();
                let sign = match operation {
                    Operation::Add => '+',
                    Operation::Subtract => '-',
                    Operation::Multiply => '*',
                };
                format!("({} {sign} {})", left.text(leaf), right.text(leaf))
            }
        }
    }

    /// What it comes to; `None` if that has no value here.
    pub(in crate::direct) fn value<'v>(
        &'v self,
        leaf: &dyn Fn(&'v L) -> &'v Value,
    ) -> Option<Value> {
        let number = self.number(leaf)?;
        match number.value {
            None => Some(Value::Null),
            Some(value) => i64::try_from(value).ok().map(Value::Int),
        }
    }

    fn number<'v>(&'v self, leaf: &dyn Fn(&'v L) -> &'v Value) -> Option<Number> {
        let (sides, operation): (&[Arithmetic<L>], _) = match self {
            Arithmetic::Leaf(own) => return Number::of(leaf(own)),
            Arithmetic::Negated(inner) => (std::slice::from_ref(inner.as_ref()), None),
            Arithmetic::Both(operation, sides) => (sides.as_slice(), Some(operation)),
        };
        let numbers: Option<smallvec::SmallVec<[Number; 2]>> =
            sides.iter().map(|side| side.number(leaf)).collect();
        let numbers = numbers?;
        let is_unsigned = numbers.iter().any(|number| number.is_unsigned);
        let values: Option<smallvec::SmallVec<[i128; 2]>> =
            numbers.iter().map(|number| number.value).collect();
        let Some(values) = values else {
            return Some(Number {
                value: None,
                is_unsigned,
            });
        };
        let value = match (operation, values.as_slice()) {
            (None, [value]) => value.checked_neg(),
            (Some(Operation::Add), [left, right]) => left.checked_add(*right),
            (Some(Operation::Subtract), [left, right]) => left.checked_sub(*right),
            (Some(Operation::Multiply), [left, right]) => left.checked_mul(*right),
            _ => None,
        }?;
        let is_plain = i64::try_from(value).is_ok() && (value >= 0 || !is_unsigned);
        is_plain.then_some(Number {
            value: Some(value),
            is_unsigned,
        })
    }
}

impl Number {
    /// `None` of what is no whole number.
    fn of(value: &Value) -> Option<Number> {
        let is_unsigned = matches!(value, Value::UInt(_));
        let value = match value {
            Value::Null => None,
            Value::Int(_) | Value::UInt(_) => Some(value.as_i128()?),
            _ => return None,
        };
        Some(Number { value, is_unsigned })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;
    use crate::parser::parse_expression;

    fn value(text: &str, named: &[(&str, Value)]) -> Option<Value> {
        let expr = parse_expression(text, &SheafDialect::default()).expect(text);
        let arithmetic = Arithmetic::of(&expr, &mut |expr| match expr {
            ast::Expr::Identifier(name) => {
                let found = named.iter().find(|(known, _)| *known == name.value)?;
                Some(found.1.clone())
            }
            ast::Expr::Value(value) => match &value.value {
                ast::Value::Number(digits, _) => digits.parse().ok().map(Value::Int),
                ast::Value::Null => Some(Value::Null),
                _ => None,
            },
            _ => None,
        })?;
        arithmetic.value(&|leaf| leaf)
    }

    #[test]
    fn whole_numbers_come_to_whole_numbers() {
        let named = [
            ("a", Value::Int(-7)),
            ("u", Value::UInt(3)),
            ("n", Value::Null),
        ];
        for (text, expected) in [
            ("a + 1", Some(-6)),
            ("(a) - -2", Some(-5)),
            ("-a * 2 + u", Some(17)),
            ("u - 3", Some(0)),
            ("a * a * a", Some(-343)),
        ] {
            assert_eq!(value(text, &named), expected.map(Value::Int), "{text}");
        }
        for text in ["n + 1", "a * n", "-n", "u - n"] {
            assert_eq!(value(text, &named), Some(Value::Null), "{text}");
        }
        for other in ["a / 2", "a + b", "a % 2", "a + 'x'", "abs(a)", "1.5 + 1"] {
            assert_eq!(value(other, &named), None, "{other}");
        }
    }

    #[test]
    fn what_the_rules_do_not_agree_on_has_no_value() {
        let named = [
            ("most", Value::Int(i64::MAX)),
            ("least", Value::Int(i64::MIN)),
            ("large", Value::UInt(u64::MAX)),
            ("u", Value::UInt(3)),
            ("n", Value::Null),
            ("d", Value::Double(1.0)),
        ];
        for text in [
            "most + 1",
            "least - 1",
            "-least",
            "most * 2",
            "u - 4",
            "-u",
            "u * -1",
            "large + 0",
            "n + (most + 1)",
            "n + (u - 4)",
            "most + 1 - 1",
            "u - 4 + 1",
            "d + 1",
        ] {
            assert_eq!(value(text, &named), None, "{text}");
        }
    }
}
