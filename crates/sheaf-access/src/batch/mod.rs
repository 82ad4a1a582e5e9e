//! From rows and entries to Arrow batches.
//!
//! | file | what it holds |
//! |---|---|
//! | [`batch_assembler`] | from runs of rows or entries to the batches that a scan delivers |
//! | [`materialize`] | one column at a time, a run of rows at a time |
//! | [`row_block`] | looked-up rows on their way |
//! | [`index_condition`] | tests on entries before their rows are fetched |

pub(crate) mod batch_assembler;
pub(crate) mod index_condition;
pub(crate) mod materialize;
pub(crate) mod row_block;
