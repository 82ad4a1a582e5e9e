//! Result headers: MySQL names a column of the result after the text of its expression, as the client wrote it.
//!
//! The syntax tree does not keep that text, but it keeps the place of each SELECT keyword. So the statement is cut into
//! tokens once more, if a header takes that, and the select list after a SELECT into items at its commas. Of most
//! statements the bytes alone tell where these are ([`plain`]).

pub mod edit;
mod plain;

use std::borrow::Cow;
use std::cell::OnceCell;
use std::ops::Range;
use std::str::Chars;

use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::dialect::SheafDialect;

/// A statement's text, and its tokens when they are asked for.
pub struct StatementText<'a> {
    text: Cow<'a, str>,
    cut: OnceCell<CutText>,
}

struct CutText {
    tokens: Vec<TokenWithSpan>,
    /// The bytes of each token.
    bytes: Vec<Range<usize>>,
    /// Where each `?` stands.
    parameters: Vec<Location>,
}

/// A place in a text that moves on through it.
struct Place<'a> {
    rest: Chars<'a>,
    length: usize,
    location: Location,
}

impl Place<'_> {
    /// Moves on to a location; returns its byte.
    fn move_to(&mut self, location: Location) -> usize {
        while self.location < location
            && let Some(character) = self.rest.next()
        {
            match character {
                '\n' => {
                    self.location.line += 1;
                    self.location.column = 1;
                }
                _ => self.location.column += 1,
            }
        }
        self.length - self.rest.as_str().len()
    }
}

impl<'a> StatementText<'a> {
    /// A text that has no tokens (it was never parsed) gives no headers.
    pub fn new(text: impl Into<Cow<'a, str>>) -> StatementText<'a> {
        let (text, cut) = (text.into(), OnceCell::new());
        StatementText { text, cut }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    fn cut(&self) -> &CutText {
        self.cut.get_or_init(|| {
            let dialect = SheafDialect::default();
            let tokens = Tokenizer::new(&dialect, &self.text)
                .tokenize_with_location()
                .unwrap_or_default();
            let mut place = Place {
                rest: self.text.chars(),
                length: self.text.len(),
                location: Location { line: 1, column: 1 },
            };
            // They stand one behind the other.
            let spans = tokens.iter().map(|token| token.span);
            let bytes = spans.map(|span| place.move_to(span.start)..place.move_to(span.end));
            let bytes = bytes.collect();
            let parameters = tokens.iter().filter(|token| is_parameter(&token.token));
            let parameters = parameters.map(|token| token.span.start).collect();
            CutText {
                tokens,
                bytes,
                parameters,
            }
        })
    }

    /// Number of `?` in the text.
    pub fn parameter_count(&self) -> usize {
        if !self.text.contains('?') {
            return 0;
        }
        match plain::parameter_count(&self.text) {
            Some(count) => count,
            None => self.cut().parameters.len(),
        }
    }

    /// Which `?` of the text stands here, from 0.
    pub fn parameter_at(&self, location: Location) -> Option<usize> {
        self.cut().parameters.binary_search(&location).ok()
    }

    /// The text of each item of the select list whose SELECT stands at `select`, aliases included. Empty if there is
    /// no such SELECT.
    pub fn select_items(&self, select: Location) -> Vec<&str> {
        if let Some(items) = plain::select_items(&self.text, select) {
            return items;
        }
        let tokens = &self.cut().tokens;
        let keyword = tokens.partition_point(|token| token.span.start < select);
        let is_there =
            |token: &TokenWithSpan| token.span.start == select && is_select(&token.token);
        if !tokens.get(keyword).is_some_and(is_there) {
            return Vec::new();
        }
        self.items_behind(keyword)
    }

    /// The text of each item of RETURNING, with which the statement ends.
    pub fn returned_items(&self) -> Vec<&str> {
        let mut tokens = self.cut().tokens.iter();
        let is_it = |token: &TokenWithSpan| matches!(&token.token, Token::Word(word) if word.keyword == Keyword::RETURNING && word.quote_style.is_none());
        match tokens.rposition(is_it) {
            Some(keyword) => self.items_behind(keyword),
            None => Vec::new(),
        }
    }

    /// The text of each item of the list behind a keyword.
    fn items_behind(&self, keyword: usize) -> Vec<&str> {
        let tokens = &self.cut().tokens;
        let mut items = Vec::new();
        let mut depth = 0usize;
        let mut item: Option<Range<usize>> = None;
        let mut at_start = true;
        for (at, token) in tokens.iter().enumerate().skip(keyword + 1) {
            match &token.token {
                Token::Whitespace(_) => continue,
                Token::Word(word)
                    if at_start && word.quote_style.is_none() && is_modifier(&word.value) =>
                {
                    continue;
                }
                Token::Word(word)
                    if depth == 0 && word.quote_style.is_none() && ends_list(word.keyword) =>
                {
                    break;
                }
                Token::SemiColon | Token::EOF => break,
                Token::RParen if depth == 0 => break,
                Token::RParen => depth -= 1,
                Token::LParen => depth += 1,
                Token::Comma if depth == 0 => {
                    items.extend(item.take().and_then(|range| self.slice(range)));
                    continue;
                }
                _ => {}
            }
            at_start = false;
            item = Some(item.map_or(at, |range| range.start)..at + 1);
        }
        items.extend(item.and_then(|range| self.slice(range)));
        items
    }

    fn slice(&self, tokens: Range<usize>) -> Option<&str> {
        let bytes = &self.cut().bytes;
        self.text
            .get(bytes[tokens.start].start..bytes[tokens.end - 1].end)
    }
}

fn is_parameter(token: &Token) -> bool {
    matches!(token, Token::Placeholder(text) if text == "?")
}

fn is_select(token: &Token) -> bool {
    matches!(token, Token::Word(word) if word.keyword == Keyword::SELECT)
}

fn is_modifier(word: &str) -> bool {
    const MODIFIERS: [&str; 11] = [
        "all",
        "distinct",
        "distinctrow",
        "high_priority",
        "straight_join",
        "sql_small_result",
        "sql_big_result",
        "sql_buffer_result",
        "sql_no_cache",
        "sql_cache",
        "sql_calc_found_rows",
    ];
    MODIFIERS
        .iter()
        .any(|modifier| word.eq_ignore_ascii_case(modifier))
}

/// Reserved words that can follow a select list, as [`plain`] knows them, too.
fn ends_list(keyword: Keyword) -> bool {
    matches!(
        keyword,
        Keyword::FROM
            | Keyword::INTO
            | Keyword::WHERE
            | Keyword::GROUP
            | Keyword::HAVING
            | Keyword::ORDER
            | Keyword::LIMIT
            | Keyword::UNION
            | Keyword::EXCEPT
            | Keyword::INTERSECT
            | Keyword::FOR
            | Keyword::WINDOW
            | Keyword::LOCK
    )
}
