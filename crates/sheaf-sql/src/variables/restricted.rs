//! Which variables not everybody sets.

use sheaf_table::Privileges;

/// One of these is needed to change what all sessions use.
pub(crate) const TO_SET_GLOBALS: Privileges =
    Privileges::from_all(&[Privileges::SUPER, Privileges::SYSTEM_VARIABLES_ADMIN]);

/// Variables whose value for the session is restricted, too: those of MySQL's manual, "System Variable Privileges",
/// that exist here.
pub(crate) const RESTRICTED: [&str; 16] = [
    "binlog_format",
    "bulk_insert_buffer_size",
    "character_set_database",
    "character_set_filesystem",
    "gtid_next",
    "histogram_generation_max_mem_size",
    "innodb_strict_mode",
    "internal_tmp_mem_storage_engine",
    "low_priority_updates",
    "max_delayed_threads",
    "max_error_count",
    "min_examined_row_limit",
    "preload_buffer_size",
    "pseudo_thread_id",
    "sql_log_bin",
    "sql_log_off",
];
