//! JSON_VALUE, as [`crate::dialect`] writes it: one value of a document, as an SQL type. And aggregates of JSON, which
//! are those of bytes (`sheaf-exec/src/functions/json/collect.rs`).

use datafusion_common::ScalarValue;
use sheaf_algebra::Scalar;
use sheaf_exec::functions::types::SqlType;
use sqlparser::ast::{CharacterLength, DataType, ExactNumberInfo, Expr};

use super::arguments::{Arguments, wrong_argument_count};
use super::{Binder, Bound, unsupported};
use crate::error::SqlError;
use crate::syntax::{number_digits, object_text};

/// Characters of a result whose type is not written.
const CHARACTERS: i64 = 512;

impl Binder<'_> {
    pub(super) fn json_value(&mut self, arguments: &[&Expr]) -> Bound<Scalar> {
        let [
            document,
            path,
            returning,
            on_empty,
            for_empty,
            on_error,
            for_error,
        ] = arguments
        else {
            return Err(wrong_argument_count("json_value"));
        };
        let (data_type, charset) = match returning {
            Expr::Cast { data_type, .. } => (Some(data_type), None),
            Expr::Convert {
                data_type, charset, ..
            } => (data_type.as_ref(), charset.as_ref()),
            _ => (None, None),
        };
        let (word, length, decimals) = returned(data_type)?;
        let number = |number: Option<i64>| match number {
            Some(number) => self.integer(number),
            None => Scalar::literal(ScalarValue::Null),
        };
        let (length, decimals) = (number(length), number(decimals));
        let mut given = vec![self.value(document)?, self.value(path)?];
        given.extend([self.text(word)?, length, decimals]);
        for (what, default) in [(on_empty, for_empty), (on_error, for_error)] {
            let what = self.value(what)?;
            // Others are checked as values of documents are. There a number is no date.
            let is_cast = match word {
                "json" => true,
                "date" | "time" | "datetime" => number_digits(default).is_some(),
                _ => false,
            };
            let mut default = self.value(default)?;
            if let Some(data_type) = data_type.filter(|_| is_cast) {
                default = self.cast(default, data_type)?;
            }
            let default = self.call("$json_value", vec![default])?;
            given.extend([what, default]);
        }
        let found = self.call("$json_returned", given)?;
        let Some(data_type) = data_type.filter(|_| word != "text" && word != "bytes") else {
            let text = self.call("$json_value_text", vec![found])?;
            return match (word, charset) {
                (_, Some(charset)) => self.using(text, &object_text(charset), false),
                ("bytes", _) => self.call("$cast_binary", vec![text]),
                _ => Ok(text),
            };
        };
        match data_type {
            DataType::JSON => Ok(found),
            _ => self.cast(found, data_type),
        }
    }

    /// The bytes that JSON_ARRAYAGG and JSON_OBJECTAGG collect of each row, as arguments of `$group_concat`.
    pub(super) fn json_collected(
        &mut self,
        name: &str,
        arguments: &Arguments<'_>,
    ) -> Bound<Vec<Scalar>> {
        /// More bytes than a document may have.
        const MOST_BYTES: i64 = 1 << 30;
        if arguments.distinct || !arguments.order_by.is_empty() {
            return Err(SqlError::parse_error(name, 1));
        }
        let (part, count) = match name {
            "json_arrayagg" => ("$json_element", 1),
            _ => ("$json_member", 2),
        };
        if arguments.values.len() != count {
            return Err(SqlError::parse_error(name, 1));
        }
        let operands = self.json_operands(arguments.values.iter().copied())?;
        let none = Scalar::literal(ScalarValue::Null);
        Ok(vec![
            self.call(part, operands)?,
            self.text("")?,
            self.integer(MOST_BYTES),
            none.clone(),
            none,
        ])
    }

    /// MIN and MAX of JSON values are those of bytes in the same order.
    pub(super) fn extreme_of_json<'n>(
        &self,
        name: &'n str,
        operands: Vec<Scalar>,
    ) -> Bound<(&'n str, Vec<Scalar>)> {
        let name = match name {
            "min" => "$json_min",
            "max" => "$json_max",
            _ => return Ok((name, operands)),
        };
        match operands.first() {
            Some(operand) if operand.sql_type() == SqlType::Json => {
                Ok((name, vec![self.call("$json_ordered", operands)?]))
            }
            _ => Ok((&name["$json_".len()..], operands)),
        }
    }
}

/// A type as the function knows it: its word, length and decimals.
fn returned(data_type: Option<&DataType>) -> Bound<(&'static str, Option<i64>, Option<i64>)> {
    let characters = |length: &Option<CharacterLength>| match length {
        Some(CharacterLength::IntegerLength { length, .. }) => i64::try_from(*length).ok(),
        _ => None,
    };
    Ok(match data_type {
        None => ("text", Some(CHARACTERS), None),
        Some(data_type) => match data_type {
            DataType::JSON => ("json", None, None),
            DataType::Signed | DataType::SignedInteger => ("signed", None, None),
            DataType::Unsigned | DataType::UnsignedInteger => ("unsigned", None, None),
            DataType::Decimal(info) | DataType::Dec(info) => match info {
                ExactNumberInfo::None => ("decimal", Some(10), Some(0)),
                ExactNumberInfo::Precision(digits) => {
                    ("decimal", i64::try_from(*digits).ok(), Some(0))
                }
                ExactNumberInfo::PrecisionAndScale(digits, decimals) => {
                    ("decimal", i64::try_from(*digits).ok(), Some(*decimals))
                }
            },
            DataType::Float(_) => ("float", None, None),
            DataType::Double(_) | DataType::DoublePrecision | DataType::Real => {
                ("double", None, None)
            }
            DataType::Char(length) | DataType::Character(length) => {
                ("text", characters(length), None)
            }
            DataType::Binary(length) => {
                let length = length.and_then(|length| i64::try_from(length).ok());
                ("bytes", length, None)
            }
            DataType::Date => ("date", None, None),
            DataType::Time(..) => ("time", None, None),
            DataType::Datetime(_) => ("datetime", None, None),
            DataType::Custom(name, _) if object_text(name).eq_ignore_ascii_case("year") => {
                ("year", None, None)
            }
            other => return unsupported(format!("JSON_VALUE RETURNING {other}")),
        },
    })
}
