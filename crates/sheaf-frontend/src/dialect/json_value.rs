//! `JSON_VALUE(document, path [RETURNING type] [what ON EMPTY] [what ON ERROR])`.
//!
//! It becomes a call with a fixed list of arguments, the type as a cast of NULL:
//!
//! ```text
//!   JSON_VALUE(j, '$.a' RETURNING SIGNED DEFAULT 5 ON EMPTY ERROR ON ERROR)
//!   json_value(j, '$.a', CAST(NULL AS SIGNED), 'default', 5, 'error', NULL)
//! ```

use sqlparser::ast::{CastKind, DataType, Expr, Value as Literal};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::cast::{converted, parse_type_of_cast};
use super::name::is_string;
use crate::syntax::{call, null, text};

/// Its name is next.
pub(super) fn parse_json_value(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let document = parser.parse_expr()?;
    parser.expect_token(&Token::Comma)?;
    // SHOW CREATE TABLE of MySQL writes `_utf8mb4'$.a'`.
    let is_introducer =
        matches!(&parser.peek_token_ref().token, Token::Word(word) if word.value.starts_with('_'));
    let at = usize::from(is_introducer);
    if !is_string(&parser.peek_nth_token_ref(at).token) {
        return parser.expected_ref("a path", parser.peek_token_ref());
    }
    let path = parser.parse_prefix()?;
    let returning = match parser.parse_keyword(Keyword::RETURNING) {
        true => parse_returned(parser)?,
        false => null(),
    };
    let (mut on_empty, mut on_error) = (None, None);
    while parser.peek_token_ref().token != Token::RParen {
        let what = parse_otherwise(parser)?;
        parser.expect_keyword(Keyword::ON)?;
        let place = match parser.expect_one_of_keywords(&[Keyword::EMPTY, Keyword::ERROR])? {
            // ON EMPTY comes first.
            Keyword::EMPTY if on_empty.is_none() && on_error.is_none() => &mut on_empty,
            Keyword::ERROR if on_error.is_none() => &mut on_error,
            _ => return parser.expected_ref(")", parser.get_current_token()),
        };
        *place = Some(what);
    }
    parser.expect_token(&Token::RParen)?;
    let mut arguments = vec![document, path, returning];
    for otherwise in [on_empty, on_error] {
        arguments.extend(otherwise.unwrap_or_else(|| [text("null"), null()]));
    }
    Ok(call("json_value", arguments))
}

/// A type as a cast of NULL.
fn parse_returned(parser: &mut Parser) -> Result<Expr, ParserError> {
    let (data_type, charset): (DataType, _) = parse_type_of_cast(parser)?;
    Ok(match charset {
        Some(charset) => converted(Box::new(null()), Some(data_type), Some(charset)),
        None => Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(null()),
            data_type,
            array: false,
            format: None,
        },
    })
}

/// `NULL`, `ERROR`, or `DEFAULT` and a literal.
fn parse_otherwise(parser: &mut Parser) -> Result<[Expr; 2], ParserError> {
    let words = [Keyword::NULL, Keyword::ERROR, Keyword::DEFAULT];
    Ok(match parser.expect_one_of_keywords(&words)? {
        Keyword::NULL => [text("null"), null()],
        Keyword::ERROR => [text("error"), null()],
        _ => {
            let default = parser.parse_prefix()?;
            let is_literal = match &default {
                Expr::UnaryOp { expr, .. } => matches!(expr.as_ref(), Expr::Value(_)),
                Expr::Value(value) => value.value != Literal::Null,
                other => matches!(other, Expr::TypedString(_)),
            };
            if !is_literal {
                return parser.expected_ref("a literal", parser.get_current_token());
            }
            [text("default"), default]
        }
    })
}
