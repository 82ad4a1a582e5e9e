//! The tokens of a statement as MySQL's lexer sees them, on the walk of [`Pieces`].
//!
//! What is a keyword depends on where a word stands. A name behind a point or in front of one is none (`t.status`), and
//! functions of the grammar are some only in front of a parenthesis (`count(a)`, but not `count (a)`).

use std::borrow::Cow;
use std::ops::Range;

use super::keywords::{hint_keyword, is_introducer, keyword};
use crate::parser::pieces::{Piece, Pieces};

/// A token, as far as digests tell them apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Token<'t> {
    /// A keyword or an operator, as it is shown.
    Word(&'static str),
    Name(Cow<'t, str>),
    /// A name of a hint with its query block behind it, `t1@qb`.
    NameInBlock(Cow<'t, str>),
    /// A number, which takes a sign in front of it.
    Number(&'t str),
    /// Any other literal.
    Literal,
    Null,
}

/// How `sql_mode` says that texts are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What is between double quotes is a name.
    pub ansi_quotes: bool,
    /// Functions may stand apart from their parenthesis.
    pub ignore_space: bool,
}

/// The tokens of one statement, from its start to a semicolon.
pub(super) struct Tokens<'t> {
    text: &'t str,
    pieces: Pieces<'t>,
    /// Where the word ends that is taken apart, as `a@@b` is.
    word_end: usize,
    reading: Reading,
    /// The tokens of a comment with hints, while it is read.
    hints: Option<Box<Tokens<'t>>>,
    is_hint: bool,
    /// A point stands right before the next token.
    is_qualified: bool,
    /// `@` stands before it: what follows is the name of a variable or of a host.
    is_variable: bool,
    /// `@@` stands before it.
    is_system_variable: bool,
    /// Where the last name ended that was not quoted.
    name_end: usize,
    /// Hints may follow.
    takes_hints: bool,
}

impl<'t> Tokens<'t> {
    pub(super) fn new(text: &'t str, reading: Reading) -> Tokens<'t> {
        Tokens {
            text,
            pieces: Pieces::new(text),
            word_end: 0,
            reading,
            hints: None,
            is_hint: false,
            is_qualified: false,
            is_variable: false,
            is_system_variable: false,
            name_end: usize::MAX,
            takes_hints: false,
        }
    }

    fn byte(&self, at: usize) -> Option<u8> {
        self.text.as_bytes().get(at).copied()
    }

    fn end_of(&self, from: usize, belongs: impl Fn(u8) -> bool) -> usize {
        let rest = self.text.as_bytes().get(from..).unwrap_or_default();
        from + rest.iter().take_while(|byte| belongs(**byte)).count()
    }

    /// The word that begins a statement with hints may have them behind it.
    fn word(&mut self, word: &'static str) -> Token<'t> {
        self.takes_hints = matches!(word, "SELECT" | "INSERT" | "REPLACE" | "UPDATE" | "DELETE");
        Token::Word(word)
    }

    fn quoted(&mut self, range: Range<usize>) -> Option<Token<'t>> {
        let text = self.text;
        let quote = self.byte(range.start)?;
        match quote {
            b'`' => Some(name_in_quotes(&text[range], '`')),
            b'"' if self.reading.ansi_quotes && !self.is_hint => {
                Some(name_in_quotes(&text[range], '"'))
            }
            b'\'' | b'"' => Some(Token::Literal),
            // Anywhere else it is a comment.
            _ if !self.takes_hints => None,
            _ => {
                let start = range.start + "/*+".len();
                let end = range.end - usize::from(text[..range.end].ends_with("*/")) * 2;
                let mut hints = Tokens::new(text.get(start..end)?, self.reading);
                hints.is_hint = true;
                self.hints = Some(Box::new(hints));
                self.takes_hints = false;
                Some(Token::Word("/*+"))
            }
        }
    }

    /// The number that begins here: where it ends. `None`: it is a name.
    fn end_of_number(&self, start: usize) -> Option<usize> {
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let of_kind = |belongs: fn(u8) -> bool| {
            let end = self.end_of(start + 2, belongs);
            let ends = !self.byte(end).is_some_and(is_name_byte);
            (end > start + 2 && ends).then_some(end)
        };
        match (self.byte(start), self.byte(start + 1)) {
            (Some(b'0'), Some(b'x')) => return of_kind(|byte| byte.is_ascii_hexdigit()),
            (Some(b'0'), Some(b'b')) => return of_kind(|byte| matches!(byte, b'0' | b'1')),
            _ => {}
        }
        let exponent = |at: usize| {
            if !matches!(self.byte(at), Some(b'e' | b'E')) {
                return None;
            }
            let sign = usize::from(matches!(self.byte(at + 1), Some(b'+' | b'-')));
            let end = self.end_of(at + 1 + sign, is_digit);
            (end > at + 1 + sign).then_some(end)
        };
        let end = self.end_of(start, is_digit);
        if let Some(end) = exponent(end) {
            return Some(end);
        }
        if self.byte(end) == Some(b'.') {
            let end = self.end_of(end + 1, is_digit);
            return Some(exponent(end).unwrap_or(end));
        }
        (!self.byte(end).is_some_and(is_name_byte)).then_some(end)
    }

    fn number(&mut self, start: usize, end: usize) -> Token<'t> {
        self.pieces.skip_to(end);
        Token::Number(&self.text[start..end])
    }

    /// A word, a number, or what begins with `@`.
    fn word_at(&mut self, start: usize, is_qualified: bool, is_system: bool) -> Token<'t> {
        let first = self.byte(start).unwrap_or_default();
        if first == b'@' {
            let is_system = self.byte(start + 1) == Some(b'@');
            let marks = if is_system { "@@" } else { "@" };
            self.is_system_variable = is_system;
            self.is_variable = !is_system && !self.is_hint;
            self.pieces.skip_to(start + marks.len());
            return Token::Word(marks);
        }
        if first.is_ascii_digit()
            && !is_qualified
            && let Some(end) = self.end_of_number(start)
        {
            return self.number(start, end);
        }
        let end = self.end_of(start, is_name_byte);
        let word = &self.text[start..end];
        self.pieces.skip_to(end);
        if self.byte(end) == Some(b'\'') && !is_qualified {
            let is_number = matches!(word, "x" | "X" | "b" | "B");
            if is_number || matches!(word, "n" | "N") {
                let quoted = self.pieces.next().map_or(end..end, |(_, range)| range);
                return match is_number {
                    true => Token::Number(&self.text[quoted]),
                    false => Token::Literal,
                };
            }
        }
        if self.is_hint {
            if self.byte(end) == Some(b'@') {
                self.pieces.skip_to(end + 1);
                return Token::NameInBlock(Cow::Borrowed(word));
            }
            return match hint_keyword(word) {
                Some(word) => Token::Word(word),
                None => Token::Name(Cow::Borrowed(word)),
            };
        }
        let is_before_name = self.byte(end) == Some(b'.')
            && self.byte(end + 1).is_some_and(is_name_byte)
            && !is_system;
        let found = match is_qualified || is_before_name {
            true => None,
            false => self.keyword(word, end),
        };
        match found {
            Some("NULL") => Token::Null,
            Some(found) => self.word(found),
            None => {
                self.name_end = end;
                Token::Name(Cow::Borrowed(word))
            }
        }
    }

    fn keyword(&self, word: &str, end: usize) -> Option<&'static str> {
        if is_introducer(word) {
            return Some("(_charset)");
        }
        let is_blank = |byte: u8| byte.is_ascii_whitespace();
        let next = match self.reading.ignore_space {
            true => self.end_of(end, is_blank),
            false => end,
        };
        keyword(word, self.byte(next) == Some(b'('))
    }

    fn symbol(&mut self, start: usize) -> Option<Token<'t>> {
        let rest = &self.text.as_bytes()[start..];
        if rest[0] == b'.' {
            let is_name = self.name_end == start;
            if !is_name && rest.get(1).is_some_and(u8::is_ascii_digit) {
                let end = self.end_of_number(start).unwrap_or(start + 1);
                return Some(self.number(start, end));
            }
            self.is_qualified = rest.get(1).copied().is_some_and(is_name_byte);
            return Some(Token::Word("."));
        }
        if rest[0] == b'?' {
            return Some(Token::Literal);
        }
        let operator = OPERATORS.iter().find(|operator| {
            let bytes = operator.as_bytes();
            bytes[0] == rest[0] && rest.starts_with(bytes)
        })?;
        self.pieces.skip_to(start + operator.len());
        Some(Token::Word(match *operator {
            "<>" => "!=",
            operator => operator,
        }))
    }
}

/// Longer ones first.
const OPERATORS: [&str; 34] = [
    "<=>", "->>", "<=", "<>", "<<", ">=", ">>", "!=", ":=", "||", "&&", "->", "(", ")", ",", "+",
    "-", "*", "/", "%", "=", "<", ">", "!", "&", "|", "^", "~", ":", "{", "}", "[", "]", "\\",
];

impl<'t> Iterator for Tokens<'t> {
    type Item = Token<'t>;

    fn next(&mut self) -> Option<Token<'t>> {
        if let Some(hints) = &mut self.hints {
            let hint = hints.next();
            if hint.is_none() {
                self.hints = None;
            }
            return Some(hint.unwrap_or(Token::Word("*/")));
        }
        loop {
            if std::mem::take(&mut self.is_variable) {
                let start = self.pieces.position;
                let end = self.end_of(start, |byte| is_name_byte(byte) || byte == b'.');
                if end > start {
                    self.pieces.skip_to(end);
                    return Some(Token::Literal);
                }
            }
            let start = self.pieces.position;
            let (piece, range) = match start < self.word_end {
                true => (Piece::Word, start..self.word_end),
                false => self.pieces.next()?,
            };
            if piece == Piece::Word {
                self.word_end = range.end;
            }
            if piece == Piece::Blank {
                continue;
            }
            let is_qualified = std::mem::take(&mut self.is_qualified);
            let is_system = std::mem::take(&mut self.is_system_variable);
            let token = match piece {
                Piece::Blank | Piece::ExecutableStart(_) => None,
                Piece::Quoted => self.quoted(range),
                Piece::Word => Some(self.word_at(range.start, is_qualified, is_system)),
                Piece::Symbol(b';') if !self.is_hint => return None,
                Piece::Symbol(_) => self.symbol(range.start),
            };
            if token.is_some() {
                return token;
            }
        }
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$') || byte >= 0x80
}

/// A name without its quotes, of which those in it are doubled.
fn name_in_quotes(quoted: &str, quote: char) -> Token<'_> {
    let name = quoted.strip_prefix(quote).unwrap_or(quoted);
    let name = name.strip_suffix(quote).unwrap_or(name);
    Token::Name(match name.contains(quote) {
        true => {
            let doubled: String = [quote, quote].iter().collect();
            Cow::Owned(name.replace(&doubled, &quote.to_string()))
        }
        false => Cow::Borrowed(name),
    })
}
