//! EXPLAIN of a statement or of a connection; DESCRIBE of a table is another spelling of it.

use sheaf_types::error::codes;
use sqlparser::keywords::Keyword;
use sqlparser::tokenizer::Token;

use super::statement::{Explain, ExplainFormat, ExplainTarget};
use super::{ParseResult, Statement, StatementParser};
use crate::error::SqlError;

impl StatementParser<'_> {
    pub fn explain(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        let mut format = ExplainFormat::Traditional;
        let mut analyze = false;
        loop {
            if self.accept("ANALYZE") {
                analyze = true;
                format = ExplainFormat::Tree;
            } else if self.accept("EXTENDED") || self.accept("PARTITIONS") {
                // MySQL 5's spellings, whose columns are always shown now.
            } else if self.peek("FORMAT") && self.tokens.peek_nth_token_ref(1).token == Token::Eq {
                self.tokens.advance_token();
                self.tokens.advance_token();
                let name = self.word_or_string()?;
                format = match name.to_ascii_uppercase().as_str() {
                    "TRADITIONAL" => ExplainFormat::Traditional,
                    "JSON" => ExplainFormat::Json,
                    "TREE" => ExplainFormat::Tree,
                    _ => {
                        return Err(SqlError::new(
                            codes::UNKNOWN_EXPLAIN_FORMAT,
                            format!("Unknown EXPLAIN format name: '{name}'"),
                        )
                        .into());
                    }
                };
            } else {
                break;
            }
        }
        if !analyze && self.accept("FOR CONNECTION") {
            let target = ExplainTarget::Connection(self.number()?);
            return Ok(Statement::Explain(Box::new(Explain {
                format,
                analyze,
                target,
            })));
        }
        let statement = match &self.tokens.peek_token_ref().token {
            Token::LParen => self.query()?,
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::SELECT
                | Keyword::WITH
                | Keyword::VALUES
                | Keyword::TABLE
                | Keyword::INSERT
                | Keyword::REPLACE
                | Keyword::UPDATE
                | Keyword::DELETE => self.statement()?,
                Keyword::ALTER if self.is_alter_table() => self.statement()?,
                _ => return self.describe_table(),
            },
            _ => return self.describe_table(),
        };
        Ok(Statement::Explain(Box::new(Explain {
            format,
            analyze,
            target: ExplainTarget::Statement(statement),
        })))
    }

    fn is_alter_table(&self) -> bool {
        match &self.tokens.peek_nth_token_ref(1).token {
            Token::Word(word) => word.quote_style.is_none() && word.keyword == Keyword::TABLE,
            _ => false,
        }
    }
}
