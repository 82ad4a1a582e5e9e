//! Operators between operands that sqlparser reads in another way, or not at all.

use sqlparser::ast::{BinaryOperator, Expr, Value, ValueWithSpan};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::ahead::Ahead;
use super::binding;
use crate::syntax::call;
use crate::token::is_keyword;

/// Whether `NULL` stands behind the next word. `a NOT NULL` is PostgreSQL's.
pub(super) fn is_null(parser: &Parser) -> bool {
    let next = parser.peek_nth_token_ref(1);
    matches!(&next.token, Token::Word(word) if word.keyword == Keyword::NULL)
}

pub(super) fn is_mod(word: &str) -> bool {
    word.eq_ignore_ascii_case("mod")
}

pub(super) fn is_sounds(word: &str) -> bool {
    word.eq_ignore_ascii_case("sounds")
}

pub(super) fn is_like(parser: &Parser) -> bool {
    matches!(&parser.peek_nth_token_ref(1).token, Token::Word(word) if word.keyword == Keyword::LIKE)
}

/// Whether one of these operators comes, or NOT before one, which is true.
fn comes(parser: &Parser, operators: &[Keyword]) -> Option<bool> {
    let keyword = |token: &TokenWithSpan| match &token.token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    match keyword(parser.peek_token_ref()) {
        Keyword::NOT => {
            let next = keyword(parser.peek_nth_token_ref(1));
            operators.contains(&next).then_some(true)
        }
        first => operators.contains(&first).then_some(false),
    }
}

pub(super) fn is_between(parser: &Parser) -> Option<bool> {
    comes(parser, &[Keyword::BETWEEN])
}

pub(super) fn is_regexp(parser: &Parser) -> Option<bool> {
    comes(parser, &[Keyword::REGEXP, Keyword::RLIKE])
}

/// sqlparser takes the NULL of `a REGEXP NULL` for a part of the operator. A parameter is such a NULL while its
/// statement is prepared.
pub(super) fn parse_regexp(
    parser: &mut Parser,
    left: &Expr,
    negated: bool,
) -> Result<Expr, ParserError> {
    if negated {
        parser.advance_token();
    }
    let regexp = parser.parse_keyword(Keyword::REGEXP);
    if !regexp {
        parser.expect_keyword_is(Keyword::RLIKE)?;
    }
    Ok(Expr::RLike {
        negated,
        expr: Box::new(left.clone()),
        pattern: Box::new(parser.parse_subexpr(binding::PREDICATE)?),
        regexp,
    })
}

/// How [`Expr::Like`] holds an escape character that is no literal text: as an operator between the pattern and it.
pub const ESCAPE: &str = "ESCAPE";

pub(super) fn is_pattern(parser: &Parser) -> Option<bool> {
    comes(parser, &[Keyword::LIKE])
}

/// `a LIKE b ESCAPE c`: sqlparser reads no expression as the escape character. `default` is the one where none is
/// written, if it is no backslash.
pub(super) fn parse_like(
    parser: &mut Parser,
    left: &Expr,
    negated: bool,
    default: Option<&str>,
) -> Result<Expr, ParserError> {
    if negated {
        parser.advance_token();
    }
    parser.expect_keyword_is(Keyword::LIKE)?;
    let any = parser.parse_keyword(Keyword::ANY);
    let mut pattern = Box::new(parser.parse_subexpr(binding::PREDICATE)?);
    let text = |text: &str| Value::SingleQuotedString(text.to_string()).into();
    let mut escape_char: Option<ValueWithSpan> = default.map(text);
    if parser.parse_keyword(Keyword::ESCAPE) {
        match parser.parse_subexpr(binding::PREDICATE)? {
            Expr::Value(value)
                if matches!(
                    value.value,
                    Value::SingleQuotedString(_) | Value::DoubleQuotedString(_)
                ) =>
            {
                escape_char = Some(value);
            }
            escape => {
                escape_char = None;
                pattern = Box::new(Expr::BinaryOp {
                    left: pattern,
                    op: BinaryOperator::Custom(ESCAPE.to_string()),
                    right: Box::new(escape),
                });
            }
        }
    }
    Ok(Expr::Like {
        negated,
        any,
        expr: Box::new(left.clone()),
        pattern,
        escape_char,
    })
}

/// The upper bound may be a predicate: `a BETWEEN 1 AND b IN (2, 3)` has the upper bound `b IN (2, 3)`.
pub(super) fn parse_between(
    parser: &mut Parser,
    left: &Expr,
    negated: bool,
) -> Result<Expr, ParserError> {
    parser.advance_token();
    if negated {
        parser.advance_token();
    }
    let low = parser.parse_subexpr(binding::PREDICATE)?;
    parser.expect_keyword_is(Keyword::AND)?;
    let high = parser.parse_subexpr(binding::COMPARISON)?;
    Ok(Expr::Between {
        expr: Box::new(left.clone()),
        negated,
        low: Box::new(low),
        high: Box::new(high),
    })
}

/// `a SOUNDS LIKE b`.
pub(super) fn parse_sounds_like(
    parser: &mut Parser,
    left: &Expr,
    precedence: u8,
) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.advance_token();
    let right = parser.parse_subexpr(precedence)?;
    Ok(Expr::BinaryOp {
        left: Box::new(call("soundex", vec![left.clone()])),
        op: BinaryOperator::Eq,
        right: Box::new(call("soundex", vec![right])),
    })
}

/// `x IN ((a), (b))` and `x IN ((a))`, with `(a)` a subquery: what begins with a subquery may be one, or a list of
/// operands. sqlparser tries one after the other. `None` for every other IN.
pub(super) fn parse_in_list(parser: &mut Parser, left: &Expr) -> Result<Option<Expr>, ParserError> {
    let mut ahead = Ahead::of(parser);
    let mut first = ahead.next();
    let negated = is_keyword(first, Keyword::NOT);
    if negated {
        first = ahead.next();
    }
    if !is_keyword(first, Keyword::IN) || *ahead.next() != Token::LParen {
        return Ok(None);
    }
    let Some(is_query) = ahead.begins_query() else {
        return Ok(None);
    };
    if negated {
        parser.advance_token();
    }
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(left.clone());
    let condition = match is_query {
        true => Expr::InSubquery {
            expr,
            subquery: parser.parse_query()?,
            negated,
        },
        false => Expr::InList {
            expr,
            list: parser.parse_comma_separated(Parser::parse_expr)?,
            negated,
        },
    };
    parser.expect_token(&Token::RParen)?;
    Ok(Some(condition))
}
