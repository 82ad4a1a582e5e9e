//! The tables that no foreign key connects to others, as far as a session has found out.
//!
//! Finding out goes through all tables and counts a user of each, which all sessions would notice if each change did
//! it.

use std::collections::BTreeSet;
use std::sync::Arc;

use sheaf_table::Table;

/// Tables that a session remembers to be connected to no others.
const MAX_UNRELATED_TABLES: usize = 64;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct UnrelatedTables {
    /// What is known holds for this version of all definitions.
    schema_version: u64,
    ids: BTreeSet<u64>,
}

impl UnrelatedTables {
    pub(crate) fn has(&self, schema_version: u64, targets: &[Arc<Table>]) -> bool {
        self.schema_version == schema_version
            && matches!(targets, [table] if self.ids.contains(&table.definition.id))
    }

    /// Remembers what was found: the tables that are `related` to `targets`.
    pub(crate) fn note(
        &mut self,
        schema_version: u64,
        targets: &[Arc<Table>],
        related: &[Arc<Table>],
    ) {
        if self.schema_version != schema_version || self.ids.len() >= MAX_UNRELATED_TABLES {
            self.schema_version = schema_version;
            self.ids.clear();
        }
        if let ([target], [own]) = (targets, related)
            && Arc::ptr_eq(target, own)
        {
            self.ids.insert(own.definition.id);
        }
    }
}
