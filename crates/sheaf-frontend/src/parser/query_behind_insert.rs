//! `INSERT INTO t ((SELECT ..) UNION ..)`: a query in parentheses that does not begin with SELECT.
//!
//! sqlparser takes its parenthesis for that of a list of columns. So an empty list of columns is put in front of it,
//! which means all columns.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::token::keyword;

/// The tokens with an empty list of columns where sqlparser needs it.
pub(super) fn rewritten(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    if let Some(at) = place_of_query(&tokens) {
        let span = tokens[at].span;
        let list = [Token::LParen, Token::RParen];
        tokens.splice(at..at, list.map(|token| TokenWithSpan { token, span }));
    }
    tokens
}

/// Where the parenthesis of such a query is.
fn place_of_query(tokens: &[TokenWithSpan]) -> Option<usize> {
    let significant = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let first = keyword(&tokens.iter().find(significant)?.token);
    if !matches!(first, Keyword::INSERT | Keyword::REPLACE) {
        return None;
    }
    let at = tokens
        .iter()
        .position(|token| token.token == Token::LParen)?;
    let is_behind_table = tokens[..at].iter().skip(1).all(|token| {
        !matches!(
            keyword(&token.token),
            Keyword::SELECT | Keyword::WITH | Keyword::VALUES | Keyword::VALUE | Keyword::SET
        )
    });
    let inner = &tokens[at + 1..].iter().find(significant)?.token;
    let begins_query =
        *inner == Token::LParen || matches!(keyword(inner), Keyword::WITH | Keyword::VALUES);
    (is_behind_table && begins_query).then_some(at)
}
