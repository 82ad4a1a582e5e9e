//! What an assignment of an UPDATE gives a column, and how that is computed from the old row.

use std::borrow::Cow;

use sheaf_table::Column;
use sheaf_types::assignment::Mode;
use sheaf_types::{ColumnType, Value};
use sqlparser::ast;

use crate::change::values::sum::{is_exact_number, sum};
use crate::direct::expression::Evaluator;
use crate::direct::operands::operand::Operand;
use crate::direct::syntax::names::{ColumnNames, Names};
use crate::query::values::shown_in;
use crate::session::result::Origin;

#[derive(Debug)]
pub(super) struct Assignment {
    pub(super) column: usize,
    pub(super) value: NewValue,
}

#[derive(Debug)]
pub(super) enum NewValue {
    Operand(Operand),
    /// What a column holds by then.
    Column(usize),
    /// What a column holds by then, plus or minus a number.
    Sum {
        column: usize,
        negated: bool,
        operand: Operand,
    },
    Default,
    /// By its number among those of the statement.
    Given(usize),
    /// An expression, by its number.
    Computed {
        item: usize,
        /// It names a column that an assignment before has changed.
        sees_assigned: bool,
    },
}

/// What the values of a run depend on besides its rows.
pub(super) struct Inputs<'a> {
    pub(super) parameters: &'a [Value],
    /// With the fraction digits that they show.
    pub(super) given: Vec<(Value, Origin)>,
    pub(super) evaluator: Option<Evaluator>,
    pub(super) mode: Mode,
    pub(super) now_micros: i64,
}

impl NewValue {
    pub(super) fn of(expr: &ast::Expr, names: &Names<'_>) -> Option<NewValue> {
        if let Some(operand) = Operand::of(expr) {
            return Some(NewValue::Operand(operand));
        }
        let columns = &names.definition().columns;
        if let Some(column) = names.column(expr) {
            // Only what has a place of its own among the values; the others have a text that depends on more.
            return is_exact_number(&columns[column].ty).then_some(NewValue::Column(column));
        }
        let ast::Expr::BinaryOp { left, op, right } = expr else {
            return None;
        };
        let (column, operand, negated) = match (op, names.column(left)) {
            (ast::BinaryOperator::Plus, Some(column)) => (column, right, false),
            (ast::BinaryOperator::Minus, Some(column)) => (column, right, true),
            (ast::BinaryOperator::Plus, None) => (names.column(right)?, left, false),
            _ => return None,
        };
        is_exact_number(&columns[column].ty).then_some(())?;
        Some(NewValue::Sum {
            column,
            negated,
            operand: Operand::of(operand)?,
        })
    }

    /// `held` gives what a column holds by then.
    pub(super) fn evaluate<'v>(
        &'v self,
        columns: &[Column],
        held: impl Fn(usize) -> Value,
        (inputs, ty): (&'v Inputs<'_>, &ColumnType),
    ) -> Option<Cow<'v, Value>> {
        let parameters = inputs.parameters;
        match self {
            NewValue::Default | NewValue::Computed { .. } => None,
            NewValue::Given(number) => {
                let (value, origin) = &inputs.given[*number];
                Some(shown_in(value, origin, ty))
            }
            NewValue::Operand(operand) => match operand.value(parameters) {
                // Their texts are for the vectorised path to judge.
                Value::Double(_) => None,
                value => Some(Cow::Borrowed(value)),
            },
            NewValue::Column(column) => Some(Cow::Owned(held(*column))),
            NewValue::Sum {
                column,
                negated,
                operand,
            } => {
                let (ty, operand) = (&columns[*column].ty, operand.value(parameters));
                sum(ty, &held(*column), *negated, operand).map(Cow::Owned)
            }
        }
    }
}
