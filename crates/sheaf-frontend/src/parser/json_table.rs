//! The columns of JSON_TABLE, read by MySQL's grammar.
//!
//! sqlparser reads more than that, and less: NESTED without PATH, and ON EMPTY twice; but no ZEROFILL, no CHARACTER SET
//! and no column that is called `nested`. So the columns are read here, and what sqlparser would read otherwise is
//! written among the tokens as quoted words:
//!
//! ```text
//!   v CHAR(5) COLLATE utf8mb4_bin PATH '$'   -->   v `CHAR ( 5 ) COLLATE utf8mb4_bin` PATH '$'
//!   nested INT PATH '$'                      -->   `nested` `INT` PATH '$'
//! ```
//!
//! The binder reads the types once more, with [`column_type`](super::types::column_type).

use std::ops::Range;

use sqlparser::keywords::Keyword;
use sqlparser::parser::Parser;
use sqlparser::tokenizer::{Token, TokenWithSpan, Word};

use super::view::ViewEnd;
use super::{Failure, ParseResult, StatementParser};
use crate::dialect::SheafDialect;
use crate::error::{Result, SqlError};
use crate::reserved::is_reserved;
use crate::token::{is_keyword, is_space};

/// The tokens with the types of columns as quoted words.
///
/// # Errors
/// 1064 with the place in `text`, MySQL's for lengths and digits that no column has, and 1235.
pub(super) fn rewritten(
    tokens: Vec<TokenWithSpan>,
    dialect: &SheafDialect,
    text: &str,
) -> Result<Vec<TokenWithSpan>> {
    let lists = column_lists(&tokens);
    if lists.is_empty() {
        return Ok(tokens);
    }
    let mut edits: Vec<Edit> = Vec::new();
    for list in lists {
        let own = tokens[list.clone()].to_vec();
        let mut columns = Columns {
            parser: StatementParser {
                tokens: Parser::new(dialect).with_tokens_with_locations(own),
                view_end: ViewEnd::default(),
                escapes_in_files: true,
            },
            edits: Vec::new(),
        };
        match columns.list() {
            Ok(()) => {}
            Err(Failure::Syntax(error)) => return Err(columns.parser.syntax_error(text, &error)),
            Err(Failure::Statement(error)) => return Err(error),
        }
        let found = columns.edits.into_iter();
        edits.extend(found.map(|(place, word)| {
            let place = list.start + place.start..list.start + place.end;
            (place, word)
        }));
    }
    Ok(applied(tokens, edits))
}

/// The tokens behind `COLUMNS (` of each JSON_TABLE, up to the `)` and with it.
fn column_lists(tokens: &[TokenWithSpan]) -> Vec<Range<usize>> {
    let mut lists = Vec::new();
    let is_table = |token: &TokenWithSpan| is_keyword(&token.token, Keyword::JSON_TABLE);
    if !tokens.iter().any(is_table) {
        return lists;
    }
    let significant = tokens.iter().enumerate();
    let significant = significant.filter(|(_, token)| !is_space(&token.token));
    // For each open parenthesis: whether JSON_TABLE stands before it, and where its list of columns begins.
    let mut open: Vec<(bool, Option<usize>)> = Vec::new();
    let (mut before, mut before_that) = (&Token::EOF, &Token::EOF);
    for (at, TokenWithSpan { token, .. }) in significant {
        match token {
            Token::LParen => {
                let is_table = is_keyword(before, Keyword::JSON_TABLE);
                // Behind the path. Those of nested levels are read with the list around them.
                let is_list = is_keyword(before, Keyword::COLUMNS)
                    && is_string(before_that)
                    && open.last().is_some_and(|(is_table, _)| *is_table);
                open.push((is_table, is_list.then_some(at + 1)));
            }
            Token::RParen => {
                if let Some((_, Some(start))) = open.pop() {
                    lists.push(start..at + 1);
                }
            }
            _ => {}
        }
        (before_that, before) = (before, token);
    }
    lists
}

fn is_string(token: &Token) -> bool {
    matches!(
        token,
        Token::SingleQuotedString(_)
            | Token::DoubleQuotedString(_)
            | Token::NationalStringLiteral(_)
    )
}

fn applied(tokens: Vec<TokenWithSpan>, mut edits: Vec<Edit>) -> Vec<TokenWithSpan> {
    edits.sort_by_key(|(place, _)| place.start);
    let mut edits = edits.into_iter().peekable();
    let mut result = Vec::with_capacity(tokens.len());
    let mut replaced = 0;
    for (at, token) in tokens.into_iter().enumerate() {
        if let Some((place, word)) = edits.next_if(|(place, _)| place.start == at) {
            replaced = place.end;
            let span = token.span;
            result.push(TokenWithSpan { token: word, span });
        } else if at >= replaced {
            result.push(token);
        }
    }
    result
}

/// What takes the place of tokens.
type Edit = (Range<usize>, Token);

/// A list of columns while it is read.
struct Columns<'a> {
    parser: StatementParser<'a>,
    edits: Vec<Edit>,
}

impl Columns<'_> {
    /// `column, ... )`
    fn list(&mut self) -> ParseResult<()> {
        loop {
            self.column()?;
            if !self.parser.accept_token(&Token::Comma) {
                return self.parser.expect_token(&Token::RParen);
            }
        }
    }

    fn column(&mut self) -> ParseResult<()> {
        if self.parser.accept("NESTED PATH") {
            self.path()?;
            self.parser.expect("COLUMNS")?;
            self.parser.expect_token(&Token::LParen)?;
            return self.list();
        }
        let name = self.name()?;
        if self.parser.accept("FOR") {
            return self.parser.expect("ORDINALITY");
        }
        self.ty(&name)?;
        self.parser.accept("EXISTS");
        self.parser.expect("PATH")?;
        self.path()?;
        self.on_empty_and_error()
    }

    fn name(&mut self) -> ParseResult<String> {
        let start = self.next_place();
        match &self.parser.tokens.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_some() || !is_reserved(word.keyword) => {}
            _ => return self.parser.unexpected("a column"),
        }
        let name = self.parser.identifier()?;
        // Another one is read as a name wherever it stands.
        if name.eq_ignore_ascii_case("NESTED") {
            self.edits.push((start..start + 1, quoted(&name)));
        }
        Ok(name)
    }

    /// `type [COLLATE name]`
    fn ty(&mut self, column: &str) -> ParseResult<()> {
        let start = self.next_place();
        self.parser.type_of_json_column(column)?;
        let end = self.parser.tokens.index();
        let written = (start..end).map(|at| &self.parser.tokens.token_at(at).token);
        let written = written.filter(|token| !is_space(token));
        let written: Vec<String> = written.map(written_as).collect();
        self.edits.push((start..end, quoted(&written.join(" "))));
        Ok(())
    }

    fn path(&mut self) -> ParseResult<()> {
        if !is_string(&self.parser.tokens.peek_token_ref().token) {
            return self.parser.unexpected("a path");
        }
        self.parser.tokens.parse_value()?;
        Ok(())
    }

    /// `what ON EMPTY` and `what ON ERROR`, each of them once.
    fn on_empty_and_error(&mut self) -> ParseResult<()> {
        let mut left = vec!["EMPTY", "ERROR"];
        while !left.is_empty() {
            match self.parser.accept_one_of(&["NULL", "ERROR", "DEFAULT"]) {
                None => break,
                Some("DEFAULT") => self.default()?,
                Some(_) => {}
            }
            self.parser.expect("ON")?;
            match self.parser.accept_one_of(&left) {
                Some(found) => left.retain(|word| *word != found),
                None => return self.parser.unexpected("EMPTY or ERROR"),
            }
        }
        Ok(())
    }

    /// A string. MySQL's grammar has room for other literals, and an error for them.
    fn default(&mut self) -> ParseResult<()> {
        let is_other = match &self.parser.tokens.peek_token_ref().token {
            Token::Minus | Token::Plus | Token::Number(..) => true,
            Token::Word(word) if word.quote_style.is_none() => matches!(
                word.keyword,
                Keyword::TRUE
                    | Keyword::FALSE
                    | Keyword::NULL
                    | Keyword::DATE
                    | Keyword::TIME
                    | Keyword::TIMESTAMP
            ),
            _ => false,
        };
        if is_other {
            return Err(SqlError::not_supported_yet(
                "non-string DEFAULT value for a column in a JSON_TABLE expression",
            )
            .into());
        }
        self.parser.tokens.parse_value()?;
        Ok(())
    }

    /// Of the token that comes next.
    fn next_place(&self) -> usize {
        let mut place = self.parser.tokens.index();
        while is_space(&self.parser.tokens.token_at(place).token) {
            place += 1;
        }
        place
    }
}

fn quoted(text: &str) -> Token {
    Token::Word(Word {
        value: text.to_string(),
        quote_style: Some('`'),
        keyword: Keyword::NoKeyword,
    })
}

/// A token of a type, so that it is read as the same one.
fn written_as(token: &Token) -> String {
    match token {
        Token::SingleQuotedString(text) | Token::DoubleQuotedString(text) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
        }
        other => other.to_string(),
    }
}
