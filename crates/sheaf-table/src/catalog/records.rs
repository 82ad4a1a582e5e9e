//! Entries of the catalog tree: their keys, the header, and values that take several entries.
//!
//! Specified in docs/catalog-format.md.

use sheaf_storage::{MAX_ENTRY_BYTES, Transaction, Tree};

use crate::definition::codec::encode_definition;
use crate::definition::schema::TableDefinition;
use crate::error::{Result, TableError};
use crate::statistics::record::statistics_key;

/// First byte of the keys of the catalog tree.
pub(crate) mod kind {
    /// Format of the catalog and the next table id, both u64 little-endian.
    pub(crate) const HEADER: u8 = 0;
    /// Name of a database: its collation.
    pub(crate) const DATABASE: u8 = 1;
    /// Database, 0x00, table, 0x00, number of the chunk (u16 big-endian): a chunk of the definition.
    pub(crate) const TABLE: u8 = 2;
    /// Table id (u64 big-endian), and from the second on the number of the chunk (u16 big-endian): a chunk of the
    /// statistics.
    pub(crate) const STATISTICS: u8 = crate::statistics::record::KIND;
    /// Table id (u64 big-endian): the mark of AUTO_INCREMENT, u64 little-endian.
    pub(crate) const AUTO_INCREMENT: u8 = crate::table::auto_increment::MARK_KIND;
    /// User, 0x00, host, 0x00, number of the chunk (u16 big-endian): a chunk of an account.
    pub(crate) const ACCOUNT: u8 = 5;
    /// Name in lower case: a resource group.
    pub(crate) const RESOURCE_GROUP: u8 = 6;
    /// Database, 0x00, view, 0x00, number of the chunk (u16 big-endian): a chunk of a view's definition.
    pub(crate) const VIEW: u8 = 7;
    /// 0x00: the source of a replica; 0x01 and the number of the chunk (u16 big-endian): a chunk of its position.
    pub(crate) const REPLICATION: u8 = 8;
}

/// The newest format of the catalog that this program writes and reads: 3 has accounts, 4 resource groups, 5 collations
/// of databases, 6 views, 7 a replica's source.
const CATALOG_FORMAT: u64 = 7;

/// Bytes of a definition in one entry; keys are short.
pub(crate) const CHUNK_BYTES: usize = MAX_ENTRY_BYTES - 1000;

pub(crate) fn header(next_table_id: u64) -> [u8; 16] {
    let mut header = [0; 16];
    header[..8].copy_from_slice(&CATALOG_FORMAT.to_le_bytes());
    header[8..].copy_from_slice(&next_table_id.to_le_bytes());
    header
}

/// The next table id.
pub(crate) fn read_header(value: &[u8]) -> Result<u64> {
    let short = || TableError::corrupt("catalog", "its header cannot be read");
    let (format, rest) = value.split_first_chunk::<8>().ok_or_else(short)?;
    let found = u64::from_le_bytes(*format);
    if found > CATALOG_FORMAT {
        return Err(TableError::CatalogTooNew {
            found,
            known: CATALOG_FORMAT,
        });
    }
    let (id, _) = rest.split_first_chunk::<8>().ok_or_else(short)?;
    Ok(u64::from_le_bytes(*id))
}

pub(crate) fn database_key(name: &str) -> Vec<u8> {
    [&[kind::DATABASE], name.as_bytes()].concat()
}

pub(crate) fn table_key(database: &str, table: &str, chunk: usize) -> Vec<u8> {
    let chunk = (chunk as u16).to_be_bytes();
    [
        &[kind::TABLE],
        database.as_bytes(),
        &[0],
        table.as_bytes(),
        &[0],
        &chunk,
    ]
    .concat()
}

/// Database and table in the key of a definition, or of a view's, after its first byte.
pub(crate) fn table_of_key(rest: &[u8]) -> Option<(String, String)> {
    let mut names = rest.splitn(3, |byte| *byte == 0);
    let mut name = || String::from_utf8(names.next()?.to_vec()).ok();
    Some((name()?, name()?))
}

/// The key of what is kept about a table beside its definition.
pub(crate) fn key_of_table(kind: u8, table: u64) -> Vec<u8> {
    [&[kind], table.to_be_bytes().as_slice()].concat()
}

pub(crate) fn put(
    tree: &Tree,
    transaction: &mut Transaction,
    key: &[u8],
    value: &[u8],
) -> Result<()> {
    if !tree.update(transaction, key, value)? {
        tree.insert(transaction, key, value)?;
    }
    Ok(())
}

pub(crate) fn put_definition(
    tree: &Tree,
    transaction: &mut Transaction,
    definition: &TableDefinition,
) -> Result<()> {
    let bytes = encode_definition(definition);
    let mut chunks = 0;
    for chunk in bytes.chunks(CHUNK_BYTES) {
        put(
            tree,
            transaction,
            &table_key(&definition.database, &definition.name, chunks),
            chunk,
        )?;
        chunks += 1;
    }
    delete_chunks(
        tree,
        transaction,
        &definition.database,
        &definition.name,
        chunks,
    )
}

pub(crate) fn delete_definition(
    tree: &Tree,
    transaction: &mut Transaction,
    database: &str,
    table: &str,
) -> Result<()> {
    delete_chunks(tree, transaction, database, table, 0)
}

/// Deletes the chunks of a definition from number `first` on.
pub(crate) fn delete_chunks(
    tree: &Tree,
    transaction: &mut Transaction,
    database: &str,
    table: &str,
    first: usize,
) -> Result<()> {
    let mut chunk = first;
    while tree.delete(transaction, &table_key(database, table, chunk))? {
        chunk += 1;
    }
    Ok(())
}

pub(crate) fn put_statistics(
    tree: &Tree,
    transaction: &mut Transaction,
    table: u64,
    bytes: &[u8],
) -> Result<()> {
    let mut chunks = 0;
    for chunk in bytes.chunks(CHUNK_BYTES) {
        put(tree, transaction, &statistics_key(table, chunks), chunk)?;
        chunks += 1;
    }
    delete_statistics(tree, transaction, table, chunks)
}

/// Deletes the chunks of a table's statistics from number `first` on.
pub(crate) fn delete_statistics(
    tree: &Tree,
    transaction: &mut Transaction,
    table: u64,
    first: usize,
) -> Result<()> {
    let mut chunk = first;
    while tree.delete(transaction, &statistics_key(table, chunk))? {
        chunk += 1;
    }
    Ok(())
}
