//! A value as the literal that means it.
//!
//! Values take the places of parameters, of variables, and of subqueries that have run. The literal has the type of its
//! value, and no other: `5.` is a DECIMAL where `5` is a BIGINT, a DOUBLE has an exponent, and a date says that it is
//! one. There is one rule for it, and two spellings of what it gives:
//!
//! ```text
//!                        .-> Expr     where the statement is parsed already
//!   Value -> Literal ----|
//!                        '-> tokens   for the `?` of a statement that is still to be parsed
//! ```

use std::borrow::Cow;

use sheaf_types::Value;
use sheaf_types::text::hexadecimal::digits_of;
use sqlparser::ast::{DataType, Expr, Ident, TimezoneInfo, TypedString, Value as Written};
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, Word};

use crate::syntax::{literal, null, number, text};

/// What a literal consists of.
enum Literal<'v> {
    Null,
    /// Digits, with a sign in front of them if they are negative.
    Number(String),
    Text(Cow<'v, str>),
    /// Digits of `_binary X'…'`. Without its introducer it would be a number where one is wanted.
    Bytes(String),
    /// `DATE '2024-02-29'`. A text alone would not be a date to arithmetic and to numbers that it is compared with.
    Moment(Moment, String),
}

#[derive(Clone, Copy)]
enum Moment {
    Date,
    Time,
    Timestamp,
}

impl Literal<'_> {
    fn of(value: &Value) -> Literal<'_> {
        match value {
            Value::Null => Literal::Null,
            // `5` is a BIGINT.
            Value::Decimal { scale: 0, .. } | Value::WideDecimal { scale: 0, .. } => {
                Literal::Number(format!("{value}."))
            }
            // With an exponent, so that it is read as the same DOUBLE again.
            Value::Float(float) => Literal::Number(format!("{:e}", f64::from(*float))),
            Value::Double(double) => Literal::Number(format!("{double:e}")),
            Value::Int(_)
            | Value::UInt(_)
            | Value::Decimal { .. }
            | Value::WideDecimal { .. }
            | Value::Year(_)
            | Value::Enum(_)
            | Value::Set(_) => Literal::Number(value.to_string()),
            Value::Text(text) => Literal::Text(Cow::Borrowed(text)),
            // A text of JSON, as the client would write it.
            Value::Json(_) => Literal::Text(Cow::Owned(value.to_string())),
            Value::Bytes(bytes) => Literal::Bytes(digits_of(bytes)),
            Value::Date(_) => Literal::Moment(Moment::Date, value.to_string()),
            Value::Time(_) => Literal::Moment(Moment::Time, value.to_string()),
            Value::DateTime(_) | Value::Timestamp(_) => {
                Literal::Moment(Moment::Timestamp, value.to_string())
            }
        }
    }
}

/// The literal as a piece of syntax tree.
pub fn value_literal(value: &Value) -> Expr {
    match Literal::of(value) {
        Literal::Null => null(),
        Literal::Number(digits) => number(digits),
        Literal::Text(written) => text(written.as_ref()),
        Literal::Bytes(digits) => Expr::Prefixed {
            prefix: Ident::new("_binary"),
            value: Box::new(literal(Written::HexStringLiteral(digits))),
        },
        Literal::Moment(moment, written) => Expr::TypedString(TypedString {
            data_type: match moment {
                Moment::Date => DataType::Date,
                Moment::Time => DataType::Time(None, TimezoneInfo::None),
                Moment::Timestamp => DataType::Timestamp(None, TimezoneInfo::None),
            },
            value: Written::SingleQuotedString(written).into(),
            uses_odbc_syntax: false,
        }),
    }
}

/// The literal as tokens. Signs are in parentheses, so that they bind to their number.
pub(crate) fn value_tokens(value: &Value) -> Vec<Token> {
    match Literal::of(value) {
        Literal::Null => vec![null_token()],
        Literal::Number(written) => match written.strip_prefix('-') {
            None => vec![Token::Number(written, false)],
            Some(digits) => vec![
                Token::LParen,
                Token::Minus,
                Token::Number(digits.to_string(), false),
                Token::RParen,
            ],
        },
        Literal::Text(written) => vec![Token::SingleQuotedString(written.to_string())],
        Literal::Bytes(digits) => vec![
            Token::make_word("_binary", None),
            Token::HexStringLiteral(digits),
        ],
        Literal::Moment(moment, written) => {
            let name = match moment {
                Moment::Date => "DATE",
                Moment::Time => "TIME",
                Moment::Timestamp => "TIMESTAMP",
            };
            vec![
                Token::make_keyword(name),
                Token::SingleQuotedString(written),
            ]
        }
    }
}

pub(crate) fn null_token() -> Token {
    Token::Word(Word {
        value: "NULL".into(),
        quote_style: None,
        keyword: Keyword::NULL,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::SheafDialect;
    use crate::parser::statement::Statement;
    use crate::parser::{Parameters, parse_with_parameters};

    /// What stands in the place of a `?` that has this value.
    fn bound(value: &Value) -> Expr {
        let values = [value.clone()];
        let parameters = Parameters::Values(&values);
        let parsed = parse_with_parameters("DO ?", &SheafDialect::default(), parameters);
        let Ok((Statement::Do(mut expressions), 1)) = parsed else {
            panic!("{value:?} is no expression: {parsed:?}");
        };
        match expressions.remove(0) {
            Expr::Nested(inner) => *inner,
            other => other,
        }
    }

    #[track_caller]
    fn is_written(value: Value, expected: &str) {
        assert_eq!(value_literal(&value).to_string(), expected);
        assert_eq!(bound(&value).to_string(), expected);
    }

    #[test]
    fn null_is_itself() {
        is_written(Value::Null, "NULL");
    }

    #[test]
    fn integers_are_their_digits() {
        is_written(Value::Int(42), "42");
        is_written(Value::Int(i64::MIN), "-9223372036854775808");
        is_written(Value::UInt(u64::MAX), "18446744073709551615");
        is_written(Value::Year(2024), "2024");
        is_written(Value::Enum(3), "3");
    }

    #[test]
    fn a_decimal_without_a_fraction_has_its_point() {
        let decimal = |unscaled, scale| Value::Decimal { unscaled, scale };
        is_written(decimal(5, 0), "5.");
        is_written(decimal(-5, 0), "-5.");
        is_written(decimal(-1250, 3), "-1.250");
    }

    #[test]
    fn a_double_has_an_exponent() {
        is_written(Value::Double(1000.0), "1e3");
        is_written(Value::Double(-0.5), "-5e-1");
        // The DOUBLE that it is.
        is_written(Value::Float(0.1), "1.0000000149011612e-1");
    }

    #[test]
    fn a_text_keeps_its_quotes_and_backslashes() {
        let value = Value::Text(r#"it's "a\b""#.into());
        let expected = text(r#"it's "a\b""#);
        assert_eq!(value_literal(&value).to_string(), expected.to_string());
        assert_eq!(bound(&value).to_string(), expected.to_string());
        let tokens = value_tokens(&value);
        let same = Token::SingleQuotedString(r#"it's "a\b""#.into());
        assert_eq!(tokens, [same]);
    }

    #[test]
    fn bytes_are_digits_behind_binary() {
        is_written(Value::Bytes(vec![10, 255]), "_binary X'0AFF'");
        is_written(Value::Bytes(Vec::new()), "_binary X''");
    }

    #[test]
    fn moments_say_what_they_are() {
        const SECOND: i64 = 1_000_000;
        const DAY: i64 = 86_400 * SECOND;
        is_written(Value::Date(0), "DATE '1970-01-01'");
        is_written(Value::Time(-90 * SECOND), "TIME '-00:01:30'");
        is_written(
            Value::DateTime(DAY + SECOND / 4),
            "TIMESTAMP '1970-01-02 00:00:00.250000'",
        );
        is_written(Value::Timestamp(DAY), "TIMESTAMP '1970-01-02 00:00:00'");
    }
}
