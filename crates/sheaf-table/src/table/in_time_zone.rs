//! A table as sessions of other time zones see it.
//!
//! It is the same version of the same table, with the same trees. Only its layouts differ: TIMESTAMP values are UTC in
//! bytes, and wall clocks of the time zone as values. See [`TimeZone`] for where the two meet.
//!
//! Sessions of one time zone share the table. So plans of one may be plans of another, and whether two references mean
//! one table is whether they are one pointer.

use std::sync::{Arc, OnceLock};

use sheaf_storage::Tree;
use sheaf_storage::sync::Mutex;
use sheaf_types::temporal::TimeZone;

use crate::codec::key_codec::KeyLayout;
use crate::codec::row_codec::RowLayout;
use crate::definition::schema::TableDefinition;
use crate::table::Table;
use crate::table::hypothetical_index::HypotheticalIndex;

impl Table {
    /// This version of the table with TIMESTAMP values of a time zone. The table itself where it has no such columns.
    /// Only of a table as the catalog has it, in UTC.
    pub fn in_time_zone(self: &Arc<Table>, zone: TimeZone) -> Arc<Table> {
        let own = self.definition.time_zone();
        if own.is_none_or(|own| own == zone) {
            return Arc::clone(self);
        }
        debug_assert!(own.is_none_or(TimeZone::is_utc), "seen from the catalog");
        let mut known = self.in_time_zones.lock();
        known.retain(|(_, table)| table.strong_count() > 0);
        let found = known.iter().find(|(of, _)| *of == zone);
        if let Some(table) = found.and_then(|(_, table)| table.upgrade()) {
            return table;
        }
        let table = Arc::new(self.seen_in(zone));
        known.push((zone, Arc::downgrade(&table)));
        table
    }

    /// As [`Self::in_time_zone`], for one caller.
    pub(crate) fn seen_in(&self, zone: TimeZone) -> Table {
        let definition: TableDefinition = self.definition.clone().in_time_zone(zone);
        let layouts = definition.secondary.iter();
        let layouts = layouts.map(|index| KeyLayout::secondary(&definition, index));
        let layouts = layouts.collect();
        self.varied(definition, (self.secondary.clone(), layouts), Vec::new())
    }

    /// The same version of the table with another definition of it, which says the same of its rows.
    pub(crate) fn varied(
        &self,
        definition: TableDefinition,
        (secondary, secondary_layouts): (Vec<Arc<Tree>>, Vec<KeyLayout>),
        hypothetical: Vec<Arc<HypotheticalIndex>>,
    ) -> Table {
        Table {
            row_layout: RowLayout::of(&definition),
            clustered_layout: KeyLayout::clustered(&definition),
            secondary_layouts,
            clustered: Arc::clone(&self.clustered),
            secondary,
            hypothetical,
            overflow: self.overflow.clone(),
            catalog: Arc::clone(&self.catalog),
            state: Arc::clone(&self.state),
            version: self.version,
            made_at: Arc::clone(&self.made_at),
            is_described: Arc::clone(&self.is_described),
            memory: Arc::clone(&self.memory),
            _memory_share: self.memory.keep_definition(&definition),
            description: OnceLock::new(),
            in_time_zones: Mutex::default(),
            definition,
        }
    }

    /// Whether both are one version of one table, in any time zone.
    pub fn is_version_of(&self, other: &Table) -> bool {
        Arc::ptr_eq(&self.state, &other.state) && self.version == other.version
    }
}
