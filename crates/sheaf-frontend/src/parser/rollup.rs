//! `GROUP BY ROLLUP (a, b)` becomes `GROUP BY a, b WITH ROLLUP`, which means the same.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::token::keyword;

/// The tokens with WITH ROLLUP alone.
pub(super) fn rewritten(tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let is_there = |token: &TokenWithSpan| keyword(&token.token) == Keyword::ROLLUP;
    if !tokens.iter().any(is_there) {
        return tokens;
    }
    let places: Vec<usize> = (0..tokens.len())
        .filter(|at| !matches!(tokens[*at].token, Token::Whitespace(_)))
        .collect();
    let is_word = |number: usize, word| {
        let token = places.get(number).map(|at| &tokens[*at].token);
        token.is_some_and(|token| keyword(token) == word)
    };
    let (mut left_out, mut closed) = (Vec::new(), Vec::new());
    for number in 2..places.len() {
        let begins = is_word(number, Keyword::ROLLUP)
            && is_word(number - 1, Keyword::BY)
            && is_word(number - 2, Keyword::GROUP);
        let Some(open) = places.get(number + 1).filter(|_| begins) else {
            continue;
        };
        if tokens[*open].token == Token::LParen
            && let Some(close) = closing(&tokens, *open)
        {
            left_out.extend([places[number], *open]);
            closed.push(close);
        }
    }
    let mut result = Vec::with_capacity(tokens.len());
    for (at, token) in tokens.into_iter().enumerate() {
        if left_out.contains(&at) {
            continue;
        }
        if !closed.contains(&at) {
            result.push(token);
            continue;
        }
        let span = token.span;
        let space = || Token::Whitespace(sqlparser::tokenizer::Whitespace::Space);
        let words = [
            space(),
            Token::make_keyword("WITH"),
            space(),
            Token::make_keyword("ROLLUP"),
        ];
        result.extend(words.map(|token| TokenWithSpan { token, span }));
    }
    result
}

/// Where the parenthesis is closed that opens here.
fn closing(tokens: &[TokenWithSpan], open: usize) -> Option<usize> {
    let mut depth = 0usize;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.checked_sub(1)?,
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}
