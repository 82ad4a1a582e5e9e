//! CREATE, ALTER, DROP and RENAME.
//!
//! In come the tokens of a statement. Out come plain definitions (`parser/statement.rs`): a table with its columns,
//! keys and constraints, or a list of changes of a table. Nothing is looked up here: whether a table or a column exists
//! is a question for the catalog.
//!
//! CREATE TABLE and ALTER TABLE read the same elements with the same methods. The definition of a column may declare
//! keys, foreign keys and checks as well; these are collected beside the column (`Constraints`), and ALTER TABLE adds
//! them as further changes.
//!
//! Options that tune other engines are read and ignored, so that dumps can be loaded. A statement or an option that
//! asks for something that Sheaf does not do is refused, for example CREATE VIEW, CREATE TEMPORARY TABLE, or
//! encryption.

use sheaf_table::ReferentialAction;
use sheaf_types::error::codes;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::statement::{
    CheckDefinition, ColumnDefinition, ColumnPlace, CreateTable, DatabaseOptions,
    ForeignKeyDefinition, KeyDefinition, KeyKind, KeyPart, TableChange,
};
use super::{ParseResult, Statement, StatementParser, check_text, within};
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
        if self.accept("TABLE") {
            return self.create_table();
        }
        if self.peek("TEMPORARY TABLE") {
            return self.unsupported("CREATE TEMPORARY TABLE");
        }
        if self.accept("USER") {
            return self.create_user();
        }
        if self.accept("RESOURCE GROUP") {
            return self.create_resource_group();
        }
        let unique = self.accept("UNIQUE");
        if self.accept("INDEX") {
            return self.create_index(unique);
        }
        if unique {
            return self.unexpected("INDEX");
        }
        for what in [
            "FULLTEXT",
            "SPATIAL",
            "VIEW",
            "OR REPLACE",
            "ROLE",
            "PROCEDURE",
            "FUNCTION",
            "TRIGGER",
            "EVENT",
            "SERVER",
            "TABLESPACE",
            "DEFINER",
            "ALGORITHM",
            "SQL",
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
            let value = self.word_or_string()?;
            match option {
                "COLLATE" => options.collation = Some(value),
                "ENCRYPTION" => refuse_encryption(&value)?,
                _ => options.character_set = Some(value),
            }
        }
    }

    /// ALTER DATABASE, behind these words.
    fn alter_database(&mut self) -> ParseResult<Statement> {
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
        if self
            .accept_one_of(&["TABLES", "TABLE", "TEMPORARY TABLE"])
            .is_some()
        {
            let if_exists = self.accept("IF EXISTS");
            let names = self.table_names()?;
            let wait = self.lock_wait()?;
            let _ = self.accept_one_of(&["RESTRICT", "CASCADE"]);
            return Ok(within(wait, Statement::DropTables { names, if_exists }));
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
        // What cannot be created cannot be there; dumps drop it all the same.
        for (what, code) in [
            ("VIEW", codes::BAD_TABLE_ERROR),
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
        if self.accept("RESOURCE GROUP") {
            return self.drop_resource_group();
        }
        for what in [
            "ROLE",
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
        let comment = self.key_options()?;
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
        };
        let mut changes = vec![TableChange::AddKey(key)];
        changes.extend(demands);
        Ok(within(wait, Statement::AlterTable { name, changes }))
    }

    /// How a change of a table is to be done, if that is what comes next.
    fn algorithm_or_lock(&mut self) -> ParseResult<Option<TableChange>> {
        let Some(clause) = self.accept_one_of(&["ALGORITHM", "LOCK"]) else {
            return Ok(None);
        };
        self.accept_token(&Token::Eq);
        let word = self.word_or_string()?.to_ascii_uppercase();
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

/// CREATE TABLE.
impl StatementParser<'_> {
    fn create_table(&mut self) -> ParseResult<Statement> {
        let if_not_exists = self.accept("IF NOT EXISTS");
        let mut table = CreateTable {
            name: self.table_name()?,
            if_not_exists,
            columns: Vec::new(),
            keys: Vec::new(),
            foreign_keys: Vec::new(),
            checks: Vec::new(),
            collation: None,
            character_set: None,
            auto_increment: None,
            comment: String::new(),
            like: None,
            query: None,
            ignore: false,
        };
        if self.accept("LIKE") {
            table.like = Some(self.table_name()?);
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if self.peek_parenthesis_and("LIKE") {
            self.tokens.advance_token();
            self.tokens.advance_token();
            table.like = Some(self.table_name()?);
            self.expect_token(&Token::RParen)?;
            return Ok(Statement::CreateTable(Box::new(table)));
        }
        if !self.peek_parenthesis_and("SELECT")
            && !self.peek_parenthesis_and("WITH")
            && self.accept_token(&Token::LParen)
        {
            loop {
                self.table_element(&mut table)?;
                if !self.accept_token(&Token::Comma) {
                    break;
                }
            }
            self.expect_token(&Token::RParen)?;
        }
        self.table_options(&mut table)?;
        if self.peek("PARTITION BY") {
            return self.unsupported("CREATE TABLE ... PARTITION BY");
        }
        table.ignore = self.accept_one_of(&["IGNORE", "REPLACE"]) == Some("IGNORE");
        self.accept("AS");
        if !self.at_end() {
            table.query = Some(self.query_expression()?);
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    fn peek_parenthesis_and(&self, word: &str) -> bool {
        self.tokens.peek_token_ref().token == Token::LParen
            && Self::is_word(&self.tokens.peek_nth_token_ref(1).token, word)
    }

    fn table_element(&mut self, table: &mut CreateTable) -> ParseResult<()> {
        let mut constraints = Constraints::default();
        if !self.key_or_constraint(&mut constraints)? {
            let column = self.column_definition(&mut constraints)?;
            table.columns.push(column);
        }
        table.keys.extend(constraints.keys);
        table.foreign_keys.extend(constraints.foreign_keys);
        table.checks.extend(constraints.checks);
        Ok(())
    }

    /// A key, a foreign key, or a CHECK. False if something else comes next.
    fn key_or_constraint(&mut self, found: &mut Constraints) -> ParseResult<bool> {
        let mut symbol = None;
        let constraint = self.accept("CONSTRAINT");
        if constraint
            && !["PRIMARY", "UNIQUE", "FOREIGN", "CHECK"]
                .iter()
                .any(|word| self.peek(word))
        {
            symbol = Some(self.identifier()?);
        }
        if self.accept("PRIMARY KEY") {
            self.index_type()?;
            let parts = self.key_parts()?;
            let comment = self.key_options()?;
            found.keys.push(KeyDefinition {
                kind: KeyKind::Primary,
                name: None,
                parts,
                comment,
            });
        } else if self.accept("UNIQUE") {
            let _ = self.accept_one_of(&["INDEX", "KEY"]);
            found.keys.push(self.named_key(KeyKind::Unique, symbol)?);
        } else if self.accept("FOREIGN KEY") {
            found.foreign_keys.push(self.foreign_key(symbol)?);
        } else if self.accept("CHECK") {
            found.checks.push(self.check(symbol, None)?);
        } else if constraint {
            return self.unexpected("PRIMARY KEY, UNIQUE, FOREIGN KEY or CHECK");
        } else if self.accept_one_of(&["FULLTEXT", "SPATIAL"]).is_some() {
            return Err(SqlError::not_supported_yet("FULLTEXT and SPATIAL keys").into());
        } else if self.is_key_start() {
            self.tokens.advance_token();
            found.keys.push(self.named_key(KeyKind::Plain, None)?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    /// KEY and INDEX begin a key here; a column of that name would have to be quoted.
    fn is_key_start(&self) -> bool {
        self.peek("KEY") || self.peek("INDEX")
    }

    fn named_key(&mut self, kind: KeyKind, symbol: Option<String>) -> ParseResult<KeyDefinition> {
        let mut name = symbol;
        if !self.peek("USING") && self.tokens.peek_token_ref().token != Token::LParen {
            name = Some(self.identifier()?);
        }
        self.index_type()?;
        let parts = self.key_parts()?;
        let comment = self.key_options()?;
        Ok(KeyDefinition {
            kind,
            name,
            parts,
            comment,
        })
    }

    fn key_parts(&mut self) -> ParseResult<Vec<KeyPart>> {
        self.expect_token(&Token::LParen)?;
        let parts = self.list(|parser| {
            if parser.tokens.peek_token_ref().token == Token::LParen {
                return Err(SqlError::not_supported_yet("functional key parts").into());
            }
            let column = parser.identifier()?;
            let prefix_length = if parser.accept_token(&Token::LParen) {
                let length = parser.number()?;
                parser.expect_token(&Token::RParen)?;
                let length = u32::try_from(length).ok().filter(|length| *length > 0);
                Some(length.ok_or_else(|| {
                    SqlError::new(
                        codes::KEY_PART_0,
                        format!("Key part '{column}' length cannot be 0"),
                    )
                })?)
            } else {
                None
            };
            let descending = parser.accept_one_of(&["ASC", "DESC"]) == Some("DESC");
            Ok(KeyPart {
                column,
                prefix_length,
                descending,
            })
        })?;
        self.expect_token(&Token::RParen)?;
        Ok(parts)
    }

    fn index_type(&mut self) -> ParseResult<()> {
        if self.accept_one_of(&["USING", "TYPE"]).is_some()
            && self.accept_one_of(&["BTREE", "HASH"]).is_none()
        {
            return self.unexpected("BTREE");
        }
        Ok(())
    }

    /// Reads the options after a key's parts; returns its comment.
    fn key_options(&mut self) -> ParseResult<String> {
        let mut comment = String::new();
        loop {
            if self.peek("USING") {
                self.index_type()?;
            } else if self.accept("COMMENT") {
                comment = self.string()?;
            } else if self.accept("KEY_BLOCK_SIZE") {
                self.accept_token(&Token::Eq);
                self.number()?;
            } else if self.peek("INVISIBLE") {
                return Err(SqlError::not_supported_yet("invisible indexes").into());
            } else if !self.accept("VISIBLE") {
                return Ok(comment);
            }
        }
    }

    /// A foreign key behind its first two words.
    fn foreign_key(&mut self, name: Option<String>) -> ParseResult<ForeignKeyDefinition> {
        self.accept("IF NOT EXISTS");
        let mut index = None;
        if self.tokens.peek_token_ref().token != Token::LParen {
            index = Some(self.identifier()?);
        }
        let columns = self.column_names()?;
        let mut foreign_key = self.references()?;
        (foreign_key.name, foreign_key.index) = (name, index);
        foreign_key.columns = columns;
        Ok(foreign_key)
    }

    fn column_names(&mut self) -> ParseResult<Vec<String>> {
        let parts = self.key_parts()?;
        Ok(parts.into_iter().map(|part| part.column).collect())
    }

    /// REFERENCES and what follows; the columns that refer are still to come.
    fn references(&mut self) -> ParseResult<ForeignKeyDefinition> {
        self.expect("REFERENCES")?;
        let table = self.table_name()?;
        let mut referenced = Vec::new();
        if self.tokens.peek_token_ref().token == Token::LParen {
            referenced = self.column_names()?;
        }
        let (mut on_delete, mut on_update) = Default::default();
        while let Some(clause) = self.accept_one_of(&[
            "MATCH FULL",
            "MATCH PARTIAL",
            "MATCH SIMPLE",
            "ON DELETE",
            "ON UPDATE",
        ]) {
            match clause {
                "ON DELETE" => on_delete = self.referential_action()?,
                "ON UPDATE" => on_update = self.referential_action()?,
                _ => {}
            }
        }
        Ok(ForeignKeyDefinition {
            name: None,
            index: None,
            columns: Vec::new(),
            table,
            referenced,
            on_delete,
            on_update,
        })
    }

    fn referential_action(&mut self) -> ParseResult<ReferentialAction> {
        let actions = [
            "RESTRICT",
            "CASCADE",
            "SET NULL",
            "NO ACTION",
            "SET DEFAULT",
        ];
        Ok(match self.accept_one_of(&actions) {
            Some("RESTRICT") => ReferentialAction::Restrict,
            Some("CASCADE") => ReferentialAction::Cascade,
            Some("SET NULL") => ReferentialAction::SetNull,
            Some("NO ACTION") => ReferentialAction::NoAction,
            // As InnoDB.
            Some(_) => {
                return Err(SqlError::new(
                    codes::CANNOT_ADD_FOREIGN,
                    "Cannot add foreign key constraint",
                )
                .into());
            }
            None => return self.unexpected("a referential action"),
        })
    }

    /// A CHECK behind this word, with the name that stands before it and the column that it is part of.
    fn check(
        &mut self,
        name: Option<String>,
        of_column: Option<String>,
    ) -> ParseResult<CheckDefinition> {
        self.expect_token(&Token::LParen)?;
        let begin = self.tokens.index();
        let expression = self.expression()?;
        let tokens: Vec<TokenWithSpan> = (begin..self.tokens.index())
            .map(|at| self.tokens.token_at(at).clone())
            .collect();
        self.expect_token(&Token::RParen)?;
        Ok(CheckDefinition {
            name,
            text: check_text::kept_text(&tokens, &expression),
            expression,
            enforced: self.enforcement()?.unwrap_or(true),
            of_column,
        })
    }

    /// `[NOT] ENFORCED`, if it comes next.
    fn enforcement(&mut self) -> ParseResult<Option<bool>> {
        let word = self.accept_one_of(&["ENFORCED", "NOT ENFORCED"]);
        Ok(word.map(|word| word == "ENFORCED"))
    }

    /// A column; the constraints of its definition go to `found`.
    fn column_definition(&mut self, found: &mut Constraints) -> ParseResult<ColumnDefinition> {
        let name = self.identifier()?;
        let (mut ty, serial) = self.type_name(&name)?;
        let mut column = ColumnDefinition {
            name,
            ty: ty.clone(),
            not_null: serial,
            explicit_null: false,
            default: None,
            on_update: None,
            auto_increment: serial,
            comment: String::new(),
        };
        let own_key = |kind| KeyDefinition {
            kind,
            name: None,
            parts: vec![KeyPart {
                column: column.name.clone(),
                prefix_length: None,
                descending: false,
            }],
            comment: String::new(),
        };
        let (primary, unique) = (own_key(KeyKind::Primary), own_key(KeyKind::Unique));
        if serial {
            found.keys.push(unique.clone());
        }
        loop {
            if self.accept("NOT NULL") {
                column.not_null = true;
            } else if self.accept("NULL") {
                column.explicit_null = true;
            } else if self.accept("DEFAULT") {
                // A literal, a call or something in parentheses: NOT NULL behind it belongs to the column.
                column.default = Some(self.tokens.parse_prefix()?);
            } else if self.accept("ON UPDATE") {
                column.on_update = Some(self.expression()?);
            } else if self.accept("AUTO_INCREMENT") {
                column.auto_increment = true;
            } else if self.accept("PRIMARY KEY") || self.accept("KEY") {
                found.keys.push(primary.clone());
            } else if self.accept("UNIQUE") {
                self.accept("KEY");
                found.keys.push(unique.clone());
            } else if self.accept("COMMENT") {
                column.comment = self.string()?;
            } else if self.accept("CHARACTER SET") || self.accept("CHARSET") {
                ty.character_set = Some(self.word_or_string()?);
            } else if self.accept("COLLATE") {
                ty.collation = Some(self.word_or_string()?);
            } else if self.accept_one_of(&["COLUMN_FORMAT", "STORAGE"]).is_some() {
                self.identifier()?;
            } else if self.peek("REFERENCES") {
                let mut foreign_key = self.references()?;
                foreign_key.columns.push(column.name.clone());
                found.foreign_keys.push(foreign_key);
            } else if self.peek("CONSTRAINT") || self.peek("CHECK") {
                let mut symbol = None;
                if self.accept("CONSTRAINT") && !self.peek("CHECK") {
                    symbol = Some(self.identifier()?);
                }
                self.expect("CHECK")?;
                found
                    .checks
                    .push(self.check(symbol, Some(column.name.clone()))?);
            } else if self.peek("GENERATED") || self.peek("AS") {
                return Err(SqlError::not_supported_yet("generated columns").into());
            } else if self.accept("VISIBLE") {
                // The usual state.
            } else if self.peek("INVISIBLE") {
                return Err(SqlError::not_supported_yet("invisible columns").into());
            } else {
                column.ty = ty;
                return Ok(column);
            }
        }
    }

    fn table_options(&mut self, table: &mut CreateTable) -> ParseResult<()> {
        loop {
            self.accept_token(&Token::Comma);
            self.accept("DEFAULT");
            if self.accept("CHARACTER SET") || self.accept("CHARSET") {
                self.accept_token(&Token::Eq);
                table.character_set = Some(self.word_or_string()?);
            } else if self.accept("COLLATE") {
                self.accept_token(&Token::Eq);
                table.collation = Some(self.word_or_string()?);
            } else if self.accept("AUTO_INCREMENT") {
                self.accept_token(&Token::Eq);
                table.auto_increment = Some(self.number()?);
            } else if self.accept("COMMENT") {
                self.accept_token(&Token::Eq);
                table.comment = self.string()?;
            } else if !self.ignored_table_option()? {
                return Ok(());
            }
        }
    }

    /// Options that tune other engines; false if none comes next.
    fn ignored_table_option(&mut self) -> ParseResult<bool> {
        if self.accept("UNION") {
            self.accept_token(&Token::Eq);
            self.expect_token(&Token::LParen)?;
            self.table_names()?;
            self.expect_token(&Token::RParen)?;
            return Ok(true);
        }
        if self.accept("ENCRYPTION") {
            self.accept_token(&Token::Eq);
            refuse_encryption(&self.word_or_string()?)?;
            return Ok(true);
        }
        let known = self.accept_one_of(&[
            "ENGINE",
            "TYPE",
            "ROW_FORMAT",
            "KEY_BLOCK_SIZE",
            "AVG_ROW_LENGTH",
            "CHECKSUM",
            "TABLE_CHECKSUM",
            "COMPRESSION",
            "CONNECTION",
            "DATA DIRECTORY",
            "INDEX DIRECTORY",
            "DELAY_KEY_WRITE",
            "INSERT_METHOD",
            "MAX_ROWS",
            "MIN_ROWS",
            "PACK_KEYS",
            "PAGE_CHECKSUM",
            "PASSWORD",
            "STATS_AUTO_RECALC",
            "STATS_PERSISTENT",
            "STATS_SAMPLE_PAGES",
            "TABLESPACE",
            "TRANSACTIONAL",
            "AUTOEXTEND_SIZE",
            "SECONDARY_ENGINE",
        ]);
        if known.is_none() {
            return Ok(false);
        }
        self.accept_token(&Token::Eq);
        self.tokens.advance_token();
        Ok(true)
    }
}

/// ALTER.
impl StatementParser<'_> {
    pub fn alter(&mut self) -> ParseResult<Statement> {
        self.expect("ALTER")?;
        if self.accept_one_of(&["DATABASE", "SCHEMA"]).is_some() {
            return self.alter_database();
        }
        if self.accept("USER") {
            return self.alter_user();
        }
        if self.accept("RESOURCE GROUP") {
            return self.alter_resource_group();
        }
        if !self.accept("TABLE") {
            return self.unsupported("ALTER of anything but a TABLE");
        }
        let name = self.table_name()?;
        let wait = self.lock_wait()?;
        let changes = self.list(Self::table_changes)?.concat();
        Ok(within(wait, Statement::AlterTable { name, changes }))
    }

    /// What stands between two commas: ADD with columns in parentheses is several changes, and so are options of the
    /// table.
    fn table_changes(&mut self) -> ParseResult<Vec<TableChange>> {
        if self.accept("ADD") {
            return self.add_to_table();
        }
        if self.accept("MODIFY") {
            self.accept("COLUMN");
            return self.changed_column(None);
        }
        if self.accept("CHANGE") {
            self.accept("COLUMN");
            let name = self.identifier()?;
            return self.changed_column(Some(name));
        }
        let mut options = Vec::new();
        loop {
            if self.peek_table_option() {
                options.push(self.changed_option()?);
            } else if self.ignored_table_option()? {
                options.push(TableChange::Nothing);
            } else if options.is_empty() {
                return Ok(vec![self.table_change()?]);
            } else {
                return Ok(options);
            }
        }
    }

    fn table_change(&mut self) -> ParseResult<TableChange> {
        if self.accept("DROP") {
            return self.drop_from_table();
        }
        if self.accept("RENAME") {
            if self.accept_one_of(&["INDEX", "KEY"]).is_some() {
                let old = self.identifier()?;
                self.expect("TO")?;
                return Ok(TableChange::RenameKey {
                    old,
                    new: self.identifier()?,
                });
            }
            if self.accept("COLUMN") {
                let old = self.identifier()?;
                self.expect("TO")?;
                return Ok(TableChange::RenameColumn {
                    old,
                    new: self.identifier()?,
                });
            }
            let _ = self.accept_one_of(&["TO", "AS"]);
            return Ok(TableChange::RenameTo(self.table_name()?));
        }
        if self.accept("ALTER") {
            return self.changed_default();
        }
        if self.accept("CONVERT TO") {
            if self.accept_one_of(&["CHARACTER SET", "CHARSET"]).is_none() {
                return self.unexpected("CHARACTER SET");
            }
            let character_set = match self.accept("DEFAULT") {
                true => None,
                false => Some(self.word_or_string()?),
            };
            let mut collation = None;
            if self.accept("COLLATE") {
                self.accept_token(&Token::Eq);
                collation = Some(self.word_or_string()?);
            }
            return Ok(TableChange::ConvertTo {
                character_set,
                collation,
            });
        }
        if self.accept("FORCE") {
            return Ok(TableChange::Rebuild);
        }
        if self
            .accept_one_of(&["DISABLE KEYS", "ENABLE KEYS"])
            .is_some()
        {
            return Ok(TableChange::Nothing);
        }
        if let Some(demand) = self.algorithm_or_lock()? {
            return Ok(demand);
        }
        for what in [
            "PARTITION",
            "DISCARD",
            "IMPORT",
            "EXCHANGE",
            "TRUNCATE",
            "UPGRADE",
            "REMOVE",
            "REORGANIZE",
            "COALESCE",
            "REBUILD PARTITION",
            "ANALYZE PARTITION",
            "CHECK PARTITION",
            "OPTIMIZE PARTITION",
            "REPAIR PARTITION",
            "SECONDARY_LOAD",
            "SECONDARY_UNLOAD",
            "WITH VALIDATION",
            "WITHOUT VALIDATION",
        ] {
            if self.peek(what) {
                self.skip_rest();
                return Ok(TableChange::Unsupported(format!("ALTER TABLE ... {what}")));
            }
        }
        if self.peek("ORDER BY") {
            self.skip_rest();
            return Ok(TableChange::Unsupported(
                "ALTER TABLE ... ORDER BY: rows are in the order of the primary key".into(),
            ));
        }
        self.unexpected("ADD or DROP")
    }

    fn drop_from_table(&mut self) -> ParseResult<TableChange> {
        if self.peek("PARTITION") {
            self.skip_rest();
            let what = "ALTER TABLE ... DROP PARTITION".into();
            return Ok(TableChange::Unsupported(what));
        }
        if self.accept("PRIMARY KEY") {
            return Ok(TableChange::DropPrimaryKey);
        }
        if self.accept_one_of(&["KEY", "INDEX"]).is_some() {
            return Ok(TableChange::DropKey {
                name: self.identifier()?,
            });
        }
        if let Some(kind) = self.accept_one_of(&["FOREIGN KEY", "CONSTRAINT", "CHECK"]) {
            self.accept("IF EXISTS");
            let name = self.identifier()?;
            return Ok(match kind {
                "FOREIGN KEY" => TableChange::DropForeignKey { name },
                "CHECK" => TableChange::DropCheck { name },
                _ => TableChange::DropConstraint { name },
            });
        }
        self.accept("COLUMN");
        let name = self.identifier()?;
        let _ = self.accept_one_of(&["RESTRICT", "CASCADE"]);
        Ok(TableChange::DropColumn { name })
    }

    /// The new definition of a column; `None`: it keeps its name.
    fn changed_column(&mut self, name: Option<String>) -> ParseResult<Vec<TableChange>> {
        let mut constraints = Constraints::default();
        let column = self.column_definition(&mut constraints)?;
        let change = TableChange::ChangeColumn {
            name: name.unwrap_or_else(|| column.name.clone()),
            column: Box::new(column),
            keys: std::mem::take(&mut constraints.keys),
            place: self.column_place()?,
        };
        Ok(constraints.added_behind(change))
    }

    fn column_place(&mut self) -> ParseResult<Option<ColumnPlace>> {
        if self.accept("FIRST") {
            return Ok(Some(ColumnPlace::First));
        }
        if self.accept("AFTER") {
            return Ok(Some(ColumnPlace::After(self.identifier()?)));
        }
        Ok(None)
    }

    /// `ALTER [COLUMN] column SET DEFAULT` or `DROP DEFAULT`.
    fn changed_default(&mut self) -> ParseResult<TableChange> {
        if self.accept_one_of(&["CHECK", "CONSTRAINT"]).is_some() {
            let name = self.identifier()?;
            return match self.enforcement()? {
                Some(enforced) => Ok(TableChange::EnforceCheck { name, enforced }),
                None => self.unexpected("ENFORCED or NOT ENFORCED"),
            };
        }
        if self.peek("INDEX") {
            self.skip_rest();
            let what = "ALTER TABLE ... ALTER INDEX".into();
            return Ok(TableChange::Unsupported(what));
        }
        self.accept("COLUMN");
        let column = self.identifier()?;
        let default = if self.accept("SET DEFAULT") {
            Some(Box::new(self.tokens.parse_prefix()?))
        } else if self.accept("DROP DEFAULT") {
            None
        } else {
            return self.unexpected("SET DEFAULT or DROP DEFAULT");
        };
        Ok(TableChange::SetDefault { column, default })
    }

    /// Options that ALTER TABLE changes.
    fn peek_table_option(&self) -> bool {
        [
            "AUTO_INCREMENT",
            "COMMENT",
            "CHARACTER SET",
            "CHARSET",
            "COLLATE",
            "DEFAULT CHARACTER SET",
            "DEFAULT CHARSET",
            "DEFAULT COLLATE",
            "ENGINE",
        ]
        .iter()
        .any(|option| self.peek(option))
    }

    fn changed_option(&mut self) -> ParseResult<TableChange> {
        self.accept("DEFAULT");
        let option = self.accept_one_of(&[
            "AUTO_INCREMENT",
            "COMMENT",
            "CHARACTER SET",
            "CHARSET",
            "COLLATE",
            "ENGINE",
        ]);
        self.accept_token(&Token::Eq);
        Ok(match option {
            Some("AUTO_INCREMENT") => TableChange::AutoIncrement(self.number()?),
            Some("COMMENT") => TableChange::Comment(self.string()?),
            Some("COLLATE") => TableChange::DefaultCollation {
                character_set: None,
                collation: Some(self.word_or_string()?),
            },
            // Whichever engine is asked for, this one remains.
            Some("ENGINE") => {
                self.word_or_string()?;
                TableChange::Rebuild
            }
            _ => {
                let character_set = self.word_or_string()?;
                let mut collation = None;
                if self.accept("COLLATE") || self.accept("DEFAULT COLLATE") {
                    self.accept_token(&Token::Eq);
                    collation = Some(self.word_or_string()?);
                }
                TableChange::DefaultCollation {
                    character_set: Some(character_set),
                    collation,
                }
            }
        })
    }

    fn add_to_table(&mut self) -> ParseResult<Vec<TableChange>> {
        if self.peek("PARTITION") {
            self.skip_rest();
            let what = "ALTER TABLE ... ADD PARTITION".into();
            return Ok(vec![TableChange::Unsupported(what)]);
        }
        if self.peek_parenthesis() || self.peek("COLUMN") {
            self.accept("COLUMN");
            if self.accept_token(&Token::LParen) {
                let changes = self.list(Self::added_element)?.concat();
                self.expect_token(&Token::RParen)?;
                return Ok(changes);
            }
            return self.added_column();
        }
        self.added_element()
    }

    /// A key, a foreign key, a CHECK, or a column.
    fn added_element(&mut self) -> ParseResult<Vec<TableChange>> {
        let mut constraints = Constraints::default();
        if self.key_or_constraint(&mut constraints)? {
            return Ok(constraints.added());
        }
        self.added_column()
    }

    fn added_column(&mut self) -> ParseResult<Vec<TableChange>> {
        let mut constraints = Constraints::default();
        let column = self.column_definition(&mut constraints)?;
        let change = TableChange::AddColumn {
            column: Box::new(column),
            keys: std::mem::take(&mut constraints.keys),
            place: self.column_place()?,
        };
        Ok(constraints.added_behind(change))
    }

    fn peek_parenthesis(&self) -> bool {
        self.tokens.peek_token_ref().token == Token::LParen
    }
}

/// Error 1235: files are not encrypted, and the user may rely on it.
fn refuse_encryption(value: &str) -> ParseResult<()> {
    match value.eq_ignore_ascii_case("N") {
        true => Ok(()),
        false => Err(SqlError::not_supported_yet(format!("ENCRYPTION='{value}'")).into()),
    }
}

/// What a definition declares besides columns.
#[derive(Default)]
struct Constraints {
    keys: Vec<KeyDefinition>,
    foreign_keys: Vec<ForeignKeyDefinition>,
    checks: Vec<CheckDefinition>,
}

impl Constraints {
    /// As changes of a table that is there.
    fn added(self) -> Vec<TableChange> {
        let keys = self.keys.into_iter().map(TableChange::AddKey);
        let foreign_keys = self.foreign_keys.into_iter();
        let checks = self.checks.into_iter();
        keys.chain(foreign_keys.map(TableChange::AddForeignKey))
            .chain(checks.map(|check| TableChange::AddCheck(Box::new(check))))
            .collect()
    }

    fn added_behind(self, change: TableChange) -> Vec<TableChange> {
        let mut changes = vec![change];
        changes.extend(self.added());
        changes
    }
}
