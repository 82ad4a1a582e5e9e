//! SLEEP(seconds): waits once for each row, and is 0.
//!
//! A sleeping statement holds no worker thread, so that others go on, and it looks at the session's cancel flag: KILL,
//! a time limit and a client that has gone end it with the statement's error. (MySQL's SLEEP gives 1 where a KILL ends
//! a statement that does nothing but sleep; here that is an error, too.)

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, AsArray, Int64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::{Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use sheaf_access::CancelFlag;
use sheaf_exec::blocking::blocking;
use sheaf_exec::functions::EvaluationError;

/// The function's name in lowered queries; its argument is a DOUBLE.
pub const SLEEP: &str = "$sleep";

/// How long a sleep may go on after its statement was cancelled, at most.
const SLICE: Duration = Duration::from_millis(10);

/// The function for a session that this flag belongs to.
pub fn sleep_function(cancel: CancelFlag) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(Sleep {
        cancel,
        signature: Signature::any(1, Volatility::Volatile),
    }))
}

#[derive(Debug)]
struct Sleep {
    cancel: CancelFlag,
    signature: Signature,
}

/// There is one session in a plan.
impl PartialEq for Sleep {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Sleep {}

impl Hash for Sleep {
    fn hash<H: Hasher>(&self, state: &mut H) {
        SLEEP.hash(state);
    }
}

impl Sleep {
    fn wait(&self, seconds: f64) -> Result<()> {
        // What no clock reaches is for ever.
        let end = Duration::try_from_secs_f64(seconds)
            .ok()
            .and_then(|wait| Instant::now().checked_add(wait));
        loop {
            if self.cancel.is_cancelled() {
                return exec_err!("SLEEP was cancelled");
            }
            let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()));
            if left.is_zero() {
                return Ok(());
            }
            std::thread::sleep(left.min(SLICE));
        }
    }
}

impl ScalarUDFImpl for Sleep {
    fn name(&self) -> &str {
        SLEEP
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    /// Error 1210 for NULL and for negative numbers.
    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let rows = arguments.number_rows;
        let Some(value) = arguments.args.first() else {
            return exec_err!("SLEEP without its argument");
        };
        let array = value.to_array(rows)?;
        let Some(seconds) = array.as_primitive_opt::<Float64Type>() else {
            return exec_err!("SLEEP of a {}", array.data_type());
        };
        blocking(|| {
            seconds.iter().try_for_each(|seconds| match seconds {
                Some(seconds) if seconds >= 0.0 => self.wait(seconds),
                _ => Err(EvaluationError::wrong_arguments("sleep").into()),
            })
        })?;
        Ok(ColumnarValue::Array(Arc::new(Int64Array::from_value(
            0, rows,
        ))))
    }
}
