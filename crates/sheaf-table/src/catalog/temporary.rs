//! Temporary tables: catalogs whose definitions are written nowhere.
//!
//! ```text
//!   the catalog           databases, tables      every change is a transaction of the catalog tree
//!   one of a session      its temporary tables   the same changes, and nothing is written down
//! ```
//!
//! A temporary table is a table like any other: its rows are in trees, and its transactions are those of all rows. Only
//! its definition is in no catalog tree. So a session has a [`Catalog`] of its own, and CREATE, ALTER, TRUNCATE and
//! ANALYZE do there what they do elsewhere. No other session finds these tables.
//!
//! **After a crash** recovery redoes and undoes what was done to their trees. Then [`Catalog::open`] frees these trees,
//! because no definition names them. A backup that is restored loses them in the same way.
//!
//! **Dropping one** does not wait for the transaction that has changed it, which is the session's own and may go on. So
//! the table leaves the catalog at once, and its trees are [freed](Catalog::free_temporary) when nobody uses them any
//! more: a rollback that comes later still finds them.
//!
//! Their ids are counted apart ([`TableIds`]). An id tells which kind a table is of.

use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::sync::Mutex;
use sheaf_storage::sync::atomic::{AtomicU64, Ordering};
use sheaf_types::temporal::TimeZone;

use crate::catalog::account::{AccountState, Accounts};
use crate::catalog::resource_group::{ResourceGroupState, ResourceGroups};
use crate::catalog::table_ids::TableIds;
use crate::catalog::view::View;
use crate::catalog::{Catalog, Definitions, trees_of};
use crate::definition::schema::Column;
use crate::error::Result;
use crate::lock::global_read_lock::GlobalReadLock;
use crate::table::Table;

impl Catalog {
    /// An empty catalog for the temporary tables of one session. Its tables lie in the same storage, and their
    /// definitions count against the same limit. Accounts, groups and views are none of its business.
    pub fn of_temporary_tables(&self) -> Arc<Catalog> {
        let (TableIds::Written { temporary } | TableIds::Temporary(temporary)) = &self.table_ids;
        Arc::new(Catalog {
            storage: Arc::clone(&self.storage),
            databases: Default::default(),
            schema_version: AtomicU64::new(1),
            memory: Arc::clone(&self.memory),
            accounts: AccountState::new(Accounts::new()),
            resource_groups: ResourceGroupState::new(ResourceGroups::new()),
            global_read_lock: GlobalReadLock::default(),
            definitions: Mutex::new(Definitions { next_table_id: 1 }),
            table_ids: TableIds::Temporary(Arc::clone(temporary)),
        })
    }

    /// Whether this is a catalog of temporary tables.
    pub(crate) fn is_temporary(&self) -> bool {
        matches!(self.table_ids, TableIds::Temporary(_))
    }

    /// The id of the table that is made next.
    pub(super) fn next_table_id(&self, definitions: &Definitions) -> u64 {
        match &self.table_ids {
            TableIds::Written { .. } => definitions.next_table_id,
            TableIds::Temporary(next) => next.fetch_add(1, Ordering::Relaxed),
        }
    }

    /// A temporary table by its name; `None` if there is none.
    pub fn temporary(&self, database: &str, name: &str) -> Option<Arc<Table>> {
        let databases = self.databases.read();
        databases.get(database)?.tables.get(name).cloned()
    }

    /// How many tables there are.
    pub fn count_tables(&self) -> usize {
        let databases = self.databases.read();
        databases
            .values()
            .map(|database| database.tables.len())
            .sum()
    }

    /// Takes a temporary table out of the catalog. Its trees stay until they are [freed](Self::free_temporary).
    pub fn take_temporary(&self, database: &str, name: &str) -> Option<Arc<Table>> {
        debug_assert!(self.is_temporary());
        let table = self.temporary(database, name)?;
        self.remove(&table);
        table.retire();
        Some(table)
    }

    /// Frees the trees of a table that was [taken out](Self::take_temporary). Waits at most `wait` for the transaction
    /// and the commits that use it.
    ///
    /// # Errors
    /// `LockWaitTimeout`: they still do.
    pub fn free_temporary(&self, table: &Table, wait: Duration) -> Result<()> {
        debug_assert!(self.is_temporary());
        let writer = table.state.lock.writer(wait.into())?;
        drop(writer.exclusive(wait.into())?);
        self.drop_trees(&trees_of(&table.definition));
        Ok(())
    }
}

/// What names of tables mean to a session: its temporary tables hide those of all sessions.
#[derive(Clone, Copy)]
pub struct TableNames<'a> {
    catalog: &'a Arc<Catalog>,
    /// `None`: the session has no temporary tables.
    temporary: Option<&'a Arc<Catalog>>,
    /// That of the session, in which it sees tables.
    time_zone: TimeZone,
    /// Tables that stand for others of their version, as the session sees it
    /// ([`Table::with_hypothetical_indexes`]).
    hypothetical: &'a [Arc<Table>],
}

impl<'a> TableNames<'a> {
    pub fn new(catalog: &'a Arc<Catalog>, temporary: Option<&'a Arc<Catalog>>) -> TableNames<'a> {
        TableNames {
            catalog,
            temporary,
            time_zone: TimeZone::UTC,
            hypothetical: &[],
        }
    }

    /// These tables stand for what their names mean, as long as they are of the same version.
    pub fn with_hypothetical(self, hypothetical: &'a [Arc<Table>]) -> TableNames<'a> {
        TableNames {
            hypothetical,
            ..self
        }
    }

    /// Tables are seen in this time zone; otherwise in UTC.
    pub fn in_time_zone(self, time_zone: TimeZone) -> TableNames<'a> {
        TableNames { time_zone, ..self }
    }

    /// The tables of all sessions: what names in views and in foreign keys mean.
    pub fn of_all_sessions(self) -> TableNames<'a> {
        TableNames {
            temporary: None,
            ..self
        }
    }

    /// The temporary table of this name; `None` if it is another table's, or none.
    pub fn temporary(self, database: &str, name: &str) -> Option<Arc<Table>> {
        self.temporary?.temporary(database, name)
    }

    /// Whether the name is that of a temporary table.
    pub fn is_temporary(self, database: &str, name: &str) -> bool {
        self.temporary.is_some() && self.temporary(database, name).is_some()
    }

    /// As [`Catalog::table`], in the time zone.
    ///
    /// # Errors
    /// As there.
    pub fn table(self, database: &str, name: &str) -> Result<Arc<Table>> {
        let table = match self.temporary(database, name) {
            Some(table) => table,
            None => self.catalog.table(database, name)?,
        };
        let mut hypothetical = self.hypothetical.iter();
        Ok(
            match hypothetical.find(|known| known.is_version_of(&table)) {
                Some(hypothetical) => Arc::clone(hypothetical),
                None => table.in_time_zone(self.time_zone),
            },
        )
    }

    /// As [`Catalog::view`]: a temporary table hides a view, too.
    pub fn view(self, database: &str, name: &str) -> Option<Arc<View>> {
        match self.is_temporary(database, name) {
            true => None,
            false => self.catalog.view(database, name),
        }
    }

    /// As [`Catalog::columns`], in UTC.
    pub fn columns(self, database: &str, name: &str) -> Option<Vec<Column>> {
        match self.temporary(database, name) {
            Some(table) => Some(table.definition.columns.clone()),
            None => self.catalog.columns(database, name),
        }
    }

    /// The catalog that has what the name means.
    pub fn catalog_of(self, database: &str, name: &str) -> &'a Arc<Catalog> {
        match self.temporary {
            Some(temporary) if self.is_temporary(database, name) => temporary,
            _ => self.catalog,
        }
    }
}
