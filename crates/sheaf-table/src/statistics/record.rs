//! The entries of the catalog tree that are a table's statistics.

use sheaf_storage::Tree;

use super::TableStatistics;
use super::codec::decode_statistics;
use crate::error::Result;

/// First byte of their keys.
pub(crate) const KIND: u8 = 3;

/// The key of a chunk of statistics. The first one's has no number, and is all there was in former versions.
pub(crate) fn statistics_key(table: u64, chunk: usize) -> Vec<u8> {
    let mut key = [&[KIND], table.to_be_bytes().as_slice()].concat();
    if chunk > 0 {
        key.extend_from_slice(&(chunk as u16).to_be_bytes());
    }
    key
}

/// The statistics of a table; `None`: there are none.
///
/// # Errors
/// `Corrupt`, and whatever the storage reports.
pub(crate) fn read_statistics(tree: &Tree, table: u64) -> Result<Option<TableStatistics>> {
    let (mut bytes, mut chunk) = (Vec::new(), Vec::new());
    let mut chunks = 0;
    while tree.get(&statistics_key(table, chunks), &mut chunk)? {
        bytes.extend_from_slice(&chunk);
        chunks += 1;
    }
    match chunks {
        0 => Ok(None),
        _ => decode_statistics(&bytes).map(Some),
    }
}
