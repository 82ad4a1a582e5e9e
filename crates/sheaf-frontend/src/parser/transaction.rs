//! START TRANSACTION, COMMIT and ROLLBACK.

use sqlparser::tokenizer::Token;

use super::statement::{Statement, TransactionEnd};
use super::{ParseResult, StatementParser};

impl StatementParser<'_> {
    /// `START TRANSACTION [WITH CONSISTENT SNAPSHOT | READ ONLY | READ WRITE, …]`
    pub(super) fn start_transaction(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        for what in ["SLAVE", "REPLICA", "GROUP_REPLICATION"] {
            if self.peek(what) {
                return self.unsupported(&format!("START {what}"));
            }
        }
        self.expect("TRANSACTION")?;
        let (mut consistent_snapshot, mut read_only) = (false, None);
        while let Some(characteristic) =
            self.accept_one_of(&["WITH CONSISTENT SNAPSHOT", "READ ONLY", "READ WRITE"])
        {
            match characteristic {
                "READ ONLY" => read_only = Some(true),
                "READ WRITE" => read_only = Some(false),
                _ => consistent_snapshot = true,
            }
            if !self.accept_token(&Token::Comma) {
                break;
            }
        }
        Ok(Statement::Begin {
            consistent_snapshot,
            read_only,
        })
    }

    /// `COMMIT | ROLLBACK [WORK] [AND [NO] CHAIN] [[NO] RELEASE]`, `ROLLBACK [WORK] TO [SAVEPOINT] name`
    pub(super) fn end_transaction(&mut self) -> ParseResult<Statement> {
        let commit = self.accept("COMMIT");
        if !commit {
            self.expect("ROLLBACK")?;
        }
        self.accept("WORK");
        if !commit && self.accept("TO") {
            self.accept("SAVEPOINT");
            return Ok(Statement::RollbackTo(self.identifier()?));
        }
        let chain = self.accept_one_of(&["AND CHAIN", "AND NO CHAIN"]) == Some("AND CHAIN");
        // The next transaction needs the connection.
        if chain && self.peek("RELEASE") {
            return self.unexpected("NO RELEASE");
        }
        let release = self.accept_one_of(&["RELEASE", "NO RELEASE"]) == Some("RELEASE");
        let end = TransactionEnd { chain, release };
        Ok(match commit {
            true => Statement::Commit(end),
            false => Statement::Rollback(end),
        })
    }
}
