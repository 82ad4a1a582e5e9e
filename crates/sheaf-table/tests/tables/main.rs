//! Tables on real storage, in one test binary.

mod accounts;
mod altered_columns;
mod build_beside;
mod bulk_load;
mod catalog_memory;
mod check;
mod copy_beside;
mod definitions;
mod fixture;
mod foreign_keys;
mod instant_columns;
mod key_expressions;
mod lookups;
mod references_beside;
mod resource_groups;
mod rows;
mod statistics;
mod time_zones;
mod views;
mod visibility;
mod writers;
