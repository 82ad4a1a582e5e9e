//! A query, with the endings that only MySQL has.

use sqlparser::ast;
use sqlparser::tokenizer::Token;

use super::statement::Statement;
use super::{ParseResult, StatementParser};
use crate::error::SqlError;

impl StatementParser<'_> {
    pub(super) fn query(&mut self) -> ParseResult<Statement> {
        Ok(Statement::Query(self.query_expression()?))
    }

    /// A query, with the endings that only MySQL has.
    pub(super) fn query_expression(&mut self) -> ParseResult<Box<ast::Query>> {
        let query = self.tokens.parse_query()?;
        let mut query = self.native_query(query)?;
        self.locked_tables(&mut query.locks)?;
        if self.peek("PROCEDURE") {
            return Err(SqlError::not_supported_yet("SELECT ... PROCEDURE").into());
        }
        if self.accept("LOCK IN SHARE MODE") {
            query.locks.push(ast::LockClause {
                lock_type: ast::LockType::Share,
                of: None,
                nonblock: None,
            });
        }
        if self.peek("INTO") {
            return Err(SqlError::not_supported_yet("SELECT ... INTO").into());
        }
        Ok(query)
    }

    /// `.. FOR UPDATE OF a`, then `, b NOWAIT FOR SHARE OF c, d`: a clause for each table.
    fn locked_tables(&mut self, locks: &mut Vec<ast::LockClause>) -> ParseResult<()> {
        let Some(mut clause) = locks.last().cloned() else {
            return Ok(());
        };
        let mut first = locks.len() - 1;
        while clause.of.is_some() && self.tokens.peek_token_ref().token == Token::Comma {
            while self.accept_token(&Token::Comma) {
                clause.of = Some(self.tokens.parse_object_name(false)?);
                locks.push(clause.clone());
            }
            let nonblock = match self.accept_one_of(&["NOWAIT", "SKIP LOCKED"]) {
                Some("NOWAIT") => Some(ast::NonBlock::Nowait),
                Some(_) => Some(ast::NonBlock::SkipLocked),
                None => None,
            };
            for lock in &mut locks[first..] {
                lock.nonblock = nonblock;
            }
            clause.lock_type = match self.accept_one_of(&["FOR UPDATE OF", "FOR SHARE OF"]) {
                Some("FOR UPDATE OF") => ast::LockType::Update,
                Some(_) => ast::LockType::Share,
                None => break,
            };
            first = locks.len();
            clause.of = Some(self.tokens.parse_object_name(false)?);
            locks.push(clause.clone());
        }
        Ok(())
    }
}
