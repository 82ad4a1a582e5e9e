//! A table as TABLE_MAP describes it, with all that binlog_row_metadata=FULL says.
//!
//! Rows events have no types. The TABLE_MAP in front of them has: a number and some bytes for each column, which
//! suffice to find the values. What a follower needs beside them (names, signs, collations, labels, the primary key) is
//! a list of *optional fields*, each with a type and a length:
//!
//! | field | what it says |
//! |---|---|
//! | 1 SIGNEDNESS | a bit for each number |
//! | 2 DEFAULT_CHARSET, 3 COLUMN_CHARSET | collations of strings: the most frequent and the others, or all |
//! | 4 COLUMN_NAME | names |
//! | 5 SET_STR_VALUE, 6 ENUM_STR_VALUE | labels |
//! | 8 SIMPLE_PRIMARY_KEY, 9 PRIMARY_KEY_WITH_PREFIX | columns of the key, with the lengths of prefixes |
//! | 10, 11 ENUM_AND_SET_... | as 2 and 3, of ENUM and SET |
//! | 12 COLUMN_VISIBILITY | a bit for each column |
//!
//! All that is made once for a table. A [`LoggedTable`] is good until the definition changes.

use std::collections::BTreeMap;

use sheaf_types::{Collation, ColumnType, Value};

use crate::bytes::{put_bits_high_first, put_bits_low_first, put_packed, put_string};
use crate::error::{BinlogError, Result};
use crate::row::columns::{ColumnRole, ColumnSet, RowImage};
use crate::row::field::Field;

/// Characters of a name in bytes, at most.
const MAX_NAME_BYTES: usize = 255;
/// Columns of a table, at most: MySQL's limit.
const MAX_COLUMNS: usize = 4096;

pub(crate) mod optional {
    pub(crate) const SIGNEDNESS: u8 = 1;
    pub(crate) const DEFAULT_CHARSET: u8 = 2;
    pub(crate) const COLUMN_CHARSET: u8 = 3;
    pub(crate) const COLUMN_NAME: u8 = 4;
    pub(crate) const SET_STR_VALUE: u8 = 5;
    pub(crate) const ENUM_STR_VALUE: u8 = 6;
    pub(crate) const SIMPLE_PRIMARY_KEY: u8 = 8;
    pub(crate) const PRIMARY_KEY_WITH_PREFIX: u8 = 9;
    pub(crate) const ENUM_AND_SET_DEFAULT_CHARSET: u8 = 10;
    pub(crate) const ENUM_AND_SET_COLUMN_CHARSET: u8 = 11;
    pub(crate) const COLUMN_VISIBILITY: u8 = 12;
}

/// A column of a table.
#[derive(Debug, Clone)]
pub struct LoggedColumn {
    name: String,
    ty: ColumnType,
    is_nullable: bool,
    is_visible: bool,
}

impl LoggedColumn {
    pub fn new(name: impl Into<String>, ty: ColumnType, is_nullable: bool) -> LoggedColumn {
        LoggedColumn {
            name: name.into(),
            ty,
            is_nullable,
            is_visible: true,
        }
    }

    /// The same column as `SELECT *` leaves it out.
    pub fn invisible(mut self) -> LoggedColumn {
        self.is_visible = false;
        self
    }
}

/// A column of a primary key.
#[derive(Debug, Clone, Copy)]
pub struct KeyColumn {
    column: usize,
    /// Characters of a prefix, or bytes of a binary string's; 0 of a whole column.
    prefix: u32,
}

impl KeyColumn {
    pub fn whole(column: usize) -> KeyColumn {
        KeyColumn { column, prefix: 0 }
    }

    pub fn prefix(column: usize, prefix: u32) -> KeyColumn {
        KeyColumn { column, prefix }
    }
}

/// A table whose rows are logged.
#[derive(Debug, Clone)]
pub struct LoggedTable {
    columns: Vec<LoggedColumn>,
    fields: Vec<Field>,
    roles: Vec<ColumnRole>,
    /// What follows the number and the flags in TABLE_MAP.
    description: Vec<u8>,
}

impl LoggedTable {
    /// # Errors
    /// A name that is too long, too many columns or none, or a primary key of columns that are not there.
    pub fn new(
        database: &str,
        table: &str,
        columns: Vec<LoggedColumn>,
        primary_key: &[KeyColumn],
    ) -> Result<LoggedTable> {
        let fail = |reason| BinlogError::Table {
            table: table.to_string(),
            reason,
        };
        if [database, table]
            .iter()
            .any(|name| name.len() > MAX_NAME_BYTES)
        {
            return Err(fail("its name is longer than 255 bytes"));
        }
        if columns.is_empty() || columns.len() > MAX_COLUMNS {
            return Err(fail("it has no columns, or more than 4096"));
        }
        if primary_key.iter().any(|key| key.column >= columns.len()) {
            return Err(fail("its primary key has a column that is not there"));
        }
        let fields: Vec<Field> = columns.iter().map(|column| Field::of(&column.ty)).collect();
        let role = |(at, field): (usize, &Field)| ColumnRole {
            is_of_key: primary_key.iter().any(|key| key.column == at),
            is_blob: field.is_blob(),
        };
        let roles = fields.iter().enumerate().map(role).collect();
        let mut described = LoggedTable {
            columns,
            fields,
            roles,
            description: Vec::new(),
        };
        described.description = described.describe(database, table, primary_key);
        Ok(described)
    }

    /// How many columns there are.
    pub fn width(&self) -> usize {
        self.columns.len()
    }

    /// Whether followers find its rows by a primary key.
    pub fn has_key(&self) -> bool {
        self.roles.iter().any(|role| role.is_of_key)
    }

    pub fn all_columns(&self) -> ColumnSet {
        ColumnSet::all(self.width())
    }

    /// The columns of the image of a row before an update or a delete.
    pub fn columns_before(&self, image: RowImage) -> ColumnSet {
        image.before(&self.roles)
    }

    /// The columns of the image of a row after an insert or an update that assigned some columns.
    pub fn columns_after(&self, image: RowImage, assigned: &ColumnSet) -> ColumnSet {
        image.after(&self.roles, assigned)
    }

    pub(crate) fn description(&self) -> &[u8] {
        &self.description
    }

    /// Appends the image of a row: a value for each column of the table, of which those of the set are logged.
    ///
    /// # Errors
    /// A value that is none of its column. What was appended does not count.
    pub(crate) fn put_image(
        &self,
        out: &mut Vec<u8>,
        row: &[Value],
        columns: &ColumnSet,
    ) -> Result<()> {
        if row.len() != self.width() || columns.width() != self.width() {
            return Err(BinlogError::ValueCount {
                values: row.len(),
                columns: self.width(),
            });
        }
        put_bits_low_first(out, columns.iter().map(|at| row[at].is_null()));
        for at in columns.iter().filter(|at| !row[*at].is_null()) {
            if !self.fields[at].put(out, &row[at]) {
                let column = &self.columns[at];
                return Err(match column.ty.is_json() {
                    true => BinlogError::Json {
                        column: column.name.clone(),
                    },
                    false => BinlogError::ForeignValue {
                        column: column.name.clone(),
                        ty: column.ty.to_string(),
                    },
                });
            }
        }
        Ok(())
    }

    fn describe(&self, database: &str, table: &str, primary_key: &[KeyColumn]) -> Vec<u8> {
        let mut out = Vec::new();
        for name in [database, table] {
            put_string(&mut out, name.as_bytes());
            out.push(0);
        }
        put_packed(&mut out, self.width() as u64);
        out.extend(self.fields.iter().map(Field::type_code));
        let mut metadata = Vec::new();
        for field in &self.fields {
            field.put_metadata(&mut metadata);
        }
        put_string(&mut out, &metadata);
        put_bits_low_first(
            &mut out,
            self.columns.iter().map(|column| column.is_nullable),
        );
        self.put_optional_fields(&mut out, primary_key);
        out
    }

    /// In MySQL's order.
    fn put_optional_fields(&self, out: &mut Vec<u8>, primary_key: &[KeyColumn]) {
        let mut bytes = Vec::new();
        put_bits_high_first(&mut bytes, self.fields.iter().filter_map(Field::signedness));
        put_optional(out, optional::SIGNEDNESS, &bytes);

        let collations = self.fields.iter().filter_map(Field::string_collation);
        let types = (optional::DEFAULT_CHARSET, optional::COLUMN_CHARSET);
        put_collations(out, types, &collations.collect::<Vec<_>>());

        bytes.clear();
        for column in &self.columns {
            put_string(&mut bytes, column.name.as_bytes());
        }
        put_optional(out, optional::COLUMN_NAME, &bytes);

        let collations = self.fields.iter().filter_map(Field::label_collation);
        let types = (
            optional::ENUM_AND_SET_DEFAULT_CHARSET,
            optional::ENUM_AND_SET_COLUMN_CHARSET,
        );
        put_collations(out, types, &collations.collect::<Vec<_>>());

        let sets = self.columns.iter().filter_map(|column| {
            let labels = column.ty.set_labels()?;
            Some((&**labels, column.ty.collation()?))
        });
        put_labels(out, optional::SET_STR_VALUE, sets);
        let enums = self.columns.iter().filter_map(|column| {
            let labels = column.ty.enum_labels()?;
            Some((&**labels, column.ty.collation()?))
        });
        put_labels(out, optional::ENUM_STR_VALUE, enums);

        put_primary_key(out, primary_key);

        bytes.clear();
        put_bits_high_first(
            &mut bytes,
            self.columns.iter().map(|column| column.is_visible),
        );
        put_optional(out, optional::COLUMN_VISIBILITY, &bytes);
    }
}

/// Appends a field, unless it is empty.
fn put_optional(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    if !bytes.is_empty() {
        out.push(field);
        put_string(out, bytes);
    }
}

/// Appends collations as the most frequent one and the others with their places, or all, whatever is shorter if each
/// number takes a byte.
fn put_collations(out: &mut Vec<u8>, (default, all): (u8, u8), collations: &[Collation]) {
    let mut counts: BTreeMap<u16, usize> = BTreeMap::new();
    for collation in collations {
        *counts.entry(collation.id()).or_default() += 1;
    }
    // Of several that are as frequent, the one with the lowest number.
    let Some((most, count)) = counts.iter().rev().max_by_key(|(_, count)| **count) else {
        return;
    };
    let ids = collations.iter().map(|collation| collation.id());
    let mut bytes = Vec::new();
    if collations.len() < 1 + 2 * (collations.len() - count) {
        ids.for_each(|id| put_packed(&mut bytes, id.into()));
        put_optional(out, all, &bytes);
        return;
    }
    put_packed(&mut bytes, u64::from(*most));
    for (at, id) in ids.enumerate().filter(|(_, id)| id != most) {
        put_packed(&mut bytes, at as u64);
        put_packed(&mut bytes, id.into());
    }
    put_optional(out, default, &bytes);
}

/// Labels are in the character set of their column.
fn put_labels<'t>(
    out: &mut Vec<u8>,
    field: u8,
    columns: impl Iterator<Item = (&'t [String], Collation)>,
) {
    let mut bytes = Vec::new();
    for (labels, collation) in columns {
        put_packed(&mut bytes, labels.len() as u64);
        for label in labels {
            put_string(&mut bytes, &collation.encoding().encode(label.as_bytes()));
        }
    }
    put_optional(out, field, &bytes);
}

fn put_primary_key(out: &mut Vec<u8>, key: &[KeyColumn]) {
    let has_prefixes = key.iter().any(|column| column.prefix > 0);
    let mut bytes = Vec::new();
    for column in key {
        put_packed(&mut bytes, column.column as u64);
        if has_prefixes {
            put_packed(&mut bytes, column.prefix.into());
        }
    }
    let field = match has_prefixes {
        true => optional::PRIMARY_KEY_WITH_PREFIX,
        false => optional::SIMPLE_PRIMARY_KEY,
    };
    put_optional(out, field, &bytes);
}
