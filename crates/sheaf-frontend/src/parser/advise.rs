//! ADVISE INDEXES, a statement of Sheaf's own:
//!
//! ```text
//!   ADVISE INDEXES [FOR 'statement' | FOR SCHEMA name] [LIMIT bytes] [VERIFY]
//! ```

use super::statement::{Advise, Advised, Statement};
use super::{ParseResult, StatementParser};

impl StatementParser<'_> {
    pub(super) fn advise(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        self.expect("INDEXES")?;
        let of = if self.accept("FOR SCHEMA") || self.accept("FOR DATABASE") {
            Advised::Schema(self.identifier()?)
        } else if self.accept("FOR") {
            Advised::Statement(self.string()?)
        } else {
            Advised::Workload
        };
        let limit_bytes = match self.accept("LIMIT") {
            true => Some(self.number()?),
            false => None,
        };
        let verify = self.accept("VERIFY");
        Ok(Statement::Advise(Advise {
            of,
            limit_bytes,
            verify,
        }))
    }
}
