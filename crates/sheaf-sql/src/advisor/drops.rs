//! Indexes that are not needed.
//!
//! - *Redundant*: another index begins with the same parts, or has the same keys once the primary key is added behind
//!   both, as it is behind every secondary key. A unique index is a constraint and stays.
//! - *Unused*: no statement has read through it since the start. An index that a foreign key needs stays.

use std::sync::Arc;

use sheaf_table::{HypotheticalIndex, Index, KeyLayout, Table};
use sheaf_types::error::codes;

use super::candidates::place;
use super::proposal::Proposal;
use crate::catalog_views::performance_schema::table_io::for_each_table;
use crate::error::Result;
use crate::session::Session;
use crate::virtual_database::is_virtual_database;

/// The database whose indexes are the server's own business.
const SYSTEM: &str = "mysql";

impl Session {
    /// Whether the session may be told of a table's indexes.
    pub(super) fn may_advise(&self, table: &Table) -> bool {
        let definition = &table.definition;
        let (database, name) = (&definition.database, &definition.name);
        self.client.check_sees_table(database, name).is_ok()
    }

    /// Indexes of a database, or of all, that are proposed to be dropped. `made`: those that are proposed to be made,
    /// with their tables.
    pub(super) fn indexes_to_drop(
        &mut self,
        schema: Option<&str>,
        made: &[(u64, Arc<HypotheticalIndex>)],
    ) -> Result<Vec<Proposal>> {
        let mut found = Vec::new();
        let mut tables = Vec::new();
        for_each_table(self, |table, uses| {
            let definition = &table.definition;
            let is_of = schema.is_none_or(|schema| definition.database == schema);
            if !is_of || definition.database == SYSTEM || is_virtual_database(&definition.database)
            {
                return;
            }
            if definition.secondary.is_empty() || !self.may_advise(table) {
                return;
            }
            let unused = definition.secondary.iter().map(|index| {
                let mut uses = uses.iter();
                let used = uses.find(|(name, _)| name.as_deref() == Some(index.name.as_str()));
                used.is_none_or(|(_, used)| used.fetched == 0)
            });
            let name = (definition.database.clone(), definition.name.clone());
            tables.push((name, unused.collect::<Vec<_>>()));
        })?;
        for ((database, name), unused) in tables {
            self.check_advice()?;
            // It may be gone by now.
            let Ok(table) = self.table_names_in_utc().table(&database, &name) else {
                continue;
            };
            let new: Vec<&Index> = made
                .iter()
                .filter(|(of, _)| *of == table.definition.id)
                .map(|(_, index)| &index.definition)
                .collect();
            self.add_drops(&table, (&unused, &new), &mut found);
        }
        if !found.is_empty() {
            self.warnings.note(
                codes::UNKNOWN_ERROR,
                "Uses of indexes are counted since the start of the server",
            );
        }
        Ok(found)
    }

    fn add_drops(
        &self,
        table: &Arc<Table>,
        (unused, new): (&[bool], &[&Index]),
        found: &mut Vec<Proposal>,
    ) {
        let secondary = &table.definition.secondary;
        let mut dropped = vec![false; secondary.len()];
        for (position, index) in secondary.iter().enumerate() {
            if index.unique || unused.len() != secondary.len() {
                continue;
            }
            let others = secondary.iter().enumerate();
            let others = others.filter(|(other, _)| *other != position && !dropped[*other]);
            let others = others
                .map(|(_, other)| other)
                .filter(|other| !other.invisible);
            let mut others = others.chain(new.iter().copied());
            let serves = others.find(|other| {
                let is_later = other.id > index.id;
                makes_superfluous(table, index, other, is_later)
            });
            let size = table.secondary[position].statistics().bytes;
            let reason = match serves {
                Some(other) => format!("{} serves the same statements", other.name),
                None if unused[position] && !self.is_for_foreign_key(table, index) => {
                    "no statement has read through it since the start".to_string()
                }
                None => continue,
            };
            dropped[position] = true;
            found.push(Proposal::drop(&table.definition, &index.name, size, reason));
        }
    }

    /// Whether a foreign key finds its rows by the index, on either side.
    fn is_for_foreign_key(&self, table: &Arc<Table>, index: &Index) -> bool {
        let begins_with = |columns: &[usize]| {
            let leading = index.parts.iter().take(columns.len());
            index.parts.len() >= columns.len()
                && leading.clone().all(|part| columns.contains(&part.column))
        };
        let definition = &table.definition;
        let own = definition.foreign_keys.iter();
        let mut own = own.map(|key| key.columns.clone());
        let of_others = self.engine.catalog().referencing(table);
        let mut of_others = of_others.iter().map(|(_, key)| {
            let names = key.referenced_columns.iter();
            names
                .filter_map(|name| definition.column_position(name))
                .collect::<Vec<_>>()
        });
        own.any(|columns| begins_with(&columns)) || of_others.any(|columns| begins_with(&columns))
    }
}

/// Whether `other` finds all that `index` finds, in the same order as far as the parts go. Of two with the same keys
/// the later one goes.
fn makes_superfluous(table: &Table, index: &Index, other: &Index, is_later: bool) -> bool {
    let places = |index: &Index| index.parts.iter().map(place).collect::<Vec<_>>();
    let (own, others) = (places(index), places(other));
    if others.len() > own.len() && others.starts_with(&own) {
        // (a, id) is no more than (a) where id is the primary key: there the longer one goes.
        return keys(table, index) != keys(table, other);
    }
    if keys(table, index) != keys(table, other) {
        return false;
    }
    match own.len().cmp(&others.len()) {
        std::cmp::Ordering::Greater => true,
        std::cmp::Ordering::Equal => !is_later,
        std::cmp::Ordering::Less => false,
    }
}

/// The columns of an index's keys, those of the primary key included.
fn keys(table: &Table, index: &Index) -> Vec<(Option<usize>, Option<u32>)> {
    let layout = KeyLayout::secondary(&table.definition, index);
    let parts = layout.parts.iter();
    parts
        .map(|part| (part.column, part.prefix_length))
        .collect()
}
