//! A look at the tokens that come, one by one.

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::Token;

use crate::token::is_keyword;

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

    /// Whether a query or an operand comes, which may begin with more parentheses: what is behind each of these goes on
    /// with a query, or computes with its value. `None` if no query stands in the innermost of them.
    pub(super) fn begins_query(&mut self) -> Option<bool> {
        let goes_on = [
            Keyword::UNION,
            Keyword::EXCEPT,
            Keyword::INTERSECT,
            Keyword::ORDER,
            Keyword::LIMIT,
        ];
        let mut depth = 0;
        let mut token = self.next();
        while *token == Token::LParen {
            depth += 1;
            token = self.next();
        }
        let words = [Keyword::SELECT, Keyword::WITH, Keyword::VALUES];
        if !words.iter().any(|word| is_keyword(token, *word)) {
            return None;
        }
        let mut is_closed = false;
        for _ in 0..depth {
            if !is_closed {
                self.skip_parentheses();
            }
            let token = self.next();
            is_closed = *token == Token::RParen;
            if !is_closed && !goes_on.iter().any(|word| is_keyword(token, *word)) {
                return Some(false);
            }
        }
        Some(true)
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
