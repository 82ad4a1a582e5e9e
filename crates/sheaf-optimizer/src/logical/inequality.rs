//! A comparison by which a row of a relation lies above or below something of other rows.
//!
//! Two of them that say how far what they compare with is apart bound how many values lie between them:
//!
//! ```text
//!   t.id >= o.a + 1  AND  t.id < o.a + 4        3 values
//! ```

use arrow::datatypes::DataType;
use datafusion_common::ScalarValue;
use datafusion_expr::{BinaryExpr, Expr, Operator};
use sheaf_exec::functions::as_function;
use sheaf_exec::keyed_join::exec::BoundSide;

/// An inequality between a new relation and those so far, `inner operator outer`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Inequality {
    /// Position in the list it came from: the graph's predicates, or the relation's own condition.
    pub origin: usize,
    /// The side over the new relation.
    pub inner: Expr,
    pub operator: Operator,
    /// The side over the relations so far.
    pub outer: Expr,
}

impl Inequality {
    /// Which bound of the inner side the outer one is.
    pub(crate) fn side(&self) -> BoundSide {
        match self.operator {
            Operator::Gt | Operator::GtEq => BoundSide::Lower,
            _ => BoundSide::Upper,
        }
    }

    /// Whether the bound itself satisfies it.
    pub(crate) fn is_inclusive(&self) -> bool {
        matches!(self.operator, Operator::GtEq | Operator::LtEq)
    }

    /// The condition that it is.
    pub(crate) fn condition(&self) -> Expr {
        let (inner, outer) = (self.inner.clone(), self.outer.clone());
        Expr::BinaryExpr(BinaryExpr::new(
            Box::new(inner),
            self.operator,
            Box::new(outer),
        ))
    }
}

/// Whether a condition compares by one of the operators of an [`Inequality`].
pub(crate) fn sides(expr: &Expr) -> Option<(&Expr, Operator, &Expr)> {
    match expr {
        Expr::BinaryExpr(BinaryExpr {
            left,
            op: op @ (Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq),
            right,
        }) => Some((left, *op, right)),
        _ => None,
    }
}

/// How many whole numbers, or days, satisfy both a lower and an upper bound, if that is the same for all rows.
pub(crate) fn values_between(lower: &Inequality, upper: &Inequality) -> Option<f64> {
    let (first, lower_offset) = with_offset(&lower.outer);
    let (last, upper_offset) = with_offset(&upper.outer);
    let excluded = [lower, upper].map(|bound| match bound.is_inclusive() {
        true => 0.0,
        false => 1.0,
    });
    let values = upper_offset - lower_offset + 1.0 - excluded[0] - excluded[1];
    (first == last).then_some(values.max(0.0))
}

/// What a number of whole ones, or of days, is added to, and that number.
fn with_offset(expr: &Expr) -> (&Expr, f64) {
    match expr {
        Expr::Alias(alias) => with_offset(&alias.expr),
        Expr::Cast(cast) if cast.field.data_type().is_integer() => with_offset(&cast.expr),
        Expr::ScalarFunction(call) => {
            let name = as_function(&call.func).map(|function| function.name);
            let (of, offset) = match (name, call.args.as_slice()) {
                (Some("$add"), [of, number]) if whole_number(number).is_some() => {
                    (of, whole_number(number))
                }
                (Some("$add"), [number, of]) => (of, whole_number(number)),
                (Some("$subtract" | "$signed_subtract"), [of, number]) => {
                    (of, whole_number(number).map(|by| -by))
                }
                (Some("$date_add"), [of, number, unit]) if is_day(unit) => {
                    (of, whole_number(number))
                }
                (Some("$date_sub"), [of, number, unit]) if is_day(unit) => {
                    (of, whole_number(number).map(|by| -by))
                }
                _ => return (expr, 0.0),
            };
            let Some(offset) = offset else {
                return (expr, 0.0);
            };
            let (base, inner_offset) = with_offset(of);
            (base, inner_offset + offset)
        }
        other => (other, 0.0),
    }
}

fn whole_number(expr: &Expr) -> Option<f64> {
    match expr {
        Expr::Alias(alias) => whole_number(&alias.expr),
        Expr::Cast(cast) => whole_number(&cast.expr),
        Expr::Literal(value, _) if value.data_type().is_integer() => {
            match value.cast_to(&DataType::Float64).ok()? {
                ScalarValue::Float64(number) => number,
                _ => None,
            }
        }
        _ => None,
    }
}

fn is_day(expr: &Expr) -> bool {
    match expr {
        Expr::Literal(value, _) => {
            let unit = value.try_as_str().flatten();
            unit.is_some_and(|unit| unit.eq_ignore_ascii_case("day"))
        }
        _ => false,
    }
}
