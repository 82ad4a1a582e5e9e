//! What was read through each index, and what was changed in each table.
//!
//! Reads are counted at the index that has found the rows, which of a covering index are its entries. Scans of a whole
//! table and inserts are counted without an index, as in MySQL, and updates and deletes at the primary key. Nothing
//! takes a time here.

use std::collections::BTreeMap;

use sheaf_access::IndexUse;
use sheaf_storage::TreeId;
use sheaf_table::Table;

use crate::catalog_views::virtual_table::Columns;
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;

/// What is counted, as the names of columns end.
const KINDS: [&str; 7] = [
    "STAR", "READ", "WRITE", "FETCH", "INSERT", "UPDATE", "DELETE",
];

fn columns(with_index: bool) -> Columns {
    let names = ["OBJECT_TYPE", "OBJECT_SCHEMA", "OBJECT_NAME"];
    let mut columns: Columns = names
        .into_iter()
        .chain(with_index.then_some("INDEX_NAME"))
        .map(|name| (name.to_string(), Cells::Name))
        .collect();
    columns[0].1 = Cells::Text(64);
    for kind in KINDS {
        let timer = if kind == "STAR" { "WAIT" } else { kind };
        columns.push((format!("COUNT_{kind}"), Cells::Unsigned));
        for what in ["SUM", "MIN", "AVG", "MAX"] {
            columns.push((format!("{what}_TIMER_{timer}"), Cells::Unsigned));
        }
    }
    columns
}

fn cells(table: &Table, index: Option<Cell>, used: IndexUse) -> Vec<Cell> {
    let definition = &table.definition;
    let mut row = vec![
        "TABLE".into(),
        definition.database.clone().into(),
        definition.name.clone().into(),
    ];
    row.extend(index);
    let IndexUse {
        fetched,
        scanned,
        inserted,
        updated,
        deleted,
    } = used;
    let fetched = fetched + scanned;
    let written = inserted + updated + deleted;
    let counts = [
        fetched + written,
        fetched,
        written,
        fetched,
        inserted,
        updated,
        deleted,
    ];
    for count in counts {
        row.push(count.into());
        row.extend((0..4).map(|_| Cell::Unsigned(0)));
    }
    row
}

/// What is known of one table: each index with its name, in MySQL's order, and the table without an index.
fn uses_of(table: &Table, all: &BTreeMap<TreeId, IndexUse>) -> Vec<(Option<String>, IndexUse)> {
    let of_tree = |tree: TreeId| all.get(&tree).copied().unwrap_or_default();
    let definition = &table.definition;
    let clustered = of_tree(table.clustered.id());
    let mut without_index = IndexUse {
        scanned: clustered.scanned,
        inserted: clustered.inserted,
        ..IndexUse::default()
    };
    let of_primary = IndexUse {
        scanned: 0,
        inserted: 0,
        ..clustered
    };
    let mut uses = Vec::new();
    if definition.has_hidden_row_id() {
        without_index = clustered;
    } else {
        uses.push((Some(definition.primary.name.clone()), of_primary));
    }
    for (index, tree) in definition.secondary.iter().zip(&table.secondary) {
        uses.push((Some(index.name.clone()), of_tree(tree.id())));
    }
    uses.push((None, without_index));
    uses
}

pub(crate) fn for_each_table(
    session: &Session,
    mut visit: impl FnMut(&Table, Vec<(Option<String>, IndexUse)>),
) -> Result<()> {
    let databases = session
        .statement
        .definitions
        .databases(session.engine.catalog());
    let tables = || databases.iter().flat_map(|database| &database.tables);
    let trees = tables().flat_map(|table| {
        let secondary = table.secondary.iter().map(|tree| tree.id());
        secondary.chain([table.clustered.id()])
    });
    let all = session.engine.index_uses(&trees.collect());
    for table in tables() {
        session.handle.cancel_flag().check()?;
        visit(table, uses_of(table, &all));
    }
    Ok(())
}

pub(super) fn index_columns() -> Columns {
    columns(true)
}

pub(super) fn table_columns() -> Columns {
    columns(false)
}

/// `table_io_waits_summary_by_index_usage`.
pub(super) fn by_index(session: &Session, rows: &mut Rows) -> Result<()> {
    for_each_table(session, |table, uses| {
        for (index, used) in uses {
            rows.push(cells(table, Some(index.into()), used));
        }
    })
}

/// `table_io_waits_summary_by_table`.
pub(super) fn by_table(session: &Session, rows: &mut Rows) -> Result<()> {
    for_each_table(session, |table, uses| {
        let mut sum = IndexUse::default();
        uses.into_iter().for_each(|(_, used)| sum.add(used));
        rows.push(cells(table, None, sum));
    })
}
