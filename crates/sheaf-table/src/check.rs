//! Whether a data directory is what it should be: `sheaf check`. CHECK TABLE .. EXTENDED compares one table.
//!
//! First the storage looks at every page of every tree ([`Storage::check`](sheaf_storage::Storage::check)). Then each
//! table is compared with itself. Every row is decoded, and its primary key encoded again. The entries that its indexes
//! ought to have are sorted and compared with those that they do have. Memory is that of one sort per index, which
//! spills.
//!
//! ```text
//!   rows --encode--> sort --> expected entries  \
//!                                                compare: missing, superfluous, different
//!   index ------------------> present entries   /
//! ```
//!
//! What is wrong becomes a [`Finding`]; the check goes on with the next tree or table, so that one run tells all.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use sheaf_storage::{Direction, KeyRange, LeafCursor, ReadAhead, TreeId};
use sheaf_types::Value;
use sheaf_types::temporal::TimeZone;

use crate::build::external_sort::SortedEntries;
use crate::build::index_build::{IndexSorts, LongValue};
use crate::catalog::Catalog;
use crate::codec::row_codec::ValueRef;
use crate::error::{Result, TableError};
use crate::progress::Progress;
use crate::table::Table;

/// Findings that are kept, at most; more are only counted.
pub const MAX_FINDINGS: usize = 1000;

/// Wrong entries of one index that become findings of their own; more are only counted.
const MAX_FINDINGS_PER_INDEX: u64 = 10;

/// Leaves that scans read ahead.
const READ_AHEAD_PAGES: usize = 64;

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// `database.table`, `database.table.index`, or a part of the storage.
    pub object: String,
    pub detail: String,
}

/// What a check read and found.
#[derive(Debug, Default)]
pub struct CheckReport {
    pub trees: u64,
    pub pages: u64,
    pub tables: u64,
    pub rows: u64,
    pub index_entries: u64,
    /// At most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
    /// How many there were in all.
    pub found: u64,
}

impl CheckReport {
    fn add(&mut self, object: impl Into<String>, detail: impl Into<String>) {
        self.found += 1;
        if self.findings.len() < MAX_FINDINGS {
            self.findings.push(Finding {
                object: object.into(),
                detail: detail.into(),
            });
        }
    }
}

/// Checks everything that a catalog knows, and what it ought to know. Nothing may be changed meanwhile. `memory_bytes`
/// is for the sorts of one table.
///
/// # Errors
/// `Interrupted`, a temporary file that cannot be written, or a tree directory that cannot be read. Everything else is
/// a finding.
pub fn check(
    catalog: &Catalog,
    memory_bytes: usize,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    let mut tables = Vec::new();
    for database in catalog.databases() {
        tables.extend(catalog.tables(&database)?);
    }
    let healthy = check_trees(catalog, &tables, &mut report, progress)?;
    for table in &tables {
        report.tables += 1;
        let trees = std::iter::once(&table.clustered)
            .chain(&table.secondary)
            .chain(&table.overflow);
        // What cannot be read has been reported, and cannot be compared with anything.
        if trees
            .into_iter()
            .all(|tree| healthy.contains_key(&tree.id()))
        {
            check_table(catalog, table, memory_bytes, &mut report, progress)?;
        }
    }
    Ok(report)
}

/// Checks all trees; returns those without findings, with their entries.
fn check_trees(
    catalog: &Catalog,
    tables: &[std::sync::Arc<Table>],
    report: &mut CheckReport,
    progress: &dyn Progress,
) -> Result<BTreeMap<TreeId, u64>> {
    let storage = catalog.storage();
    let mut names = BTreeMap::from([(storage.catalog_tree().id(), "catalog".to_string())]);
    for table in tables {
        let name = full_name(table);
        names.insert(table.clustered.id(), name.clone());
        for (tree, index) in table.secondary.iter().zip(&table.definition.secondary) {
            names.insert(tree.id(), format!("{name}.{}", index.name));
        }
        if let Some(tree) = &table.overflow {
            names.insert(tree.id(), format!("{name} (long values)"));
        }
    }
    progress.begin("reading trees", Some(names.len() as u64));
    let found = storage.check(|_| progress.advance(1))?;
    let mut healthy = BTreeMap::new();
    for (position, (tree, result)) in found.trees.iter().enumerate() {
        report.trees += 1;
        // The storage's own directory comes first.
        let name = match names.get(tree) {
            Some(name) => name.clone(),
            None if position == 0 => "tree directory".to_string(),
            None => {
                report.add(format!("tree {tree}"), "belongs to no table");
                format!("tree {tree}")
            }
        };
        match result {
            Ok(counted) => {
                report.pages += counted.leaf_pages + counted.inner_pages;
                healthy.insert(*tree, counted.entries);
            }
            Err(error) => report.add(name, error.to_string()),
        }
    }
    match found.orphaned_pages {
        None | Some(0) => {}
        Some(pages) => report.add(
            "extent maps",
            format!("{pages} pages are marked as used, but belong to no tree"),
        ),
    }
    Ok(healthy)
}

/// Compares one table with itself, as [`check`] does. If it is changed meanwhile, a finding may be of that alone.
///
/// # Errors
/// `Interrupted`, a temporary file that cannot be written, or a page that cannot be read.
pub fn check_rows(
    catalog: &Catalog,
    table: &Table,
    memory_bytes: usize,
    progress: &dyn Progress,
) -> Result<CheckReport> {
    let mut report = CheckReport::default();
    // In a zone whose clocks are set back, two moments have one time.
    let table = table.seen_in(TimeZone::UTC);
    check_table(catalog, &table, memory_bytes, &mut report, progress)?;
    Ok(report)
}

fn full_name(table: &Table) -> String {
    format!("{}.{}", table.definition.database, table.definition.name)
}

/// Compares a table's rows with their keys and with its indexes.
fn check_table(
    catalog: &Catalog,
    table: &Table,
    memory_bytes: usize,
    report: &mut CheckReport,
    progress: &dyn Progress,
) -> Result<()> {
    let name = full_name(table);
    let indexes = table.secondary.len().max(1);
    let mut sorts = IndexSorts::new(
        table.secondary_layouts.clone(),
        catalog.storage().temp_space(),
        memory_bytes / indexes,
    );
    progress.begin(&format!("rows of {name}"), Some(table.row_count_estimate()));
    let mut rows = scan(&table.clustered);
    let mut key = Vec::new();
    while let Some(leaf) = rows.next_leaf()? {
        if progress.is_cancelled() {
            return Err(TableError::Interrupted);
        }
        for entry in 0..leaf.len() {
            leaf.key_into(entry, &mut key);
            report.rows += 1;
            if let Err(error) = check_row(table, &key, leaf.value(entry), &mut sorts) {
                match error {
                    TableError::TemporaryFile(_) => return Err(error),
                    error => report.add(&name, format!("row {key:02x?}: {error}")),
                }
            }
        }
        progress.advance(leaf.len() as u64);
    }
    let sorts = sorts.into_sorts()?;
    for ((position, index), (_, sort)) in table.definition.secondary.iter().enumerate().zip(sorts) {
        progress.begin(&format!("index {name}.{}", index.name), Some(sort.len()));
        let expected = sort.finish(memory_bytes / indexes)?;
        let wrong = compare(expected, scan(&table.secondary[position]), report, progress)?;
        let object = format!("{name}.{}", index.name);
        for detail in wrong.details {
            report.add(&object, detail);
        }
        if wrong.more > 0 {
            report.add(&object, format!("{} more entries are wrong", wrong.more));
        }
    }
    Ok(())
}

fn scan(tree: &std::sync::Arc<sheaf_storage::Tree>) -> LeafCursor {
    let read_ahead = ReadAhead::Pages(READ_AHEAD_PAGES);
    tree.scan(KeyRange::all(), Direction::Forward, read_ahead)
}

/// Decodes a row, long values included, compares it with its key, and notes the entries that it should have.
fn check_row(table: &Table, key: &[u8], row: &[u8], sorts: &mut IndexSorts) -> Result<()> {
    let view = table.view(row)?;
    let values: Vec<Value> = table.decode_row(&view)?;
    let row_id = table.row_id_of(key);
    if !table.definition.has_hidden_row_id() && table.encode_primary_key(&values) != key {
        return Err(TableError::corrupt(
            &table.definition.name,
            "the row's columns are not those of its key",
        ));
    }
    let long: Vec<LongValue<'_>> = (0..values.len())
        .filter(|&column| view.is_overflow(column))
        .filter_map(|column| match ValueRef::from(&values[column]) {
            ValueRef::Bytes(bytes) => Some((column, bytes)),
            _ => None,
        })
        .collect();
    sorts.add(&view, row_id, &long)
}

/// Wrong entries of an index.
#[derive(Default)]
struct Wrong {
    details: Vec<String>,
    /// Those beyond [`MAX_FINDINGS_PER_INDEX`].
    more: u64,
}

impl Wrong {
    fn add(&mut self, what: &str, key: &[u8]) {
        if self.details.len() as u64 == MAX_FINDINGS_PER_INDEX {
            self.more += 1;
        } else {
            self.details.push(format!("{what}: entry {key:02x?}"));
        }
    }
}

/// Lays the entries that an index ought to have beside those that it has.
fn compare(
    mut expected: SortedEntries,
    mut present: LeafCursor,
    report: &mut CheckReport,
    progress: &dyn Progress,
) -> Result<Wrong> {
    const MISSING: &str = "missing in the index";
    let mut wrong = Wrong::default();
    let mut more_expected = expected.advance()?;
    let mut key = Vec::new();
    while let Some(leaf) = present.next_leaf()? {
        if progress.is_cancelled() {
            return Err(TableError::Interrupted);
        }
        for entry in 0..leaf.len() {
            leaf.key_into(entry, &mut key);
            report.index_entries += 1;
            loop {
                let order = if more_expected {
                    expected.entry().0.cmp(&key)
                } else {
                    Ordering::Greater
                };
                match order {
                    Ordering::Less => {
                        wrong.add(MISSING, expected.entry().0);
                        more_expected = expected.advance()?;
                        continue;
                    }
                    Ordering::Equal => {
                        if expected.entry().1 != leaf.value(entry) {
                            wrong.add("payload differs from the row", &key);
                        }
                        more_expected = expected.advance()?;
                    }
                    Ordering::Greater => wrong.add("no such row in the table", &key),
                }
                break;
            }
        }
        progress.advance(leaf.len() as u64);
    }
    while more_expected {
        wrong.add(MISSING, expected.entry().0);
        more_expected = expected.advance()?;
    }
    Ok(wrong)
}
