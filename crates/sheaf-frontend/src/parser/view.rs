//! CREATE VIEW and ALTER VIEW.
//!
//! A view is kept as the text of its query. So the statement says where in its own text the query stands, besides what
//! the query is.
//!
//! sqlparser takes the WITH of `WITH CHECK OPTION` for a part of the query in front of it. So these words, which end
//! the statement, are taken out of the tokens before the query is read.

use std::ops::Range;

use sheaf_table::view::{ViewAlgorithm, ViewCheck, ViewSecurity};
use sqlparser::ast;
use sqlparser::tokenizer::{Location, Token, TokenWithSpan};

use super::account::UserName;
use super::statement::TableName;
use super::{ParseResult, Statement, StatementParser};
use crate::token::{is_space, is_word};

/// What a statement makes of a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewChange {
    Create { if_not_exists: bool },
    Replace,
    Alter,
}

#[derive(Clone, Debug)]
pub struct CreateView {
    pub name: TableName,
    pub change: ViewChange,
    pub options: ViewOptions,
    /// Empty: the names that the query gives.
    pub columns: Vec<String>,
    pub query: Box<ast::Query>,
    /// Where the query stands in the text of the statement.
    pub place: Range<Location>,
    pub check: ViewCheck,
}

/// What stands in front of VIEW, as far as it does.
#[derive(Clone, Debug, Default)]
pub struct ViewOptions {
    pub algorithm: Option<ViewAlgorithm>,
    pub definer: Option<UserName>,
    pub security: Option<ViewSecurity>,
}

/// What stands at the end of a statement that defines a view.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ViewEnd {
    pub(super) check: ViewCheck,
    /// Where the query ends.
    place: (u64, u64),
}

/// Takes WITH CHECK OPTION out of the tokens of a statement that defines a view.
pub(super) fn take_out_check(mut tokens: Vec<TokenWithSpan>) -> (Vec<TokenWithSpan>, ViewEnd) {
    let mut first = tokens.iter().filter(|token| !is_space(&token.token));
    let is_definition = first
        .next()
        .is_some_and(|token| is_word(&token.token, "CREATE") || is_word(&token.token, "ALTER"));
    if !is_definition {
        return (tokens, ViewEnd::default());
    }
    let places = (0..tokens.len())
        .rev()
        .filter(|at| !is_space(&tokens[*at].token));
    let last: Vec<usize> = places.take(5).collect();
    // The end of the text may be a token.
    let last = match last.first() {
        Some(at) if tokens[*at].token == Token::EOF => &last[1..],
        _ => &last[..],
    };
    let words = |words: &[&str]| {
        last.len() >= words.len()
            && words
                .iter()
                .zip(last)
                .all(|(word, at)| is_word(&tokens[*at].token, word))
    };
    let (count, check) = if words(&["OPTION", "CHECK", "LOCAL", "WITH"]) {
        (4, ViewCheck::Local)
    } else if words(&["OPTION", "CHECK", "CASCADED", "WITH"]) {
        (4, ViewCheck::Cascaded)
    } else if words(&["OPTION", "CHECK", "WITH"]) {
        (3, ViewCheck::Cascaded)
    } else {
        let end = last
            .first()
            .map_or(Location::empty(), |at| tokens[*at].span.end);
        let place = (end.line, end.column);
        let check = ViewCheck::None;
        return (tokens, ViewEnd { check, place });
    };
    let (from, to) = (last[count - 1], last[0]);
    let end = tokens[from].span.start;
    let place = (end.line, end.column);
    tokens.drain(from..=to);
    (tokens, ViewEnd { check, place })
}

/// What else may stand behind the words that CREATE VIEW begins with.
const OTHER_OBJECTS: [&str; 8] = [
    "TABLE",
    "TEMPORARY TABLE",
    "PROCEDURE",
    "FUNCTION",
    "AGGREGATE",
    "TRIGGER",
    "EVENT",
    "SEQUENCE",
];

impl StatementParser<'_> {
    /// CREATE, behind this word: `None` if it is no view that is made.
    pub(super) fn create_view(&mut self) -> ParseResult<Option<Statement>> {
        const FIRST_WORDS: [&str; 5] = ["VIEW", "OR REPLACE", "ALGORITHM", "DEFINER", "SQL"];
        if !FIRST_WORDS.iter().any(|words| self.peek(words)) {
            return Ok(None);
        }
        let mut change = match self.accept("OR REPLACE") {
            true => ViewChange::Replace,
            false => ViewChange::Create {
                if_not_exists: false,
            },
        };
        let options = self.view_options()?;
        for what in OTHER_OBJECTS {
            if self.peek(what) {
                let replaced = match change {
                    ViewChange::Replace => "OR REPLACE ",
                    _ => "",
                };
                return self
                    .unsupported(&format!("CREATE {replaced}{what}"))
                    .map(Some);
            }
        }
        self.expect("VIEW")?;
        if change != ViewChange::Replace && self.accept("IF NOT EXISTS") {
            change = ViewChange::Create {
                if_not_exists: true,
            };
        }
        self.view(change, options).map(Some)
    }

    /// ALTER, behind this word: `None` if it is no view that is changed.
    pub(super) fn alter_view(&mut self) -> ParseResult<Option<Statement>> {
        const FIRST_WORDS: [&str; 4] = ["VIEW", "ALGORITHM", "DEFINER", "SQL"];
        if !FIRST_WORDS.iter().any(|words| self.peek(words)) {
            return Ok(None);
        }
        let options = self.view_options()?;
        if self.peek("EVENT") {
            return self.unsupported("ALTER EVENT").map(Some);
        }
        self.expect("VIEW")?;
        self.view(ViewChange::Alter, options).map(Some)
    }

    fn view_options(&mut self) -> ParseResult<ViewOptions> {
        let mut options = ViewOptions::default();
        if self.accept("ALGORITHM") {
            self.expect_token(&Token::Eq)?;
            options.algorithm = match self.accept_one_of(&["UNDEFINED", "MERGE", "TEMPTABLE"]) {
                Some("UNDEFINED") => Some(ViewAlgorithm::Undefined),
                Some("MERGE") => Some(ViewAlgorithm::Merge),
                Some(_) => Some(ViewAlgorithm::TempTable),
                None => return self.unexpected("an algorithm"),
            };
        }
        if self.accept("DEFINER") {
            self.expect_token(&Token::Eq)?;
            options.definer = Some(self.user_name()?);
        }
        if self.accept("SQL SECURITY") {
            options.security = match self.accept_one_of(&["DEFINER", "INVOKER"]) {
                Some("DEFINER") => Some(ViewSecurity::Definer),
                Some(_) => Some(ViewSecurity::Invoker),
                None => return self.unexpected("DEFINER or INVOKER"),
            };
        }
        Ok(options)
    }

    fn view(&mut self, change: ViewChange, options: ViewOptions) -> ParseResult<Statement> {
        let name = self.table_name()?;
        let mut columns = Vec::new();
        if self.accept_token(&Token::LParen) {
            columns = self.list(Self::identifier)?;
            self.expect_token(&Token::RParen)?;
        }
        self.expect("AS")?;
        let start = self.tokens.peek_token_ref().span.start;
        let query = self.query_expression()?;
        let ViewEnd { check, place } = std::mem::take(&mut self.view_end);
        Ok(Statement::CreateView(Box::new(CreateView {
            name,
            change,
            options,
            columns,
            query,
            place: start..Location::from(place),
            check,
        })))
    }
}
