//! `metadata_locks`: which sessions hold a table as it is, write it or change what it is, and which wait for that.
//!
//! | the lock's mode | MySQL's word |
//! |---|---|
//! | a statement or transaction reads the table | SHARED_READ |
//! | it changes rows | SHARED_WRITE |
//! | a definition is prepared, or rows are loaded | SHARED_UPGRADABLE |
//! | a definition is entered | EXCLUSIVE |
//! | LOCK TABLES | SHARED_READ_ONLY, SHARED_NO_READ_WRITE |
//!
//! A table has one lock, which is held by statements and by the transactions that keep it. So each duration is that of
//! a transaction. The lock itself tells [which sessions](sheaf_table::ShownTableLock) there are.

use sheaf_table::TableLockMode;

use crate::catalog_views::virtual_table::{Columns, owned};
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;

const NUMBER: Cells = Cells::Unsigned;
const WORD: Cells = Cells::Text(32);

pub(super) fn columns() -> Columns {
    owned(&[
        ("OBJECT_TYPE", Cells::Text(64)),
        ("OBJECT_SCHEMA", Cells::Name),
        ("OBJECT_NAME", Cells::Name),
        ("COLUMN_NAME", Cells::Name),
        ("OBJECT_INSTANCE_BEGIN", NUMBER),
        ("LOCK_TYPE", WORD),
        ("LOCK_DURATION", WORD),
        ("LOCK_STATUS", WORD),
        ("SOURCE", Cells::Text(64)),
        ("OWNER_THREAD_ID", NUMBER),
        ("OWNER_EVENT_ID", NUMBER),
    ])
}

fn word(mode: TableLockMode) -> &'static str {
    match mode {
        TableLockMode::Read => "SHARED_READ",
        TableLockMode::Write => "SHARED_WRITE",
        TableLockMode::Define => "SHARED_UPGRADABLE",
        TableLockMode::Exclusive => "EXCLUSIVE",
        TableLockMode::SessionRead => "SHARED_READ_ONLY",
        TableLockMode::SessionWrite => "SHARED_NO_READ_WRITE",
    }
}

/// `metadata_locks`.
pub(super) fn locks(session: &Session, rows: &mut Rows) -> Result<()> {
    let databases = session
        .statement
        .definitions
        .databases(session.engine.catalog());
    for table in databases.iter().flat_map(|database| &database.tables) {
        session.handle.cancel_flag().check()?;
        for lock in table.shown_locks() {
            rows.push(vec![
                "TABLE".into(),
                table.definition.database.clone().into(),
                table.definition.name.clone().into(),
                Cell::Null,
                Cell::Unsigned(0),
                word(lock.mode).into(),
                "TRANSACTION".into(),
                match lock.is_granted {
                    true => "GRANTED",
                    false => "PENDING",
                }
                .into(),
                Cell::Null,
                lock.session.into(),
                Cell::Null,
            ]);
        }
    }
    Ok(())
}
