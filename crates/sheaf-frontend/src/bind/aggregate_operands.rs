//! What aggregates compute with.
//!
//! MIN and MAX of a column have its type. Of any other expression they have the widest type of its kind, as a value in
//! a temporary table has:
//!
//! ```text
//!   column                  MAX(column)                MAX(COALESCE(column, column))
//!   bit(5)                  bit(5)                     bigint unsigned
//!   year                    year                       bigint unsigned
//!   float, float(8,2)       float, float(8,2)          double, double(8,2)
//!   int(5) zerofill         int(5) zerofill            bigint unsigned
//!   decimal(6,2) zerofill   decimal(6,2) zerofill      decimal(6,2)
//! ```

use std::iter;

use arrow::datatypes::{DataType, Field};
use sheaf_algebra::Scalar;
use sheaf_exec::functions::SqlType;
use sheaf_exec::functions::types::{bit_length, field, float_decimals, zerofill};
use sqlparser::ast::Expr;

use super::{Binder, Bound};
use crate::syntax::{bare, is_plain_column};

/// Whether an expression is the name of a column.
pub(super) fn is_name(expr: &Expr) -> bool {
    is_plain_column(bare(expr)).is_some()
}

/// What MIN and MAX make of a value that is no column; `None` where it stays as it is.
fn widest(of: &Field) -> Option<Field> {
    let is_number_only = bit_length(of).is_some() || zerofill(of).is_some();
    match SqlType::of(of) {
        SqlType::Float => Some(field::double_of(float_decimals(of))),
        ty if ty.is_year() => Some(field::unsigned_bigint()),
        ty if ty.is_integer() && is_number_only => Some(field::unsigned_bigint()),
        _ if is_number_only => Some(match of.data_type() {
            DataType::Float64 => field::double_of(float_decimals(of)),
            ty => Field::new("", ty.clone(), true),
        }),
        _ => None,
    }
}

impl Binder<'_> {
    /// Operands of MIN and MAX that are no columns.
    pub(super) fn of_no_column(&self, operands: Vec<Scalar>) -> Bound<Vec<Scalar>> {
        let widened = |operand: Scalar| match widest(operand.field()) {
            Some(to) => Ok(self.typing().column_of(operand, &to)?),
            None => Ok(operand),
        };
        operands.into_iter().map(widened).collect()
    }

    /// What the rows of a temporary table have of values: DISTINCT and windows see a quotient without its guard digits.
    pub(super) fn as_stored(&self, operands: Vec<Scalar>) -> Bound<Vec<Scalar>> {
        let stored = |operand| self.call("$result", vec![operand]);
        operands.into_iter().map(stored).collect()
    }

    /// Keys of an order as one. `directions` has a letter for each: `a`scending or `d`escending.
    pub(super) fn one_sort_key(&self, directions: &str, keys: Vec<Scalar>) -> Bound<Scalar> {
        let directions = self.text(directions)?;
        let keys = self.as_stored(keys)?;
        self.call("$sort_key", iter::once(directions).chain(keys).collect())
    }

    /// What aggregates compute with, as operators would.
    pub(super) fn computed_with(
        &self,
        aggregate: &str,
        distinct: bool,
        mut operands: Vec<Scalar>,
    ) -> Bound<Vec<Scalar>> {
        Ok(match aggregate {
            "bit_and" | "bit_or" | "bit_xor" => {
                // Unlike to the operators, what is beyond BIGINT is the greatest signed one to them.
                let ty = operands.first().map(Scalar::sql_type);
                if ty.is_some_and(|ty| ty.is_float() || matches!(ty, SqlType::Decimal { .. })) {
                    operands = vec![self.call("$cast_signed", operands)?];
                }
                operands.push(self.integer(0));
                vec![self.call("$bit_or", operands)?]
            }
            "stddev_pop" | "stddev" | "var_pop" | "var" => {
                vec![self.call("$cast_double", operands)?]
            }
            // Of the numbers, not of the texts that say them.
            "avg" if distinct => {
                operands.push(self.integer(0));
                vec![self.call("$add", operands)?]
            }
            _ => operands,
        })
    }
}
