//! Functions that make a time, and note where it was too long: `$noted_sec_to_time(n)` is SEC_TO_TIME(n).
//!
//! The operands are computed once, for the time and for what is noted of it. Behind them stand conditions, as in
//! `watched.rs`.

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, exec_err, internal_err};
use datafusion_expr::{
    ColumnarValue, Expr, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};

use super::call_name::name_of_call;
use super::conversion::to_text;
use super::truncated::TruncatedTexts;
use super::watched_rows::{bad_rows, rows_of};
use super::{EvaluationError, scalar_function};

/// A function that makes a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct NotedTime {
    pub(crate) function: &'static str,
    pub(crate) operands: usize,
    /// The name of the function that notes.
    noted: &'static str,
    /// The function that tells what was too long (`time_arithmetic.rs`).
    pub(crate) long: &'static str,
    /// What messages call the value.
    value: &'static str,
}

const fn time(
    [function, noted, long]: [&'static str; 3],
    operands: usize,
    value: &'static str,
) -> NotedTime {
    NotedTime {
        function,
        operands,
        noted,
        long,
        value,
    }
}

const TIMES: [NotedTime; 5] = [
    time(["timediff", "$noted_timediff", "$long_timediff"], 2, "time"),
    time(["addtime", "$noted_addtime", "$long_addtime"], 2, "time"),
    time(["subtime", "$noted_subtime", "$long_subtime"], 2, "time"),
    time(["maketime", "$noted_maketime", "$long_maketime"], 3, "time"),
    time(
        ["sec_to_time", "$noted_sec_to_time", "$long_sec_to_time"],
        1,
        "seconds",
    ),
];

/// What makes the time of a function that notes.
pub(super) fn noted_time(noted: &str) -> Option<&'static NotedTime> {
    TIMES.iter().find(|time| time.noted == noted)
}

/// What a function is known by that makes a time.
pub(crate) fn time_of(function: &str) -> Option<&'static NotedTime> {
    TIMES.iter().find(|time| time.function == function)
}

impl TruncatedTexts {
    /// The time that a function makes of its operands. It is noted where that was too long.
    pub(crate) fn time(&self, time: &'static NotedTime, operands: Vec<Expr>) -> Expr {
        let function = ScalarUDF::from(WatchedTime {
            texts: self.clone(),
            time,
            signature: Signature::variadic_any(Volatility::Volatile),
        });
        function.call(operands)
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct WatchedTime {
    texts: TruncatedTexts,
    time: &'static NotedTime,
    signature: Signature,
}

impl WatchedTime {
    /// A function of the same operands, without what stands behind these.
    fn call(
        &self,
        name: &str,
        args: &ScalarFunctionArgs,
        field: FieldRef,
    ) -> Result<ColumnarValue> {
        let Some(function) = scalar_function(name) else {
            return internal_err!("{name} is no function");
        };
        let operands = self.time.operands;
        function.invoke_with_args(ScalarFunctionArgs {
            args: args.args[..operands].to_vec(),
            arg_fields: args.arg_fields[..operands].to_vec(),
            number_rows: args.number_rows,
            return_field: field,
            config_options: args.config_options.clone(),
        })
    }

    fn field(&self, name: &str, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        let operands = self.time.operands;
        match scalar_function(name) {
            Some(function) if args.arg_fields.len() >= operands => {
                function.return_field_from_args(ReturnFieldArgs {
                    arg_fields: &args.arg_fields[..operands],
                    scalar_arguments: &args.scalar_arguments[..operands],
                })
            }
            _ => internal_err!("{name} without its operands"),
        }
    }
}

impl ScalarUDFImpl for WatchedTime {
    fn name(&self) -> &str {
        self.time.noted
    }

    fn schema_name(&self, args: &[Expr]) -> Result<String> {
        name_of_call(self.name(), args)
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        internal_err!(
            "{}: the result type needs the fields of the arguments",
            self.name()
        )
    }

    fn return_field_from_args(&self, args: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        self.field(self.time.function, args)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let Some((_, conditions)) = args.args.split_at_checked(self.time.operands) else {
            return exec_err!("{} without its operands", self.name());
        };
        let made = self.call(self.time.function, &args, args.return_field.clone())?;
        let constants = vec![None; args.arg_fields.len()];
        let text = self.field(
            self.time.long,
            ReturnFieldArgs {
                arg_fields: &args.arg_fields,
                scalar_arguments: &constants,
            },
        )?;
        let long = self.call(self.time.long, &args, text.clone())?;
        let (rows, rows_of_each) = rows_of(&args);
        let texts = to_text(&long.to_array(rows)?, &text)?;
        for row in bad_rows(&texts, |_| true, conditions)? {
            let error = || EvaluationError::truncated_text(self.time.value, texts.value(row));
            self.texts.note_error(error, rows_of_each)?;
        }
        Ok(made)
    }
}
