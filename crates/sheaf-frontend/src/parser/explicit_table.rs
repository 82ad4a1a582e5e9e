//! `TABLE t`: all rows of a table, wherever a query may stand.
//!
//! ```text
//!   TABLE t ORDER BY a LIMIT 2        SELECT * FROM t ORDER BY a LIMIT 2
//!   INSERT INTO u TABLE t             INSERT INTO u SELECT * FROM t
//!   CREATE TABLE u TABLE t            CREATE TABLE u SELECT * FROM t
//!   a IN (TABLE s)                    a IN (SELECT * FROM s)
//! ```
//!
//! The tokens are rewritten before the statement is read. TABLE is a reserved word, so what it means is told by the
//! words in front of it.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::token::{is_space, keyword};

/// Why a statement with `TABLE t` is not read.
pub(super) enum Wrong {
    /// The place of what may not stand behind it.
    Syntax(Location),
    /// A view is kept as its text, in which the columns of a `*` are written.
    InView,
}

/// The tokens with `SELECT * FROM t` in the place of `TABLE t`.
pub(super) fn rewritten(tokens: Vec<TokenWithSpan>) -> Result<Vec<TokenWithSpan>, Wrong> {
    let is_there = |token: &TokenWithSpan| keyword(&token.token) == Keyword::TABLE;
    if !tokens.iter().any(is_there) {
        return Ok(tokens);
    }
    let significant = tokens.iter().enumerate();
    let significant = significant.filter(|(_, token)| !is_space(&token.token));
    let places: Vec<usize> = significant.map(|(at, _)| at).collect();
    let token_at = |number: usize| places.get(number).map(|at| &tokens[*at].token);
    let first = token_at(0).map_or(Keyword::NoKeyword, keyword);
    let mut found = Vec::new();
    let mut is_created = first == Keyword::CREATE;
    for number in 0..places.len() {
        let before = number.checked_sub(1).and_then(token_at);
        if token_at(number).map(keyword) != Some(Keyword::TABLE) {
            continue;
        }
        // The first one of CREATE TABLE is no query, those behind it are.
        let is_behind = first == Keyword::CREATE && !std::mem::take(&mut is_created);
        let is_query = (is_behind || may_begin_query(first, before))
            && matches!(token_at(number + 1), Some(Token::Word(_)));
        if !is_query {
            continue;
        }
        let is_qualified = token_at(number + 2) == Some(&Token::Period);
        let behind = number + if is_qualified { 4 } else { 2 };
        if !token_at(behind).is_none_or(may_follow) {
            return Err(Wrong::Syntax(tokens[places[behind]].span.start));
        }
        found.push(places[number]);
    }
    let is_view = |token: &TokenWithSpan| keyword(&token.token) == Keyword::VIEW;
    if !found.is_empty()
        && matches!(first, Keyword::CREATE | Keyword::ALTER)
        && tokens.iter().any(is_view)
    {
        return Err(Wrong::InView);
    }
    let mut result = Vec::with_capacity(tokens.len() + 5 * found.len());
    let mut found = found.into_iter().peekable();
    for (at, token) in tokens.into_iter().enumerate() {
        if found.next_if_eq(&at).is_none() {
            result.push(token);
            continue;
        }
        let span = token.span;
        let space = || Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
        let select = Token::make_keyword("SELECT");
        let from = Token::make_keyword("FROM");
        let query = [select, space(), Token::Mul, space(), from];
        result.extend(query.map(|token| TokenWithSpan { token, span }));
    }
    Ok(result)
}

/// Whether TABLE is a query behind a token, in a statement that begins with a word.
fn may_begin_query(first: Keyword, before: Option<&Token>) -> bool {
    match before {
        None | Some(Token::LParen) => true,
        // EXPLAIN ALTER TABLE
        Some(before) if keyword(before) == Keyword::ALTER => false,
        Some(before) => {
            matches!(
                keyword(before),
                Keyword::AS
                    | Keyword::UNION
                    | Keyword::EXCEPT
                    | Keyword::INTERSECT
                    | Keyword::ALL
                    | Keyword::DISTINCT
            ) || matches!(
                first,
                Keyword::INSERT
                    | Keyword::REPLACE
                    | Keyword::EXPLAIN
                    | Keyword::DESCRIBE
                    | Keyword::DESC
                    | Keyword::WITH
            )
        }
    }
}

/// Whether a token may stand behind the name of the table.
fn may_follow(token: &Token) -> bool {
    matches!(token, Token::RParen | Token::SemiColon | Token::EOF)
        || matches!(
            keyword(token),
            Keyword::ORDER
                | Keyword::LIMIT
                | Keyword::UNION
                | Keyword::EXCEPT
                | Keyword::INTERSECT
                | Keyword::FOR
                | Keyword::LOCK
                | Keyword::ON
                | Keyword::RETURNING
        )
}
