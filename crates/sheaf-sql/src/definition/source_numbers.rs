//! Numbers that the source of a replica has given to the rows of a table.
//!
//! A follower runs an ALTER TABLE that adds an AUTO_INCREMENT column, and is to number the rows as its source has. The
//! binary log does not say whether the source has copied the table, and InnoDB begins later if it has not:
//!
//! ```text
//!   auto_increment_increment = 7, auto_increment_offset = 3    copied: 3, 10, 17    in place: 10, 17, 24
//! ```
//!
//! So it is worked out from the statement and the table. Where that is not certain the statement is refused: nobody
//! would notice a wrong number. What is certain was tried with MySQL 9.7 and MariaDB 10.11. A Sheaf says ALGORITHM=COPY
//! in its log.
//!
//! With an increment of 1 the ways differ only behind an AUTO_INCREMENT value that the statement names, under an offset
//! of more than 1. Rows are numbered in InnoDB's order ([`TableDefinition::row_order`]).

use sheaf_table::schema::same_name;
use sheaf_table::{
    AutoIncrementSeries, CheckConstraint, GeneratedKind, Index, IndexPart, TableDefinition,
};
use sheaf_types::ColumnType;
use sheaf_types::error::codes;
use sqlparser::ast;

use crate::error::{Result, SqlError};
use crate::parser::statement::{ColumnDefinition, KeyDefinition, KeyKind, TableChange};
use crate::session::Session;
use crate::session_parts::transactions::SourceKind;

/// How an ALTER TABLE was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Copy,
    InPlace,
}

/// What the way depends on besides the statement.
struct Circumstances<'t> {
    source: SourceKind,
    /// As it was.
    table: &'t TableDefinition,
    checks_foreign_keys: bool,
    is_strict: bool,
    /// The statement brings a primary key.
    adds_primary_key: bool,
}

/// How rows are numbered that an ALTER TABLE numbers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Numbering {
    pub(super) series: AutoIncrementSeries,
    /// As InnoDB numbers them without a copy.
    pub(super) in_place: bool,
}

/// Whether rows get new numbers.
pub(crate) fn numbers_rows(changes: &[TableChange]) -> bool {
    changes.iter().any(|change| match change {
        TableChange::AddColumn { column, .. } | TableChange::ChangeColumn { column, .. } => {
            column.auto_increment
        }
        _ => false,
    })
}

/// As [`numbers_rows`], where it is another column that numbered them before, or none.
fn numbers_rows_anew(changes: &[TableChange], table: &TableDefinition) -> bool {
    let numbered = table.auto_increment_column();
    changes.iter().any(|change| match change {
        TableChange::AddColumn { column, .. } => column.auto_increment,
        TableChange::ChangeColumn { name, column, .. } => {
            column.auto_increment && (numbered.is_none() || table.column_position(name) != numbered)
        }
        _ => false,
    })
}

impl Session {
    /// How the rows of a table are numbered anew. Error 1593 for a statement of a source that may have numbered them in
    /// several ways, and 1235 for one whose followers may.
    pub(super) fn numbering(
        &self,
        changes: &[TableChange],
        table: &TableDefinition,
    ) -> Result<Numbering> {
        let series = self.variables.auto_increment_series();
        let copied = Numbering {
            series,
            in_place: false,
        };
        if numbers_rows_anew(changes, table) && !table.row_order().is_certain {
            self.check_row_order_is_local(table)?;
        }
        let Some(source) = self.transactions.source else {
            return Ok(copied);
        };
        let in_place = self.variables.auto_increment_series_in_place();
        // Without gaps InnoDB goes another way behind a value that the statement names alone.
        let says_first = changes
            .iter()
            .any(|change| matches!(change, TableChange::AutoIncrement(_)));
        let is_same =
            series == AutoIncrementSeries::default() && (in_place == series || !says_first);
        if is_same || !numbers_rows(changes) {
            return Ok(copied);
        }
        let circumstances = Circumstances {
            source,
            table,
            checks_foreign_keys: self.variables.foreign_key_checks(),
            is_strict: self.insert_mode(false).strict,
            adds_primary_key: changes.iter().any(adds_primary_key),
        };
        match circumstances.way(changes) {
            Some(Way::InPlace) => Ok(Numbering {
                series: in_place,
                in_place: true,
            }),
            // An offset that is ignored is not ignored everywhere in MySQL: numbers are irregular.
            Some(Way::Copy) if in_place == series || series == AutoIncrementSeries::default() => {
                Ok(copied)
            }
            _ => Err(SqlError::new(
                codes::REPLICA_FATAL_ERROR,
                format!(
                    "Fatal error: it is not known which numbers the source has given to the rows of {}.{}; copy the \
                     table and leave out this transaction; on the source, say ALGORITHM=COPY or ALGORITHM=INPLACE, with \
                     an auto_increment_offset that is not greater than auto_increment_increment",
                    table.database, table.name
                ),
            )),
        }
    }

    /// Refuses to number rows whose order in InnoDB is not certain, where others have numbered them or will: error 1593
    /// for a statement of a source, and 1235 for one that followers get.
    fn check_row_order_is_local(&self, table: &TableDefinition) -> Result<()> {
        if self.transactions.source.is_some() {
            return Err(SqlError::new(
                codes::REPLICA_FATAL_ERROR,
                format!(
                    "Fatal error: it is not known in which order the source has numbered the rows of {}.{}, which has \
                     several unique keys and no primary key, or a key of both directions; copy the table and leave out \
                     this transaction",
                    table.database, table.name
                ),
            ));
        }
        match self.is_replicated() && !table.is_temporary() {
            true => Err(SqlError::not_supported_yet(
                "a new AUTO_INCREMENT column, with a binary log, of a table that has several unique keys without a \
                 primary key, or a key of both directions: followers may number its rows in another order; number \
                 them by UPDATE first",
            )),
            false => Ok(()),
        }
    }
}

impl Circumstances<'_> {
    /// `None`: it is not certain.
    fn way(&self, changes: &[TableChange]) -> Option<Way> {
        // The last word counts, and a source that cannot do as it is told has not logged the statement.
        let words = changes.iter().rev();
        let mut words = words.filter_map(|change| match change {
            TableChange::Algorithm(word) => Some(word.to_ascii_uppercase()),
            _ => None,
        });
        match words.next().as_deref() {
            Some("COPY") => return Some(Way::Copy),
            Some("INPLACE") => return Some(Way::InPlace),
            _ => {}
        }
        let ways = changes.iter().map(|change| self.way_of(change));
        let ways: Vec<Option<Way>> = ways.collect();
        if ways.contains(&Some(Way::Copy)) {
            return Some(Way::Copy);
        }
        // MariaDB copies where a computed column gets another place, too.
        let may_copy = self.source == SourceKind::Mariadb && self.table.has_generated_columns();
        match ways.contains(&None) || may_copy {
            true => None,
            false => Some(Way::InPlace),
        }
    }

    /// What one change alone asks for, beside a new AUTO_INCREMENT column.
    fn way_of(&self, change: &TableChange) -> Option<Way> {
        let is_mysql = self.source == SourceKind::Mysql;
        match change {
            TableChange::OrderRows(_) => Some(Way::Copy),
            TableChange::AddForeignKey(_) if self.checks_foreign_keys => Some(Way::Copy),
            TableChange::AddCheck(check) if check.enforced => {
                Some(match is_mysql || check.of_column.is_none() {
                    true => Way::Copy,
                    false => Way::InPlace,
                })
            }
            TableChange::EnforceCheck {
                name,
                enforced: true,
            } => {
                let mut checks = self.table.checks.iter();
                let is_old =
                    |check: &CheckConstraint| check.enforced && same_name(&check.name, name);
                Some(match checks.any(is_old) {
                    true => Way::InPlace,
                    false => Way::Copy,
                })
            }
            TableChange::AddColumn { column, .. } => Some(self.way_of_new(column)),
            TableChange::ChangeColumn { name, column, .. } => self.way_of_changed(name, column),
            TableChange::DropColumn { name } => self.way_of_dropped(name),
            TableChange::AddKey(key) => self.way_of_key(key),
            TableChange::DropPrimaryKey => Some(self.way_without_primary_key()),
            TableChange::DropKey { name } => self.way_without_key(name),
            TableChange::DropConstraint { name } => match self.table.index(name) {
                Some(_) => self.way_without_key(name),
                None => Some(Way::InPlace),
            },
            TableChange::AddForeignKey(_)
            | TableChange::AddCheck(_)
            | TableChange::EnforceCheck { .. }
            | TableChange::RenameColumn { .. }
            | TableChange::SetDefault { .. }
            | TableChange::ColumnVisibility { .. }
            | TableChange::KeyVisibility { .. }
            | TableChange::RenameKey { .. }
            | TableChange::DropForeignKey { .. }
            | TableChange::DropCheck { .. }
            | TableChange::AutoIncrement(_)
            | TableChange::Comment(_)
            | TableChange::DefaultCollation { .. }
            | TableChange::RenameTo(_)
            | TableChange::Algorithm(_)
            | TableChange::Lock(_) => Some(Way::InPlace),
            // Another engine; options of a table, and DISABLE KEYS among them.
            TableChange::ConvertTo { .. }
            | TableChange::Rebuild
            | TableChange::Nothing
            | TableChange::Unsupported(_) => None,
        }
    }

    fn way_of_new(&self, column: &ColumnDefinition) -> Way {
        let is_computed = matches!(column.default, Some(ast::Expr::Nested(_)));
        match column.generated.is_some() || is_computed && self.source == SourceKind::Mysql {
            true => Way::Copy,
            false => Way::InPlace,
        }
    }

    fn way_of_changed(&self, name: &str, column: &ColumnDefinition) -> Option<Way> {
        if column.auto_increment {
            return Some(Way::Copy);
        }
        let position = self.table.column_position(name)?;
        let before = &self.table.columns[position];
        if before.generated.is_some() || column.generated.is_some() || self.may_be_key(position) {
            return None;
        }
        let (old, new) = (&before.ty, &column.ty.ty);
        let is_number = |ty: &ColumnType| {
            matches!(
                ty,
                ColumnType::SmallInt { .. }
                    | ColumnType::MediumInt { .. }
                    | ColumnType::Int { .. }
                    | ColumnType::BigInt { .. }
            )
        };
        let is_date = |ty: &ColumnType| ty.has_date() && !ty.follows_time_zone();
        let is_known = |ty: &ColumnType| is_number(ty) || is_date(ty);
        if !is_known(old) || !is_known(new) {
            return None;
        }
        let forbids_null = before.nullable && column.not_null;
        match old == new {
            true if forbids_null && !self.is_strict => None,
            true => Some(Way::InPlace),
            false => Some(Way::Copy),
        }
    }

    fn way_of_dropped(&self, name: &str) -> Option<Way> {
        let position = self.table.column_position(name)?;
        let generated = self.table.columns[position].generated.as_ref();
        match generated.map(|generated| generated.kind) {
            Some(GeneratedKind::Virtual) => Some(Way::Copy),
            _ if self.may_be_key(position) => None,
            _ => Some(Way::InPlace),
        }
    }

    fn way_of_key(&self, key: &KeyDefinition) -> Option<Way> {
        if key.parts.iter().any(|part| part.expression.is_some()) {
            return Some(Way::Copy);
        }
        let forbids_null = || {
            key.parts.iter().any(|part| {
                let position = self.table.column_position(&part.column);
                position.is_some_and(|position| self.table.columns[position].nullable)
            })
        };
        match key.kind == KeyKind::Primary && !self.is_strict && forbids_null() {
            true => None,
            false => Some(Way::InPlace),
        }
    }

    fn way_without_primary_key(&self) -> Way {
        match self.adds_primary_key {
            true => Way::InPlace,
            false => Way::Copy,
        }
    }

    fn way_without_key(&self, name: &str) -> Option<Way> {
        let key = self.table.index(name)?;
        let is_hidden = |part: &IndexPart| self.table.columns[part.column].hidden;
        match () {
            () if key.primary => Some(self.way_without_primary_key()),
            () if key.parts.iter().any(is_hidden) => Some(Way::Copy),
            () if self.may_stand_for_primary(key) => None,
            () => Some(Way::InPlace),
        }
    }

    /// Whether a column is of a key that orders the rows, or may, and none comes in its place.
    fn may_be_key(&self, column: usize) -> bool {
        let has = |key: &Index| key.parts.iter().any(|part| part.column == column);
        let table = self.table;
        let mut unique = table.secondary.iter().filter(|key| key.unique);
        !self.adds_primary_key
            && (has(&table.primary) || table.has_hidden_row_id() && unique.any(has))
    }

    /// InnoDB orders the rows of a table without a primary key by a unique key.
    fn may_stand_for_primary(&self, key: &Index) -> bool {
        key.unique && self.table.has_hidden_row_id() && !self.adds_primary_key
    }
}

fn adds_primary_key(change: &TableChange) -> bool {
    let is_primary = |key: &KeyDefinition| key.kind == KeyKind::Primary;
    match change {
        TableChange::AddKey(key) => is_primary(key),
        TableChange::AddColumn { keys, .. } | TableChange::ChangeColumn { keys, .. } => {
            keys.iter().any(is_primary)
        }
        _ => false,
    }
}
