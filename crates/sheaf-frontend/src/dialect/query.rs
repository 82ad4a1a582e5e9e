//! Queries in parentheses as operands. sqlparser reads those that begin with SELECT, and the others are read here.

use sqlparser::ast::{BinaryOperator, Expr};
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::Token;

use super::ahead::Ahead;
use crate::token::is_keyword;

/// `((SELECT 1) UNION (SELECT 2))`, `(VALUES (1))`; `None` if it is no query, or one that sqlparser reads.
pub(super) fn parse_query_in_parentheses(parser: &mut Parser) -> Result<Option<Expr>, ParserError> {
    if !begins_other_query(parser, 0) {
        return Ok(None);
    }
    parser.advance_token();
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    Ok(Some(Expr::Subquery(query)))
}

/// An operator that may stand in front of ANY.
pub(super) fn is_comparison(token: &Token) -> bool {
    comparison(token).is_some()
}

fn comparison(token: &Token) -> Option<BinaryOperator> {
    Some(match token {
        Token::Eq => BinaryOperator::Eq,
        Token::Neq => BinaryOperator::NotEq,
        Token::Lt => BinaryOperator::Lt,
        Token::LtEq => BinaryOperator::LtEq,
        Token::Gt => BinaryOperator::Gt,
        Token::GtEq => BinaryOperator::GtEq,
        _ => return None,
    })
}

/// `a = ANY ((SELECT 1) UNION SELECT 2)`, with the operator next; `None` if it is no such query.
pub(super) fn parse_comparison_with_query(
    parser: &mut Parser,
    left: &Expr,
) -> Result<Option<Expr>, ParserError> {
    let Some(compare_op) = comparison(&parser.peek_token_ref().token) else {
        return Ok(None);
    };
    let is = |keyword| is_keyword(&parser.peek_nth_token_ref(1).token, keyword);
    let (is_all, is_some) = (is(Keyword::ALL), is(Keyword::SOME));
    if !(is_all || is_some || is(Keyword::ANY)) || !begins_other_query(parser, 2) {
        return Ok(None);
    }
    for _ in 0..3 {
        parser.advance_token();
    }
    let query = parser.parse_query()?;
    parser.expect_token(&Token::RParen)?;
    let left = Box::new(left.clone());
    let right = Box::new(Expr::Subquery(query));
    Ok(Some(match is_all {
        true => Expr::AllOp {
            left,
            compare_op,
            right,
        },
        false => Expr::AnyOp {
            left,
            compare_op,
            right,
            is_some,
        },
    }))
}

/// Whether such a query begins at a parenthesis that is so many tokens ahead.
fn begins_other_query(parser: &Parser, before: usize) -> bool {
    if parser.peek_nth_token_ref(before).token != Token::LParen {
        return false;
    }
    let inner = &parser.peek_nth_token_ref(before + 1).token;
    let ahead_of_inner = || {
        let mut ahead = Ahead::of(parser);
        (0..=before).for_each(|_| {
            ahead.next();
        });
        ahead
    };
    if is_keyword(inner, Keyword::VALUES) {
        return begins_rows(ahead_of_inner());
    }
    if *inner != Token::LParen || ahead_of_inner().begins_query() != Some(true) {
        return false;
    }
    // `((SELECT 1))` is an operand in parentheses.
    let mut behind_first = ahead_of_inner();
    behind_first.next();
    behind_first.skip_parentheses();
    *behind_first.next() != Token::RParen
}

/// Whether VALUES, which comes next, begins rows. `VALUES(a)` is the value that INSERT gives a column.
fn begins_rows(mut ahead: Ahead) -> bool {
    ahead.next();
    let token = ahead.next();
    if *token != Token::LParen {
        return is_keyword(token, Keyword::ROW);
    }
    loop {
        match ahead.next() {
            Token::Word(word) if word.quote_style.is_some() || !is_constant(word.keyword) => {}
            Token::Period => {}
            Token::RParen => break,
            _ => return true,
        }
    }
    let goes_on = [
        Keyword::UNION,
        Keyword::EXCEPT,
        Keyword::INTERSECT,
        Keyword::ORDER,
        Keyword::LIMIT,
    ];
    let token = ahead.next();
    // In `(a, b) = (VALUES(a), 2)` it is the function.
    (*token == Token::Comma && *ahead.next() == Token::LParen)
        || goes_on.iter().any(|word| is_keyword(token, *word))
}

/// A word that is a value and no name.
fn is_constant(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::NULL | Keyword::TRUE | Keyword::FALSE | Keyword::DEFAULT
    )
}
