//! An expression behind a function's name.
//!
//! Many operators mean an expression that has an operand in two places, `CASE WHEN x = y THEN NULL ELSE x END` for
//! `NULLIF(x, y)`. In a nest of n of them the innermost operand would be there 2^n times. So an operand of more than a
//! few nodes becomes the argument of a function, and the expression is its body ([`crate::typing`] makes them):
//!
//! ```text
//!   NULLIF(x, t.y)      $nullif_5d41402abc4b2a76(x, t.y)      CASE WHEN $value0 = t.y THEN NULL ELSE $value0 END
//! ```
//!
//! The columns that the body names are arguments too, so rules that rename columns or put expressions in their place
//! find them. The body is evaluated over the arguments as over a batch of rows: branches of its CASE are computed of
//! the rows that come to them.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use arrow::array::RecordBatch;
use arrow::compute::cast;
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::tree_node::TreeNode;
use datafusion_common::{DFSchema, Result};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};

use super::call_name::name_of_call;
use super::stand_in::stand_in_number;
use super::truncated::TruncatedTexts;
use super::{Function, as_function};

/// A call of a function with this body, an expression over `schema`. The arguments are its columns.
pub(crate) fn closed(
    operator: &'static str,
    body: Expr,
    returns: FieldRef,
    schema: DFSchema,
    arguments: Vec<Expr>,
) -> Expr {
    let mut hasher = DefaultHasher::new();
    (&body, &schema).hash(&mut hasher);
    let volatility = match body.is_volatile() {
        true => Volatility::Volatile,
        false => Volatility::Immutable,
    };
    let has_stand_in = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => {
            stand_in_number(expr).is_some() || open_body(&call.func).is_some()
        }
        _ => false,
    };
    // The closure does not fail.
    let has_stand_ins = body.exists(|expr| Ok(has_stand_in(expr)));
    let name = format!("${operator}_{:016x}", hasher.finish());
    let returns = returns.as_ref().clone().with_name(&name);
    let function = Closed {
        operator,
        name,
        body,
        returns: Arc::new(returns.with_nullable(true)),
        signature: Signature::any(arguments.len(), volatility),
        schema,
        has_stand_ins: has_stand_ins.unwrap_or(true),
        compiled: Mutex::default(),
    };
    ScalarUDF::from(function).call(arguments)
}

/// The operator that a call stands for.
pub fn closed_operator(function: &ScalarUDF) -> Option<&'static str> {
    let function = function.inner().downcast_ref::<Closed>()?;
    Some(function.operator)
}

/// The body of a function that has [stand-ins](super::stand_in) in it, there or in a body inside of it.
pub(crate) fn open_body(function: &ScalarUDF) -> Option<&Expr> {
    let function = function.inner().downcast_ref::<Closed>()?;
    function.has_stand_ins.then_some(&function.body)
}

/// Whether a call may give something else when it is computed again for the same row. What hands its operand on, and
/// notes what is wrong with it, does not.
pub fn varies(function: &ScalarUDF) -> bool {
    if function.signature().volatility != Volatility::Volatile
        || TruncatedTexts::notes(function.name())
    {
        return false;
    }
    function
        .inner()
        .downcast_ref::<Closed>()
        .is_none_or(|function| contains_varying(&function.body))
}

/// Whether a call in the expression [varies].
pub fn contains_varying(expr: &Expr) -> bool {
    let is_varying = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => varies(&call.func),
        _ => false,
    };
    // The closure does not fail.
    expr.exists(|expr| Ok(is_varying(expr))).unwrap_or(true)
}

/// Whether an expression calls a function of ours that is `wanted`, also in the bodies of those here.
pub fn calls(expr: &Expr, wanted: fn(&Function) -> bool) -> bool {
    let is_call = |expr: &Expr| match expr {
        Expr::ScalarFunction(call) => is_or_calls(&call.func, wanted),
        _ => false,
    };
    // The closure does not fail.
    expr.exists(|expr| Ok(is_call(expr))).unwrap_or(true)
}

/// The same of a function.
pub(crate) fn is_or_calls(function: &ScalarUDF, wanted: fn(&Function) -> bool) -> bool {
    as_function(function).is_some_and(wanted)
        || function
            .inner()
            .downcast_ref::<Closed>()
            .is_some_and(|closed| calls(&closed.body, wanted))
}

#[derive(Debug)]
struct Closed {
    operator: &'static str,
    /// Tells functions with different bodies apart.
    name: String,
    body: Expr,
    returns: FieldRef,
    signature: Signature,
    /// One column for each argument.
    schema: DFSchema,
    has_stand_ins: bool,
    /// For the options that it was last called with.
    compiled: Mutex<Option<Compiled>>,
}

#[derive(Debug)]
struct Compiled {
    options: Arc<ConfigOptions>,
    body: Arc<dyn PhysicalExpr>,
}

impl PartialEq for Closed {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.body == other.body && self.schema == other.schema
    }
}

impl Eq for Closed {}

impl Hash for Closed {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl Closed {
    fn compiled(&self, options: &Arc<ConfigOptions>) -> Result<Arc<dyn PhysicalExpr>> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = compiled.as_ref()
            && Arc::ptr_eq(&known.options, options)
        {
            return Ok(Arc::clone(&known.body));
        }
        let mut properties = ExecutionProps::new();
        properties.mark_start_execution(Arc::clone(options));
        let context = Default::default();
        let body = create_physical_expr(&self.body, &self.schema, &properties, &context)?;
        *compiled = Some(Compiled {
            options: Arc::clone(options),
            body: Arc::clone(&body),
        });
        Ok(body)
    }
}

impl ScalarUDFImpl for Closed {
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
        Ok(self.returns.data_type().clone())
    }

    fn return_field_from_args(&self, _args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::clone(&self.returns))
    }

    /// As of our other functions.
    fn evaluate_bounds(&self, _inputs: &[&Interval]) -> Result<Interval> {
        Interval::make_unbounded(self.returns.data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let body = self.compiled(&args.config_options)?;
        let fields = self.schema.fields().iter();
        let columns = args.args.iter().zip(fields).map(|(argument, field)| {
            let column = argument.to_array(args.number_rows)?;
            Ok(match column.data_type() == field.data_type() {
                true => column,
                false => cast(&column, field.data_type())?,
            })
        });
        let columns = columns.collect::<Result<Vec<_>>>()?;
        let rows = RecordBatch::try_new(Arc::clone(self.schema.inner()), columns)?;
        let value = body.evaluate(&rows)?;
        let is_constant = |argument: &ColumnarValue| matches!(argument, ColumnarValue::Scalar(_));
        match value {
            // Where nothing differs from row to row, nor does the value.
            ColumnarValue::Array(array)
                if self.signature.volatility != Volatility::Volatile
                    && !array.is_empty()
                    && args.args.iter().all(is_constant) =>
            {
                let value = datafusion_common::ScalarValue::try_from_array(&array, 0)?;
                Ok(ColumnarValue::Scalar(value))
            }
            value => Ok(value),
        }
    }
}
