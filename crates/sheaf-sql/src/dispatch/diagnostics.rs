//! GET DIAGNOSTICS: user variables take what the statement before says of itself.
//!
//! The diagnostics area is the list of [warnings](crate::session::warnings), with the error of a failed statement in
//! it. The statement itself changes nothing in it but for its own error, which comes behind the others.
//!
//! Reference: MySQL manual, "The MySQL Diagnostics Area".

use sheaf_types::Value;
use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::diagnostics::{ConditionItem, GetDiagnostics, StatementItem};
use crate::session::Session;
use crate::session::result::ResultSink;
use crate::session::warnings::{Level, Warning};

/// # Errors
/// 3004 for STACKED: there are no handlers.
pub(crate) fn get_diagnostics(
    session: &mut Session,
    read: Parsed<'_, GetDiagnostics>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let row_count = session.outcome.row_count;
    match read.ast {
        GetDiagnostics::Stacked => {
            return Err(SqlError::new(
                codes::GET_STACKED_DA_WITHOUT_ACTIVE_HANDLER,
                "GET STACKED DIAGNOSTICS when handler not active",
            ));
        }
        GetDiagnostics::Statement(items) => {
            let conditions = session.warnings.kept().len() as u64;
            for (variable, item) in items {
                let value = match item {
                    StatementItem::Number => Value::UInt(conditions),
                    StatementItem::RowCount => Value::Int(row_count),
                };
                session.user_variables.set(&variable, value)?;
            }
        }
        GetDiagnostics::Condition { number, items } => {
            let number = session.evaluate(Parsed::new(&number, read.text))?;
            let place = condition_number(&number).and_then(|number| number.checked_sub(1));
            let condition = place.and_then(|place| session.warnings.kept().get(place).cloned());
            match condition {
                Some(condition) => {
                    for (variable, item) in items {
                        session
                            .user_variables
                            .set(&variable, said_of(&condition, item))?;
                    }
                }
                // The statement itself does not fail.
                None => session.warnings.add(
                    Level::Error,
                    codes::DA_INVALID_CONDITION_NUMBER.number(),
                    "Invalid condition number",
                ),
            }
        }
    }
    session.ok(sink, 0, String::new())?;
    session.outcome.row_count = row_count;
    Ok(())
}

/// The whole number that a value is: one in hexadecimal digits, or what a text begins with.
fn condition_number(value: &Value) -> Option<usize> {
    let number = match value {
        Value::Null => return None,
        Value::Bytes(bytes) if bytes.len() <= 8 => {
            let number = bytes
                .iter()
                .fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
            return usize::try_from(number).ok();
        }
        value => value.to_string(),
    };
    let is_of_number = |letter: char| letter.is_ascii_digit() || letter == '.';
    let end = number.find(|letter| !is_of_number(letter));
    let number: f64 = number[..end.unwrap_or(number.len())].parse().ok()?;
    let is_place = (0.0..1e9).contains(&number);
    // It is in range.
    is_place.then(|| number.round() as usize)
}

fn said_of(condition: &Warning, item: ConditionItem) -> Value {
    let class = codes::sqlstate_of(condition.code);
    match item {
        ConditionItem::MysqlErrno => Value::UInt(u64::from(condition.code)),
        ConditionItem::MessageText => Value::Text(condition.message.clone()),
        ConditionItem::ReturnedSqlstate => Value::Text(class.to_string()),
        ConditionItem::ClassOrigin => Value::Text(origin_of_class(class).to_string()),
        ConditionItem::SubclassOrigin => match class.ends_with("000") {
            true => Value::Text(OF_STANDARD.to_string()),
            false => Value::Text(origin_of_class(class).to_string()),
        },
        ConditionItem::Name => Value::Text(String::new()),
    }
}

const OF_STANDARD: &str = "ISO 9075";

/// The standard has the classes that begin with `0` to `4` and `A` to `H`.
fn origin_of_class(sqlstate: &str) -> &'static str {
    match sqlstate.as_bytes().first() {
        Some(b'0'..=b'4' | b'A'..=b'H') => OF_STANDARD,
        _ => "MySQL",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_as_whole_ones() {
        let text = |text: &str| Value::Text(text.to_string());
        for (value, expected) in [
            (Value::Int(2), Some(2)),
            (Value::Int(-1), None),
            (Value::Null, None),
            (text("1x"), Some(1)),
            (text("1.6"), Some(2)),
            (text("x"), None),
            (Value::Bytes(b"1".to_vec()), Some(49)),
        ] {
            assert_eq!(condition_number(&value), expected, "{value:?}");
        }
    }

    #[test]
    fn classes_of_the_standard_are_told_from_others() {
        for (class, origin) in [
            ("42S02", OF_STANDARD),
            ("HY000", OF_STANDARD),
            ("70100", "MySQL"),
        ] {
            assert_eq!(origin_of_class(class), origin, "{class}");
        }
    }
}
