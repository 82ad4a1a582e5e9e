//! Trees that are written from left to right: loads, index builds, copies.
//!
//! | file | what it holds |
//! |---|---|
//! | [`bulk_load`] | fills an empty table |
//! | [`tree_load`] | writes the trees of an empty table from rows in any order |
//! | [`external_sort`] | sorts index entries that may not fit in memory |
//! | [`index_build`] | builds secondary indexes from rows |
//! | [`build_beside`] | builds trees of a table's rows while others change rows |
//! | [`keeping_up`] | whether such a build keeps up with those that change rows, and their pace if not |
//! | [`index_build_beside`] | builds secondary indexes so |
//! | [`parents_beside`] | locks the parents of new foreign keys for such a build |
//! | [`references_beside`] | checks new foreign keys so |
//! | [`table_copy`] | copies the rows of an altered table into the shape of its new definition |
//! | [`table_copy_beside`] | copies them while others change rows |
//! | [`alter_table`] | ALTER TABLE: several changes of one table, all of them or none |
//! | [`alter_options`] | what it is told, and what it tells |
//! | [`alteration`] | the changes that ALTER TABLE makes |
//! | [`altered_definition`] | what a definition becomes by the changes of an ALTER TABLE |
//! | [`instant_columns`] | columns that are added and dropped without writing a row |
//! | [`altered_generated`] | generated columns, and defaults that name columns: what may be changed |

pub(crate) mod alter_options;
pub mod alter_table;
pub(crate) mod alteration;
pub(crate) mod altered_definition;
pub(crate) mod altered_generated;
pub(crate) mod build_beside;
pub mod bulk_load;
pub(crate) mod external_sort;
pub(crate) mod index_build;
pub(crate) mod index_build_beside;
pub(crate) mod instant_columns;
pub(crate) mod keeping_up;
pub(crate) mod parents_beside;
pub(crate) mod references_beside;
pub(crate) mod table_copy;
pub(crate) mod table_copy_beside;
pub(crate) mod tree_load;
