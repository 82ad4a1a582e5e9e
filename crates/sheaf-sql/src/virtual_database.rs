//! What is not in the catalog by its name: a database, and tables of another, whose rows are made when a query names
//! them.

pub const NAME: &str = "information_schema";

/// The database of what was counted of statements.
pub const PERFORMANCE_SCHEMA: &str = "performance_schema";

/// The database of what performance_schema tells, put together for people.
pub const SYS: &str = "sys";

/// True for databases that are not in the catalog.
pub fn is_virtual_database(name: &str) -> bool {
    is_information_schema(name)
        || name.eq_ignore_ascii_case(PERFORMANCE_SCHEMA)
        || name.eq_ignore_ascii_case(SYS)
}

pub fn is_information_schema(name: &str) -> bool {
    name.eq_ignore_ascii_case(NAME)
}

/// Tables of `performance_schema` that tell nobody more than SHOW does.
pub(crate) const FOR_EVERYBODY: [&str; 4] = [
    "global_status",
    "global_variables",
    "session_status",
    "session_variables",
];

/// Whether a table is read without any privilege. Those of `information_schema` tell each account what it may know.
pub(crate) fn is_for_everybody(database: &str, table: &str) -> bool {
    let is_listed = || {
        FOR_EVERYBODY
            .iter()
            .any(|name| name.eq_ignore_ascii_case(table))
    };
    is_information_schema(database)
        || database.eq_ignore_ascii_case(PERFORMANCE_SCHEMA) && is_listed()
}

/// The database of the server's own tables.
const SYSTEM: &str = "mysql";

/// The tables in it whose rows are made when a query names them.
const SYSTEM_TABLES: [&str; 25] = [
    "columns_priv",
    "component",
    "db",
    "default_roles",
    "func",
    "general_log",
    "global_grants",
    "help_category",
    "help_keyword",
    "help_relation",
    "help_topic",
    "password_history",
    "plugin",
    "procs_priv",
    "proxies_priv",
    "role_edges",
    "servers",
    "slow_log",
    "tables_priv",
    "time_zone",
    "time_zone_leap_second",
    "time_zone_name",
    "time_zone_transition",
    "time_zone_transition_type",
    "user",
];

/// The database of the server's own tables, some of which are kept: nobody drops it.
pub fn is_system_database(name: &str) -> bool {
    name == SYSTEM
}

/// Whether a table of the database `mysql` is made of what the engine knows, such as of the accounts.
pub(crate) fn is_system_table(database: &str, table: &str) -> bool {
    database == SYSTEM && SYSTEM_TABLES.contains(&table)
}
