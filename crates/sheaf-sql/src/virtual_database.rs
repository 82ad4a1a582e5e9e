//! The database that is not in the catalog: its tables are made when a query names them.

pub const NAME: &str = "information_schema";

/// True for databases that are not in the catalog.
pub fn is_virtual_database(name: &str) -> bool {
    name.eq_ignore_ascii_case(NAME)
}
