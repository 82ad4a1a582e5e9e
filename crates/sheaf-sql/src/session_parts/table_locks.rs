//! The tables that a session has locked, and what keeps others' global read lock out. `locking/locked_tables.rs`
//! locks and unlocks them, and says which statements may use what.

use std::collections::BTreeMap;

use sheaf_table::{
    Catalog, ChangeTicket, GlobalReadLocked, QualifiedName, SessionLock, SessionLockMode, Table,
};

use crate::error::{Result, SqlError};

/// The tables that a session has locked.
pub(crate) struct LockedTables {
    /// As it names them.
    pub(crate) names: Vec<LockedName>,
    /// The locks, also of tables that it may not name.
    pub(crate) locks: BTreeMap<QualifiedName, SessionLock>,
}

pub(crate) struct LockedName {
    pub(crate) table: QualifiedName,
    pub(crate) alias: String,
    pub(crate) mode: SessionLockMode,
}

impl LockedTables {
    pub(crate) fn is_locked(&self, database: &str, table: &str) -> bool {
        let mut names = self.locks.keys();
        names.any(|(known, name)| known == database && name == table)
    }

    /// The mode that a table is locked in under any name; WRITE, if there is a choice.
    pub(crate) fn mode_of(&self, table: &QualifiedName) -> Option<SessionLockMode> {
        let names = self.names.iter().filter(|known| known.table == *table);
        names.map(|known| known.mode).max()
    }
}

/// The locks of a session that last longer than a transaction, and what keeps others' global read lock out.
#[derive(Default)]
pub(crate) struct TableLocks {
    /// LOCK TABLES.
    pub(crate) named: Option<Box<LockedTables>>,
    /// FLUSH TABLES WITH READ LOCK.
    pub(crate) global: Option<GlobalReadLocked>,
    /// The running statement changes something.
    pub(crate) change_ticket: Option<ChangeTicket>,
    /// Tables are locked for WRITE.
    pub(crate) locks_ticket: Option<ChangeTicket>,
}

impl TableLocks {
    /// LOCK TABLES holds.
    pub(crate) fn are_held(&self) -> bool {
        self.named.is_some()
    }

    /// Others may wait for what the session has locked, or until it unlocks.
    pub(crate) fn keep_others_waiting(&self) -> bool {
        self.named.is_some() || self.global.is_some()
    }

    /// Releases what LOCK TABLES has locked.
    pub(crate) fn unlock_tables(&mut self, catalog: &Catalog) {
        self.named = None;
        if let Some(ticket) = self.locks_ticket.take() {
            catalog.global_read_lock().end_change(ticket);
        }
    }

    /// Releases all locks that last longer than a transaction.
    pub(crate) fn unlock_everything(&mut self, catalog: &Catalog) {
        self.end_change(catalog);
        self.unlock_tables(catalog);
        self.global = None;
    }

    /// Tables that were renamed, one after the other, stay locked by their new names.
    pub(crate) fn rename_locked(&mut self, renames: &[(QualifiedName, QualifiedName)]) {
        let Some(locked) = &mut self.named else {
            return;
        };
        for (from, to) in renames {
            for known in locked.names.iter_mut().filter(|known| known.table == *from) {
                if known.alias == from.1 {
                    known.alias.clone_from(&to.1);
                }
                known.table.clone_from(to);
            }
            if let Some(lock) = locked.locks.remove(from) {
                locked.locks.insert(to.clone(), lock);
            }
        }
    }

    /// Tables that were dropped are not locked any more. With the last one LOCK TABLES ends.
    pub(crate) fn forget_locked(&mut self, dropped: &[QualifiedName], catalog: &Catalog) {
        let Some(locked) = &mut self.named else {
            return;
        };
        locked.names.retain(|known| !dropped.contains(&known.table));
        locked.locks.retain(|table, _| !dropped.contains(table));
        if locked.names.is_empty() {
            self.unlock_tables(catalog);
        }
    }

    /// Error 1223 if the session itself keeps everything from changing.
    pub(crate) fn check_no_read_lock(&self) -> Result<()> {
        match &self.global {
            Some(_) => Err(SqlError::conflicting_read_lock()),
            None => Ok(()),
        }
    }

    /// The statement is over.
    pub(crate) fn end_change(&mut self, catalog: &Catalog) {
        if let Some(ticket) = self.change_ticket.take() {
            catalog.global_read_lock().end_change(ticket);
        }
    }

    /// Error 1099 for a table to change that the session has locked for READ under this name.
    pub(crate) fn check_to_change(
        &self,
        (database, table): (&str, &str),
        alias: &str,
    ) -> Result<()> {
        let Some(locked) = &self.named else {
            return Ok(());
        };
        let is_read = locked.names.iter().any(|known| {
            known.mode == SessionLockMode::Read
                && known.alias == alias
                && known.table.0 == database
                && known.table.1 == table
        });
        match is_read {
            true => Err(SqlError::table_locked_for_read(alias)),
            false => Ok(()),
        }
    }

    /// Error 1100 for a table that the session has not locked under any name, if it has locked some.
    pub(crate) fn check_is_locked(&self, table: &Table) -> Result<()> {
        let definition = &table.definition;
        match &self.named {
            _ if definition.is_temporary() => Ok(()),
            Some(locked) if !locked.is_locked(&definition.database, &definition.name) => {
                Err(SqlError::table_not_locked(&definition.name))
            }
            _ => Ok(()),
        }
    }
}
