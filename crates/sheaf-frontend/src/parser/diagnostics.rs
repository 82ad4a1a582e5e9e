//! GET DIAGNOSTICS: what the statement before says of itself.
//!
//! ```text
//!   GET [CURRENT] DIAGNOSTICS @n = NUMBER, @r = ROW_COUNT
//!   GET [CURRENT] DIAGNOSTICS CONDITION 1 @code = MYSQL_ERRNO, @text = MESSAGE_TEXT
//! ```
//!
//! Reference: MySQL manual, "GET DIAGNOSTICS Statement".

use sheaf_types::error::codes;
use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::{ParseResult, StatementParser};
use crate::error::SqlError;

/// What is asked for, each with the user variable that takes it.
#[derive(Clone, Debug)]
pub enum GetDiagnostics {
    Statement(Vec<(String, StatementItem)>),
    Condition {
        /// Numbered from 1.
        number: Box<ast::Expr>,
        items: Vec<(String, ConditionItem)>,
    },
    /// STACKED, which means something inside of handlers alone.
    Stacked,
}

/// What is said of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatementItem {
    /// The number of conditions.
    Number,
    /// That of ROW_COUNT().
    RowCount,
}

/// What is said of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionItem {
    ClassOrigin,
    SubclassOrigin,
    ReturnedSqlstate,
    MessageText,
    MysqlErrno,
    /// The name of an object. Conditions of the server have none.
    Name,
}

const STATEMENT_ITEMS: [(&str, StatementItem); 2] = [
    ("NUMBER", StatementItem::Number),
    ("ROW_COUNT", StatementItem::RowCount),
];

const CONDITION_ITEMS: [(&str, ConditionItem); 13] = [
    ("CLASS_ORIGIN", ConditionItem::ClassOrigin),
    ("SUBCLASS_ORIGIN", ConditionItem::SubclassOrigin),
    ("RETURNED_SQLSTATE", ConditionItem::ReturnedSqlstate),
    ("MESSAGE_TEXT", ConditionItem::MessageText),
    ("MYSQL_ERRNO", ConditionItem::MysqlErrno),
    ("CONSTRAINT_CATALOG", ConditionItem::Name),
    ("CONSTRAINT_SCHEMA", ConditionItem::Name),
    ("CONSTRAINT_NAME", ConditionItem::Name),
    ("CATALOG_NAME", ConditionItem::Name),
    ("SCHEMA_NAME", ConditionItem::Name),
    ("TABLE_NAME", ConditionItem::Name),
    ("COLUMN_NAME", ConditionItem::Name),
    ("CURSOR_NAME", ConditionItem::Name),
];

impl StatementParser<'_> {
    pub(super) fn get_diagnostics(&mut self) -> ParseResult<GetDiagnostics> {
        self.expect("GET")?;
        let is_stacked = self.accept_one_of(&["CURRENT", "STACKED"]) == Some("STACKED");
        self.expect("DIAGNOSTICS")?;
        let read = match self.accept("CONDITION") {
            true => GetDiagnostics::Condition {
                number: Box::new(self.condition_number()?),
                items: self.list(|parser| parser.diagnostics_item(&CONDITION_ITEMS))?,
            },
            false => GetDiagnostics::Statement(
                self.list(|parser| parser.diagnostics_item(&STATEMENT_ITEMS))?,
            ),
        };
        Ok(match is_stacked {
            true => GetDiagnostics::Stacked,
            false => read,
        })
    }

    /// A literal without a sign, or a variable.
    fn condition_number(&mut self) -> ParseResult<ast::Expr> {
        let is_name = match &self.tokens.peek_token_ref().token {
            Token::Word(word) if word.quote_style.is_none() => {
                let literals = ["NULL", "TRUE", "FALSE"];
                let is = |literal: &&str| word.value.eq_ignore_ascii_case(literal);
                !word.value.starts_with('@') && !literals.iter().any(is)
            }
            Token::Word(_) => true,
            Token::LParen | Token::Minus | Token::Plus | Token::Tilde | Token::ExclamationMark => {
                return self.unexpected("a condition number");
            }
            _ => false,
        };
        if is_name {
            // One of a stored program, which there is none of. It is no column either.
            return Ok(ast::Expr::Identifier(ast::Ident::new(self.identifier()?)));
        }
        let number = self.tokens.parse_prefix()?;
        self.native_expression(number)
    }

    /// `@variable = ITEM`
    fn diagnostics_item<T: Copy>(&mut self, items: &[(&str, T)]) -> ParseResult<(String, T)> {
        if let Token::Word(word) = &self.tokens.peek_token_ref().token
            && !word.value.starts_with('@')
        {
            let message = format!("Undeclared variable: {}", word.value);
            return Err(SqlError::new(codes::SP_UNDECLARED_VAR, message).into());
        }
        let variable = self.user_variable()?;
        self.expect_token(&Token::Eq)?;
        match items.iter().find(|(name, _)| self.accept(name)) {
            Some((_, item)) => Ok((variable, *item)),
            None => self.unexpected("an item of the diagnostics area"),
        }
    }
}
