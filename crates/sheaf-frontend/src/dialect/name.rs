//! Names of columns and calls, and literals, read without a try of what else they could be.

use sqlparser::ast::{Expr, FunctionArguments, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

/// Whether a word says how what stands in front of it is compared.
fn is_collate(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.keyword == Keyword::COLLATE)
}

pub(super) fn is_string(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::HexStringLiteral(_)
            | Token::NationalStringLiteral(_)
    )
}

/// Words of other dialects, and of MySQL's where they are types or functions, that are names like any other here. Many
/// columns and the usual functions have them, and [`parse_name`] takes a tenth of what sqlparser does for them.
pub(super) fn is_plain_name(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::ABS
            | Keyword::ACCOUNT
            | Keyword::ACTION
            | Keyword::AVG
            | Keyword::CATEGORY
            | Keyword::CEIL
            | Keyword::COALESCE
            | Keyword::COMMENT
            | Keyword::COUNT
            | Keyword::DATA
            | Keyword::DATE
            | Keyword::DAY
            | Keyword::FLOOR
            | Keyword::HOUR
            | Keyword::ID
            | Keyword::IF
            | Keyword::LEVEL
            | Keyword::LOCATION
            | Keyword::LOWER
            | Keyword::MAX
            | Keyword::MIN
            | Keyword::MONTH
            | Keyword::NAME
            | Keyword::NULLIF
            | Keyword::OWNER
            | Keyword::PASSWORD
            | Keyword::ROLE
            | Keyword::SOURCE
            | Keyword::STATUS
            | Keyword::SUM
            | Keyword::TARGET
            | Keyword::TEXT
            | Keyword::TYPE
            | Keyword::UPPER
            | Keyword::VALUE
            | Keyword::VERSION
            | Keyword::YEAR
    )
}

/// A call whose lists have no room for more: most have one member or two, and room for four, of hundreds of bytes each.
/// The rows of an INSERT have tens of thousands of calls, which are all there until the last one is read.
fn without_room(mut call: Expr) -> Expr {
    if let Expr::Function(function) = &mut call {
        function.name.0.shrink_to_fit();
        if let FunctionArguments::List(list) = &mut function.args {
            list.args.shrink_to_fit();
        }
    }
    call
}

/// A column or a call by a name that means nothing else. sqlparser would first try whether it is a type in front of a
/// string, and put together what is wrong with that. `None` of all that is more than a name.
pub(super) fn parse_name(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let token = |ahead: usize| &parser.peek_nth_token_ref(ahead).token;
    match token(1) {
        Token::Arrow | Token::LongArrow => None,
        Token::LParen => {
            let name = parser.next_token();
            let Token::Word(word) = name.token else {
                return None;
            };
            let name = ObjectName::from(vec![word.into_ident(name.span)]);
            let call = parser.parse_function(name).map(without_room);
            Some(call.and_then(|call| parse_collation_of(parser, call)))
        }
        Token::Period => {
            // Of a database, a table and a column. The library takes more for fields of values, one by one.
            if let (Token::Word(_), Token::Period, Token::Word(_), Token::Period) =
                (token(2), token(3), token(4), token(5))
            {
                for _ in 0..5 {
                    parser.advance_token();
                }
                let period = parser.peek_token();
                return Some(parser.expected("no more parts of a name", period));
            }
            let is_column = matches!(token(2), Token::Word(_))
                && !matches!(token(3), Token::Period | Token::LParen)
                && !is_collate(token(3));
            if !is_column {
                return None;
            }
            let table = parser.next_token();
            parser.advance_token();
            let column = parser.next_token();
            match (table.token, column.token) {
                (Token::Word(table_name), Token::Word(name)) => {
                    Some(Ok(Expr::CompoundIdentifier(vec![
                        table_name.into_ident(table.span),
                        name.into_ident(column.span),
                    ])))
                }
                _ => None,
            }
        }
        next if is_string(next) || is_collate(next) => None,
        _ => {
            let name = parser.next_token();
            match name.token {
                Token::Word(word) => Some(Ok(Expr::Identifier(word.into_ident(name.span)))),
                _ => None,
            }
        }
    }
}

/// COLLATE behind an operand.
pub(super) fn parse_collation_of(parser: &mut Parser, operand: Expr) -> Result<Expr, ParserError> {
    if !parser.parse_keyword(Keyword::COLLATE) {
        return Ok(operand);
    }
    Ok(Expr::Collate {
        expr: Box::new(operand),
        collation: parser.parse_object_name(false)?,
    })
}

/// Whether the COLLATE that comes next stands behind another one and its name. That of a column's default is an
/// attribute of the column.
pub(super) fn is_collate_again(parser: &Parser) -> bool {
    if !is_collate(&parser.peek_token_ref().token) {
        return false;
    }
    let before = (0..=parser.get_current_index()).rev();
    let mut before = before
        .map(|index| &parser.token_at(index).token)
        .filter(|token| !matches!(token, Token::Whitespace(_)));
    before.next().is_some() && before.next().is_some_and(is_collate)
}

/// A literal, as [`parse_name`] does it.
pub(super) fn parse_literal(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let next = &parser.peek_nth_token_ref(1).token;
    match is_string(next) || is_collate(next) {
        true => None,
        false => Some(parser.parse_value().map(Expr::Value)),
    }
}
