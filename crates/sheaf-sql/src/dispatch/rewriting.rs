//! Query rewrite rules in a table, as MySQL's rewriter plugin has them.
//!
//! `INSTALL PLUGIN rewriter SONAME 'rewriter.so'` makes the table `query_rewrite.rewrite_rules`;
//! `CALL query_rewrite.flush_rewrite_rules()` reads it, and what it read is in force until the next flush. A rule that
//! is wrong has the reason in its `message`. The rules are read again when the database is opened. What a rule may be
//! is told in `sheaf-frontend/src/parser/rewrite.rs`.
//!
//! A statement that was rewritten has a note (1105) that says so. Without rules a statement pays one look at a flag.

use std::sync::{Arc, PoisonError};

use sheaf_types::Value;
use sheaf_types::error::codes;

use crate::accounts::with_all_rights;
use crate::engine::rewrite_rules::{DATABASE, TABLE};
use crate::error::{Result, SqlError};
use crate::parser::rewrite::RewriteRules;
use crate::parser::{self, Parsed, Statement};
use crate::query::rows::value_at;
use crate::session::result::ResultSink;
use crate::session::{IgnoredResult, Session};

/// What INSTALL PLUGIN runs: the database and the table of MySQL's install_rewriter.sql.
const INSTALL: [&str; 2] = [
    "CREATE DATABASE IF NOT EXISTS query_rewrite",
    "CREATE TABLE IF NOT EXISTS query_rewrite.rewrite_rules (
       id INT NOT NULL AUTO_INCREMENT PRIMARY KEY,
       pattern VARCHAR(5000) COLLATE utf8mb4_bin NOT NULL,
       pattern_database VARCHAR(64) COLLATE utf8mb4_bin,
       replacement VARCHAR(5000) COLLATE utf8mb4_bin NOT NULL,
       enabled ENUM('YES', 'NO') NOT NULL DEFAULT 'YES',
       message VARCHAR(1000) COLLATE utf8mb4_bin)",
];

const READ: &str = "SELECT id, pattern, pattern_database, replacement, message FROM query_rewrite.rewrite_rules \
                    WHERE enabled = 'YES' ORDER BY id";

/// The most characters of a rule's `message`.
const MAX_MESSAGE_CHARACTERS: usize = 1_000;

/// One row of the table.
struct StoredRule {
    id: Value,
    pattern: String,
    database: Option<String>,
    replacement: String,
    message: Option<String>,
}

impl StoredRule {
    fn of(row: Vec<Value>) -> Option<StoredRule> {
        let text = |value: &Value| match value {
            Value::Text(text) => Some(text.clone()),
            _ => None,
        };
        let [id, pattern, database, replacement, message] = row.as_slice() else {
            return None;
        };
        Some(StoredRule {
            id: id.clone(),
            pattern: text(pattern)?,
            database: text(database),
            replacement: text(replacement)?,
            message: text(message),
        })
    }
}

impl Session {
    /// What the rules make of a statement; `None` if nothing. The note for the client is written down.
    pub(crate) fn rewrite(&mut self, statement: &str) -> Option<String> {
        let rules = self.engine.rewrite_rules.rules()?;
        let rewritten = rules.rewrite(statement, self.database.as_deref(), &self.dialect())?;
        self.statement.rewrite_note = Some(format!(
            "Query '{statement}' rewritten to '{rewritten}' by a query rewrite plugin"
        ));
        Some(rewritten)
    }

    /// Whether a request is to be looked at statement by statement, because of the rules.
    pub(crate) fn may_be_rewritten(&self, request: &str) -> bool {
        let rules = self.engine.rewrite_rules.rules();
        rules.is_some_and(|rules| {
            let database = self.database.as_deref();
            rules.rewrite(request, database, &self.dialect()).is_some()
        })
    }

    /// INSTALL PLUGIN rewriter.
    pub(crate) fn install_rewriter(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        for statement in INSTALL {
            self.run_internally(statement)?;
        }
        self.clear_warnings();
        self.ok(sink, 0, String::new())
    }

    /// UNINSTALL PLUGIN rewriter: no rule is in force any more. The table stays, for its rules.
    pub(crate) fn uninstall_rewriter(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        self.engine.rewrite_rules.replace(RewriteRules::default());
        self.ok(sink, 0, String::new())
    }

    /// CALL query_rewrite.flush_rewrite_rules(). Error 1305 without the table, 1644 if a rule is wrong.
    pub(crate) fn flush_rewrite_rules(&mut self, sink: &mut dyn ResultSink) -> Result<()> {
        if self.engine.catalog().table(DATABASE, TABLE).is_err() {
            return Err(SqlError::new(
                codes::SP_DOES_NOT_EXIST,
                "PROCEDURE query_rewrite.flush_rewrite_rules does not exist",
            ));
        }
        let all_right = self.read_rewrite_rules();
        self.commit_open()?;
        self.clear_warnings();
        if !all_right? {
            let message = "Loading of some rule(s) failed.";
            return Err(SqlError::new(
                codes::SIGNAL_EXCEPTION.with_sqlstate("45000"),
                message,
            ));
        }
        self.ok(sink, 0, String::new())
    }

    /// Reads the rules once after the database was opened.
    pub(crate) fn read_rewrite_rules_once(&mut self) {
        let engine = Arc::clone(&self.engine);
        let unread = &engine.rewrite_rules.unread;
        let mut unread = unread.lock().unwrap_or_else(PoisonError::into_inner);
        if std::mem::take(&mut *unread) {
            if let Err(error) = self.read_rewrite_rules() {
                tracing::error!(%error, "the query rewrite rules could not be read");
            }
            self.clear_warnings();
        }
    }

    /// Reads the table and puts its rules in force. False if some of them are wrong; their messages say why.
    fn read_rewrite_rules(&mut self) -> Result<bool> {
        let stored = self.run_internally(READ)?;
        let mut rules = RewriteRules::default();
        let mut all_right = true;
        for rule in stored.into_iter().filter_map(StoredRule::of) {
            let database = rule.database.as_deref();
            let added = rules.add(&rule.pattern, database, &rule.replacement, &self.dialect());
            all_right &= added.is_ok();
            let message = added.err().map(|message| {
                let message: String = message.chars().take(MAX_MESSAGE_CHARACTERS).collect();
                message
            });
            if message != rule.message {
                let text = message.map_or("NULL".to_string(), |message| {
                    let quoted = message.replace('\\', "\\\\").replace('\'', "''");
                    format!("'{quoted}'")
                });
                self.run_internally(&format!(
                    "UPDATE {DATABASE}.{TABLE} SET message = {text} WHERE id = {}",
                    rule.id
                ))?;
            }
        }
        self.engine.rewrite_rules.replace(rules);
        Ok(all_right)
    }

    /// Runs a statement of the server's own; the rows of a query come back.
    fn run_internally(&mut self, text: &str) -> Result<Vec<Vec<Value>>> {
        with_all_rights(self, |session| session.run_statement_of_own(text))
    }

    fn run_statement_of_own(&mut self, text: &str) -> Result<Vec<Vec<Value>>> {
        match parser::parse_statement(text, &self.dialect())? {
            Statement::Query(query) => {
                let mut rows = Vec::new();
                self.run_query(Parsed::new(&query, text), |batch| {
                    for row in 0..batch.num_rows() {
                        let cells = batch.columns().iter();
                        rows.push(
                            cells
                                .map(|cells| value_at(cells.as_ref(), row))
                                .collect::<Result<Vec<Value>>>()?,
                        );
                    }
                    Ok(())
                })?;
                Ok(rows)
            }
            statement => {
                self.dispatch(Parsed::new(statement, text), &mut IgnoredResult)?;
                Ok(Vec::new())
            }
        }
    }
}
