//! SHOW CREATE TABLE.
use crate::schema::TableDefinition;

/// The CREATE TABLE statement that makes this table, in MySQL's layout.
pub fn create_statement(definition: &TableDefinition) -> String {
    let _ = definition;
    unimplemented!()
}
