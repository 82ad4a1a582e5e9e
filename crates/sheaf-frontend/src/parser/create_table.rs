//! CREATE TABLE: columns, keys, constraints, options.
//!
//! ALTER TABLE parses the same columns, keys and constraints by the same functions. An option that changes nothing here
//! is read and ignored; one that would change what a client relies on is an error that names it.

use sheaf_table::{GeneratedKind, ReferentialAction};
use sheaf_types::error::codes;
use sqlparser::tokenizer::{Token, TokenWithSpan};

use super::definition::{refuse_encryption, set_character_set};
use super::statement::{
    CheckDefinition, ColumnDefinition, CreateTable, ForeignKeyDefinition, GeneratedDefinition,
    KeyDefinition, KeyExpression, KeyKind, KeyPart, OnDuplicate, TableChange, TypeName,
};
use super::{ParseResult, Statement, StatementParser, check_text};
use crate::error::SqlError;

/// CREATE TABLE.
impl StatementParser<'_> {
    pub(super) fn create_table(
        &mut self,
        temporary: bool,
        or_replace: bool,
    ) -> ParseResult<Statement> {
        let if_not_exists = self.accept("IF NOT EXISTS");
        if or_replace && if_not_exists {
            return Err(SqlError::wrong_usage("OR REPLACE", "IF NOT EXISTS").into());
        }
        let mut table = CreateTable {
            name: self.table_name()?,
            temporary,
            if_not_exists,
            or_replace,
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
            on_duplicate: OnDuplicate::Error,
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
        if !self.peek_query_in_parentheses() && self.accept_token(&Token::LParen) {
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
        table.on_duplicate = match self.accept_one_of(&["IGNORE", "REPLACE"]) {
            Some("IGNORE") => OnDuplicate::Ignore,
            Some(_) => OnDuplicate::Replace,
            None => OnDuplicate::Error,
        };
        let is_query = table.on_duplicate != OnDuplicate::Error;
        if self.accept("AS") || is_query || !self.at_end() {
            table.query = Some(self.query_expression()?);
        }
        Ok(Statement::CreateTable(Box::new(table)))
    }

    /// `(SELECT ..)`, `((SELECT ..) UNION ..)`, `(VALUES ..)`.
    fn peek_query_in_parentheses(&self) -> bool {
        let is_query = |word| self.peek_parenthesis_and(word);
        let is_nested = self.tokens.peek_token_ref().token == Token::LParen
            && self.tokens.peek_nth_token_ref(1).token == Token::LParen;
        is_nested || ["SELECT", "WITH", "VALUES"].into_iter().any(is_query)
    }

    fn peek_parenthesis_and(&self, word: &str) -> bool {
        self.tokens.peek_token_ref().token == Token::LParen
            && Self::is_word(&self.tokens.peek_nth_token_ref(1).token, word)
    }

    fn peek_parenthesis_and_parenthesis(&self) -> bool {
        self.tokens.peek_token_ref().token == Token::LParen
            && self.tokens.peek_nth_token_ref(1).token == Token::LParen
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
    pub(super) fn key_or_constraint(&mut self, found: &mut Constraints) -> ParseResult<bool> {
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
            let key = self.named_key(KeyKind::Primary, None)?;
            // Its name is PRIMARY, whatever stands here.
            found.keys.push(KeyDefinition { name: None, ..key });
        } else if self.accept("UNIQUE") {
            let _ = self.accept_one_of(&["INDEX", "KEY"]);
            found.keys.push(self.named_key(KeyKind::Unique, symbol)?);
        } else if self.accept("FOREIGN KEY") {
            found.foreign_keys.push(self.foreign_key(symbol)?);
        } else if self.accept("CHECK") {
            found.checks.push(self.check(symbol, None)?);
        } else if constraint {
            return self.unexpected("PRIMARY KEY, UNIQUE, FOREIGN KEY or CHECK");
        } else if let Some(kind) = self.accept_one_of(&["FULLTEXT", "SPATIAL"]) {
            let _ = self.accept_one_of(&["INDEX", "KEY"]);
            if self.tokens.peek_token_ref().token != Token::LParen {
                self.identifier()?;
            }
            return Err(self.refused_key(kind).into());
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
        let (comment, invisible) = self.key_options()?;
        Ok(KeyDefinition {
            kind,
            name,
            parts,
            comment,
            invisible,
        })
    }

    /// Why a FULLTEXT or SPATIAL key of the parts that come next is refused: error 3759 or 3760 if one of them is an
    /// expression, otherwise 1235.
    pub(super) fn refused_key(&mut self, kind: &str) -> SqlError {
        let parts = self.key_parts().unwrap_or_default();
        let has_expression = parts.iter().any(|part| part.expression.is_some());
        match (has_expression, kind) {
            (true, "FULLTEXT") => SqlError::new(
                codes::FULLTEXT_FUNCTIONAL_INDEX,
                "Fulltext functional index is not supported.",
            ),
            (true, _) => SqlError::new(
                codes::SPATIAL_FUNCTIONAL_INDEX,
                "Spatial functional index is not supported.",
            ),
            (false, _) => SqlError::not_supported_yet("FULLTEXT and SPATIAL keys"),
        }
    }

    pub(super) fn key_parts(&mut self) -> ParseResult<Vec<KeyPart>> {
        self.expect_token(&Token::LParen)?;
        let parts = self.list(|parser| {
            if parser.tokens.peek_token_ref().token == Token::LParen {
                return parser.key_expression();
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
            Ok(KeyPart {
                column,
                expression: None,
                prefix_length,
                descending: parser.descends(),
            })
        })?;
        self.expect_token(&Token::RParen)?;
        Ok(parts)
    }

    /// `(expression) [ASC | DESC]`.
    fn key_expression(&mut self) -> ParseResult<KeyPart> {
        let (expression, tokens) = self.expression_in_parentheses()?;
        let text = check_text::kept_operation(&tokens, &expression);
        Ok(KeyPart {
            column: String::new(),
            expression: Some(Box::new(KeyExpression { expression, text })),
            prefix_length: None,
            descending: self.descends(),
        })
    }

    /// Whether DESC comes next. Reads over ASC.
    fn descends(&mut self) -> bool {
        self.accept_one_of(&["ASC", "DESC"]) == Some("DESC")
    }

    pub(super) fn index_type(&mut self) -> ParseResult<()> {
        if self.accept_one_of(&["USING", "TYPE"]).is_some()
            && self.accept_one_of(&["BTREE", "HASH"]).is_none()
        {
            return self.unexpected("BTREE");
        }
        Ok(())
    }

    /// Reads the options after a key's parts; returns its comment, and whether it is invisible.
    pub(super) fn key_options(&mut self) -> ParseResult<(String, bool)> {
        let (mut comment, mut invisible) = Default::default();
        loop {
            if self.peek("USING") {
                self.index_type()?;
            } else if self.accept("COMMENT") {
                comment = self.string()?;
            } else if self.accept("KEY_BLOCK_SIZE") {
                self.accept_token(&Token::Eq);
                self.number()?;
            } else if let Some(hidden) = self.visibility() {
                invisible = hidden;
            } else {
                return Ok((comment, invisible));
            }
        }
    }

    /// Whether INVISIBLE comes next (true) or VISIBLE (false).
    pub(super) fn visibility(&mut self) -> Option<bool> {
        let word = self.accept_one_of(&["VISIBLE", "INVISIBLE"])?;
        Some(word == "INVISIBLE")
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
        if self.peek_parenthesis_and_parenthesis() {
            self.tokens.advance_token();
            return self.unexpected("a column");
        }
        let parts = self.key_parts()?;
        match parts.iter().any(|part| part.expression.is_some()) {
            true => self.unexpected("columns"),
            false => Ok(parts.into_iter().map(|part| part.column).collect()),
        }
    }

    /// REFERENCES and what follows; the columns that refer are still to come.
    fn references(&mut self) -> ParseResult<ForeignKeyDefinition> {
        self.expect("REFERENCES")?;
        let table = self.table_name()?;
        let mut referenced = Vec::new();
        if self.tokens.peek_token_ref().token == Token::LParen {
            referenced = self.column_names()?;
        }
        let _ = self.accept_one_of(&["MATCH FULL", "MATCH PARTIAL", "MATCH SIMPLE"]);
        let (mut on_delete, mut on_update) = (None, None);
        loop {
            if on_delete.is_none() && self.accept("ON DELETE") {
                on_delete = Some(self.referential_action()?);
            } else if on_update.is_none() && self.accept("ON UPDATE") {
                on_update = Some(self.referential_action()?);
            } else {
                break;
            }
        }
        Ok(ForeignKeyDefinition {
            name: None,
            index: None,
            columns: Vec::new(),
            table,
            referenced,
            on_delete: on_delete.unwrap_or_default(),
            on_update: on_update.unwrap_or_default(),
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
                return Err(SqlError::cannot_add_foreign_key().into());
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
        let (expression, tokens) = self.expression_in_parentheses()?;
        Ok(CheckDefinition {
            name,
            text: check_text::kept_text(&tokens, &expression),
            expression,
            enforced: self.enforcement()?.unwrap_or(true),
            of_column,
        })
    }

    /// A default, and its text.
    pub(super) fn column_default(&mut self) -> ParseResult<(sqlparser::ast::Expr, String)> {
        let begin = self.tokens.index();
        let default = self.tokens.parse_prefix()?;
        let default = self.native_expression(default)?;
        let text = check_text::kept_text(&self.tokens_from(begin), &default);
        Ok((default, text))
    }

    /// An expression that stands in parentheses, and its tokens.
    fn expression_in_parentheses(
        &mut self,
    ) -> ParseResult<(sqlparser::ast::Expr, Vec<TokenWithSpan>)> {
        self.expect_token(&Token::LParen)?;
        let begin = self.tokens.index();
        let expression = self.expression()?;
        let tokens = self.tokens_from(begin);
        self.expect_token(&Token::RParen)?;
        Ok((expression, tokens))
    }

    /// What has been read from this place on.
    fn tokens_from(&self, begin: usize) -> Vec<TokenWithSpan> {
        let places = begin..self.tokens.index();
        places.map(|at| self.tokens.token_at(at).clone()).collect()
    }

    /// `[NOT] ENFORCED`, if it comes next.
    pub(super) fn enforcement(&mut self) -> ParseResult<Option<bool>> {
        let word = self.accept_one_of(&["ENFORCED", "NOT ENFORCED"]);
        Ok(word.map(|word| word == "ENFORCED"))
    }

    /// A column; the constraints of its definition go to `found`.
    pub(super) fn column_definition(
        &mut self,
        found: &mut Constraints,
    ) -> ParseResult<ColumnDefinition> {
        let name = self.identifier()?;
        let (mut ty, serial) = self.type_name(&name)?;
        let mut column = ColumnDefinition {
            name,
            ty: ty.clone(),
            not_null: serial,
            explicit_null: false,
            default: None,
            default_text: String::new(),
            on_update: None,
            auto_increment: serial,
            generated: None,
            invisible: false,
            comment: String::new(),
        };
        let own_key = |kind| KeyDefinition {
            kind,
            name: None,
            parts: vec![KeyPart {
                column: column.name.clone(),
                expression: None,
                prefix_length: None,
                descending: false,
            }],
            comment: String::new(),
            invisible: false,
        };
        let (primary, unique) = (own_key(KeyKind::Primary), own_key(KeyKind::Unique));
        if serial {
            found.keys.push(unique.clone());
        }
        // The expression of a generated column comes next to the type.
        ty = self.text_attributes(ty)?;
        if self.peek("GENERATED") || self.peek("AS") {
            column.generated = Some(self.generated_column()?);
            if serial {
                return Err(SqlError::wrong_usage("SERIAL", "generated column").into());
            }
        }
        loop {
            if let Some(clause) = self.clause_of_given_values()
                && column.generated.is_some()
            {
                return Err(SqlError::wrong_usage(clause, "generated column").into());
            }
            if self.accept("NOT NULL") {
                column.not_null = true;
            } else if self.accept("NULL") {
                column.explicit_null = true;
            } else if self.accept("DEFAULT") {
                // A literal, a call or something in parentheses: NOT NULL behind it belongs to the column.
                let (default, text) = self.column_default()?;
                (column.default, column.default_text) = (Some(default), text);
            } else if self.accept("ON UPDATE") {
                // So does NOT NULL behind a call.
                let value = self.tokens.parse_prefix()?;
                column.on_update = Some(self.native_expression(value)?);
            } else if self.accept("AUTO_INCREMENT") {
                column.auto_increment = true;
            } else if self.accept("SERIAL DEFAULT VALUE") {
                column.auto_increment = true;
                column.not_null = true;
                found.keys.push(unique.clone());
            } else if self.accept("PRIMARY KEY") || self.accept("KEY") {
                found.keys.push(primary.clone());
            } else if self.accept("UNIQUE") {
                self.accept("KEY");
                found.keys.push(unique.clone());
            } else if self.accept("COMMENT") {
                column.comment = self.string()?;
            } else if self.peek("CHARACTER SET") || self.peek("CHARSET") || self.peek("COLLATE") {
                ty = self.text_attributes(ty)?;
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
            } else if let Some(invisible) = self.visibility() {
                column.invisible = invisible;
            } else {
                column.ty = ty;
                return Ok(column);
            }
        }
    }

    /// CHARACTER SET and COLLATE behind a type.
    fn text_attributes(&mut self, mut ty: TypeName) -> ParseResult<TypeName> {
        loop {
            if self.accept("CHARACTER SET") || self.accept("CHARSET") {
                ty.character_set = Some(self.charset_name()?);
                ty.binary |= self.accept("BINARY");
            } else if ty.collation.is_some() && self.peek("COLLATE") {
                return self.unexpected("one COLLATE");
            } else if self.accept("COLLATE") {
                ty.collation = Some(self.charset_name()?);
            } else {
                return Ok(ty);
            }
        }
    }

    /// What a generated column cannot have: the clause that comes next, if it says where values come from.
    fn clause_of_given_values(&mut self) -> Option<&'static str> {
        let clauses = ["DEFAULT", "ON UPDATE", "AUTO_INCREMENT"];
        clauses.into_iter().find(|clause| self.peek(clause))
    }

    /// `[GENERATED ALWAYS] AS (expression) [VIRTUAL | STORED]`.
    fn generated_column(&mut self) -> ParseResult<GeneratedDefinition> {
        self.accept("GENERATED ALWAYS");
        self.expect("AS")?;
        let (expression, tokens) = self.expression_in_parentheses()?;
        let kind = match self.accept_one_of(&["VIRTUAL", "STORED"]) {
            Some("STORED") => GeneratedKind::Stored,
            _ => GeneratedKind::Virtual,
        };
        Ok(GeneratedDefinition {
            text: check_text::kept_operation(&tokens, &expression),
            expression,
            kind,
        })
    }

    fn table_options(&mut self, table: &mut CreateTable) -> ParseResult<()> {
        loop {
            self.accept_token(&Token::Comma);
            self.accept("DEFAULT");
            if self.accept("CHARACTER SET") || self.accept("CHARSET") {
                self.accept_token(&Token::Eq);
                let character_set = self.charset_name()?;
                set_character_set(&mut table.character_set, character_set)?;
            } else if self.accept("COLLATE") {
                self.accept_token(&Token::Eq);
                table.collation = Some(self.charset_name()?);
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
    pub(super) fn ignored_table_option(&mut self) -> ParseResult<bool> {
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
        if self.peek("DATA DIRECTORY") {
            return Err(SqlError::not_supported_yet("DATA DIRECTORY").into());
        }
        let known = self.accept_one_of(&[
            "ENGINE",
            "ROW_FORMAT",
            "KEY_BLOCK_SIZE",
            "AVG_ROW_LENGTH",
            "CHECKSUM",
            "TABLE_CHECKSUM",
            "COMPRESSION",
            "CONNECTION",
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

/// What a definition declares besides columns.
#[derive(Default)]
pub(super) struct Constraints {
    pub(super) keys: Vec<KeyDefinition>,
    pub(super) foreign_keys: Vec<ForeignKeyDefinition>,
    pub(super) checks: Vec<CheckDefinition>,
}

impl Constraints {
    /// As changes of a table that is there.
    pub(super) fn added(self) -> Vec<TableChange> {
        let keys = self.keys.into_iter().map(TableChange::AddKey);
        let foreign_keys = self.foreign_keys.into_iter();
        let checks = self.checks.into_iter();
        keys.chain(foreign_keys.map(TableChange::AddForeignKey))
            .chain(checks.map(|check| TableChange::AddCheck(Box::new(check))))
            .collect()
    }

    pub(super) fn added_behind(self, change: TableChange) -> Vec<TableChange> {
        let mut changes = vec![change];
        changes.extend(self.added());
        changes
    }
}
