//! `SET STATEMENT a = 1, b = 2 FOR statement` of MariaDB: variables of the session for one statement.
//!
//! What stands in front of that statement is taken out of the tokens. So the statement is read as if nothing stood in
//! front of it.

use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::statement::{Assignment, Persist, Scope};
use super::{ParseResult, StatementParser};

/// Takes SET STATEMENT and its assignments out of a statement, FOR included; empty if there are none. A SET STATEMENT
/// for a SET STATEMENT is taken out with it.
pub(super) fn take_out(tokens: &mut Vec<TokenWithSpan>) -> Vec<TokenWithSpan> {
    let mut end = 0;
    while let Some(behind) = behind_for(tokens, end) {
        end = behind;
    }
    tokens.drain(..end).collect()
}

/// The place behind FOR of the SET STATEMENT that begins here.
fn behind_for(tokens: &[TokenWithSpan], begin: usize) -> Option<usize> {
    let is_word = |at: usize, word| StatementParser::is_word(&tokens[at].token, word);
    let is_space = |at: &usize| matches!(tokens[*at].token, Token::Whitespace(_));
    let mut places = (begin..tokens.len()).filter(|at| !is_space(at));
    if !is_word(places.next()?, "SET") || !is_word(places.next()?, "STATEMENT") {
        return None;
    }
    let mut depth = 0usize;
    for at in places {
        match tokens[at].token {
            Token::LParen => depth += 1,
            Token::RParen => depth = depth.saturating_sub(1),
            // Without a statement behind it, it is a SET that ends too early.
            _ if depth == 0 && is_word(at, "FOR") => {
                let is_word =
                    |token: &TokenWithSpan| matches!(token.token, Token::Word(_) | Token::LParen);
                return tokens[at + 1..].iter().any(is_word).then_some(at + 1);
            }
            _ => {}
        }
    }
    None
}

impl StatementParser<'_> {
    /// The assignments in what was taken out.
    pub(super) fn assignments_for_statement(&mut self) -> ParseResult<Vec<Assignment>> {
        let mut assignments = Vec::new();
        while !self.at_end() {
            self.expect("SET STATEMENT")?;
            assignments.extend(self.list(|parser| {
                let next = &parser.tokens.peek_token_ref().token;
                if matches!(next, Token::Word(word) if word.value.starts_with('@')) {
                    return parser.unexpected("a variable");
                }
                let name = parser.identifier()?;
                parser.assignment_operator()?;
                Ok(Assignment::System {
                    scope: Scope::Session,
                    persist: Persist::No,
                    name: name.to_ascii_lowercase(),
                    value: parser.set_value()?,
                })
            })?);
            self.expect("FOR")?;
        }
        Ok(assignments)
    }
}
