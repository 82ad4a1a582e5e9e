//! Images of rows, each value for a column of the replica.

use sheaf_types::{ColumnType, Value};

use super::SourceTable;
use super::cursor::Cursor;
use super::value::{Target, read_value};
use crate::error::{BinlogError, Result};

/// Bytes of a table's number.
const TABLE_BYTES: usize = 6;
/// Followers check no foreign keys.
const NO_FOREIGN_KEY_CHECKS: u16 = 1 << 1;

/// What happened to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsChange {
    Insert,
    Update,
    Delete,
}

/// What an event of rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsKind {
    pub change: RowsChange,
    /// Version 2 has room for more behind its flags.
    has_extra: bool,
}

impl RowsKind {
    pub(super) fn insert(has_extra: bool) -> RowsKind {
        let change = RowsChange::Insert;
        RowsKind { change, has_extra }
    }

    pub(super) fn update(has_extra: bool) -> RowsKind {
        let change = RowsChange::Update;
        RowsKind { change, has_extra }
    }

    pub(super) fn delete(has_extra: bool) -> RowsKind {
        let change = RowsChange::Delete;
        RowsKind { change, has_extra }
    }
}

/// A row: the value of each column that the image has.
pub type Image = Vec<Option<Value>>;

/// Reads the rows of an event one by one.
pub struct RowsReader<'e> {
    kind: RowsKind,
    table: &'e SourceTable,
    targets: Vec<Target<'e>>,
    before: Option<Vec<bool>>,
    after: Option<Vec<bool>>,
    images: Cursor<'e>,
}

/// Whether foreign keys are to be looked at, by the body of an event of rows.
pub fn checks_foreign_keys(body: &[u8]) -> bool {
    let mut cursor = Cursor(body);
    let flags = cursor.take(TABLE_BYTES).and_then(|_| cursor.u16());
    flags.is_none_or(|flags| flags & NO_FOREIGN_KEY_CHECKS == 0)
}

/// The number of the table in the body of an event of rows.
pub fn table_of_rows(body: &[u8]) -> Option<u64> {
    Cursor(body).little(TABLE_BYTES)
}

impl<'e> RowsReader<'e> {
    /// Begins to read an event of rows of a table, for columns of the replica in the same order. `None` in `columns`:
    /// what the source has there is not looked at.
    ///
    /// # Errors
    /// The event does not hold; a column of the source has a type whose values the replica's column does not take.
    pub fn new(
        kind: RowsKind,
        body: &'e [u8],
        table: &'e SourceTable,
        columns: &[&'e ColumnType],
    ) -> Result<RowsReader<'e>> {
        let malformed = || table.malformed("its columns");
        if columns.len() != table.columns.len() {
            return Err(table.malformed("how many columns it has"));
        }
        let mut cursor = Cursor(body);
        cursor.take(TABLE_BYTES).ok_or_else(malformed)?;
        cursor.u16().ok_or_else(malformed)?;
        if kind.has_extra {
            // The length counts itself.
            let length = usize::from(cursor.u16().ok_or_else(malformed)?);
            let extra = length.checked_sub(2).ok_or_else(malformed)?;
            cursor.take(extra).ok_or_else(malformed)?;
        }
        let width = cursor.packed().ok_or_else(malformed)?;
        if width != table.columns.len() as u64 {
            return Err(malformed());
        }
        let mut set = || cursor.bits(table.columns.len()).ok_or_else(malformed);
        let (before, after) = match kind.change {
            RowsChange::Insert => (None, Some(set()?)),
            RowsChange::Update => (Some(set()?), Some(set()?)),
            RowsChange::Delete => (Some(set()?), None),
        };
        let mut targets = Vec::with_capacity(columns.len());
        for (at, (source, column)) in table.columns.iter().zip(columns).enumerate() {
            let target = Target::new(source, column);
            targets.push(target.ok_or_else(|| BinlogError::Conversion {
                column: at,
                table: format!("{}.{}", table.database, table.name),
                from: source.type_name(),
                to: column.to_string(),
            })?);
        }
        Ok(RowsReader {
            kind,
            table,
            targets,
            before,
            after,
            images: cursor,
        })
    }

    pub fn change(&self) -> RowsChange {
        self.kind.change
    }

    /// The next row before and after the change, as far as the change has one. `None`: there is no other.
    ///
    /// # Errors
    /// The bytes do not hold, or a value is none of its column.
    pub fn next_row(&mut self) -> Result<Option<(Option<Image>, Option<Image>)>> {
        if self.images.is_empty() {
            return Ok(None);
        }
        let before = match &self.before {
            Some(columns) => Some(read_image(
                &mut self.images,
                self.table,
                &self.targets,
                columns,
            )?),
            None => None,
        };
        let after = match &self.after {
            Some(columns) => Some(read_image(
                &mut self.images,
                self.table,
                &self.targets,
                columns,
            )?),
            None => None,
        };
        Ok(Some((before, after)))
    }
}

fn read_image(
    images: &mut Cursor<'_>,
    table: &SourceTable,
    targets: &[Target<'_>],
    columns: &[bool],
) -> Result<Image> {
    let count = columns.iter().filter(|is_in| **is_in).count();
    let nulls = images.bits(count);
    let mut nulls = nulls
        .ok_or_else(|| table.malformed("its NULLs"))?
        .into_iter();
    let mut image = Vec::with_capacity(columns.len());
    for (at, is_in) in columns.iter().enumerate() {
        if !is_in {
            image.push(None);
            continue;
        }
        if nulls.next() == Some(true) {
            image.push(Some(Value::Null));
            continue;
        }
        let value = read_value(images, &table.columns[at], &targets[at]);
        image.push(Some(value.ok_or_else(|| {
            table.malformed(&format!("a value of column {at}"))
        })?));
    }
    Ok(image)
}

impl SourceTable {
    fn malformed(&self, what: &str) -> BinlogError {
        BinlogError::Malformed {
            what: format!(
                "{what} in a rows event of table '{}.{}'",
                self.database, self.name
            ),
        }
    }
}
