//! ALTER TABLE.

use sqlparser::tokenizer::Token;

use super::create_table::Constraints;
use super::definition::set_character_set;
use super::lock::within;
use super::statement::{ColumnPlace, TableChange};
use super::{ParseResult, Statement, StatementParser};

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
        if let Some(view) = self.alter_view()? {
            return Ok(view);
        }
        if !self.accept("TABLE") {
            return self.unsupported("ALTER of anything but a TABLE");
        }
        let name = self.table_name()?;
        let wait = self.lock_wait()?;
        // Nothing may be changed, too.
        let changes = match self.at_end() {
            true => Vec::new(),
            false => self.list(Self::table_changes)?.concat(),
        };
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
        let mut said = None;
        loop {
            if self.peek_table_option() {
                let option = self.changed_option()?;
                if let TableChange::DefaultCollation {
                    character_set: Some(character_set),
                    ..
                } = &option
                {
                    set_character_set(&mut said, character_set.clone())?;
                }
                options.push(option);
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
                false => Some(self.charset_name()?),
            };
            let mut collation = None;
            if self.accept("COLLATE") {
                self.accept_token(&Token::Eq);
                collation = Some(self.charset_name()?);
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
        if self.accept("ORDER BY") {
            return Ok(TableChange::OrderRows(self.list(Self::ordered_column)?));
        }
        self.unexpected("ADD or DROP")
    }

    /// A column in ORDER BY of ALTER TABLE, which has no expressions. The names in front of it say nothing new.
    fn ordered_column(&mut self) -> ParseResult<String> {
        let mut column = self.identifier()?;
        while self.accept_token(&Token::Period) {
            column = self.identifier()?;
        }
        let _ = self.accept_one_of(&["ASC", "DESC"]);
        Ok(column)
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

    /// What ALTER changes in a table: a CHECK, an index's visibility, a column's visibility or default.
    fn changed_default(&mut self) -> ParseResult<TableChange> {
        if self.accept_one_of(&["CHECK", "CONSTRAINT"]).is_some() {
            let name = self.identifier()?;
            return match self.enforcement()? {
                Some(enforced) => Ok(TableChange::EnforceCheck { name, enforced }),
                None => self.unexpected("ENFORCED or NOT ENFORCED"),
            };
        }
        if self.accept("INDEX") {
            let name = self.identifier()?;
            return match self.visibility() {
                Some(invisible) => Ok(TableChange::KeyVisibility { name, invisible }),
                None => self.unexpected("VISIBLE or INVISIBLE"),
            };
        }
        self.accept("COLUMN");
        let column = self.identifier()?;
        let (default, default_text) = if self.accept("SET DEFAULT") {
            let (default, text) = self.column_default()?;
            (Some(Box::new(default)), text)
        } else if self.accept("DROP DEFAULT") {
            (None, String::new())
        } else if self.accept("SET") {
            return match self.visibility() {
                Some(invisible) => Ok(TableChange::ColumnVisibility { column, invisible }),
                None => self.unexpected("DEFAULT, VISIBLE or INVISIBLE"),
            };
        } else {
            return self.unexpected("SET DEFAULT or DROP DEFAULT");
        };
        Ok(TableChange::SetDefault {
            column,
            default,
            default_text,
        })
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
                collation: Some(self.charset_name()?),
            },
            // Whichever engine is asked for, this one remains.
            Some("ENGINE") => {
                self.word_or_string()?;
                TableChange::Rebuild
            }
            _ => {
                let character_set = self.charset_name()?;
                let mut collation = None;
                if self.accept("COLLATE") || self.accept("DEFAULT COLLATE") {
                    self.accept_token(&Token::Eq);
                    collation = Some(self.charset_name()?);
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
                // All of them go behind the others.
                let changes = self.list(|parser| match parser.added_key()? {
                    Some(key) => Ok(key),
                    None => parser.column_to_add(),
                })?;
                self.expect_token(&Token::RParen)?;
                return Ok(changes.concat());
            }
            return self.added_column();
        }
        match self.added_key()? {
            Some(key) => Ok(key),
            None => self.added_column(),
        }
    }

    /// A key, a foreign key or a CHECK; `None`: it is none of these.
    fn added_key(&mut self) -> ParseResult<Option<Vec<TableChange>>> {
        let mut constraints = Constraints::default();
        let is_key = self.key_or_constraint(&mut constraints)?;
        Ok(is_key.then(|| constraints.added()))
    }

    /// A column, and where it goes.
    fn added_column(&mut self) -> ParseResult<Vec<TableChange>> {
        let mut changes = self.column_to_add()?;
        let written = self.column_place()?;
        for change in &mut changes {
            if let TableChange::AddColumn { place, .. } = change {
                place.clone_from(&written);
            }
        }
        Ok(changes)
    }

    fn column_to_add(&mut self) -> ParseResult<Vec<TableChange>> {
        let mut constraints = Constraints::default();
        let column = self.column_definition(&mut constraints)?;
        let change = TableChange::AddColumn {
            column: Box::new(column),
            keys: std::mem::take(&mut constraints.keys),
            place: None,
        };
        Ok(constraints.added_behind(change))
    }

    fn peek_parenthesis(&self) -> bool {
        self.tokens.peek_token_ref().token == Token::LParen
    }
}
