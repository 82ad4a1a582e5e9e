//! `UPDATE t SET a := 1`: the sign of an assignment to a column may be that of user variables. sqlparser wants `=`.

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::token::keyword;

/// The tokens with `=` in the lists of UPDATE, of INSERT ... SET and of ON DUPLICATE KEY UPDATE.
pub(super) fn rewritten(mut tokens: Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let significant = |token: &&TokenWithSpan| !matches!(token.token, Token::Whitespace(_));
    let first = tokens.iter().find(significant);
    let first = first.map_or(Keyword::NoKeyword, |token| keyword(&token.token));
    let changes = matches!(
        first,
        Keyword::UPDATE | Keyword::INSERT | Keyword::REPLACE | Keyword::EXPLAIN
    );
    if !changes || !tokens.iter().any(|token| token.token == Token::Assignment) {
        return tokens;
    }
    let (mut depth, mut is_list, mut is_target) = (0usize, false, false);
    let mut before = Keyword::NoKeyword;
    for TokenWithSpan { token, .. } in &mut tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            Token::Comma => is_target = is_list,
            Token::Assignment if is_target => {
                *token = Token::Eq;
                is_target = false;
            }
            Token::Period => {}
            Token::Word(word) if word.value.starts_with('@') => is_target = false,
            Token::Word(_) => match (keyword(token), before) {
                (Keyword::SET, _) | (Keyword::UPDATE, Keyword::KEY) => {
                    (is_list, is_target) = (true, true);
                }
                (Keyword::WHERE | Keyword::SELECT | Keyword::ORDER | Keyword::LIMIT, _) => {
                    (is_list, is_target) = (false, false);
                }
                _ => {}
            },
            _ => is_target = false,
        }
        before = keyword(token);
    }
    tokens
}
