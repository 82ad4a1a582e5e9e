//! STATEMENT_DIGEST(statement) and STATEMENT_DIGEST_TEXT(statement).
//!
//! Reference: MySQL manual, "Encryption and Compression Functions".

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use arrow::array::{Array, StringViewBuilder};
use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::{Result, exec_err};
use datafusion_expr::{
    ColumnarValue, ReturnFieldArgs, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
    Volatility,
};
use sheaf_exec::functions::EvaluationError;
use sheaf_exec::functions::conversion::to_text;
use sheaf_exec::functions::limits::ResultLimits;
use sheaf_exec::functions::types::field;
use sheaf_types::error::codes;

use super::{Digest, Reading};
use crate::dialect::{SheafDialect, SpacesOfFunctions};
use crate::parser::{parse_statement, scan};

/// Stack that a statement is parsed on, which may nest as deep as one that a client sends.
const STACK_BYTES: usize = 64 << 20;
const RED_ZONE_BYTES: usize = 48 << 20;

/// The function of this name, if it is one of the two.
pub(crate) fn digest_function(
    name: &str,
    sql_mode: &str,
    max_bytes: usize,
) -> Option<Arc<ScalarUDF>> {
    let name = match name {
        "statement_digest" => "statement_digest",
        "statement_digest_text" => "statement_digest_text",
        _ => return None,
    };
    let has = |flag: &str| sql_mode.split(',').any(|known| known == flag);
    Some(Arc::new(ScalarUDF::from(DigestFunction {
        name,
        max_bytes,
        reading: Reading {
            ansi_quotes: has("ANSI_QUOTES"),
            ignore_space: has("IGNORE_SPACE"),
        },
        signature: Signature::any(1, Volatility::Immutable),
    })))
}

struct DigestFunction {
    name: &'static str,
    max_bytes: usize,
    reading: Reading,
    signature: Signature,
}

impl DigestFunction {
    /// # Errors
    /// 3676: it is no statement.
    fn of(&self, text: &str) -> std::result::Result<String, EvaluationError> {
        let refused = |message: &str| {
            EvaluationError::new(
                codes::PARSE_ERROR_IN_DIGEST_FN,
                format!("Could not parse argument to digest function: \"{message}\"."),
            )
        };
        let resolved = scan::resolve_executable_comments(text);
        let Some((range, _)) = scan::first_statement(&resolved) else {
            return Err(refused("Query was empty"));
        };
        let statement = &resolved[range];
        let dialect = SheafDialect {
            ansi_quotes: self.reading.ansi_quotes,
            spaces_of_functions: match self.reading.ignore_space {
                true => SpacesOfFunctions::Ignored,
                false => SpacesOfFunctions::Separate,
            },
            ..SheafDialect::default()
        };
        let parsed = stacker::maybe_grow(RED_ZONE_BYTES, STACK_BYTES, || {
            parse_statement(statement, &dialect).map(drop)
        });
        if let Err(error) = parsed {
            return Err(refused(&error.message));
        }
        let digest = Digest::of(statement, self.reading, self.max_bytes);
        Ok(match self.name {
            "statement_digest" => digest.hex(),
            _ => digest.text,
        })
    }
}

impl fmt::Debug for DigestFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl PartialEq for DigestFunction {
    fn eq(&self, other: &Self) -> bool {
        (self.name, self.max_bytes, self.reading) == (other.name, other.max_bytes, other.reading)
    }
}

impl Eq for DigestFunction {}

impl Hash for DigestFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for DigestFunction {
    fn name(&self) -> &str {
        self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(field::text().data_type().clone())
    }

    fn return_field_from_args(&self, _arguments: ReturnFieldArgs<'_>) -> Result<FieldRef> {
        Ok(Arc::new(field::text().with_name(self.name)))
    }

    fn invoke_with_args(&self, arguments: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let (Some(value), Some(field)) = (arguments.args.first(), arguments.arg_fields.first())
        else {
            return exec_err!("a digest without a statement");
        };
        let statements = to_text(&value.to_array(arguments.number_rows)?, field)?;
        let limits = arguments.config_options.extensions.get::<ResultLimits>();
        let mut builder = StringViewBuilder::with_capacity(statements.len());
        for statement in &statements {
            if let Some(limits) = limits {
                limits.check()?;
            }
            match statement {
                Some(statement) => builder.append_value(self.of(statement)?),
                None => builder.append_null(),
            }
        }
        Ok(ColumnarValue::Array(Arc::new(builder.finish())))
    }
}
