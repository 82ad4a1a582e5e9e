//! A database: a name, a collation for those of its tables that name none, its tables and its views.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_types::Collation;

use crate::catalog::view::View;
use crate::definition::codec::{Reader, Writer};
use crate::error::Result;
use crate::table::Table;

/// The newest format of a database's entry that this program writes and reads.
const FORMAT: u64 = 1;

/// A database in memory.
#[derive(Default)]
pub(crate) struct Database {
    pub(crate) collation: Collation,
    pub(crate) tables: BTreeMap<String, Arc<Table>>,
    pub(crate) views: BTreeMap<String, Arc<View>>,
}

/// A database as it was at one moment.
pub struct DatabaseSnapshot {
    pub name: String,
    pub collation: Collation,
    /// Sorted by name.
    pub tables: Vec<Arc<Table>>,
    /// Sorted by name.
    pub views: Vec<Arc<View>>,
}

/// The entry of a database.
pub(crate) fn encode_database(collation: Collation) -> Vec<u8> {
    let mut out = Writer::default();
    out.number(FORMAT);
    out.number(collation.id().into());
    out.into_bytes()
}

/// A database without its tables, from its entry in the catalog tree.
///
/// # Errors
/// `CatalogTooNew`, or `Corrupt` if the bytes are not one.
pub(crate) fn decode_database(bytes: &[u8], name: &str) -> Result<Database> {
    // Catalogs of format 4 and before say no more than that it is there.
    if bytes.is_empty() {
        return Ok(Database::default());
    }
    let mut read = Reader::new(bytes, name);
    read.version(FORMAT)?;
    let collation = Collation::of_id(read.number()?).ok_or_else(|| read.corrupt())?;
    Ok(Database {
        collation,
        ..Database::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::TableError;

    #[test]
    fn the_collation_of_a_database_comes_back() {
        for collation in Collation::ALL {
            let bytes = encode_database(collation);
            let database = decode_database(&bytes, "d").expect("it was just written");
            assert_eq!(database.collation, collation);
        }
    }

    #[test]
    fn databases_of_former_catalogs_have_the_default_collation() {
        let database = decode_database(&[], "d").expect("an entry of format 4");
        assert_eq!(database.collation, Collation::Utf8mb4_0900_ai_ci);
    }

    #[test]
    fn what_is_no_database_is_refused() {
        let refused = |bytes: &[u8]| decode_database(bytes, "d").err();
        assert!(matches!(
            refused(&[2, 45]),
            Some(TableError::CatalogTooNew { found: 2, known: 1 })
        ));
        assert!(matches!(refused(&[1]), Some(TableError::Corrupt { .. })));
        // No collation has this number.
        assert!(matches!(refused(&[1, 0]), Some(TableError::Corrupt { .. })));
    }
}
