//! CALL and INSTALL PLUGIN: the one plugin, and its procedure, are those of the query rewrite rules.

use sqlparser::tokenizer::Token;

use super::{ParseResult, Statement, StatementParser};

impl StatementParser<'_> {
    /// `CALL procedure([arguments])`: there is one procedure, that of the query rewrite rules.
    pub fn call(&mut self) -> ParseResult<Statement> {
        self.tokens.advance_token();
        let procedure = self.table_name()?;
        let is_flush = procedure.table.eq_ignore_ascii_case("flush_rewrite_rules")
            && procedure
                .database
                .as_deref()
                .is_none_or(|database| database.eq_ignore_ascii_case("query_rewrite"));
        if !is_flush {
            return self.unsupported("CALL");
        }
        if self.accept_token(&Token::LParen) {
            self.expect_token(&Token::RParen)?;
        }
        Ok(Statement::FlushRewriteRules)
    }

    /// `INSTALL PLUGIN name SONAME 'library'`, `UNINSTALL PLUGIN name`: the one plugin is the rewriter.
    pub fn plugin(&mut self) -> ParseResult<Statement> {
        let install = self.peek("INSTALL");
        self.tokens.advance_token();
        if !self.accept("PLUGIN") || !self.accept("rewriter") {
            return self.unsupported("This plugin");
        }
        if install {
            self.expect("SONAME")?;
            self.string()?;
            return Ok(Statement::InstallRewriter);
        }
        Ok(Statement::UninstallRewriter)
    }
}
