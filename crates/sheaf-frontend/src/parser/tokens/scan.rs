//! One pass over the bytes of a request, before tokens exist.
//!
//! Three things must be known before a statement is tokenised:
//!
//! - which comments are code (`/*!40101 SET … */`, as dumps and clients send them);
//! - where one statement ends and the next begins;
//! - whether the statement is nested so deeply that the recursive parts behind (parser, planner, optimizer) must not
//!   see it.
//!
//! All three need the same walk that tells code from strings and comments.

use std::borrow::Cow;
use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use crate::error::{Result, SqlError};
use crate::parser::pieces::{Piece, Pieces};

/// The version that executable comments are compared with: `/*!80100 … */` runs only on 8.1.0 and later.
const COMMENT_VERSION: u32 = 80_099;

/// The most operators that may stand in a chain, parentheses included. The parser turns `1+1+…+1` into a tree as
/// deep as the chain is long, and everything behind walks that tree recursively.
pub const MAX_EXPRESSION_DEPTH: usize = 2_000;

/// The most parentheses that may be open at once.
pub const MAX_PARENTHESES: usize = 250;

/// The most set operations and joins in one statement; they nest as operators do.
pub const MAX_QUERY_BLOCKS: usize = 1_000;

/// A text in which a backslash in a string is a character (sql_mode NO_BACKSLASH_ESCAPES) as one in which it is an
/// escape. So nothing behind has to know the mode, and what is kept of a text reads the same under every mode.
///
/// ```text
///   SELECT 'a\n', '\'     -->   SELECT 'a\\n', '\\'
/// ```
pub fn with_escaped_backslashes(text: &[u8], has_ansi_quotes: bool) -> Cow<'_, [u8]> {
    if !text.contains(&b'\\') {
        return Cow::Borrowed(text);
    }
    let mut escaped = Vec::with_capacity(text.len() + text.len() / 8);
    let mut pieces = Pieces::new(text);
    pieces.has_escapes = false;
    for (piece, range) in pieces {
        let bytes = &text[range];
        let is_string = match bytes.first() {
            Some(b'\'') => true,
            Some(b'"') => !has_ansi_quotes,
            _ => false,
        };
        if piece != Piece::Quoted || !is_string {
            escaped.extend_from_slice(bytes);
            continue;
        }
        for byte in bytes {
            escaped.push(*byte);
            if *byte == b'\\' {
                escaped.push(b'\\');
            }
        }
    }
    Cow::Owned(escaped)
}

/// Makes executable comments code or blanks, by their version. Positions in the text stay as they are, so that
/// error messages point to what the client sent.
pub fn resolve_executable_comments(text: &str) -> Cow<'_, str> {
    if !text.contains("/*!") {
        return Cow::Borrowed(text);
    }
    let mut resolved = text.as_bytes().to_vec();
    let mut blank = |range: Range<usize>| {
        for byte in &mut resolved[range] {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let mut open = Vec::new();
    let mut pieces = Pieces::new(text);
    while let Some((piece, range)) = pieces.next() {
        match piece {
            Piece::ExecutableStart(version) if version.is_none_or(|v| v <= COMMENT_VERSION) => {
                blank(range.clone());
                open.push(range);
            }
            Piece::ExecutableStart(_) => {
                let end = pieces.end_of_comment(range.end);
                if text[range.end..end].ends_with("*/") {
                    blank(range.start..end);
                }
                pieces.position = end;
            }
            Piece::Symbol(b'*')
                if !open.is_empty() && text.as_bytes().get(range.end) == Some(&b'/') =>
            {
                blank(range.start..range.end + 1);
                pieces.position = range.end + 1;
                open.pop();
            }
            _ => {}
        }
    }
    // What is not closed stays, and is an error.
    for range in open {
        resolved[range.clone()].copy_from_slice(&text.as_bytes()[range]);
    }
    // Only whole characters were replaced: comment openers, closers and whole comments.
    Cow::Owned(String::from_utf8(resolved).unwrap_or_else(|_| text.to_string()))
}

/// The first statement of a text: its bytes without the semicolon, and where the text goes on after it.
/// `None` if only white space, comments and semicolons are left.
pub fn first_statement(text: &str) -> Option<(Range<usize>, usize)> {
    let mut start = None;
    let mut end = 0;
    for (piece, range) in Pieces::new(text) {
        match piece {
            Piece::Blank => {}
            Piece::Symbol(b';') => {
                if let Some(start) = start {
                    return Some((start..end, range.end));
                }
            }
            _ => {
                start.get_or_insert(range.start);
                end = range.end;
            }
        }
    }
    start.map(|start| (start..end, text.len()))
}

/// A statement without the first pair of these words that stands outside of parentheses; `None`: there is none.
pub fn without_words(text: &str, [first, second]: [&str; 2]) -> Option<String> {
    let mut depth = 0_usize;
    let mut begins: Option<usize> = None;
    for (piece, range) in Pieces::new(text) {
        let before = match piece {
            Piece::Blank => continue,
            _ => begins.take(),
        };
        let word = text.get(range.clone()).unwrap_or_default();
        match piece {
            Piece::Symbol(b'(') => depth += 1,
            Piece::Symbol(b')') => depth = depth.saturating_sub(1),
            Piece::Word if depth > 0 => {}
            Piece::Word => {
                if let Some(start) = before.filter(|_| word.eq_ignore_ascii_case(second)) {
                    return Some(format!(
                        "{}{}",
                        text[..start].trim_end(),
                        &text[range.end..]
                    ));
                }
                begins = word.eq_ignore_ascii_case(first).then_some(range.start);
            }
            _ => {}
        }
    }
    None
}

/// Refuses a statement that would nest too deep: error 1436.
///
/// The measure is an upper bound taken from the tokens that the parser reads: operators since the last comma, clause
/// keyword, AND or OR, on every level of parentheses that is open. A CASE is such a level as well, and its branches lie
/// beside each other.
pub fn check_nesting(tokens: &[TokenWithSpan]) -> Result<()> {
    let mut nesting = Nesting {
        levels: vec![Level::default()],
        total: 0,
        parentheses: 0,
    };
    let mut query_blocks = 0usize;
    // Whether the token before may be the last one of an operand. Where it is not, END is a name.
    let mut ends_operand = false;
    for token in tokens {
        if matches!(token.token, Token::Whitespace(_)) {
            continue;
        }
        let after_operand = std::mem::replace(&mut ends_operand, true);
        match &token.token {
            Token::LParen => nesting.open(false)?,
            Token::RParen => nesting.close(),
            Token::Comma => nesting.reset(),
            Token::Word(word) if word.quote_style.is_none() => {
                match word.keyword {
                    Keyword::BETWEEN => {
                        nesting.count()?;
                        nesting.begin_between();
                        ends_operand = false;
                    }
                    Keyword::NOT
                    | Keyword::DIV
                    | Keyword::MOD
                    | Keyword::LIKE
                    | Keyword::IN
                    | Keyword::IS
                    | Keyword::REGEXP
                    | Keyword::RLIKE
                    | Keyword::BINARY
                    | Keyword::COLLATE => {
                        nesting.count()?;
                        ends_operand = false;
                    }
                    Keyword::INTERVAL | Keyword::DISTINCT => ends_operand = false,
                    Keyword::CASE => {
                        nesting.count()?;
                        nesting.open(true)?;
                        ends_operand = false;
                    }
                    Keyword::WHEN | Keyword::THEN | Keyword::ELSE if nesting.is_in_case() => {
                        nesting.reset();
                        ends_operand = false;
                    }
                    Keyword::END if after_operand && nesting.is_in_case() => nesting.close(),
                    // The parser makes no deep tree of their chains.
                    Keyword::AND => {
                        nesting.end_between_or_reset();
                        ends_operand = false;
                    }
                    Keyword::OR | Keyword::XOR => {
                        nesting.reset();
                        ends_operand = false;
                    }
                    Keyword::SELECT
                    | Keyword::FROM
                    | Keyword::WHERE
                    | Keyword::HAVING
                    | Keyword::ON
                    | Keyword::GROUP
                    | Keyword::ORDER
                    | Keyword::VALUES => nesting.reset(),
                    Keyword::UNION | Keyword::EXCEPT | Keyword::INTERSECT | Keyword::JOIN => {
                        query_blocks += 1;
                        if query_blocks > MAX_QUERY_BLOCKS {
                            return Err(SqlError::stack_overrun(MAX_QUERY_BLOCKS));
                        }
                    }
                    _ => {}
                }
            }
            Token::Word(_)
            | Token::Number(..)
            | Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
            | Token::HexStringLiteral(_)
            | Token::SingleQuotedByteStringLiteral(_)
            | Token::DoubleQuotedByteStringLiteral(_)
            | Token::Placeholder(_)
            | Token::SemiColon
            | Token::EOF => {}
            Token::Period => ends_operand = false,
            // Whatever else there is may be an operator.
            _ => {
                nesting.count()?;
                ends_operand = false;
            }
        }
    }
    Ok(())
}

/// A level of parentheses, or a CASE.
#[derive(Default)]
struct Level {
    is_case: bool,
    operators: usize,
    /// BETWEENs that wait for their AND, which ends no operand.
    betweens: usize,
}

/// How deep the expressions are at a place of a statement.
struct Nesting {
    levels: Vec<Level>,
    /// Operators of all levels.
    total: usize,
    /// Levels that are parentheses.
    parentheses: usize,
}

impl Nesting {
    fn open(&mut self, is_case: bool) -> Result<()> {
        self.levels.push(Level {
            is_case,
            ..Level::default()
        });
        self.parentheses += usize::from(!is_case);
        match self.parentheses >= MAX_PARENTHESES {
            true => Err(SqlError::stack_overrun(MAX_PARENTHESES)),
            false => Ok(()),
        }
    }

    fn is_in_case(&self) -> bool {
        self.levels.last().is_some_and(|level| level.is_case)
    }

    /// A parenthesis ends the CASE in it too: the parser will refuse what has no END.
    fn close(&mut self) {
        if self.levels.len() > 1 {
            let level = self.levels.pop().unwrap_or_default();
            self.total -= level.operators;
            self.parentheses -= usize::from(!level.is_case);
        }
    }

    fn count(&mut self) -> Result<()> {
        if let Some(level) = self.levels.last_mut() {
            level.operators += 1;
            self.total += 1;
        }
        match self.total > MAX_EXPRESSION_DEPTH {
            true => Err(SqlError::stack_overrun(MAX_EXPRESSION_DEPTH)),
            false => Ok(()),
        }
    }

    fn begin_between(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            level.betweens += 1;
        }
    }

    fn end_between_or_reset(&mut self) {
        match self.levels.last_mut() {
            Some(level) if level.betweens > 0 => level.betweens -= 1,
            _ => self.reset(),
        }
    }

    fn reset(&mut self) {
        if let Some(level) = self.levels.last_mut() {
            self.total -= level.operators;
            (level.operators, level.betweens) = (0, 0);
        }
    }
}

/// What a string says whose escapes are as they were written. `quote` is what it stands between.
pub fn unescaped(raw: &str, quote: char) -> String {
    let mut text = String::with_capacity(raw.len());
    let mut characters = raw.chars();
    while let Some(character) = characters.next() {
        if character == quote {
            // Inside it is doubled.
            characters.next();
        }
        if character != '\\' {
            text.push(character);
            continue;
        }
        match characters.next() {
            Some('0') => text.push('\0'),
            Some('b') => text.push('\u{8}'),
            Some('n') => text.push('\n'),
            Some('r') => text.push('\r'),
            Some('t') => text.push('\t'),
            Some('Z') => text.push('\u{1A}'),
            // They are for LIKE to see.
            Some(escaped @ ('%' | '_')) => text.extend(['\\', escaped]),
            Some(escaped) => text.push(escaped),
            None => {}
        }
    }
    text
}
