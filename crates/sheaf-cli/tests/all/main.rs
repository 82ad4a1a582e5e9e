//! Tests of the whole database, through its three doors: the protocol, the command line and the library.
//!
//! They are one program, because each test program links all of DataFusion.

mod backup;
mod changed_definitions;
mod changes;
mod clients;
mod column_privileges;
mod command_line;
mod connections;
mod direct;
mod embedded;
mod failed_commits;
mod faults;
mod foreign_keys_concurrent;
mod generated_columns;
mod harness;
mod hints;
mod history;
mod idle_connections;
mod into_files;
mod isolation;
mod kill;
mod late_columns;
mod limits;
mod locked_tables;
mod long_values;
mod memory;
mod numbers_of_bits;
mod plan_equivalence;
mod protocol;
mod raw_client;
mod resource_groups;
mod results;
mod rewrite_rules;
mod shared_threads;
mod slow_clients;
mod spilling;
mod sqllogic;
mod temporary_tables;
mod tpch;
mod transactions;
mod transcripts;
mod user_locks;
mod users;
mod variables;
mod views;
