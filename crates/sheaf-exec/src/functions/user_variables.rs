//! `@name := value` and `@name` in a statement that assigns it.
//!
//! The functions belong to one session: they write into and read from a cell, which the session takes over when the
//! statement has ended. A variable has one type in a statement, and what was assigned is read as one of that type. Row
//! by row, in the order of the select list, they mean what MySQL means. So the operators below give them one row at a
//! time (`operator/row_by_row_exec.rs`):
//!
//! ```text
//!   SELECT id, @n := @n + 1 FROM t, (SELECT @n := 0) i ORDER BY id
//!
//!   Project id, $assign_variable(n, $read_variable(n) + 1)
//!     one row at a time
//!       Sort id
//! ```

use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arrow::array::{Array, ArrayRef};
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, ScalarValue, exec_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use sheaf_access::int256_of;
use sheaf_types::Value;

use super::limits::stopped;

/// Gives its argument back, and makes it the value of a variable.
pub const ASSIGN_VARIABLE: &str = "$assign_variable";

/// The value of a variable; its argument is the value before the statement.
pub const READ_VARIABLE: &str = "$read_variable";

/// What the running statement has assigned, by names in lower case. A value is an array of one row.
#[derive(Clone, Debug, Default)]
pub struct AssignedVariables(Arc<Mutex<BTreeMap<String, ArrayRef>>>);

impl AssignedVariables {
    /// Empties the cell.
    pub fn take(&self) -> BTreeMap<String, ArrayRef> {
        std::mem::take(&mut self.values())
    }

    /// What was assigned until now, for [`Self::go_back_to`].
    pub fn so_far(&self) -> BTreeMap<String, ArrayRef> {
        self.values().clone()
    }

    /// Forgets what was assigned since.
    pub fn go_back_to(&self, so_far: &BTreeMap<String, ArrayRef>) {
        self.values().clone_from(so_far);
    }

    /// What was assigned, if anything was.
    pub fn get(&self, variable: &str) -> Option<ArrayRef> {
        self.values().get(variable).cloned()
    }

    fn values(&self) -> MutexGuard<'_, BTreeMap<String, ArrayRef>> {
        // Values are whole after every change.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The function that assigns a variable.
    pub fn assign(&self, variable: &str, field: FieldRef) -> Arc<ScalarUDF> {
        self.function(ASSIGN_VARIABLE, variable, field)
    }

    /// The function that reads a variable.
    pub fn read(&self, variable: &str, field: FieldRef) -> Arc<ScalarUDF> {
        self.function(READ_VARIABLE, variable, field)
    }

    fn function(&self, name: &'static str, variable: &str, field: FieldRef) -> Arc<ScalarUDF> {
        Arc::new(ScalarUDF::from(VariableFunction {
            name,
            variable: variable.to_string(),
            field,
            assigned: self.clone(),
            // The value, and what says that each row has its own.
            signature: Signature::any(2, Volatility::Volatile),
        }))
    }
}

/// Whether a function has to see the rows one by one.
pub fn is_of_variables(function: &ScalarUDF) -> bool {
    matches!(function.name(), ASSIGN_VARIABLE | READ_VARIABLE)
}

/// A value that was assigned, as one of the type that its variable has in the statement. Arrow's conversions are
/// MySQL's, but for those to integers, and for the digits of a DOUBLE.
fn read_as(assigned: &ArrayRef, data_type: &DataType) -> Result<ScalarValue> {
    let value = ScalarValue::try_from_array(assigned, 0)?;
    match data_type {
        DataType::Int64 => {
            // What is too large is the number of the same bits.
            if let ScalarValue::UInt64(Some(unsigned)) = value {
                return Ok(ScalarValue::Int64(Some(unsigned as i64)));
            }
            if let Some(integer) = integer_of(&value) {
                let limits = (i128::from(i64::MIN), i128::from(i64::MAX));
                let integer = integer.clamp(limits.0, limits.1) as i64;
                return Ok(ScalarValue::Int64(Some(integer)));
            }
        }
        DataType::UInt64 => {
            if let ScalarValue::Int64(Some(signed)) = value {
                return Ok(ScalarValue::UInt64(Some(signed as u64)));
            }
            if let Some(integer) = integer_of(&value) {
                // A negative number is the one of the same bits.
                let integer = match i64::try_from(integer) {
                    Ok(signed) => signed as u64,
                    Err(_) => integer.clamp(0, i128::from(u64::MAX)) as u64,
                };
                return Ok(ScalarValue::UInt64(Some(integer)));
            }
        }
        DataType::Utf8 => {
            if let ScalarValue::Float64(Some(number)) = value {
                return Ok(ScalarValue::Utf8(Some(Value::Double(number).to_string())));
            }
        }
        _ => {}
    }
    ScalarValue::try_from_array(&cast(assigned, data_type)?, 0)
}

/// What a value is as an integer: of a text what it begins with. `None` for NULL and for integers.
fn integer_of(value: &ScalarValue) -> Option<i128> {
    match value {
        ScalarValue::Utf8(Some(text)) | ScalarValue::Utf8View(Some(text)) => {
            Some(leading_integer(text.as_bytes()))
        }
        ScalarValue::Binary(Some(bytes)) => Some(leading_integer(bytes)),
        ScalarValue::Float64(Some(number)) => Some(*number as i128),
        ScalarValue::Decimal128(Some(digits), _, scale) => {
            let unit = 10_i128.checked_pow(u32::try_from(*scale).ok()?)?;
            let away = unit / 2 * digits.signum();
            Some(digits.checked_add(away)? / unit)
        }
        ScalarValue::Decimal256(Some(digits), _, scale) => {
            let whole = int256_of(*digits).rescaled(u8::try_from(*scale).ok()?, 0)?;
            whole.to_i128()
        }
        _ => None,
    }
}

fn leading_integer(text: &[u8]) -> i128 {
    let text = text.trim_ascii_start();
    let (is_negative, digits) = match text {
        [b'-', digits @ ..] => (true, digits),
        [b'+', digits @ ..] => (false, digits),
        digits => (false, digits),
    };
    let digits = digits.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0_i128, |number, digit| {
        number
            .saturating_mul(10)
            .saturating_add(i128::from(digit - b'0'))
    });
    match is_negative {
        true => -number,
        false => number,
    }
}

#[derive(Debug)]
struct VariableFunction {
    name: &'static str,
    variable: String,
    field: FieldRef,
    assigned: AssignedVariables,
    signature: Signature,
}

/// There is one session in a plan.
impl PartialEq for VariableFunction {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.variable == other.variable && self.field == other.field
    }
}

impl Eq for VariableFunction {}

impl Hash for VariableFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        (self.name, &self.variable).hash(state);
    }
}

impl ScalarUDFImpl for VariableFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(self.field.data_type().clone())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs) -> Result<FieldRef> {
        Ok(Arc::clone(&self.field))
    }

    /// Of several rows the last one is assigned.
    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(value) = arguments.args.first() else {
            return exec_err!("a user variable without its value");
        };
        // The statement keeps what is assigned, and gets a copy of what is read.
        if !sheaf_memory::may_go_on() {
            return Err(stopped());
        }
        let data_type = self.field.data_type();
        if self.name == ASSIGN_VARIABLE {
            let array = cast(&value.to_array(arguments.number_rows)?, data_type)?;
            if let Some(last) = array.len().checked_sub(1) {
                let value = array.slice(last, 1);
                self.assigned.values().insert(self.variable.clone(), value);
            }
            return Ok(ColumnarValue::Array(array));
        }
        match self.assigned.values().get(&self.variable) {
            Some(assigned) => Ok(ColumnarValue::Scalar(read_as(assigned, data_type)?)),
            None => Ok(value.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use arrow::array::{Decimal128Array, Float64Array, Int64Array, StringArray};

    use super::*;

    #[test]
    fn what_was_assigned_is_read_as_the_type_of_the_variable() {
        let decimal = |digits| {
            let array = Decimal128Array::from(vec![digits]).with_precision_and_scale(38, 2);
            Arc::new(array.expect("digits")) as ArrayRef
        };
        let text = |text: &str| Arc::new(StringArray::from(vec![text])) as ArrayRef;
        let double = |number| Arc::new(Float64Array::from(vec![number])) as ArrayRef;
        let integer = Arc::new(Int64Array::from(vec![-7])) as ArrayRef;
        for (assigned, as_integer, as_text) in [
            (decimal(275), 3, "2.75"),
            (decimal(-350), -4, "-3.50"),
            (decimal(49), 0, "0.49"),
            (text("test"), 0, "test"),
            (text(" -12abc"), -12, " -12abc"),
            (text("2020-01-01"), 2020, "2020-01-01"),
            (
                text("99999999999999999999"),
                i64::MAX,
                "99999999999999999999",
            ),
            (double(2.0), 2, "2"),
            (double(-2.5), -2, "-2.5"),
            (integer, -7, "-7"),
        ] {
            let read = |data_type| read_as(&assigned, &data_type).expect("a value");
            assert_eq!(read(DataType::Int64), ScalarValue::Int64(Some(as_integer)));
            assert_eq!(
                read(DataType::Utf8),
                ScalarValue::Utf8(Some(as_text.to_string()))
            );
            let bits = ScalarValue::UInt64(Some(as_integer as u64));
            // What is too large is so for each of them.
            if as_integer != i64::MAX {
                assert_eq!(read(DataType::UInt64), bits);
            }
        }
    }
}
