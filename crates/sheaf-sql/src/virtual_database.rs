//! What is not in the catalog by its name: a database and a table whose rows are made when a query names them.

pub const NAME: &str = "information_schema";

/// True for databases that are not in the catalog.
pub fn is_virtual_database(name: &str) -> bool {
    name.eq_ignore_ascii_case(NAME)
}

/// Whether a table is `mysql.user`, whose rows are made from the accounts.
pub(crate) fn is_account_table(database: &str, table: &str) -> bool {
    database == "mysql" && table == "user"
}
