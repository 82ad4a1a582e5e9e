//! Cells of JSON_TABLE on their way into columns.
//!
//! A column takes what it would take of an INSERT in strict mode. Where it does not take a value, ON ERROR says what
//! becomes of it: NULL, unless it says something else.

use sheaf_types::assignment::{Mode, assign};
use sheaf_types::error::{ColumnProblem, codes};
use sheaf_types::json::functions::quote::unquote;
use sheaf_types::json::table::{Cell, Otherwise};
use sheaf_types::json::{Json, JsonError, View};
use sheaf_types::{ColumnType, Value};

use super::table::{JsonTable, JsonTableColumn};
use crate::functions::EvaluationError;

/// The value of a JSON value in a column of this type.
///
/// # Errors
/// The column does not hold it.
pub fn assigned(ty: &ColumnType, json: Json<'_>) -> Result<Value, ColumnProblem> {
    let is_text = ty.is_character() || ty.is_binary() || ty.has_labels();
    let value = match json.view() {
        _ if *ty == ColumnType::Json => return Ok(Value::Json(json.to_document().into_bytes())),
        _ if is_text => Value::Text(unquote(json).into_owned()),
        // 20240229 is a date here.
        View::Int(number) if ty.is_temporal() => Value::Int(number),
        View::UInt(number) if ty.is_temporal() => Value::UInt(number),
        View::Double(number) if ty.is_temporal() => Value::Double(number),
        View::Decimal { unscaled, scale } if ty.is_temporal() => Value::Decimal { unscaled, scale },
        _ => Value::Json(json.to_document().into_bytes()),
    };
    assign(ty, &value, Mode::STRICT).map(|(value, _)| value)
}

impl JsonTable {
    /// The value of a cell in the column at this position.
    ///
    /// # Errors
    /// 3156 and 3669 where the column asks for errors; 3140 for EXISTS in a column of JSON.
    pub(crate) fn value(&self, position: usize, cell: &Cell<'_>) -> Result<Value, EvaluationError> {
        let column = &self.columns[position];
        let json = match cell {
            Cell::Null => return Ok(Value::Null),
            Cell::Ordinal(number) => return self.number(column, *number),
            Cell::Exists(exists) => return self.number(column, u64::from(*exists)),
            Cell::Value(json) => *json,
            Cell::Made(document) => document.as_json(),
        };
        let problem = match assigned(&column.ty, json) {
            Ok(value) => return Ok(value),
            Err(problem) => problem,
        };
        match &column.on_error {
            Otherwise::Null => Ok(Value::Null),
            Otherwise::Default(document) => {
                let value = assigned(&column.ty, document.as_json());
                value.map_err(|problem| refused(column, &problem))
            }
            Otherwise::Error => Err(refused(column, &problem)),
        }
    }

    /// A number that is none of the document.
    fn number(&self, column: &JsonTableColumn, number: u64) -> Result<Value, EvaluationError> {
        match assign(&column.ty, &Value::UInt(number), Mode::STRICT) {
            Ok((value, _)) => Ok(value),
            Err(ColumnProblem::JsonText { message, position }) => {
                let (table, column) = (&self.name, &column.name);
                let text = format!(
                    "Invalid JSON text: \"{message}\" at position {position} in value for column '{table}.{column}'."
                );
                Err(EvaluationError::new(codes::INVALID_JSON_TEXT, text))
            }
            Err(_) => Ok(Value::Null),
        }
    }
}

fn refused(column: &JsonTableColumn, problem: &ColumnProblem) -> EvaluationError {
    refusal(&column.name, problem).into()
}

/// What is wrong with a value, or a default, that the column of this name does not hold.
pub fn refusal(column: &str, problem: &ColumnProblem) -> JsonError {
    let column = column.to_string();
    match problem {
        ColumnProblem::JsonCast { to } => JsonError::InvalidForCast { to, column, row: 1 },
        _ => JsonError::TableValueOutOfRange { column },
    }
}
