//! The tokens of plain texts, in one pass over their bytes.
//!
//! sqlparser's tokenizer goes through any text of any dialect, a character at a time, and looks each word up among all
//! keywords by halves. It was a tenth of what a new statement took. Most texts have nothing but words, names between
//! backticks, numbers, short strings and the common operators. These are read here, into the tokens that sqlparser
//! makes of them, without the blanks between:
//!
//! ```text
//!   SELECT `a` FROM t WHERE b >= ?        read here
//!   SELECT 'it''s', @a, X'61', 1e5        read by sqlparser: escapes, variables, other literals
//! ```
//!
//! Anything else in a text leaves all of it to sqlparser, comments above all: some of them are hints.

use std::sync::LazyLock;

use sqlparser::keywords::{ALL_KEYWORDS, ALL_KEYWORDS_INDEX, Keyword};
use sqlparser::tokenizer::{Location, Span, Token, TokenWithSpan, Word};

use super::word_table::WordTable;

/// The tokens of a text, without blanks; `None` if there is something in it that is not read here. `room`: so many may
/// be expected.
pub(in crate::parser) fn plain_tokens(text: &str, room: usize) -> Option<Vec<TokenWithSpan>> {
    /// A guess at the bytes of a token and the blank behind it, for the room of short texts.
    const BYTES_PER_TOKEN: usize = 4;
    const MAX_ROOM: usize = 256;
    let mut scan = Scan {
        text,
        at: 0,
        line: 1,
        line_start: 0,
    };
    let usual = MAX_ROOM.min(text.len() / BYTES_PER_TOKEN + 1);
    let mut tokens = Vec::with_capacity(room.max(usual));
    loop {
        scan.skip_blanks();
        let start = (scan.at, scan.location());
        let Some(byte) = scan.peek(0) else {
            return Some(tokens);
        };
        let token = scan.token(byte)?;
        tokens.push(TokenWithSpan {
            token,
            span: Span::new(start.1, scan.location()),
        });
    }
}

/// The keyword of UTC_DATE, UTC_TIME and UTC_TIMESTAMP: that of another clock, so that sqlparser reads them without
/// parentheses, too.
pub(super) fn keyword_of_clock(word: &str) -> Option<Keyword> {
    const CLOCKS: [&str; 3] = ["UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP"];
    let is_clock = CLOCKS.iter().any(|clock| word.eq_ignore_ascii_case(clock));
    is_clock.then_some(Keyword::CURRENT_TIMESTAMP)
}

/// Where the pass over a text is. All that it has gone over is ASCII, so bytes are columns.
struct Scan<'t> {
    text: &'t str,
    at: usize,
    line: u64,
    line_start: usize,
}

impl Scan<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.text.as_bytes().get(self.at + ahead).copied()
    }

    fn location(&self) -> Location {
        Location {
            line: self.line,
            column: (self.at - self.line_start) as u64 + 1,
        }
    }

    fn skip_blanks(&mut self) {
        while let Some(byte) = self.peek(0) {
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.line_start = self.at + 1;
                }
                b' ' | b'\t' | b'\r' => {}
                _ => return,
            }
            self.at += 1;
        }
    }

    fn token(&mut self, byte: u8) -> Option<Token> {
        let (token, bytes) = match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => return self.word(),
            b'0'..=b'9' => return self.number(),
            b'`' => return self.quoted_name(),
            b'\'' => return self.string(),
            b'(' => (Token::LParen, 1),
            b')' => (Token::RParen, 1),
            b',' => (Token::Comma, 1),
            b'+' => (Token::Plus, 1),
            b'*' => (Token::Mul, 1),
            b'%' => (Token::Mod, 1),
            b'/' if self.peek(1) != Some(b'*') => (Token::Div, 1),
            b'-' if !matches!(self.peek(1), Some(b'-' | b'>')) => (Token::Minus, 1),
            b'=' if !matches!(self.peek(1), Some(b'=' | b'>')) => (Token::Eq, 1),
            b'!' if self.peek(1) == Some(b'=') && self.is_operator_end(2) => (Token::Neq, 2),
            b'<' if self.is_operator_end(1) => (Token::Lt, 1),
            b'<' if self.is_operator_end(2) => match self.peek(1) {
                Some(b'=') => (Token::LtEq, 2),
                Some(b'>') => (Token::Neq, 2),
                _ => return None,
            },
            b'>' if self.is_operator_end(1) => (Token::Gt, 1),
            b'>' if self.peek(1) == Some(b'=') && self.is_operator_end(2) => (Token::GtEq, 2),
            b'?' if !self.peek(1).is_some_and(is_word_byte) => {
                (Token::Placeholder("?".to_string()), 1)
            }
            b'.' if !self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) => {
                let is_behind_name = self.at > 0 && {
                    let before = self.text.as_bytes()[self.at - 1];
                    is_word_byte(before) || before == b'`'
                };
                if !is_behind_name {
                    return None;
                }
                (Token::Period, 1)
            }
            _ => return None,
        };
        self.at += bytes;
        Some(token)
    }

    /// Whether no operator goes on with the byte so far ahead.
    fn is_operator_end(&self, ahead: usize) -> bool {
        match self.peek(ahead) {
            None => true,
            Some(byte) => {
                is_word_byte(byte)
                    || matches!(
                        byte,
                        b' ' | b'\t' | b'\r' | b'\n' | b'?' | b'\'' | b'`' | b'('
                    )
            }
        }
    }

    /// The bytes from the next on that belong together.
    fn length(&self, from: usize, belongs: impl Fn(u8) -> bool) -> usize {
        let bytes = &self.text.as_bytes()[self.at + from..];
        let length = bytes.iter().position(|byte| !belongs(*byte));
        from + length.unwrap_or(bytes.len())
    }

    fn take(&mut self, bytes: usize) -> &str {
        let start = self.at;
        self.at += bytes;
        &self.text[start..self.at]
    }

    fn word(&mut self) -> Option<Token> {
        let length = self.length(1, is_word_byte);
        // N'a', x'61', _utf8mb4'a', user@host, and letters of other alphabets.
        match self.peek(length) {
            Some(b'\'' | b'"' | b'@' | b'$') => return None,
            Some(byte) if !byte.is_ascii() => return None,
            _ => {}
        }
        let word = self.take(length);
        Some(Token::Word(Word {
            keyword: keyword_of_clock(word).unwrap_or_else(|| keyword(word)),
            value: word.to_string(),
            quote_style: None,
        }))
    }

    /// `17` and `2.50`.
    fn number(&mut self) -> Option<Token> {
        let is_digit = |byte: u8| byte.is_ascii_digit();
        let mut length = self.length(1, is_digit);
        if self.peek(length) == Some(b'.') {
            let with_point = length + 1;
            length = self.length(with_point, is_digit);
            if length == with_point {
                return None;
            }
        }
        match self.peek(length) {
            Some(b'.' | b'@' | b'$') => None,
            Some(byte) if is_word_byte(byte) || !byte.is_ascii() => None,
            _ => Some(Token::Number(self.take(length).to_string(), false)),
        }
    }

    /// A name without a backtick in it.
    fn quoted_name(&mut self) -> Option<Token> {
        let length = self.length(1, |byte| byte != b'`' && byte != b'\n' && byte.is_ascii());
        if self.peek(length) != Some(b'`') || self.peek(length + 1) == Some(b'`') {
            return None;
        }
        if self.peek(1) == Some(b'@') {
            return None;
        }
        let name = self.take(length + 1);
        Some(Token::Word(Word {
            value: name[1..length].to_string(),
            quote_style: Some('`'),
            keyword: Keyword::NoKeyword,
        }))
    }

    /// A string without a quote, an escape or a line in it.
    fn string(&mut self) -> Option<Token> {
        let belongs = |byte: u8| !matches!(byte, b'\'' | b'\\' | b'\n') && byte.is_ascii();
        let length = self.length(1, belongs);
        if self.peek(length) != Some(b'\'') || self.peek(length + 1) == Some(b'\'') {
            return None;
        }
        let string = self.take(length + 1);
        Some(Token::SingleQuotedString(string[1..length].to_string()))
    }
}

fn is_word_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

static KEYWORDS: LazyLock<WordTable<Keyword>> = LazyLock::new(|| {
    let keywords = ALL_KEYWORDS_INDEX.iter().copied();
    WordTable::new(ALL_KEYWORDS.iter().copied().zip(keywords))
});

fn keyword(word: &str) -> Keyword {
    KEYWORDS.find(word).copied().unwrap_or(Keyword::NoKeyword)
}

#[cfg(test)]
mod tests {
    use sqlparser::tokenizer::Tokenizer;

    use super::*;
    use crate::dialect::SheafDialect;

    /// What sqlparser makes of a text, without blanks.
    fn by_sqlparser(text: &str) -> Option<Vec<TokenWithSpan>> {
        let tokens = Tokenizer::new(&SheafDialect::default(), text).tokenize_with_location();
        let mut tokens = tokens.ok()?;
        tokens.retain(|token| !matches!(token.token, Token::Whitespace(_)));
        Some(tokens)
    }

    fn assert_alike(text: &str, tokens: &[TokenWithSpan]) {
        let parsers = by_sqlparser(text).unwrap_or_default();
        assert_eq!(tokens, parsers, "{text}");
        for (own, other) in tokens.iter().zip(&parsers) {
            // Spans are equal to each other whatever they are.
            assert_eq!(
                (own.span.start, own.span.end),
                (other.span.start, other.span.end),
                "{text}: {own}"
            );
        }
    }

    #[test]
    fn plain_texts_have_the_tokens_of_sqlparser() {
        for text in [
            "",
            "SELECT `a b`, t.c FROM d.t WHERE id = ? AND b IN (?, 'x') AND p < 1.50",
            "select count(case when status='draft' then 1 end)-2 as _n\n\tfrom posts\r\n where a>=3 and b<=4",
            "select a<>b, a!=b, a<b, a>b, a%2, a/b, a*b, a+-1, (a)-1 from `t`.`u`",
            "insert into t (a, b) values (1, 'two'), (-3, '')",
            "select t._a, `t`._b from t limit 10,20",
        ] {
            let tokens = plain_tokens(text, 0).unwrap_or_else(|| panic!("{text}"));
            assert_alike(text, &tokens);
        }
    }

    #[test]
    fn what_is_not_plain_is_left_to_sqlparser() {
        for text in [
            "select 'it''s'",
            "select 'a\\'b'",
            "select 'open",
            "select 'é'",
            "select x'61'",
            "select n'a'",
            "select _utf8mb4'a'",
            "select 0x61",
            "select 1e5",
            "select 1.",
            "select .5",
            "select t.1",
            "select 1a",
            "select @a",
            "select @@version",
            "select a@b",
            "select a$b",
            "select \"a\"",
            "select `a``b`",
            "select 1 -- all",
            "select 1 # all",
            "select /*+ hint */ 1",
            "select a <=> b",
            "select a << 1",
            "select a -> '$.b'",
            "select a := 1",
            "select a || b",
            "select !a",
            "select ?1",
            "select é",
            "select 1; select 2",
        ] {
            assert!(plain_tokens(text, 0).is_none(), "{text}");
        }
    }

    /// Random texts of pieces that touch each other.
    #[test]
    fn texts_of_any_pieces_are_alike_or_left() {
        const PIECES: [&str; 40] = [
            "select", "x", "b", "N", "_a", "e1", "1", "2.5", "0", ".", ",", "(", ")", "=", "<",
            ">", "!", "-", "+", "*", "/", "%", "'a'", "''", "`n`", "?", " ", "\n", "\t", "\r\n",
            "@", "$", "\"", "\\", "#", "é", ":", "|", "&", "^",
        ];
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        let mut next = move || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) as usize
        };
        let mut plain = 0;
        for _ in 0..60_000 {
            let pieces = 1 + next() % 6;
            let text: String = (0..pieces).map(|_| PIECES[next() % PIECES.len()]).collect();
            if let Some(tokens) = plain_tokens(&text, 0) {
                assert_alike(&text, &tokens);
                plain += 1;
            }
        }
        assert!(plain > 10_000, "{plain} plain texts");
    }

    #[test]
    fn all_keywords_are_found() {
        for (number, word) in ALL_KEYWORDS.iter().enumerate() {
            let expected = ALL_KEYWORDS_INDEX[number];
            assert_eq!(keyword(word), expected, "{word}");
            assert_eq!(keyword(&word.to_lowercase()), expected, "{word}");
        }
        assert_eq!(keyword("no_such_word"), Keyword::NoKeyword);
    }
}
