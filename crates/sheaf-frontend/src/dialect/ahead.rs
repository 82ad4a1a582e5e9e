//! A look at the tokens that come, one by one.

use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

/// A look at the tokens that come, one by one. A look at the nth of them from the start is a walk over n.
pub(crate) struct Ahead<'p, 't> {
    pub(super) parser: &'p Parser<'t>,
    pub(super) at: usize,
}

impl<'p, 't> Ahead<'p, 't> {
    pub(crate) fn of(parser: &'p Parser<'t>) -> Self {
        let at = parser.index();
        Ahead { parser, at }
    }

    /// The next one that is no blank.
    pub(crate) fn next(&mut self) -> &'p Token {
        loop {
            let token = &self.parser.token_at(self.at).token;
            self.at += 1;
            if !matches!(token, Token::Whitespace(_)) {
                return token;
            }
        }
    }

    /// Goes behind an operand in a list in parentheses: to the comma or parenthesis behind it, which is returned.
    /// `None` at the end of the statement.
    pub(super) fn skip_operand(&mut self) -> Option<&'p Token> {
        loop {
            match self.next() {
                Token::LParen => self.skip_parentheses(),
                token @ (Token::RParen | Token::Comma) => return Some(token),
                Token::EOF => return None,
                _ => {}
            }
        }
    }

    /// Goes behind the parenthesis that closes the one that was met last, or to the end.
    pub(super) fn skip_parentheses(&mut self) {
        let mut depth = 1;
        while depth > 0 {
            match self.next() {
                Token::LParen => depth += 1,
                Token::RParen => depth -= 1,
                Token::EOF => return,
                _ => {}
            }
        }
    }
}
