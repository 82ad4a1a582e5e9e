//! `@name := value` and `@name` in a statement that assigns it.
//!
//! The functions belong to one session: they write into and read from a cell, which the session takes over when the
//! statement has ended. Row by row, in the order of the select list, they mean what MySQL means. So the operators below
//! give them one row at a time (`operator/row_by_row_exec.rs`):
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
            signature: Signature::any(1, Volatility::Volatile),
        }))
    }
}

/// Whether a function has to see the rows one by one.
pub fn is_of_variables(function: &ScalarUDF) -> bool {
    matches!(function.name(), ASSIGN_VARIABLE | READ_VARIABLE)
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
            Some(assigned) => {
                let value = cast(assigned, data_type)?;
                Ok(ColumnarValue::Scalar(ScalarValue::try_from_array(
                    &value, 0,
                )?))
            }
            None => Ok(value.clone()),
        }
    }
}
