//! SHOW and DESCRIBE.

use sqlparser::tokenizer::Token;

use super::account::UserName;
use super::statement::{EmptyList, Filter, Scope, Show, TableName};
use super::{ParseResult, Statement, StatementParser};
use crate::error::SqlError;

impl StatementParser<'_> {
    pub fn show(&mut self) -> ParseResult<Statement> {
        self.expect("SHOW")?;
        Ok(Statement::Show(self.show_what()?))
    }

    fn show_what(&mut self) -> ParseResult<Show> {
        if self.peek("COUNT") {
            self.tokens.advance_token();
            for token in [Token::LParen, Token::Mul, Token::RParen] {
                self.expect_token(&token)?;
            }
            return match self.accept_one_of(&["WARNINGS", "ERRORS"]) {
                Some(word) => Ok(Show::Warnings {
                    errors_only: word == "ERRORS",
                    count: true,
                    limit: None,
                }),
                None => self.unexpected("WARNINGS or ERRORS"),
            };
        }
        let extended = self.accept("EXTENDED");
        let full = self.accept("FULL");
        if self.accept("TABLES") {
            let database = self.in_database()?;
            return Ok(Show::Tables {
                full,
                database,
                filter: self.filter()?,
            });
        }
        if self.accept_one_of(&["COLUMNS", "FIELDS"]).is_some() {
            let table = self.in_table()?;
            return Ok(Show::Columns {
                full,
                table,
                filter: self.filter()?,
            });
        }
        if self.accept("PROCESSLIST") {
            return Ok(Show::ProcessList { full });
        }
        if self.accept_one_of(&["INDEX", "INDEXES", "KEYS"]).is_some() {
            let table = self.in_table()?;
            return Ok(Show::Index {
                table,
                filter: self.filter()?,
            });
        }
        if full || extended {
            return self.unexpected("TABLES or COLUMNS");
        }
        if self.accept_one_of(&["DATABASES", "SCHEMAS"]).is_some() {
            return Ok(Show::Databases(self.filter()?));
        }
        if self.accept("TABLE STATUS") {
            let database = self.in_database()?;
            return Ok(Show::TableStatus {
                database,
                filter: self.filter()?,
            });
        }
        if self.accept("CREATE") {
            if self.accept_one_of(&["DATABASE", "SCHEMA"]).is_some() {
                let if_not_exists = self.accept("IF NOT EXISTS");
                return Ok(Show::CreateDatabase {
                    name: self.identifier()?,
                    if_not_exists,
                });
            }
            if self.accept("USER") {
                return Ok(Show::CreateUser(self.user_name()?));
            }
            if self.accept("VIEW") {
                return Ok(Show::CreateView(self.table_name()?));
            }
            for what in ["PROCEDURE", "FUNCTION", "TRIGGER", "EVENT"] {
                if self.peek(what) {
                    let what = format!("SHOW CREATE {what}");
                    return Err(SqlError::not_supported_yet(what).into());
                }
            }
            self.expect("TABLE")?;
            return Ok(Show::CreateTable(self.table_name()?));
        }
        let scope = match self.accept_one_of(&["GLOBAL", "SESSION", "LOCAL"]) {
            Some("GLOBAL") => Scope::Global,
            Some(_) => Scope::Session,
            None => Scope::Default,
        };
        if self.accept("VARIABLES") {
            return Ok(Show::Variables {
                scope,
                filter: self.filter()?,
            });
        }
        if self.accept("STATUS") {
            return Ok(Show::Status {
                scope,
                filter: self.filter()?,
            });
        }
        if scope != Scope::Default {
            return self.unexpected("VARIABLES or STATUS");
        }
        if let Some(word) = self.accept_one_of(&["WARNINGS", "ERRORS"]) {
            let limit = self.row_limit()?;
            return Ok(Show::Warnings {
                errors_only: word == "ERRORS",
                count: false,
                limit,
            });
        }
        if self.accept("ENGINES") || self.accept("STORAGE ENGINES") {
            return Ok(Show::Engines);
        }
        if self.accept("ENGINE") {
            let engine = self.word_or_string()?;
            if let Some(what) = self.accept_one_of(&["MUTEX", "LOGS"]) {
                let what = format!("SHOW ENGINE ... {what}");
                return Err(SqlError::not_supported_yet(what).into());
            }
            self.expect("STATUS")?;
            return Ok(Show::EngineStatus(engine));
        }
        if self.accept("PLUGINS") {
            return Ok(Show::Plugins);
        }
        if self.accept("PRIVILEGES") {
            return Ok(Show::Privileges);
        }
        if self.accept("CHARACTER SET") || self.accept("CHARSET") {
            return Ok(Show::CharacterSet(self.filter()?));
        }
        if self.accept("COLLATION") {
            return Ok(Show::Collation(self.filter()?));
        }
        if self.accept("GRANTS") {
            let user = match self.accept("FOR") {
                true => self.user_name()?,
                false => UserName::Current,
            };
            let roles = match self.accept("USING") {
                true => self.role_names()?,
                false => Vec::new(),
            };
            return Ok(Show::Grants { user, roles });
        }
        if self
            .accept_one_of(&["BINARY LOGS", "MASTER LOGS"])
            .is_some()
        {
            return Ok(Show::BinaryLogs);
        }
        if self
            .accept_one_of(&["BINARY LOG STATUS", "MASTER STATUS"])
            .is_some()
        {
            return Ok(Show::BinaryLogStatus);
        }
        if let Some(words) = self.accept_one_of(&["REPLICA STATUS", "SLAVE STATUS"]) {
            self.channel()?;
            return Ok(Show::ReplicaStatus {
                old_names: words == "SLAVE STATUS",
            });
        }
        if self.accept("REPLICAS") {
            return Ok(Show::Replicas);
        }
        if self.accept("BINLOG EVENTS") {
            let file = match self.accept("IN") {
                true => Some(self.string()?),
                false => None,
            };
            let from = match self.accept("FROM") {
                true => Some(self.number()?),
                false => None,
            };
            let limit = self.row_limit()?;
            return Ok(Show::BinlogEvents { file, from, limit });
        }
        for (words, list) in [
            ("TRIGGERS", EmptyList::Triggers),
            ("EVENTS", EmptyList::Events),
            ("PROCEDURE STATUS", EmptyList::ProcedureStatus),
            ("FUNCTION STATUS", EmptyList::FunctionStatus),
            ("OPEN TABLES", EmptyList::OpenTables),
        ] {
            if self.accept(words) {
                self.in_database()?;
                self.filter()?;
                return Ok(Show::Empty(list));
            }
        }
        for what in [
            "PROFILES",
            "PROFILE",
            "SLAVE HOSTS",
            "ENGINE",
            "RELAYLOG EVENTS",
            "PARSE_TREE",
        ] {
            if self.peek(what) {
                return Err(SqlError::not_supported_yet(format!("SHOW {what}")).into());
            }
        }
        self.unexpected("what to show")
    }

    /// DESCRIBE table [column], after the verb.
    pub fn describe_table(&mut self) -> ParseResult<Statement> {
        let table = self.table_name()?;
        let filter = match &self.tokens.peek_token_ref().token {
            Token::SingleQuotedString(_) | Token::DoubleQuotedString(_) => {
                Filter::Like(self.string()?)
            }
            Token::Word(_) => {
                // A name, not a pattern.
                let column = self.identifier()?;
                Filter::Like(
                    column
                        .replace('\\', "\\\\")
                        .replace('%', "\\%")
                        .replace('_', "\\_"),
                )
            }
            _ => Filter::None,
        };
        Ok(Statement::Show(Show::Columns {
            full: false,
            table,
            filter,
        }))
    }

    fn in_database(&mut self) -> ParseResult<Option<String>> {
        if self.accept_one_of(&["FROM", "IN"]).is_some() {
            Ok(Some(self.identifier()?))
        } else {
            Ok(None)
        }
    }

    /// `FROM table [FROM database]`.
    fn in_table(&mut self) -> ParseResult<TableName> {
        if self.accept_one_of(&["FROM", "IN"]).is_none() {
            return self.unexpected("FROM");
        }
        let mut table = self.table_name()?;
        if let Some(database) = self.in_database()? {
            table.database = Some(database);
        }
        Ok(table)
    }

    fn filter(&mut self) -> ParseResult<Filter> {
        if self.accept("LIKE") {
            Ok(Filter::Like(self.string()?))
        } else if self.accept("WHERE") {
            Ok(Filter::Where(Box::new(self.expression()?)))
        } else {
            Ok(Filter::None)
        }
    }

    /// `LIMIT [offset,] count` as (offset, count).
    fn row_limit(&mut self) -> ParseResult<Option<(u64, u64)>> {
        if !self.accept("LIMIT") {
            return Ok(None);
        }
        let first = self.number()?;
        if self.accept_token(&Token::Comma) {
            Ok(Some((first, self.number()?)))
        } else if self.accept("OFFSET") {
            Ok(Some((self.number()?, first)))
        } else {
            Ok(Some((0, first)))
        }
    }
}
