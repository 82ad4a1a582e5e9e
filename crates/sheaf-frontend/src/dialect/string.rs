//! Strings that stand one behind another, and TRIM of spaces.

use sqlparser::ast::{Expr, TrimWhereField, Value, ValueWithSpan};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

pub(super) fn is_plain_string(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_) | Token::DoubleQuotedString(_)
    )
}

/// `TRIM(LEADING FROM x)` and its relatives, which take spaces away; `None` if something else is taken away.
pub(super) fn parse_trim_of_spaces(parser: &mut Parser) -> Result<Option<Expr>, ParserError> {
    let keyword_at = |at: usize| match &parser.peek_nth_token_ref(at).token {
        Token::Word(word) => word.keyword,
        _ => Keyword::NoKeyword,
    };
    let trim_where = match keyword_at(2) {
        Keyword::LEADING => TrimWhereField::Leading,
        Keyword::TRAILING => TrimWhereField::Trailing,
        Keyword::BOTH => TrimWhereField::Both,
        _ => return Ok(None),
    };
    if parser.peek_nth_token_ref(1).token != Token::LParen || keyword_at(3) != Keyword::FROM {
        return Ok(None);
    }
    (0..4).for_each(|_| parser.advance_token());
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_token(&Token::RParen)?;
    Ok(Some(Expr::Trim {
        trim_where: Some(trim_where),
        trim_what: None,
        expr,
        trim_characters: None,
    }))
}

/// `N'a' 'b'`, which is `N'ab'`.
pub(super) fn parse_national_string(parser: &mut Parser) -> Result<Expr, ParserError> {
    let span = parser.peek_token_ref().span;
    let mut text = String::new();
    if let Token::NationalStringLiteral(part) = &parser.peek_token_ref().token {
        text.push_str(part);
        parser.advance_token();
    }
    take_strings(parser, &mut text);
    Ok(Expr::Value(ValueWithSpan {
        value: Value::NationalStringLiteral(text),
        span,
    }))
}

/// `_utf8mb4'a' 'b'`, which is `_utf8mb4'ab'`.
pub(super) fn parse_introduced_strings(parser: &mut Parser) -> Result<Expr, ParserError> {
    let prefix = parser.parse_identifier()?;
    let span = parser.peek_token_ref().span;
    let mut text = String::new();
    take_strings(parser, &mut text);
    let value = Value::SingleQuotedString(text).with_span(span);
    Ok(Expr::Prefixed {
        prefix,
        value: Box::new(Expr::Value(value)),
    })
}

/// Adds strings that stand one behind another.
fn take_strings(parser: &mut Parser, text: &mut String) {
    while let Token::SingleQuotedString(part) | Token::DoubleQuotedString(part) =
        &parser.peek_token_ref().token
    {
        text.push_str(part);
        parser.advance_token();
    }
}
