//! MySQL's scalar functions and operators.
//!
//! One row of a table is one function ([`definition`]): its name, how many arguments it takes, the type of its result,
//! its kernel, which computes a whole batch, and what else is true of it. [`scalar_function`] finds one by name as a
//! DataFusion `ScalarUDF`, and [`called`] the row of one that a statement calls.
//!
//! Names that begin with `$` are operators and casts. The pass over the syntax tree writes `a + b` as `$add(a, b)`, so
//! that DataFusion never applies its own meaning. Functions without a kernel are *markers*: their meaning depends on
//! the types of the operands, and the typing rule ([`crate::typing`]) replaces them by plain expressions.
//!
//! Kernels take arguments of any type and convert them by MySQL's rules ([`conversion`]), so no coercion by DataFusion
//! is wanted: the signature accepts whatever comes.

mod aes;
pub mod argument;
pub mod arithmetic;
pub mod bits;
pub(crate) mod call_name;
pub mod cast;
pub mod closed;
pub mod collation;
mod compression;
pub mod control;
pub mod conversion;
pub mod date;
pub mod date_format;
pub mod date_names;
mod definition;
pub mod digest;
pub(crate) mod document;
pub mod error;
mod gtid;
pub mod in_values;
pub mod interval;
pub(crate) mod json;
pub mod keys;
pub mod like;
pub mod limits;
mod locale;
mod long_text;
pub mod mathematics;
mod network;
pub mod one_row;
mod random_bytes;
pub mod random_numbers;
pub mod regexp;
mod result_array;
mod spelling;
pub mod stand_in;
pub mod string;
mod time_arithmetic;
pub mod truncated;
pub mod types;
pub(crate) mod units;
mod unix_time;
pub mod user_variables;
mod uuid;
mod watched;
pub mod watched_json;
mod watched_rows;
pub(crate) mod watched_time;
mod wide_decimal;
mod xml;

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock};

use arrow::array::Array;
use arrow::compute::concat;
use arrow::datatypes::{DataType, Field, FieldRef};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::interval_arithmetic::Interval;
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use sheaf_access::cancel;

use call_name::name_of_call;

use limits::stopped;

pub use argument::{Argument, Call};
pub use definition::{
    Function, Kernel, Length, Moments, NullRule, NumberOperands, Returns, VARIADIC,
};
pub use error::EvaluationError;
pub use spelling::{called, row};
pub use types::SqlType;

/// The arguments of a call while it is being planned.
pub struct Operands<'a> {
    pub fields: &'a [FieldRef],
    /// The value of each argument that is a literal.
    pub literals: &'a [Option<&'a ScalarValue>],
}

impl Operands<'_> {
    pub fn sql_type(&self, operand: usize) -> SqlType {
        SqlType::of(&self.fields[operand])
    }

    pub fn types(&self) -> Vec<SqlType> {
        self.fields.iter().map(|field| SqlType::of(field)).collect()
    }

    /// The value of a literal integer argument.
    pub fn int(&self, operand: usize) -> Option<i64> {
        let value = self.literals.get(operand).copied().flatten()?;
        let array = value.to_array_of_size(1).ok()?;
        let converted = conversion::to_int(&array, &self.fields[operand]).ok()?;
        Argument {
            array: converted,
            constant: true,
        }
        .get(0)
    }

    /// The value of a literal text argument.
    pub fn text(&self, operand: usize) -> Option<String> {
        self.literals
            .get(operand)
            .copied()
            .flatten()?
            .try_as_str()
            .flatten()
            .map(str::to_string)
    }
}

/// Stands behind the arguments of calls that give each row a value of its own, such as RAND(5). It has no arguments,
/// so DataFusion takes nothing that it is in for a constant.
pub const EACH_ROW: &str = "$each_row";

/// A [`Function`] as DataFusion sees it.
pub struct MysqlFunction {
    pub function: &'static Function,
    signature: Signature,
}

impl MysqlFunction {
    fn new(function: &'static Function) -> MysqlFunction {
        let volatility = if function.volatile {
            Volatility::Volatile
        } else {
            Volatility::Immutable
        };
        MysqlFunction {
            function,
            signature: Signature::user_defined(volatility),
        }
    }
}

impl fmt::Debug for MysqlFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.function.name)
    }
}

impl PartialEq for MysqlFunction {
    fn eq(&self, other: &Self) -> bool {
        self.function.name == other.function.name
    }
}

impl Eq for MysqlFunction {}

impl Hash for MysqlFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.function.name.hash(state);
    }
}

impl ScalarUDFImpl for MysqlFunction {
    fn name(&self) -> &str {
        self.function.name
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        name_of_call(self.name(), args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn coerce_types(&self, arg_types: &[DataType]) -> Result<Vec<DataType>> {
        Ok(arg_types.to_vec())
    }

    fn return_type(&self, _arg_types: &[DataType]) -> Result<DataType> {
        internal_err!(
            "{}: the result type needs the fields of the arguments",
            self.function.name
        )
    }

    /// Asked for each call whenever an expression is typed, named or planned, so a statement can be stopped here inside
    /// of rules that are not ours.
    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        if cancel::is_statement_cancelled() {
            return Err(stopped());
        }
        let operands = Operands {
            fields: args.arg_fields,
            literals: args.scalar_arguments,
        };
        let nullable = match self.function.nulls {
            NullRule::Strict => args.arg_fields.iter().any(|field| field.is_nullable()),
            NullRule::Never => false,
            NullRule::AllNull => args.arg_fields.iter().all(|field| field.is_nullable()),
            NullRule::Own => true,
        };
        let nullable = nullable || self.function.may_be_too_long(args.arg_fields);
        let mut field = (self.function.returns)(&operands)?;
        if self.function.bytewise && field.data_type() == &DataType::Utf8View {
            let strings = self.function.strings(args.arg_fields);
            if types::takes_bytes(&strings) {
                field = types::bytes_field(&strings);
            }
        }
        Ok(Arc::new(
            field.with_name(self.function.name).with_nullable(nullable),
        ))
    }

    /// All values of the result's type. DataFusion takes an expression for unordered if it compares intervals of
    /// different types in it, even one that rows were just sorted by.
    fn evaluate_bounds(&self, inputs: &[&Interval]) -> Result<Interval> {
        let fields: Vec<FieldRef> = inputs
            .iter()
            .map(|input| Arc::new(Field::new("", input.data_type(), true)))
            .collect();
        let is_literal = |input: &&Interval| input.lower() == input.upper();
        let literals: Vec<Option<&ScalarValue>> = inputs
            .iter()
            .map(|input| is_literal(input).then(|| input.lower()))
            .collect();
        let operands = Operands {
            fields: &fields,
            literals: &literals,
        };
        // Without their metadata the fields may be too little to tell.
        let field = (self.function.returns)(&operands);
        Interval::make_unbounded(field.as_ref().map_or(&DataType::Null, Field::data_type))
    }

    fn is_strict(&self) -> bool {
        self.function.nulls == NullRule::Strict
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some(kernel) = self.function.kernel else {
            return internal_err!("{} was not resolved by the typing rule", self.function.name);
        };
        if let Some(rows) = rows_at_once(&args) {
            return self.invoke_in_parts(&args, rows);
        }
        let call = self.function.call(&args);
        call.account().check()?;
        // While constants are folded, their limits know no statement, but the thread does. Ten thousand constants of
        // 64 KB are folded one by one.
        if !sheaf_memory::may_go_on() {
            return Err(stopped());
        }
        let made = kernel(&call).and_then(|array| call.finish(array));
        // A kernel that has been told to stop makes anything, or complains of it.
        call.account().check()?;
        made
    }
}

/// Arguments for several rows that a function gets at a time, at most: it has them in forms of its own meanwhile.
const MAX_VALUES: usize = 128 << 10;
/// With fewer arguments there are fewer values in any batch.
const MANY_ARGUMENTS: usize = 32;

/// For how many rows a function with very many arguments is called at a time; `None`: for all.
fn rows_at_once(args: &ScalarFunctionArgs) -> Option<usize> {
    let count = args.args.len();
    if count < MANY_ARGUMENTS || args.number_rows <= 1 {
        return None;
    }
    let is_constant = |arg: &ColumnarValue| matches!(arg, ColumnarValue::Scalar(_));
    let rows = (MAX_VALUES / count).max(1);
    (rows < args.number_rows && !args.args.iter().all(is_constant)).then_some(rows)
}

impl MysqlFunction {
    /// Calls the function for so many rows after the other.
    fn invoke_in_parts(&self, args: &ScalarFunctionArgs, rows: usize) -> Result<ColumnarValue> {
        let mut parts = Vec::with_capacity(args.number_rows.div_ceil(rows));
        for start in (0..args.number_rows).step_by(rows) {
            let count = rows.min(args.number_rows - start);
            let of_part = |arg: &ColumnarValue| match arg {
                ColumnarValue::Array(array) => ColumnarValue::Array(array.slice(start, count)),
                scalar => scalar.clone(),
            };
            let part = ScalarFunctionArgs {
                args: args.args.iter().map(of_part).collect(),
                arg_fields: args.arg_fields.clone(),
                number_rows: count,
                return_field: Arc::clone(&args.return_field),
                config_options: Arc::clone(&args.config_options),
            };
            parts.push(self.invoke_with_args(part)?.into_array(count)?);
        }
        let parts: Vec<&dyn Array> = parts.iter().map(AsRef::as_ref).collect();
        Ok(ColumnarValue::Array(concat(&parts)?))
    }
}

static FUNCTIONS: LazyLock<HashMap<&'static str, Arc<ScalarUDF>>> = LazyLock::new(|| {
    let tables: [&'static [Function]; 23] = [
        aes::FUNCTIONS,
        arithmetic::FUNCTIONS,
        bits::FUNCTIONS,
        cast::FUNCTIONS,
        collation::FUNCTIONS,
        compression::FUNCTIONS,
        control::FUNCTIONS,
        date::FUNCTIONS,
        date_format::FUNCTIONS,
        digest::FUNCTIONS,
        gtid::FUNCTIONS,
        interval::FUNCTIONS,
        keys::FUNCTIONS,
        like::FUNCTIONS,
        mathematics::FUNCTIONS,
        network::FUNCTIONS,
        random_bytes::FUNCTIONS,
        regexp::FUNCTIONS,
        time_arithmetic::FUNCTIONS,
        units::FUNCTIONS,
        unix_time::FUNCTIONS,
        uuid::FUNCTIONS,
        xml::FUNCTIONS,
    ];
    let mut functions = HashMap::new();
    let families = string::FUNCTIONS.iter().chain(&json::FUNCTIONS);
    for function in tables.iter().chain(families).copied().flatten() {
        let udf = Arc::new(ScalarUDF::from(MysqlFunction::new(function)));
        let previous = functions.insert(function.name, udf);
        debug_assert!(previous.is_none(), "two functions {}", function.name);
    }
    for (alias, name) in spelling::ALIASES {
        let udf = Arc::clone(&functions[name]);
        functions.insert(alias, udf);
    }
    functions
});

/// The function of this (lower-case) name.
pub fn scalar_function(name: &str) -> Option<Arc<ScalarUDF>> {
    FUNCTIONS.get(name).cloned()
}

/// Names of all functions that a statement may call.
pub fn function_names() -> impl Iterator<Item = &'static str> {
    FUNCTIONS
        .keys()
        .copied()
        .filter(|name| !name.starts_with('$'))
}

/// What `udf` is, if it is one of ours.
pub fn as_function(udf: &ScalarUDF) -> Option<&'static Function> {
    udf.inner()
        .downcast_ref::<MysqlFunction>()
        .map(|function| function.function)
}

/// A call of one of our functions; the name must exist.
pub(crate) fn call(name: &str, args: Vec<Expr>) -> Expr {
    let udf = FUNCTIONS
        .get(name)
        .unwrap_or_else(|| panic!("no function {name}"));
    Expr::ScalarFunction(datafusion_expr::expr::ScalarFunction::new_udf(
        Arc::clone(udf),
        args,
    ))
}
