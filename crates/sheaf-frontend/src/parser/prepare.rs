//! PREPARE, EXECUTE and DEALLOCATE PREPARE.

use sqlparser::tokenizer::Token;

use super::statement::{PrepareSource, Statement};
use super::{ParseResult, StatementParser};

impl StatementParser<'_> {
    pub(super) fn prepare(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        let name = self.identifier()?;
        self.expect("FROM")?;
        let source = match &self.tokens.peek_token_ref().token {
            Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => {
                PrepareSource::Text(self.string()?)
            }
            _ => PrepareSource::Variable(self.user_variable()?),
        };
        Ok(Statement::Prepare {
            name: name.to_lowercase(),
            source,
        })
    }

    pub(super) fn execute(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        let name = self.identifier()?.to_lowercase();
        let using = if self.accept("USING") {
            self.list(Self::user_variable)?
        } else {
            Vec::new()
        };
        Ok(Statement::Execute { name, using })
    }

    pub(super) fn deallocate(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        self.expect("PREPARE")?;
        Ok(Statement::Deallocate {
            name: self.identifier()?.to_lowercase(),
        })
    }
}
