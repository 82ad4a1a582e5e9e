//! START TRANSACTION, COMMIT and ROLLBACK.

use sqlparser::tokenizer::Token;

use super::statement::{Statement, TransactionEnd};
use super::{ParseResult, StatementParser};
use crate::error::SqlError;

impl StatementParser<'_> {
    /// `START TRANSACTION [WITH CONSISTENT SNAPSHOT | READ ONLY | READ WRITE, …]`
    pub(super) fn start_transaction(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        if self.accept_one_of(&["REPLICA", "SLAVE"]).is_some() {
            return Ok(Statement::Replication(self.start_replica()?));
        }
        if self.peek("GROUP_REPLICATION") {
            return self.unsupported("START GROUP_REPLICATION");
        }
        self.expect("TRANSACTION")?;
        let (mut consistent_snapshot, mut read_only) = (false, None);
        let mut expects_more = false;
        loop {
            let characteristics = ["WITH CONSISTENT SNAPSHOT", "READ ONLY", "READ WRITE"];
            match self.accept_one_of(&characteristics) {
                Some("WITH CONSISTENT SNAPSHOT") => consistent_snapshot = true,
                Some(mode) => {
                    // The same one may be written again.
                    let reads = mode == "READ ONLY";
                    if read_only.is_some_and(|before| before != reads) {
                        return Err(SqlError::parse_error("", 1).into());
                    }
                    read_only = Some(reads);
                }
                None if expects_more => return self.unexpected("READ ONLY"),
                None => break,
            }
            expects_more = self.accept_token(&Token::Comma);
            if !expects_more {
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
