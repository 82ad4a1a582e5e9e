//! Casts and character sets: BINARY, CAST, CONVERT, and CHAR with USING.

use sqlparser::ast::{CastKind, CharacterLength, DataType, Expr, Ident, ObjectName};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::binding;
use super::name::parse_collation_of;
use crate::syntax::{argument, call, function, null, number};

/// `BINARY x`, a cast that binds tighter than any operator. `None` when BINARY is not followed by an operand: then it
/// is the name of a character set.
pub(super) fn parse_binary(parser: &mut Parser) -> Option<Result<Expr, ParserError>> {
    let is_name = matches!(
        parser.peek_nth_token_ref(1).token,
        Token::EOF | Token::SemiColon | Token::Comma | Token::RParen
    );
    if is_name {
        return None;
    }
    parser.advance_token();
    let operand = parser.parse_subexpr(binding::COLLATE);
    Some(operand.map(|operand| Expr::Cast {
        kind: CastKind::Cast,
        expr: Box::new(operand),
        data_type: DataType::Binary(None),
        array: false,
        format: None,
    }))
}

/// `CAST(x AS type)` and `CAST(x AS CHAR CHARACTER SET charset)`.
pub(super) fn parse_cast(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    parser.expect_keyword(Keyword::AS)?;
    let (data_type, charset) = parse_type_of_cast(parser)?;
    let (charset, collation) = parse_binary_of_type(parser, &data_type, charset)?;
    let (data_type, charset) = as_bytes(data_type, charset);
    let array = parser.parse_keyword(Keyword::ARRAY);
    parser.expect_token(&Token::RParen)?;
    let cast = match charset {
        Some(charset) => converted(expr, Some(data_type), Some(charset)),
        None => Expr::Cast {
            kind: CastKind::Cast,
            expr,
            data_type,
            array,
            format: None,
        },
    };
    parse_collation_of(parser, collated(cast, collation))
}

/// `CONVERT(x, type)`, `CONVERT(x, CHAR CHARACTER SET charset)` and `CONVERT(x USING charset)`.
pub(super) fn parse_convert(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let expr = Box::new(parser.parse_expr()?);
    let (data_type, charset, collation) = match parser.parse_keyword(Keyword::USING) {
        true => (None, Some(parser.parse_object_name(false)?), None),
        false => {
            parser.expect_token(&Token::Comma)?;
            let (data_type, charset) = parse_type_of_cast(parser)?;
            let (charset, collation) = parse_binary_of_type(parser, &data_type, charset)?;
            let (data_type, charset) = as_bytes(data_type, charset);
            (Some(data_type), charset, collation)
        }
    };
    parser.expect_token(&Token::RParen)?;
    let converted = converted(expr, data_type, charset);
    parse_collation_of(parser, collated(converted, collation))
}

/// `CHAR BINARY` has the `_bin` collation of its character set, which may stand in front of BINARY or behind it. The
/// character set and the collation.
fn parse_binary_of_type(
    parser: &mut Parser,
    data_type: &DataType,
    charset: Option<ObjectName>,
) -> Result<(Option<ObjectName>, Option<ObjectName>), ParserError> {
    let is_characters = matches!(data_type, DataType::Char(_) | DataType::Character(_));
    if !is_characters || !parser.parse_keyword(Keyword::BINARY) {
        return Ok((charset, None));
    }
    let charset = match charset {
        Some(charset) => Some(charset),
        None => parse_charset(parser)?,
    };
    let name = charset.as_ref().map(|name| name.to_string().to_lowercase());
    let collation = match name.as_deref() {
        None => OF_ITS_SET.to_string(),
        Some("binary") => return Ok((charset, None)),
        Some(name) => format!("{name}_bin"),
    };
    let collation = ObjectName::from(vec![Ident::new(collation)]);
    Ok((charset, Some(collation)))
}

/// `CHAR(n) CHARACTER SET binary` is BINARY(n), which is padded with zeros.
fn as_bytes(data_type: DataType, charset: Option<ObjectName>) -> (DataType, Option<ObjectName>) {
    let is_binary = charset
        .as_ref()
        .is_some_and(|name| name.to_string().eq_ignore_ascii_case("binary"));
    match data_type {
        DataType::Char(Some(CharacterLength::IntegerLength { length, .. }))
        | DataType::Character(Some(CharacterLength::IntegerLength { length, .. }))
            if is_binary =>
        {
            (DataType::Binary(Some(length)), None)
        }
        data_type => (data_type, charset),
    }
}

/// Names no collation: the one by code points of whatever character set a value has.
pub(crate) const OF_ITS_SET: &str = "_bin";

fn collated(expr: Expr, collation: Option<ObjectName>) -> Expr {
    match collation {
        Some(collation) => Expr::Collate {
            expr: Box::new(expr),
            collation,
        },
        None => expr,
    }
}

pub(super) fn converted(
    expr: Box<Expr>,
    data_type: Option<DataType>,
    charset: Option<ObjectName>,
) -> Expr {
    Expr::Convert {
        is_try: false,
        expr,
        data_type,
        charset,
        target_before_value: false,
        styles: Vec::new(),
    }
}

/// What a value is made of by CAST and CONVERT: a type, and of characters their character set.
pub(super) fn parse_type_of_cast(
    parser: &mut Parser,
) -> Result<(DataType, Option<ObjectName>), ParserError> {
    let is_characters = matches!(
        &parser.peek_token_ref().token,
        Token::Word(word) if matches!(word.keyword, Keyword::CHAR | Keyword::CHARACTER)
    );
    let data_type = match parser.parse_data_type()? {
        DataType::Custom(name, digits) if is_nchar(&name) => {
            let length = digits.first().and_then(|digits| digits.parse().ok());
            DataType::Char(
                length.map(|length| CharacterLength::IntegerLength { length, unit: None }),
            )
        }
        other => other,
    };
    let charset = match is_characters {
        true => parse_charset(parser)?,
        false => None,
    };
    Ok((data_type, charset))
}

/// NCHAR is a CHAR of Unicode, as all are here.
fn is_nchar(name: &ObjectName) -> bool {
    name.to_string().eq_ignore_ascii_case("nchar")
}

/// `CHARACTER SET name`, or a word for one: ASCII is latin1, UNICODE ucs2, and BYTE binary.
fn parse_charset(parser: &mut Parser) -> Result<Option<ObjectName>, ParserError> {
    if parser.parse_keywords(&[Keyword::CHARACTER, Keyword::SET])
        || parser.parse_keyword(Keyword::CHARSET)
    {
        return Ok(Some(parser.parse_object_name(false)?));
    }
    let named = match &parser.peek_token_ref().token {
        Token::Word(word) if word.quote_style.is_none() => {
            let words = [("ascii", "latin1"), ("unicode", "ucs2"), ("byte", "binary")];
            let mut words = words.into_iter();
            words.find(|(known, _)| word.value.eq_ignore_ascii_case(known))
        }
        _ => None,
    };
    if named.is_some() {
        parser.advance_token();
    }
    Ok(named.map(|(_, name)| ObjectName::from(vec![Ident::new(name)])))
}

/// `WEIGHT_STRING(x)`, `WEIGHT_STRING(x AS CHAR(n))`, `WEIGHT_STRING(x AS BINARY(n))`: the type becomes a cast of NULL.
/// `WEIGHT_STRING(x, bytes, characters, flags)` is a form of MySQL's own tests.
pub(super) fn parse_weight_string(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    let mut arguments = vec![parser.parse_expr()?];
    if parser.consume_token(&Token::Comma) {
        for last in [false, false, true] {
            arguments.push(number(parse_whole_number(parser)?));
            if !last {
                parser.expect_token(&Token::Comma)?;
            }
        }
    } else if parser.parse_keyword(Keyword::AS) {
        let type_name = parser.expect_one_of_keywords(&[Keyword::CHAR, Keyword::BINARY])?;
        let is_binary = type_name == Keyword::BINARY;
        parser.expect_token(&Token::LParen)?;
        let length = parser.parse_literal_uint()?;
        if length == 0 {
            return parser.expected_ref("a length", parser.get_current_token());
        }
        parser.expect_token(&Token::RParen)?;
        let data_type = match is_binary {
            true => DataType::Binary(Some(length)),
            false => DataType::Char(Some(CharacterLength::IntegerLength { length, unit: None })),
        };
        arguments.push(Expr::Cast {
            kind: CastKind::Cast,
            expr: Box::new(null()),
            data_type,
            array: false,
            format: None,
        });
    }
    parser.expect_token(&Token::RParen)?;
    Ok(call("weight_string", arguments))
}

/// A whole number in decimal or hexadecimal digits.
fn parse_whole_number(parser: &mut Parser) -> Result<u64, ParserError> {
    let token = parser.next_token();
    let number = match &token.token {
        Token::Number(digits, _) => digits.parse().ok(),
        Token::HexStringLiteral(digits) => u64::from_str_radix(digits, 16).ok(),
        _ => None,
    };
    match number {
        Some(number) => Ok(number),
        None => parser.expected("a number", token),
    }
}

/// `CHAR(n, ...)` and `CHAR(n, ... USING charset)`.
pub(super) fn parse_char(parser: &mut Parser) -> Result<Expr, ParserError> {
    parser.advance_token();
    parser.expect_token(&Token::LParen)?;
    // As arguments from the beginning: a second list of tens of thousands takes megabytes.
    let codes = parser.parse_comma_separated(|parser| Ok(argument(parser.parse_expr()?)))?;
    let charset = match parser.parse_keyword(Keyword::USING) {
        true => Some(parser.parse_object_name(false)?),
        false => None,
    };
    parser.expect_token(&Token::RParen)?;
    let bytes = Expr::Function(function("char", codes));
    Ok(match charset {
        Some(charset) => converted(Box::new(bytes), None, Some(charset)),
        None => bytes,
    })
}
