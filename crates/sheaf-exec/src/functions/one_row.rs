//! The value of a subquery that is computed before the rows around it, and may find several rows.
//!
//! That is error 1242 only if a row comes to the value. So one function, inside of the subquery, notes in a cell
//! whether there were several rows, and another one, in the place of the value, looks into the cell:
//!
//! ```text
//!   SELECT IF(id > 9, (SELECT x FROM u), 1) FROM t
//!
//!   Project IF(id > 9, $one_row(v), 1)
//!     t
//!     v := Project $counted_rows(a, n)
//!            Group a := any value of x, n := count
//!              Limit 2
//!                u
//! ```
//!
//! Functions that choose compute a branch for the rows that come to it, and for none if there is none.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow::array::AsArray;
use arrow::datatypes::{DataType, FieldRef, Int64Type};
use datafusion_common::{Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use sheaf_types::error::codes;

use super::EvaluationError;

/// Rows that the subquery has to find for an error.
pub const SEVERAL_ROWS: u64 = 2;

/// In the subquery: a value of some row, and how many rows there are. It gives the value.
const COUNTED_ROWS: &str = "$counted_rows";

/// In the place of the value, which it gives.
pub(crate) const ONE_ROW: &str = "$one_row";

/// The two functions, which share a cell.
pub struct OneRow {
    pub counted_rows: Arc<ScalarUDF>,
    pub one_row: Arc<ScalarUDF>,
}

impl OneRow {
    pub fn new() -> OneRow {
        let has_several = Arc::new(AtomicBool::new(false));
        let function = |name: &'static str, arguments: usize| {
            Arc::new(ScalarUDF::from(RowFunction {
                name,
                has_several: Arc::clone(&has_several),
                signature: Signature::any(arguments, Volatility::Stable),
            }))
        };
        OneRow {
            counted_rows: function(COUNTED_ROWS, 2),
            one_row: function(ONE_ROW, 1),
        }
    }
}

impl Default for OneRow {
    fn default() -> Self {
        OneRow::new()
    }
}

#[derive(Debug)]
struct RowFunction {
    name: &'static str,
    /// The subquery has found several rows when it ran last.
    has_several: Arc<AtomicBool>,
    signature: Signature,
}

impl PartialEq for RowFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && Arc::ptr_eq(&self.has_several, &other.has_several)
    }
}

impl Eq for RowFunction {}

impl Hash for RowFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
        Arc::as_ptr(&self.has_several).hash(state);
    }
}

impl ScalarUDFImpl for RowFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, arguments: &[DataType]) -> Result<DataType> {
        Ok(arguments[0].clone())
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&args.arg_fields[0]))
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        match args.args.as_slice() {
            [value, rows] => {
                let rows = rows.to_array(args.number_rows)?;
                let rows = rows.as_primitive::<Int64Type>();
                let has_several = rows
                    .iter()
                    .flatten()
                    .any(|rows| rows as u64 >= SEVERAL_ROWS);
                self.has_several.store(has_several, Ordering::Release);
                Ok(value.clone())
            }
            [value] => {
                if args.number_rows > 0 && self.has_several.load(Ordering::Acquire) {
                    let message = "Subquery returns more than 1 row";
                    return Err(EvaluationError::new(codes::SUBQUERY_NO_1_ROW, message).into());
                }
                Ok(value.clone())
            }
            _ => exec_err!("{} of {} arguments", self.name, args.args.len()),
        }
    }
}

#[cfg(test)]
mod tests {
    use arrow::datatypes::Field;
    use datafusion_common::ScalarValue;
    use datafusion_common::config::ConfigOptions;

    use super::*;

    fn call(function: &ScalarUDF, args: &[i64], number_rows: usize) -> Result<ColumnarValue> {
        let field = Arc::new(Field::new("", DataType::Int64, true));
        let value = |value: &i64| ColumnarValue::Scalar(ScalarValue::Int64(Some(*value)));
        function.invoke_with_args(ScalarFunctionArgs {
            args: args.iter().map(value).collect(),
            arg_fields: vec![Arc::clone(&field); args.len()],
            number_rows,
            return_field: field,
            config_options: Arc::new(ConfigOptions::default()),
        })
    }

    #[test]
    fn several_rows_are_an_error_where_a_row_comes_to_the_value() {
        let OneRow {
            counted_rows,
            one_row,
        } = OneRow::new();
        for (rows, is_error) in [(2, true), (1, false), (0, false), (2, true)] {
            assert!(call(&counted_rows, &[7, rows], 1).is_ok());
            assert_eq!(call(&one_row, &[7], 1).is_err(), is_error);
            assert!(call(&one_row, &[7], 0).is_ok());
        }
        assert!(call(&OneRow::new().one_row, &[7], 1).is_ok());
    }
}
