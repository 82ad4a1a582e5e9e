//! Which indexes a plan reads.

use std::sync::Arc;

use sheaf_access::{Fetch, IndexRef};
use sheaf_table::Table;

use crate::PhysicalQuery;

/// An index that a plan reads.
pub struct IndexInUse {
    pub table: Arc<Table>,
    /// `None`: the table itself, by its primary key or as a whole.
    pub secondary: Option<usize>,
    /// Estimated entries that are read, for each row of the tables before it.
    pub rows: u64,
    /// Leading parts that ranges or keys bind.
    pub key_parts: usize,
    /// EXPLAIN's key_len of these.
    pub key_len: u32,
    /// Its entries have all columns that are read.
    pub is_covering: bool,
}

/// The indexes that a plan reads, one for each table reference. An index merge is not among them.
pub fn indexes_in_use(query: &PhysicalQuery) -> Vec<IndexInUse> {
    let rows = query.explain.iter();
    let found = rows.filter_map(|row| {
        let detail = row.detail.as_ref()?;
        let secondary = match detail.index {
            IndexRef::Clustered => None,
            IndexRef::Secondary(position) => Some(position),
        };
        let layout = crate::estimate::statistics::layout(&detail.table, detail.index);
        let key_parts = detail.key_parts.min(layout.parts.len());
        Some(IndexInUse {
            table: Arc::clone(&detail.table),
            secondary,
            rows: row.rows.unwrap_or_default(),
            key_parts,
            key_len: layout.mysql_key_len(key_parts),
            is_covering: matches!(detail.fetch, Fetch::Covering),
        })
    });
    found.collect()
}
