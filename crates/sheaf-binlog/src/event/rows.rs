//! TABLE_MAP and the events of rows behind it.
//!
//! ```text
//!   TABLE_MAP   | table (6) | flags (2) | database | name | types ... |
//!   rows        | table (6) | flags (2) | extra length (2) | columns | set before | set after | images ... |
//! ```
//!
//! The number of a table is good for the statement: the rows events behind a TABLE_MAP refer to it. The last rows event
//! of a statement says that it is the last.

use sheaf_types::Value;

use super::{Event, EventType};
use crate::bytes::{packed_bytes, put_packed};
use crate::error::Result;
use crate::row::columns::ColumnSet;
use crate::table::LoggedTable;

/// Bytes of a table's number.
const TABLE_BYTES: usize = 6;
/// TABLE_MAP: the lengths of BITs are exact. MySQL has this flag always.
const EXACT_BITS: u16 = 1;
/// TABLE_MAP: foreign keys bind the table to others.
const OF_FOREIGN_KEYS: u16 = 1 << 1;
/// The last rows event of its statement.
const STATEMENT_END: u16 = 1;
/// Followers check no foreign keys: the session had foreign_key_checks off, or a foreign key made the change.
const NO_FOREIGN_KEY_CHECKS: u16 = 1 << 1;
/// The session had unique_checks off.
const RELAXED_UNIQUE_CHECKS: u16 = 1 << 2;
/// Followers change no rows by foreign keys: such changes are logged, too. MySQL has it since 9.6.
const FOREIGN_KEYS_LOGGED: u16 = 1 << 4;
/// The length of extra data is included in itself, and there is none.
const NO_EXTRA_DATA: u16 = 2;

/// Bytes of the body of an event, at most: MySQL's binlog_row_event_max_size. A row that is longer has an event of its
/// own.
pub const MAX_EVENT_BYTES: usize = 8192;

/// What the rows events behind it are about.
#[derive(Debug, Clone, Copy)]
pub struct TableMap<'t> {
    id: u64,
    table: &'t LoggedTable,
    flags: u16,
}

impl<'t> TableMap<'t> {
    /// The number has 48 bits.
    pub fn new(id: u64, table: &'t LoggedTable) -> TableMap<'t> {
        TableMap {
            id,
            table,
            flags: EXACT_BITS,
        }
    }

    /// A foreign key refers to the table, or the table has one that the session checks. Followers run such transactions
    /// alone, so the [`QueryContext`](super::QueryContext) of their BEGIN names no databases.
    pub fn of_foreign_keys(mut self) -> TableMap<'t> {
        self.flags |= OF_FOREIGN_KEYS;
        self
    }
}

impl Event for TableMap<'_> {
    fn event_type(&self) -> EventType {
        EventType::TableMap
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_le_bytes()[..TABLE_BYTES]);
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(self.table.description());
    }
}

/// The images that an event has.
#[derive(Debug, Clone)]
enum Images {
    Inserted { after: ColumnSet },
    Updated { before: ColumnSet, after: ColumnSet },
    Deleted { before: ColumnSet },
}

/// Rows that a statement has inserted, updated or deleted.
#[derive(Debug, Clone)]
pub struct RowsEvent<'t> {
    id: u64,
    table: &'t LoggedTable,
    images: Images,
    rows: Vec<u8>,
    flags: u16,
}

impl<'t> RowsEvent<'t> {
    fn new(id: u64, table: &'t LoggedTable, images: Images) -> RowsEvent<'t> {
        RowsEvent {
            id,
            table,
            images,
            rows: Vec::new(),
            flags: 0,
        }
    }

    /// New rows, of which these columns are logged.
    pub fn insert(id: u64, table: &'t LoggedTable, after: ColumnSet) -> RowsEvent<'t> {
        RowsEvent::new(id, table, Images::Inserted { after })
    }

    /// Changed rows: columns of the rows before and after the change.
    pub fn update(
        id: u64,
        table: &'t LoggedTable,
        before: ColumnSet,
        after: ColumnSet,
    ) -> RowsEvent<'t> {
        RowsEvent::new(id, table, Images::Updated { before, after })
    }

    /// Rows that are gone.
    pub fn delete(id: u64, table: &'t LoggedTable, before: ColumnSet) -> RowsEvent<'t> {
        RowsEvent::new(id, table, Images::Deleted { before })
    }

    /// Adds a row of an insert: a value for each column of the table. Gives the rows before it as an event of their
    /// own, if the event would be longer than [`MAX_EVENT_BYTES`] with it.
    ///
    /// # Errors
    /// A value that is none of its column, or an event of another kind. The event is as before.
    pub fn push_insert(&mut self, row: &[Value]) -> Result<Option<RowsEvent<'t>>> {
        self.push(None, Some(row))
    }

    /// Adds a row of an update, as [`push_insert`](Self::push_insert) does.
    ///
    /// # Errors
    /// The same.
    pub fn push_update(
        &mut self,
        before: &[Value],
        after: &[Value],
    ) -> Result<Option<RowsEvent<'t>>> {
        self.push(Some(before), Some(after))
    }

    /// Adds a row of a delete, as [`push_insert`](Self::push_insert) does.
    ///
    /// # Errors
    /// The same.
    pub fn push_delete(&mut self, row: &[Value]) -> Result<Option<RowsEvent<'t>>> {
        self.push(Some(row), None)
    }

    fn push(
        &mut self,
        before: Option<&[Value]>,
        after: Option<&[Value]>,
    ) -> Result<Option<RowsEvent<'t>>> {
        let start = self.rows.len();
        if let Err(error) = self.put_images(before, after) {
            self.rows.truncate(start);
            return Err(error);
        }
        if start == 0 || self.body_bytes() <= MAX_EVENT_BYTES {
            return Ok(None);
        }
        let row = self.rows.split_off(start);
        Ok(Some(RowsEvent {
            rows: std::mem::replace(&mut self.rows, row),
            images: self.images.clone(),
            ..*self
        }))
    }

    fn put_images(&mut self, before: Option<&[Value]>, after: Option<&[Value]>) -> Result<()> {
        let (columns_before, columns_after) = match &self.images {
            Images::Inserted { after } => (None, Some(after)),
            Images::Updated { before, after } => (Some(before), Some(after)),
            Images::Deleted { before } => (Some(before), None),
        };
        for (row, columns) in [(before, columns_before), (after, columns_after)] {
            match (row, columns) {
                (None, None) => {}
                // An image that the event does not have is one without columns, and refused as such.
                (row, None) => {
                    let none = ColumnSet::none(0);
                    self.table
                        .put_image(&mut self.rows, row.unwrap_or_default(), &none)?;
                }
                (row, Some(columns)) => {
                    self.table
                        .put_image(&mut self.rows, row.unwrap_or_default(), columns)?;
                }
            }
        }
        Ok(())
    }

    /// Bytes of the body.
    pub fn body_bytes(&self) -> usize {
        let width = self.table.width();
        let sets = match self.images {
            Images::Updated { .. } => 2,
            _ => 1,
        };
        TABLE_BYTES
            + 2
            + 2
            + packed_bytes(width as u64)
            + sets * width.div_ceil(8)
            + self.rows.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The last event of its statement.
    pub fn ending_statement(mut self) -> RowsEvent<'t> {
        self.flags |= STATEMENT_END;
        self
    }

    /// Changes that a foreign key has made, or of a session with foreign_key_checks off: followers check none.
    pub fn without_foreign_key_checks(mut self) -> RowsEvent<'t> {
        self.flags |= NO_FOREIGN_KEY_CHECKS;
        self
    }

    /// Changes of a session with unique_checks off: followers apply them with it off, too.
    pub fn without_unique_checks(mut self) -> RowsEvent<'t> {
        self.flags |= RELAXED_UNIQUE_CHECKS;
        self
    }

    /// All changes that foreign keys make are logged, those of other tables as well. A follower of MySQL 9.6 and later
    /// makes none itself then; older ones do, and do not find the rows any more.
    pub fn with_foreign_keys_logged(mut self) -> RowsEvent<'t> {
        self.flags |= FOREIGN_KEYS_LOGGED;
        self
    }
}

impl Event for RowsEvent<'_> {
    fn event_type(&self) -> EventType {
        match self.images {
            Images::Inserted { .. } => EventType::WriteRows,
            Images::Updated { .. } => EventType::UpdateRows,
            Images::Deleted { .. } => EventType::DeleteRows,
        }
    }

    fn put_body(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.id.to_le_bytes()[..TABLE_BYTES]);
        out.extend_from_slice(&self.flags.to_le_bytes());
        out.extend_from_slice(&NO_EXTRA_DATA.to_le_bytes());
        put_packed(out, self.table.width() as u64);
        match &self.images {
            Images::Inserted { after } => after.put(out),
            Images::Updated { before, after } => {
                before.put(out);
                after.put(out);
            }
            Images::Deleted { before } => before.put(out),
        }
        out.extend_from_slice(&self.rows);
    }
}
