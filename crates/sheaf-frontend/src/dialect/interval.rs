//! INTERVAL with a unit, and what is moved by one.

use sqlparser::ast::{BinaryOperator, DateTimeField, Expr, Interval, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::ahead::Ahead;

/// `INTERVAL expr unit`, composite units included, or the function `INTERVAL(n, a, b, ...)`.
pub(super) fn parse_interval(parser: &mut Parser) -> Result<Expr, ParserError> {
    // What is parsed twice at each level of a nest is parsed 2^n times.
    if is_followed_by_list(parser) {
        let name = parser.parse_identifier()?;
        return parser.parse_function(ObjectName::from(vec![name]));
    }
    parser.advance_token();
    let value = Box::new(parser.parse_expr()?);
    let is_composite = matches!(
        &parser.peek_token_ref().token,
        Token::Word(word) if is_composite_unit(&word.value)
    );
    let leading_field = match is_composite {
        true => DateTimeField::Custom(parser.parse_identifier()?),
        _ if parser.next_token_is_temporal_unit() => parser.parse_date_time_field()?,
        _ => return parser.expected_ref("a unit of time", parser.peek_token_ref()),
    };
    Ok(Expr::Interval(Interval {
        value,
        leading_field: Some(leading_field),
        leading_precision: None,
        last_field: None,
        fractional_seconds_precision: None,
    }))
}

pub(super) fn is_interval(token: &TokenWithSpan) -> bool {
    matches!(&token.token, Token::Word(word) if word.keyword == Keyword::INTERVAL)
}

/// `left + INTERVAL n unit`. What follows takes the whole as its operand: nothing computes with an interval. `None` if
/// it is the function INTERVAL.
///
/// ```text
///   d + INTERVAL 1 DAY * 2      (d + INTERVAL 1 DAY) * 2
/// ```
pub(super) fn parse_moved_by_interval(
    parser: &mut Parser,
    left: &Expr,
) -> Result<Option<Expr>, ParserError> {
    let op = match parser.peek_token_ref().token {
        Token::Plus => BinaryOperator::Plus,
        _ => BinaryOperator::Minus,
    };
    parser.advance_token();
    if is_followed_by_list(parser) {
        parser.prev_token();
        return Ok(None);
    }
    Ok(Some(Expr::BinaryOp {
        left: Box::new(left.clone()),
        op,
        right: Box::new(parse_interval(parser)?),
    }))
}

/// Whether the word that comes next has several operands between parentheses behind it.
fn is_followed_by_list(parser: &Parser) -> bool {
    let mut ahead = Ahead::of(parser);
    ahead.next();
    *ahead.next() == Token::LParen && ahead.skip_operand() == Some(&Token::Comma)
}

/// The units of an interval that combine two fields, as in `INTERVAL '1 2' DAY_HOUR`.
fn is_composite_unit(word: &str) -> bool {
    const COMPOSITE: [&str; 11] = [
        "second_microsecond",
        "minute_microsecond",
        "minute_second",
        "hour_microsecond",
        "hour_second",
        "hour_minute",
        "day_microsecond",
        "day_second",
        "day_minute",
        "day_hour",
        "year_month",
    ];
    COMPOSITE.iter().any(|unit| word.eq_ignore_ascii_case(unit))
}
