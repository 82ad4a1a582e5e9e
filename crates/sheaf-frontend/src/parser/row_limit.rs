//! LIMIT takes whole numbers and parameters, and nothing else.
//!
//! sqlparser reads any expression there. MySQL's grammar does not know `LIMIT 1.`, `LIMIT -1`, `LIMIT 0x10` or
//! `LIMIT 1 + 1`, so they are found among the tokens before anything is parsed.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use crate::token::is_keyword;

/// The place of the first token that cannot be a number of rows.
pub(super) fn wrong_row_count(tokens: &[TokenWithSpan]) -> Option<Location> {
    let mut tokens = tokens
        .iter()
        .filter(|token| !matches!(token.token, Token::Whitespace(_)))
        .peekable();
    // Behind a point every word is a name.
    let mut is_qualified = false;
    while let Some(token) = tokens.next() {
        let is_limit = is_keyword(&token.token, Keyword::LIMIT) && !is_qualified;
        is_qualified = token.token == Token::Period;
        if !is_limit {
            continue;
        }
        loop {
            match tokens.next() {
                Some(token) if !is_row_count(&token.token) => return Some(token.span.start),
                _ => {}
            }
            let goes_on = tokens.next_if(|token| {
                token.token == Token::Comma || is_keyword(&token.token, Keyword::OFFSET)
            });
            if goes_on.is_none() {
                break;
            }
        }
    }
    None
}

fn is_row_count(token: &Token) -> bool {
    match token {
        Token::Number(digits, _) => digits.bytes().all(|byte| byte.is_ascii_digit()),
        Token::Placeholder(_) | Token::EOF => true,
        _ => false,
    }
}
