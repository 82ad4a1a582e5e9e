//! CREATE, ALTER, DROP and RENAME.
//!
//! In come the tokens of a statement. Out come plain definitions (`parser/statement.rs`): a table with its columns,
//! keys and constraints, or a list of changes of a table. Nothing is looked up here: whether a table or a column exists
//! is a question for the catalog.
//!
//! CREATE TABLE (`create_table.rs`) and ALTER TABLE (`alter_table.rs`) read the same elements with the same methods.
//! The definition of a column may declare keys, foreign keys and checks as well; these are collected beside the column
//! (`Constraints`), and ALTER TABLE adds them as further changes. Here are databases, indexes, and which statement it
//! is.
//!
//! Options that tune other engines are read and ignored, so that dumps can be loaded. A statement or an option that
//! asks for something that Sheaf does not do is refused, for example partitions, or encryption.

use sheaf_types::error::codes;
use sqlparser::tokenizer::Token;

use super::lock::within;
use super::statement::{DatabaseOptions, KeyDefinition, KeyKind, TableChange};
use super::{ParseResult, Statement, StatementParser};
use crate::error::SqlError;

const DATABASE_OPTIONS: [&str; 4] = ["CHARACTER SET", "CHARSET", "COLLATE", "ENCRYPTION"];

impl StatementParser<'_> {
    pub fn create(&mut self) -> ParseResult<Statement> {
        self.expect("CREATE")?;
        if self.accept_one_of(&["DATABASE", "SCHEMA"]).is_some() {
            let if_not_exists = self.accept("IF NOT EXISTS");
            return Ok(Statement::CreateDatabase {
                name: self.identifier()?,
                if_not_exists,
                options: self.database_options()?,
            });
        }
        // OR REPLACE is MariaDB's. A view has it, too.
        let tables = [
            ("TABLE", (false, false)),
            ("TEMPORARY TABLE", (true, false)),
            ("OR REPLACE TABLE", (false, true)),
            ("OR REPLACE TEMPORARY TABLE", (true, true)),
        ];
        for (words, (temporary, or_replace)) in tables {
            if self.accept(words) {
                return self.create_table(temporary, or_replace);
            }
        }
        if self.accept("USER") {
            return self.create_user();
        }
        if self.accept("ROLE") {
            return self.create_role();
        }
        if self.accept("RESOURCE GROUP") {
            return self.create_resource_group();
        }
        if let Some(view) = self.create_view()? {
            return Ok(view);
        }
        let unique = self.accept("UNIQUE");
        if self.accept("INDEX") {
            return self.create_index(unique);
        }
        if unique {
            return self.unexpected("INDEX");
        }
        if let Some(kind) = self.accept_one_of(&["FULLTEXT INDEX", "SPATIAL INDEX"]) {
            self.identifier()?;
            self.expect("ON")?;
            self.table_name()?;
            let kind = kind.trim_end_matches(" INDEX");
            return Err(self.refused_key(kind).into());
        }
        for what in [
            "FULLTEXT",
            "SPATIAL",
            "PROCEDURE",
            "FUNCTION",
            "TRIGGER",
            "EVENT",
            "SERVER",
            "TABLESPACE",
            "AGGREGATE",
            "LOGFILE",
            "UNDO",
            "LIBRARY",
            "MATERIALIZED",
            "SEQUENCE",
        ] {
            if self.peek(what) {
                return self.unsupported(&format!("CREATE {what}"));
            }
        }
        self.unexpected("TABLE")
    }

    fn database_options(&mut self) -> ParseResult<DatabaseOptions> {
        let mut options = DatabaseOptions::default();
        loop {
            let is_default = self.accept("DEFAULT");
            let option = match self.accept_one_of(&DATABASE_OPTIONS) {
                Some(option) => option,
                None if is_default => return self.unexpected("CHARACTER SET"),
                None => return Ok(options),
            };
            self.accept_token(&Token::Eq);
            let value = self.charset_name()?;
            match option {
                "COLLATE" => options.collation = Some(value),
                "ENCRYPTION" => refuse_encryption(&value)?,
                _ => set_character_set(&mut options.character_set, value)?,
            }
        }
    }

    /// ALTER DATABASE, behind these words.
    pub(super) fn alter_database(&mut self) -> ParseResult<Statement> {
        let is_option = |parser: &Self| {
            let mut options = DATABASE_OPTIONS.iter();
            parser.peek("DEFAULT") || options.any(|option| parser.peek(option))
        };
        let mut name = None;
        if !is_option(self) && !self.peek("READ ONLY") {
            name = Some(self.identifier()?);
        }
        if self.peek("READ ONLY") {
            return self.unsupported("ALTER DATABASE ... READ ONLY");
        }
        if !is_option(self) {
            return self.unexpected("CHARACTER SET");
        }
        Ok(Statement::AlterDatabase {
            name,
            options: self.database_options()?,
        })
    }

    pub fn drop(&mut self) -> ParseResult<Statement> {
        self.expect("DROP")?;
        if self.accept_one_of(&["DATABASE", "SCHEMA"]).is_some() {
            let if_exists = self.accept("IF EXISTS");
            return Ok(Statement::DropDatabase {
                name: self.identifier()?,
                if_exists,
            });
        }
        if self.accept("PREPARE") {
            return Ok(Statement::Deallocate {
                name: self.identifier()?.to_lowercase(),
            });
        }
        let kinds = ["TABLES", "TABLE", "TEMPORARY TABLES", "TEMPORARY TABLE"];
        if let Some(kind) = self.accept_one_of(&kinds) {
            let temporary = kind.starts_with("TEMPORARY");
            let if_exists = self.accept("IF EXISTS");
            let names = self.table_names()?;
            let wait = self.lock_wait()?;
            let _ = self.accept_one_of(&["RESTRICT", "CASCADE"]);
            let drop = Statement::DropTables {
                names,
                if_exists,
                temporary,
            };
            return Ok(within(wait, drop));
        }
        if self.accept("INDEX") {
            let index = self.identifier()?;
            self.expect("ON")?;
            let name = self.table_name()?;
            let wait = self.lock_wait()?;
            let demands = self.algorithm_and_lock()?;
            let change = if index.eq_ignore_ascii_case(sheaf_table::PRIMARY) {
                TableChange::DropPrimaryKey
            } else {
                TableChange::DropKey { name: index }
            };
            let mut changes = vec![change];
            changes.extend(demands);
            return Ok(within(wait, Statement::AlterTable { name, changes }));
        }
        if self.accept("VIEW") {
            let if_exists = self.accept("IF EXISTS");
            let names = self.table_names()?;
            let _ = self.accept_one_of(&["RESTRICT", "CASCADE"]);
            return Ok(Statement::DropViews { names, if_exists });
        }
        // What cannot be created cannot be there; dumps drop it all the same.
        for (what, code) in [
            ("PROCEDURE", codes::SP_DOES_NOT_EXIST),
            ("FUNCTION", codes::SP_DOES_NOT_EXIST),
            ("TRIGGER", codes::TRG_DOES_NOT_EXIST),
            ("EVENT", codes::EVENT_DOES_NOT_EXIST),
        ] {
            if self.accept(what) {
                let if_exists = self.accept("IF EXISTS");
                let names = self.table_names()?;
                return Ok(Statement::DropAbsent {
                    what,
                    code,
                    names,
                    if_exists,
                });
            }
        }
        if self.accept("USER") {
            return self.drop_user();
        }
        if self.accept("ROLE") {
            return self.drop_role();
        }
        if self.accept("RESOURCE GROUP") {
            return self.drop_resource_group();
        }
        for what in [
            "SERVER",
            "TABLESPACE",
            "SPATIAL",
            "SEQUENCE",
            "UNDO",
            "LOGFILE",
            "LIBRARY",
            "PREPARE",
        ] {
            if self.peek(what) {
                return self.unsupported(&format!("DROP {what}"));
            }
        }
        self.unexpected("TABLE")
    }

    pub fn rename(&mut self) -> ParseResult<Statement> {
        self.expect("RENAME")?;
        if self.accept("USER") {
            return self.rename_user();
        }
        if self.accept_one_of(&["TABLE", "TABLES"]).is_none() {
            return self.unexpected("TABLE");
        }
        let mut wait = None;
        let pairs = self.list(|parser| {
            let old = parser.table_name()?;
            wait = parser.lock_wait()?.or(wait);
            parser.expect("TO")?;
            Ok((old, parser.table_name()?))
        })?;
        Ok(within(wait, Statement::RenameTables(pairs)))
    }

    fn create_index(&mut self, unique: bool) -> ParseResult<Statement> {
        let index = self.identifier()?;
        self.index_type()?;
        self.expect("ON")?;
        let name = self.table_name()?;
        let parts = self.key_parts()?;
        let wait = self.lock_wait()?;
        let (comment, invisible) = self.key_options()?;
        let demands = self.algorithm_and_lock()?;
        let kind = if unique {
            KeyKind::Unique
        } else {
            KeyKind::Plain
        };
        let key = KeyDefinition {
            kind,
            name: Some(index),
            parts,
            comment,
            invisible,
        };
        let mut changes = vec![TableChange::AddKey(key)];
        changes.extend(demands);
        Ok(within(wait, Statement::AlterTable { name, changes }))
    }

    /// How a change of a table is to be done, if that is what comes next.
    pub(super) fn algorithm_or_lock(&mut self) -> ParseResult<Option<TableChange>> {
        let Some(clause) = self.accept_one_of(&["ALGORITHM", "LOCK"]) else {
            return Ok(None);
        };
        self.accept_token(&Token::Eq);
        let word = self.word_or_string()?;
        Ok(Some(match clause {
            "ALGORITHM" => TableChange::Algorithm(word),
            _ => TableChange::Lock(word),
        }))
    }

    fn algorithm_and_lock(&mut self) -> ParseResult<Vec<TableChange>> {
        let mut demands = Vec::new();
        while let Some(demand) = self.algorithm_or_lock()? {
            demands.push(demand);
        }
        Ok(demands)
    }
}

/// Error 1235: files are not encrypted, and the user may rely on it.
pub(super) fn refuse_encryption(value: &str) -> ParseResult<()> {
    match value.eq_ignore_ascii_case("N") {
        true => Ok(()),
        false => Err(SqlError::not_supported_yet(format!("ENCRYPTION='{value}'")).into()),
    }
}

/// A character set of a table or a database is said once, or the same again.
///
/// # Errors
/// 1302: another one was said before.
pub(super) fn set_character_set(said: &mut Option<String>, new: String) -> ParseResult<()> {
    match said {
        Some(before) if !before.eq_ignore_ascii_case(&new) => Err(SqlError::new(
            codes::CONFLICTING_DECLARATIONS,
            format!("Conflicting declarations: 'CHARACTER SET {before}' and 'CHARACTER SET {new}'"),
        )
        .into()),
        _ => {
            *said = Some(new);
            Ok(())
        }
    }
}
