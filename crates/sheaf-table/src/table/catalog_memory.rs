//! What the catalog keeps in memory, and how much of it.
//!
//! Definitions of all tables stay in memory. They take no more than a limit together: beyond it no table is made, and
//! none grows. Statistics take several times as much. They are in the catalog tree, and in memory only where plans want
//! them: beyond their own limit, those leave that were not asked for since they were last looked at.
//!
//! ```text
//!   |== definition ==|== definition ==|...... free ......|      limit: error 1041
//!   |====== statistics ======|== statistics ==|. free .|        limit: the ones that nobody asked for leave
//! ```

use std::collections::VecDeque;
use std::sync::{Arc, Weak};

use sheaf_memory::{Budget, Share};
use sheaf_storage::sync::Mutex;

use crate::definition::schema::TableDefinition;
use crate::error::{Result, TableError};

/// A table's handle, locks, counters and the description that queries get, measured.
const TABLE_BYTES: usize = 3500;
/// Of a column, in the definition, the layouts and the description.
const COLUMN_BYTES: usize = 600;
/// Of an index and its tree.
const INDEX_BYTES: usize = 900;

/// How much memory the catalog may take.
#[derive(Clone, Copy, Debug)]
pub struct CatalogLimits {
    /// Of all definitions.
    pub definition_bytes: usize,
    /// Of the statistics that are kept.
    pub statistics_bytes: usize,
}

impl Default for CatalogLimits {
    /// No limits: of a program that measures nothing.
    fn default() -> Self {
        CatalogLimits {
            definition_bytes: usize::MAX,
            statistics_bytes: usize::MAX,
        }
    }
}

/// What can leave memory, because it can be read again.
pub(crate) trait Leaves: Send + Sync {
    /// Makes room. False: it stays, because somebody uses it.
    fn leave(&self) -> bool;
}

/// See the module's comment.
pub(crate) struct CatalogMemory {
    definitions: Arc<Budget>,
    statistics: Arc<Budget>,
    /// The statistics in memory, in the order in which they were read or looked at.
    read: Mutex<VecDeque<Weak<dyn Leaves>>>,
}

impl CatalogMemory {
    pub(crate) fn new(limits: CatalogLimits) -> Arc<CatalogMemory> {
        Arc::new(CatalogMemory {
            definitions: Budget::new(limits.definition_bytes),
            statistics: Budget::new(limits.statistics_bytes),
            read: Mutex::default(),
        })
    }

    pub(crate) fn definition_bytes(&self) -> usize {
        self.definitions.taken_bytes()
    }

    pub(crate) fn statistics_bytes(&self) -> usize {
        self.statistics.taken_bytes()
    }

    /// # Errors
    /// `DefinitionsTooLarge` if a definition has no room, and does not take the place of one that is as large.
    pub(crate) fn check_room(
        &self,
        definition: &TableDefinition,
        in_place_of: Option<&TableDefinition>,
    ) -> Result<()> {
        let bytes = definition_bytes(definition);
        if in_place_of.is_some_and(|old| definition_bytes(old) >= bytes) {
            return Ok(());
        }
        match self.definitions.try_take(bytes) {
            Some(_) => Ok(()),
            None => Err(TableError::DefinitionsTooLarge {
                limit_bytes: self.definitions.limit_bytes(),
            }),
        }
    }

    /// A definition is there, whether there is room or not: the tables of a data directory are opened with less memory,
    /// too.
    pub(crate) fn keep_definition(&self, definition: &TableDefinition) -> Share {
        self.definitions.take_anyway(definition_bytes(definition))
    }

    /// Of a definition that is no table's.
    ///
    /// # Errors
    /// `DefinitionsTooLarge`.
    pub(crate) fn take(&self, bytes: usize) -> Result<Share> {
        let taken = self.definitions.try_take(bytes);
        taken.ok_or(TableError::DefinitionsTooLarge {
            limit_bytes: self.definitions.limit_bytes(),
        })
    }

    /// Of one that is there, whether there is room or not.
    pub(crate) fn take_anyway(&self, bytes: usize) -> Share {
        self.definitions.take_anyway(bytes)
    }

    /// A share for statistics that are about to be kept. Others make room.
    pub(crate) fn room_for_statistics(&self, bytes: usize) -> Share {
        // Each is looked at twice: the first time it is noted whether somebody asks for it again.
        let mut looks = 2 * self.read.lock().len();
        loop {
            if let Some(share) = self.statistics.try_take(bytes) {
                return share;
            }
            let next = match looks {
                0 => None,
                _ => self.read.lock().pop_front(),
            };
            let Some(next) = next else {
                return self.statistics.take_anyway(bytes);
            };
            looks -= 1;
            if let Some(kept) = next.upgrade()
                && !kept.leave()
            {
                self.read.lock().push_back(next);
            }
        }
    }

    /// These statistics are in memory now, and were not before.
    pub(crate) fn note_read(&self, kept: &Arc<impl Leaves + 'static>) {
        let mut read = self.read.lock();
        // Those of tables that were dropped.
        if read.len() == read.capacity() {
            read.retain(|kept| kept.strong_count() > 0);
        }
        let kept = Arc::downgrade(kept);
        read.push_back(kept);
    }
}

/// About how much memory an open table takes for its definition.
fn definition_bytes(definition: &TableDefinition) -> usize {
    let indexes = 1 + definition.secondary.len() + definition.foreign_keys.len();
    let names = definition.columns.iter().map(|column| column.name.len());
    let texts = definition.comment.len() + names.sum::<usize>();
    TABLE_BYTES + COLUMN_BYTES * definition.columns.len() + INDEX_BYTES * indexes + texts
}
