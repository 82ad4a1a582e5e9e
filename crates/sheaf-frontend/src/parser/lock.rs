//! LOCK TABLES, and WAIT and NOWAIT behind statements that wait for locks.

use super::statement::{LockedTable, Statement};
use super::{ParseResult, StatementParser};

impl StatementParser<'_> {
    pub(super) fn lock(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        if self.peek("INSTANCE") {
            return self.unsupported("LOCK INSTANCE");
        }
        if self.accept_one_of(&["TABLES", "TABLE"]).is_none() {
            return self.unexpected("TABLES");
        }
        let tables = self.list(|parser| {
            let name = parser.table_name()?;
            let mut alias = None;
            let is_named = parser.accept("AS");
            let kinds = ["READ", "WRITE", "LOW_PRIORITY"];
            if is_named || !kinds.iter().any(|kind| parser.peek(kind)) {
                alias = Some(parser.identifier()?);
            }
            // MariaDB lets those that read beside CONCURRENT; the lock of all versions of MySQL is more.
            let kinds = [
                "READ LOCAL",
                "READ",
                "WRITE CONCURRENT",
                "WRITE",
                "LOW_PRIORITY WRITE",
            ];
            match parser.accept_one_of(&kinds) {
                Some(kind) => Ok(LockedTable {
                    name,
                    alias,
                    write: kind.contains("WRITE"),
                }),
                None => parser.unexpected("READ or WRITE"),
            }
        })?;
        let wait = self.lock_wait()?;
        Ok(within(wait, Statement::LockTables(tables)))
    }

    /// WAIT and NOWAIT, if that is what comes next: the seconds.
    pub(super) fn lock_wait(&mut self) -> ParseResult<Option<u64>> {
        if self.accept("NOWAIT") {
            return Ok(Some(0));
        }
        match self.accept("WAIT") {
            true => self.number().map(Some),
            false => Ok(None),
        }
    }
}

/// A statement that waits for locks as it says itself.
pub(super) fn within(wait: Option<u64>, statement: Statement) -> Statement {
    match wait {
        Some(seconds) => Statement::Within {
            seconds,
            statement: Box::new(statement),
        },
        None => statement,
    }
}
