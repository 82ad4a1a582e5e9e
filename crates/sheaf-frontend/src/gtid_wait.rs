//! WAIT_FOR_EXECUTED_GTID_SET(set [, seconds]): 0 as soon as the server has executed all of a set of transactions, and
//! 1 if it has not within the time. A client that has written at a source reads its own writes at a replica so.
//!
//! What was executed is the session's to say. A wait holds no worker thread. KILL, a time limit and a client that has
//! gone end it with the statement's error.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Array, ArrayRef, AsArray, Int64Array};
use arrow::datatypes::{DataType, Float64Type};
use datafusion_common::{DataFusionError, Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use sheaf_access::{AccessError, CancelFlag};
use sheaf_exec::blocking::blocking;
use sheaf_exec::functions::EvaluationError;
use sheaf_exec::functions::conversion::to_text;

/// The function's lower-case name.
pub(crate) const WAIT_FOR_EXECUTED_GTID_SET: &str = "wait_for_executed_gtid_set";

/// Time from one look at what was executed to the next.
const INTERVAL: Duration = Duration::from_millis(10);

/// Whether all transactions of a set, given as a text, were executed. Errors: 1772 for a text that is none, 3173 for a
/// transaction that waits for the session itself.
pub type ExecutedGtids = Arc<dyn Fn(&str) -> Result<bool, EvaluationError> + Send + Sync>;

/// The function for a session that says what was executed, and that this flag belongs to. Its arguments are a set, and
/// seconds as a DOUBLE.
pub(crate) fn gtid_wait_function(
    is_executed: ExecutedGtids,
    cancel: CancelFlag,
    arguments: usize,
) -> Arc<ScalarUDF> {
    Arc::new(ScalarUDF::from(GtidWait {
        is_executed,
        cancel,
        signature: Signature::any(arguments, Volatility::Volatile),
    }))
}

struct GtidWait {
    is_executed: ExecutedGtids,
    cancel: CancelFlag,
    signature: Signature,
}

impl fmt::Debug for GtidWait {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(WAIT_FOR_EXECUTED_GTID_SET)
    }
}

/// There is one session in a plan.
impl PartialEq for GtidWait {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for GtidWait {}

impl Hash for GtidWait {
    fn hash<H: Hasher>(&self, state: &mut H) {
        WAIT_FOR_EXECUTED_GTID_SET.hash(state);
    }
}

impl GtidWait {
    /// `wait`: `None` for ever.
    fn wait(&self, set: &str, wait: Option<Duration>) -> Result<bool> {
        // What no clock reaches is for ever.
        let end = wait.and_then(|wait| Instant::now().checked_add(wait));
        loop {
            if (self.is_executed)(set)? {
                return Ok(true);
            }
            if self.cancel.is_cancelled() {
                let cancelled = Box::new(AccessError::Cancelled);
                return Err(DataFusionError::External(cancelled));
            }
            let left = end.map_or(INTERVAL, |end| {
                end.saturating_duration_since(Instant::now())
            });
            if left.is_zero() {
                return Ok(false);
            }
            std::thread::sleep(left.min(INTERVAL));
        }
    }

    fn compute(&self, arguments: &ScalarFunctionArgs) -> Result<ArrayRef> {
        let rows = arguments.number_rows;
        let (Some(sets), Some(field)) = (arguments.args.first(), arguments.arg_fields.first())
        else {
            return exec_err!("WAIT_FOR_EXECUTED_GTID_SET without a set");
        };
        let sets = to_text(&sets.to_array(rows)?, field)?;
        let seconds = match arguments.args.get(1) {
            Some(seconds) => Some(seconds.to_array(rows)?),
            None => None,
        };
        let seconds = seconds
            .as_ref()
            .map(|seconds| seconds.as_primitive::<Float64Type>());
        let has_timed_out = (0..rows).map(|row| {
            let wait = match seconds {
                None => None,
                Some(seconds) if seconds.is_valid(row) && seconds.value(row) >= 0.0 => {
                    wait_of(seconds.value(row))
                }
                Some(_) => {
                    let name = "WAIT_FOR_EXECUTED_GTID_SET.";
                    return Err(EvaluationError::wrong_arguments(name).into());
                }
            };
            let set = match sets.is_valid(row) {
                true => sets.value(row),
                false => "NULL",
            };
            Ok(Some(i64::from(!self.wait(set, wait)?)))
        });
        Ok(Arc::new(has_timed_out.collect::<Result<Int64Array>>()?))
    }
}

/// 0 is for ever, as is what is too long for a clock.
fn wait_of(seconds: f64) -> Option<Duration> {
    let wait = Duration::try_from_secs_f64(seconds).ok();
    wait.filter(|wait| !wait.is_zero())
}

impl ScalarUDFImpl for GtidWait {
    fn name(&self) -> &str {
        WAIT_FOR_EXECUTED_GTID_SET
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        blocking(|| self.compute(&arguments)).map(ColumnarValue::Array)
    }
}
