//! `x IN (1, 5, 7, ...)` with a long list of whole numbers.
//!
//! As an expression for each number such a list takes a hundred times the memory of the numbers, and every step of
//! planning goes through all of it. So the parser leaves a long list packed, as one text. The typing rule makes one
//! function of it, which has the numbers in order and takes one argument:
//!
//! ```text
//!   x IN (7, 1, 5, ...)     $in_numbers(x, '7,1,5,...')     in {1, 5, 7, ...}(x)
//!   parser                  lowering                        typing rule, if x is a whole number
//! ```
//!
//! The planner reads key ranges off the function as it does off a list.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, AsArray, BooleanArray};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Field, FieldRef, Int64Type};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::call_name::name_of_call;

/// Members of a list from which on it is packed.
pub const MIN_PACKED: usize = 1_000;

/// The marker that lowering makes; its second argument is the list as text.
pub const IN_NUMBERS: &str = "$in_numbers";

/// `x IN (numbers)`, for an x that is a whole number.
pub(crate) fn in_numbers(x: Expr, mut numbers: Vec<i64>) -> Expr {
    numbers.sort_unstable();
    numbers.dedup();
    let function = ScalarUDF::from(InNumbers {
        name: format!("$in_{:016x}", hash_of(&numbers)),
        numbers: numbers.into(),
        signature: Signature::any(1, Volatility::Immutable),
    });
    function.call(vec![x])
}

/// The operand and the numbers, in ascending order, of a packed list.
pub fn as_in_numbers(expr: &Expr) -> Option<(&Expr, &[i64])> {
    let Expr::ScalarFunction(call) = expr else {
        return None;
    };
    let function = call.func.inner().downcast_ref::<InNumbers>()?;
    Some((call.args.first()?, &function.numbers[..]))
}

/// The numbers of a packed list; `None` if the text is not one.
pub(crate) fn unpacked(list: &str) -> Option<Vec<i64>> {
    list.split(',').map(|number| number.parse().ok()).collect()
}

fn hash_of(numbers: &[i64]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    numbers.hash(&mut hasher);
    hasher.finish()
}

#[derive(Debug)]
struct InNumbers {
    /// Tells functions with different numbers apart.
    name: String,
    /// Ascending, each once.
    numbers: Arc<[i64]>,
    signature: Signature,
}

impl PartialEq for InNumbers {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.numbers, &other.numbers) || self.numbers == other.numbers
    }
}

impl Eq for InNumbers {}

impl Hash for InNumbers {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for InNumbers {
    fn name(&self) -> &str {
        &self.name
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        name_of_call(self.name(), args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let nullable = args.arg_fields.iter().any(|field| field.is_nullable());
        Ok(Arc::new(Field::new(
            &self.name,
            DataType::Boolean,
            nullable,
        )))
    }

    fn is_strict(&self) -> bool {
        true
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = args.args.first() else {
            return exec_err!("{} without its argument", self.name);
        };
        let array = match value {
            ColumnarValue::Array(array) => Arc::clone(array),
            ColumnarValue::Scalar(value) => value.to_array_of_size(1)?,
        };
        // What does not fit is in no list; it is told apart from NULL by the array's own validity.
        let numbers = cast(&array, &DataType::Int64)?;
        let numbers = numbers.as_primitive::<Int64Type>();
        let found = (0..array.len()).map(|row| {
            let is_in = || numbers.is_valid(row) && self.has(numbers.value(row));
            array.is_valid(row).then(is_in)
        });
        let found: BooleanArray = found.collect();
        Ok(match value {
            ColumnarValue::Array(_) => ColumnarValue::Array(Arc::new(found)),
            ColumnarValue::Scalar(_) => {
                ColumnarValue::Scalar(ScalarValue::try_from_array(&found, 0)?)
            }
        })
    }
}

impl InNumbers {
    fn has(&self, number: i64) -> bool {
        self.numbers.binary_search(&number).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow::array::{ArrayRef, Int32Array, UInt64Array};
    use datafusion_common::config::ConfigOptions;
    use datafusion_expr::col;

    fn evaluate(expr: &Expr, array: ArrayRef) -> Vec<Option<bool>> {
        let Expr::ScalarFunction(call) = expr else {
            panic!("{expr} is no call");
        };
        let rows = array.len();
        let field = Arc::new(Field::new("x", array.data_type().clone(), true));
        let args = ScalarFunctionArgs {
            args: vec![ColumnarValue::Array(array)],
            arg_fields: vec![field],
            number_rows: rows,
            return_field: Arc::new(Field::new("f", DataType::Boolean, true)),
            config_options: Arc::new(ConfigOptions::default()),
        };
        let found = call.func.invoke_with_args(args).unwrap();
        let found = found.into_array(rows).unwrap();
        found.as_boolean().iter().collect()
    }

    #[test]
    fn numbers_are_found_and_null_is_unknown() {
        let list = unpacked("7,-1,5,7").unwrap();
        let expr = in_numbers(col("x"), list);
        assert_eq!(
            as_in_numbers(&expr),
            Some((&col("x"), [-1, 5, 7].as_slice()))
        );
        let small = Int32Array::from(vec![Some(7), Some(6), None, Some(-1)]);
        assert_eq!(
            evaluate(&expr, Arc::new(small)),
            [Some(true), Some(false), None, Some(true)]
        );
        let large = UInt64Array::from(vec![Some(u64::MAX), Some(5), None]);
        assert_eq!(
            evaluate(&expr, Arc::new(large)),
            [Some(false), Some(true), None]
        );
        assert_eq!(unpacked("1,x"), None);
    }

    #[test]
    fn lists_are_the_same_if_their_numbers_are() {
        let list = |numbers: &[i64]| in_numbers(col("x"), numbers.to_vec());
        assert_eq!(list(&[1, 2]), list(&[2, 1, 2]));
        assert_ne!(list(&[1, 2]), list(&[1, 3]));
        assert_ne!(
            list(&[1, 2]).schema_name().to_string(),
            list(&[1, 3]).schema_name().to_string()
        );
    }
}
