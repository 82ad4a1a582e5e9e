//! Indexes that are not needed.
//!
//! - *Redundant*: another index begins with the same parts, or has the same keys once the primary key is added behind
//!   both, as it is behind every secondary key. A unique index is a constraint and stays. The other one takes over the
//!   uses, and stays with them.
//! - *Unused*: no statement has read through it since the start, nor through one for which it serves.
//!
//! A foreign key keeps an index that begins with its columns.

use std::sync::Arc;

use sheaf_table::{Catalog, Index, KeyLayout, Table};
use sheaf_types::error::codes;

use super::candidates::{may_advise, place};
use super::check_advice;
use super::proposal::Proposal;
use crate::catalog_views::performance_schema::table_io::for_each_table;
use crate::engine::Engine;
use crate::error::Result;
use crate::session::Session;
use crate::virtual_database::is_virtual_database;

/// The database whose indexes are the server's own business.
const SYSTEM: &str = "mysql";

/// Indexes of a database, or of all, that are proposed to be dropped. `made`: those that are proposed to be made,
/// with their tables.
pub(super) fn indexes_to_drop(
    session: &mut Session,
    schema: Option<&str>,
    made: &[(u64, Index)],
) -> Result<Vec<Proposal>> {
    let mut found = Vec::new();
    let mut tables = Vec::new();
    for_each_table(session, |table, uses| {
        let definition = &table.definition;
        let is_of = schema.is_none_or(|schema| definition.database == schema);
        if !is_of || definition.database == SYSTEM || is_virtual_database(&definition.database) {
            return;
        }
        if definition.secondary.is_empty() || !may_advise(&session.client, table) {
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
        check_advice(&session.handle)?;
        // It may be gone by now.
        let Ok(table) = session.table_names_in_utc().table(&database, &name) else {
            continue;
        };
        let new: Vec<&Index> = made
            .iter()
            .filter(|(of, _)| *of == table.definition.id)
            .map(|(_, index)| index)
            .collect();
        add_drops(&session.engine, &table, (&unused, &new), &mut found);
    }
    if !found.is_empty() {
        session.warnings.note(
            codes::UNKNOWN_ERROR,
            "Uses of indexes are counted since the start of the server",
        );
    }
    Ok(found)
}

/// `new`: indexes of the table that are proposed to be made. An index that serves for one that goes takes over its
/// uses, and goes only if these end too, or if a third one serves for both.
fn add_drops(
    engine: &Engine,
    table: &Arc<Table>,
    (unused, new): (&[bool], &[&Index]),
    found: &mut Vec<Proposal>,
) {
    let secondary = &table.definition.secondary;
    if unused.len() != secondary.len() {
        return;
    }
    let keys = foreign_key_columns(engine.catalog(), table);
    let mut fates = vec![Fate::Stays; secondary.len()];
    for (position, index) in secondary.iter().enumerate() {
        if index.unique {
            continue;
        }
        // The index, and those for which it serves.
        let serves_here = |fate: &Fate| matches!(fate, Fate::Served(by) if by.id == index.id);
        let group = (0..secondary.len()).filter(|at| *at == position || serves_here(&fates[*at]));
        let group: Vec<usize> = group.collect();
        let others = secondary.iter().zip(&fates).enumerate();
        let others = others.filter(|(at, (_, fate))| *at != position && fate.stays());
        let others: Vec<&Index> = others.map(|(_, (other, _))| other).collect();
        let keeps_keys = |new: Option<&Index>| {
            let mut keys = keys.iter().filter(|key| leads(index, key));
            keys.all(|key| {
                let mut left = others.iter().copied().chain(new);
                leads(&table.definition.primary, key) || left.any(|other| leads(other, key))
            })
        };
        let visible = others.iter().copied().filter(|other| !other.invisible);
        let serves = visible.chain(new.iter().copied()).find(|other| {
            let mut group = group.iter().map(|at| &secondary[*at]);
            group.all(|index| makes_superfluous(table, index, other, other.id > index.id))
                && keeps_keys(Some(*other))
        });
        let fate = match serves {
            Some(other) => Fate::Served(other),
            None if group.iter().all(|at| unused[*at]) && keeps_keys(None) => Fate::Unused,
            None => continue,
        };
        for at in group {
            fates[at] = fate;
        }
    }
    for (position, fate) in fates.iter().enumerate() {
        let reason = match fate {
            Fate::Stays => continue,
            Fate::Served(other) => format!("{} serves the same statements", other.name),
            Fate::Unused => "no statement has read through it since the start".to_string(),
        };
        let size = table.secondary[position].statistics().bytes;
        let name = &secondary[position].name;
        found.push(Proposal::drop(&table.definition, name, size, reason));
    }
}

/// The columns of the table that foreign keys are about, on either side.
fn foreign_key_columns(catalog: &Catalog, table: &Arc<Table>) -> Vec<Vec<usize>> {
    let definition = &table.definition;
    let own = definition.foreign_keys.iter();
    let own = own.map(|key| key.columns.clone());
    let of_others = catalog.referencing(table);
    let of_others = of_others.iter().filter_map(|(_, key)| {
        let names = key.referenced_columns.iter();
        names
            .map(|name| definition.column_position(name))
            .collect::<Option<Vec<usize>>>()
    });
    own.chain(of_others).collect()
}

/// What is proposed for an index.
#[derive(Clone, Copy)]
enum Fate<'i> {
    Stays,
    /// Another one, which stays or is made, serves for it.
    Served(&'i Index),
    Unused,
}

impl Fate<'_> {
    fn stays(&self) -> bool {
        matches!(self, Fate::Stays)
    }
}

/// Whether a foreign key of these columns finds its rows by the index: it begins with them, whole and in their order.
fn leads(index: &Index, columns: &[usize]) -> bool {
    let mut pairs = index.parts.iter().zip(columns);
    index.parts.len() >= columns.len()
        && pairs.all(|(part, column)| part.column == *column && part.prefix_length.is_none())
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
