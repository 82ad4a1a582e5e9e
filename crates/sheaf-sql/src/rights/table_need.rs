//! What a plan that sessions share needs of a table.

use sheaf_storage::LockMode;
use sheaf_table::{Privileges, Table};

/// What a direct plan needs of a table.
#[derive(Clone, Debug)]
pub(crate) struct TableNeed {
    pub(crate) database: String,
    pub(crate) table: String,
    pub(crate) privileges: Privileges,
    /// How it locks what it reads. To lock it exclusively needs one more privilege.
    pub(crate) locks: Option<LockMode>,
}

impl TableNeed {
    /// What is needed of a table; of a temporary one nothing, since it is the session's own.
    pub(crate) fn new(table: &Table, privileges: Privileges, locks: Option<LockMode>) -> TableNeed {
        let definition = &table.definition;
        let is_own = definition.is_temporary();
        TableNeed {
            database: definition.database.clone(),
            table: definition.name.clone(),
            privileges: match is_own {
                true => Privileges::NONE,
                false => privileges,
            },
            locks: locks.filter(|_| !is_own),
        }
    }
}
