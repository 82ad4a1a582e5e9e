//! JSON_VALUE: one value of a document, as an SQL type.
//!
//! ```text
//!   $json_returned(document, path, type, length, decimals, on empty, its default, on error, its default)
//! ```
//!
//! The type is a word of [`Returned`], what happens on empty or error is `null`, `error` or `default`, and defaults are
//! JSON values. The result is a JSON value that a cast to the type takes without a problem, or NULL.

use arrow::array::ArrayRef;
use datafusion_common::Result;
use sheaf_types::Collation;
use sheaf_types::error::codes;
use sheaf_types::json::functions::coerce::{
    Coerced, CoercionProblem, to_date, to_datetime, to_decimal, to_double, to_integer, to_time,
};
use sheaf_types::json::functions::quote::unquote;
use sheaf_types::json::functions::value::{
    Found, find, problem, to_signed, to_unsigned, without_problem,
};
use sheaf_types::json::{Document, Json, JsonError, View, text as json_text};
use sheaf_types::number::{MAX_DIGITS, power_of_ten, rescale};

use super::argument::{Documents, failed};
use super::{documents, json};
use crate::functions::result_array::texts;
use crate::functions::types::{Coercibility, SqlType, field};
use crate::functions::{Argument, Call, EvaluationError, Function};

pub(super) static FUNCTIONS: &[Function] = &[
    Function::new("$json_returned", (9, 9), json, value),
    Function::strict(
        "$json_value_text",
        (1, 1),
        |_| {
            let collation = Collation::Utf8mb4_0900_bin;
            Ok(field::collated_text(collation, Coercibility::Coercible))
        },
        |call| {
            let values = call.document(0)?;
            texts(call, |row, out| {
                out.push_str(&unquote(values.get(row)?));
                Some(())
            })
        },
    ),
];

/// What is returned.
enum Returned {
    Json,
    Signed,
    Unsigned,
    Decimal { digits: u8, decimals: u8 },
    Float,
    Double,
    Text { characters: Option<usize> },
    Bytes { length: Option<usize> },
    Date,
    Time,
    DateTime,
    Year,
}

impl Returned {
    fn of(word: &str, length: Option<i64>, decimals: Option<i64>) -> Option<Returned> {
        let size = length.and_then(|length| usize::try_from(length).ok());
        let digit = |number: Option<i64>| u8::try_from(number.unwrap_or(0)).unwrap_or(u8::MAX);
        Some(match word {
            "json" => Returned::Json,
            "signed" => Returned::Signed,
            "unsigned" => Returned::Unsigned,
            "decimal" => Returned::Decimal {
                digits: digit(length),
                decimals: digit(decimals),
            },
            "float" => Returned::Float,
            "double" => Returned::Double,
            "text" => Returned::Text { characters: size },
            "bytes" => Returned::Bytes { length: size },
            "date" => Returned::Date,
            "time" => Returned::Time,
            "datetime" => Returned::DateTime,
            "year" => Returned::Year,
            _ => return None,
        })
    }

    /// Whether a value can be returned.
    ///
    /// # Errors
    /// 1690
    fn check(&self, value: Json<'_>) -> std::result::Result<(), JsonError> {
        /// MySQL's name in messages, which is that of the function.
        const NAME: &str = "json_value";
        fn fits<T>(coerced: Coerced<T>, to: &'static str) -> std::result::Result<T, JsonError> {
            without_problem(coerced, to, NAME)
        }
        let within = |is_within: bool, to| match is_within {
            true => Ok(()),
            false => Err(JsonError::NotOfType {
                to,
                function: NAME.to_string(),
            }),
        };
        match self {
            Returned::Json => Ok(()),
            Returned::Signed => fits(to_signed(value), "SIGNED").map(drop),
            Returned::Unsigned => fits(to_unsigned(value), "UNSIGNED").map(drop),
            Returned::Decimal { digits, decimals } => {
                let (unscaled, scale) = fits(to_decimal(value), "DECIMAL")?;
                let rounded = rescale(unscaled, scale, *decimals);
                let limit = power_of_ten((*digits).min(MAX_DIGITS));
                let is_within = rounded.is_some_and(|rounded| rounded.abs() < limit);
                within(is_within, "DECIMAL")
            }
            Returned::Float => {
                let double = fits(to_double(value), "FLOAT")?;
                within(double.abs() <= f64::from(f32::MAX), "FLOAT")
            }
            Returned::Double => fits(to_double(value), "DOUBLE").map(drop),
            Returned::Text { characters } => {
                let most = characters.unwrap_or(usize::MAX);
                within(unquote(value).chars().count() <= most, "STRING")
            }
            Returned::Bytes { length } => {
                let most = length.unwrap_or(usize::MAX);
                within(unquote(value).len() <= most, "STRING")
            }
            Returned::Date => within(fits(to_date(value), "DATE")?.is_some(), "DATE"),
            Returned::Time => within(fits(to_time(value), "TIME")?.is_some(), "TIME"),
            Returned::DateTime => {
                within(fits(to_datetime(value), "DATETIME")?.is_some(), "DATETIME")
            }
            Returned::Year => {
                let year = fits(to_integer(value), "YEAR")?;
                within(year == 0 || (1901..=2155).contains(&year), "YEAR")
            }
        }
    }
}

impl Returned {
    /// Whether a default can be returned as it is.
    ///
    /// # Errors
    /// 1292 for a text that is no value of the type, 1690 for one that would be changed.
    fn check_default(&self, value: Json<'_>) -> Result<()> {
        let is_invalid = |problem| problem == Some(CoercionProblem::Invalid);
        let (is_wrong, what) = match self {
            Returned::Signed => (is_invalid(to_signed(value).problem), "INTEGER SIGNED"),
            Returned::Unsigned => (is_invalid(to_unsigned(value).problem), "INTEGER UNSIGNED"),
            Returned::Decimal { .. } => (is_invalid(to_decimal(value).problem), "DECIMAL"),
            Returned::Float | Returned::Double => (is_invalid(to_double(value).problem), "DOUBLE"),
            Returned::Year => (is_invalid(to_integer(value).problem), "YEAR"),
            Returned::Date => (self.check(value).is_err(), "date"),
            Returned::Time => (self.check(value).is_err(), "time"),
            Returned::DateTime => (self.check(value).is_err(), "datetime"),
            Returned::Json | Returned::Text { .. } | Returned::Bytes { .. } => (false, ""),
        };
        if is_wrong && let View::String(text) = value.view() {
            let message = match self {
                Returned::DateTime => format!("Incorrect datetime value: '{text}'"),
                _ => format!("Truncated incorrect {what} value: '{text}'"),
            };
            return Err(EvaluationError::new(codes::TRUNCATED_WRONG_VALUE, message).into());
        }
        self.check(value).map_err(failed)
    }
}

/// What becomes of a document without a value to return.
enum Otherwise {
    Null,
    Error,
    Default(Documents),
}

impl Otherwise {
    /// # Errors
    /// 1292 and 1690 for a default that cannot be returned, whether or not it is needed.
    fn of(call: &Call<'_>, argument: usize, returned: Option<&Returned>) -> Result<Otherwise> {
        Ok(match constant_text(call, argument)?.as_deref() {
            Some("error") => Otherwise::Error,
            Some("default") => {
                let values = call.document(argument + 1)?;
                if let Some((returned, default)) = returned.zip(values.get(0)) {
                    returned.check_default(default)?;
                }
                Otherwise::Default(values)
            }
            _ => Otherwise::Null,
        })
    }

    fn document(
        &self,
        row: usize,
        error: JsonError,
    ) -> std::result::Result<Option<Document>, JsonError> {
        match self {
            Otherwise::Null => Ok(None),
            Otherwise::Error => Err(error),
            Otherwise::Default(values) => Ok(values.get(row).map(|value| value.to_document())),
        }
    }
}

fn constant_text(call: &Call<'_>, argument: usize) -> Result<Option<String>> {
    match call.rows() {
        0 => Ok(None),
        _ => Ok(call.text(argument)?.get(0).map(str::to_string)),
    }
}

/// A document, or a text that may be no JSON.
enum Given {
    Documents(Documents),
    Texts(Argument<arrow::array::StringViewArray>),
}

fn value(call: &Call<'_>) -> Result<ArrayRef> {
    let given = match call.sql_type(0) {
        SqlType::Text { .. } | SqlType::Enum { .. } => Given::Texts(call.text(0)?),
        _ => Given::Documents(call.document(0)?),
    };
    let paths = call.path(1)?;
    let (length, decimals) = (call.int(3)?, call.int(4)?);
    let word = constant_text(call, 2)?.unwrap_or_default();
    // The type is the same for all rows.
    let returned = match call.rows() {
        0 => None,
        _ => Returned::of(&word, length.get(0), decimals.get(0)),
    };
    let returned = returned.as_ref();
    let on_empty = Otherwise::of(call, 5, returned)?;
    let on_error = Otherwise::of(call, 7, returned)?;
    documents(call, |row| {
        let (Some(path), Some(returned)) = (paths.get(row), returned) else {
            return Ok(None);
        };
        let read;
        let document = match &given {
            Given::Documents(documents) => documents.get(row),
            Given::Texts(texts) => match texts.get(row).map(json_text::read) {
                None => None,
                Some(Ok(document)) => {
                    read = document;
                    Some(read.as_json())
                }
                Some(Err(found)) => {
                    return on_error.document(row, found.in_argument(1, "json_value"));
                }
            },
        };
        let Some(document) = document else {
            return Ok(None);
        };
        let found = find(document, path);
        match (found, problem(found, "json_value")) {
            (Found::One(value), _) => match returned.check(value) {
                Ok(()) => Ok(Some(value.to_document())),
                Err(error) => on_error.document(row, error),
            },
            (Found::Nothing, Some(error)) => on_empty.document(row, error),
            (_, Some(error)) => on_error.document(row, error),
            (_, None) => Ok(None),
        }
    })
}
