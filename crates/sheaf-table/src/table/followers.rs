//! What followers of changes have to know of a table: how its rows are read.
//!
//! They cannot ask the catalog, which has the present only. So the first change of a version of a table says in the log
//! what the table is, before the change itself. A definition changes while no transaction has changed rows of the table
//! and not ended. So the newest description in front of a commit is the right one for its rows.
//!
//! **Long values** that stay are not in the log, so the images of the row lack them. That will not do where a follower
//! finds the row by them: there is no primary key, or it is one of a prefix. Such long values are written anew with
//! each change of their row, so that the log has them.
//!
//! **Moves.** A row under another key is one deleted and one inserted. A [note](MOVED_ROW) in front of both tells
//! followers that they are one.
//!
//! A description: the lengths and the bytes of the database's and the table's name, and the definition as the catalog
//! tree has it. It is a remark: true whatever becomes of its transaction.

use sheaf_storage::Transaction;
use sheaf_storage::sync::atomic::Ordering;
use sheaf_types::Value;
use sheaf_types::temporal::TimeZone;

use crate::codec::overflow;
use crate::codec::row_codec::{RowLayout, ValueRef};
use crate::definition::codec::{decode_definition, encode_definition};
use crate::definition::schema::TableDefinition;
use crate::error::{Result, TableError};
use crate::table::Table;

/// What an [annotation](Transaction::remark_on_change) says before a row is deleted and inserted under another key.
pub const MOVED_ROW: &[u8] = b"M";

/// The database of the server's own tables.
const SYSTEM_DATABASE: &str = "mysql";

impl Table {
    /// The log has whole rows of this table from now on, if it is followed at all. Temporary tables are not, nor those
    /// of the server itself: each server has its own.
    pub(super) fn let_follow(&self) {
        let is_of_server = self.definition.database == SYSTEM_DATABASE;
        if !self.definition.is_temporary() && !is_of_server {
            self.clustered.follow();
            if let Some(overflow) = &self.overflow {
                overflow.follow();
            }
        }
    }

    /// Whether followers need the long values of a row to find it.
    pub(super) fn is_found_by_long_values(&self) -> bool {
        let mut parts = self.definition.primary.parts.iter();
        self.clustered.is_followed()
            && (self.definition.has_hidden_row_id()
                || parts.any(|part| part.prefix_length.is_some()))
    }

    /// Tells followers that the row that is deleted next and the one that is inserted next are one: the new row is in
    /// the place of the old one. What comes of it may be taken back; then nothing follows, which is no harm.
    ///
    /// # Errors
    /// Those of a change.
    pub fn announce_move(&self, transaction: &mut Transaction) -> Result<()> {
        if self.clustered.is_followed() {
            transaction.remark_on_change(MOVED_ROW)?;
        }
        Ok(())
    }

    /// To be called before a change: says what the table is, unless that was said.
    ///
    /// # Errors
    /// Those of a change.
    #[inline]
    pub(super) fn describe(&self, transaction: &mut Transaction) -> Result<()> {
        match self.is_described.load(Ordering::Acquire) {
            true => Ok(()),
            false => self.describe_now(transaction),
        }
    }

    #[cold]
    fn describe_now(&self, transaction: &mut Transaction) -> Result<()> {
        if self.clustered.is_followed() {
            let definition = self.definition.clone().in_time_zone(TimeZone::UTC);
            // Others may say it at the same time, which is no harm.
            transaction.annotate(&description_of(&definition), false)?;
        }
        self.is_described.store(true, Ordering::Release);
        Ok(())
    }
}

fn description_of(definition: &TableDefinition) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in [&definition.database, &definition.name] {
        bytes.extend_from_slice(&(name.len() as u32).to_le_bytes());
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes.extend_from_slice(&encode_definition(definition));
    bytes
}

/// A table as followers of its changes know it.
#[derive(Debug)]
pub struct FollowedTable {
    pub definition: TableDefinition,
    layout: RowLayout,
}

impl FollowedTable {
    /// Reads a remark in the log, which describes a table.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn read(remark: &[u8]) -> Result<FollowedTable> {
        let corrupt = || TableError::corrupt("?", "its description in the log cannot be read");
        let mut rest = remark;
        let mut name = || {
            let (length, behind) = rest.split_first_chunk::<4>().ok_or_else(corrupt)?;
            let length = u32::from_le_bytes(*length) as usize;
            let (name, behind) = behind.split_at_checked(length).ok_or_else(corrupt)?;
            rest = behind;
            String::from_utf8(name.to_vec()).map_err(|_| corrupt())
        };
        let (database, table) = (name()?, name()?);
        let definition = decode_definition(rest, &database, &table)?;
        Ok(FollowedTable {
            layout: RowLayout::of(&definition),
            definition,
        })
    }

    /// The values of a row, a value for each column. `long` gives the bytes of a long value by its number, if there are
    /// that many; `None` is for those that are not known.
    ///
    /// # Errors
    /// `Corrupt`.
    pub fn values(
        &self,
        row: &[u8],
        mut long: impl FnMut(u64) -> Result<Option<Vec<u8>>>,
    ) -> Result<Vec<Option<Value>>> {
        let row = self.layout.view(row)?;
        let columns = self.definition.columns.iter().enumerate();
        columns
            .map(|(column, definition)| {
                if !row.is_overflow(column) {
                    return Ok(Some(row.value(column, &definition.ty)));
                }
                let (number, length) = overflow::number_and_length(row.get_bytes(column))?;
                let bytes = long(number)?.filter(|bytes| bytes.len() as u64 == length);
                Ok(bytes.map(|bytes| ValueRef::Bytes(&bytes).to_value(&definition.ty)))
            })
            .collect()
    }
}

/// The number of the long value of which an entry of its tree, with this key, is a part.
pub fn long_value_of_chunk(key: &[u8]) -> Option<u64> {
    overflow::number_of_key(key)
}
