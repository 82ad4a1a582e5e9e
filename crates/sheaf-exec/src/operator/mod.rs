//! Operators that are not DataFusion's, and wrappers around those that are.
//!
//! | file | what it holds |
//! |---|---|
//! | [`scan_exec`] | the leaf of a plan: one access method over one table |
//! | [`values_exec`] | rows that are known when the plan is built |
//! | [`source_exec`] | rows that were read already |
//! | [`apply_exec`] | a correlated subquery that runs for each row |
//! | [`apply_rows_exec`] | a lateral query that runs for each row |
//! | [`correlation`] | what the queries of both are correlated by, and what their runs have given |
//! | [`bound_values`] | values that its plan is given each time that it runs |
//! | [`grace_join`] | a hash join whose build side need not fit in memory |
//! | [`window`] | window functions, one partition at a time |
//! | [`common_tables_exec`] | common table expressions that are named several times run once |
//! | [`subquery_values_exec`] | subqueries that are values run first, a few at a time |
//! | [`shared_exec`] | a part of a plan that is read in several places runs once |
//! | [`restartable_exec`] | a side of a join of all pairs, which may have to run twice |
//! | [`regret_exec`] | a plan that may turn out badly, and the one that takes its place |
//! | [`expand_exec`] | the rows of a document for each row (JSON_TABLE) |
//! | [`copies_exec`] | each row once for each of its groups and uses |
//! | [`first_of_equal_exec`] | which rows are the first of equal ones |
//! | [`otherwise_exec`] | the rows of another plan where one has none |
//! | [`gather_in_order_exec`] | gathers the parts of a union one behind the other |
//! | [`recursive_exec`] | rows and what follows from them, round by round |
//! | [`bounded_projection`] | select lists whose results may take more memory than they are given |
//! | [`bounded_expr`] | expressions of that kind |
//! | [`compacted_exec`] | batches with buffers of their own |
//! | [`key_width_exec`] | how wide the keys of a sort are, for the memory pool |
//! | [`sort_batches_exec`] | small batches for sorts of wide rows |
//! | [`spare_memory_exec`] | memory that a sort leaves to the aggregate above it |
//! | [`first_rows_exec`] | the first rows of an order, where rows have texts |
//! | [`late_columns_exec`] | long columns of the rows that a sort has left |
//! | [`kept_rows`] | which plans keep many rows |
//! | [`less_order_exec`] | what operators may rightly say of the order of their rows |
//! | [`interruptible_exec`] | where a plan can be stopped between its leaves and its root |
//! | [`interruptible_expr`] | where a join can be stopped between two batches |
//! | [`measuring_exec`] | what an operator delivers, for EXPLAIN ANALYZE |
//! | [`checked_rows`] | checks rows against what the operator promises, in tests |
//! | [`node_id`] | which node of a plan an operator belongs to |
//! | [`plan_members`], [`wrapped_expr`] | what many operators, or expressions around others, say of themselves |
//! | [`row_file`] | rows in a temporary file |
//! | [`row_set`] | a set of rows, in memory and in a temporary file |
//! | [`batch_condition`] | a condition over a batch, for the access methods |

pub mod apply_exec;
pub mod apply_rows_exec;
pub mod batch_condition;
pub mod bound_values;
pub mod bounded_expr;
pub mod bounded_projection;
pub mod checked_rows;
pub mod common_tables_exec;
pub mod compacted_exec;
pub mod copies_exec;
pub mod correlation;
pub mod expand_exec;
pub mod first_of_equal_exec;
pub mod first_rows_exec;
pub mod gather_in_order_exec;
pub mod grace_join;
pub mod interruptible_exec;
pub mod interruptible_expr;
pub mod kept_rows;
pub mod key_width_exec;
pub mod late_columns_exec;
pub mod lazy_connective;
pub mod less_order_exec;
pub mod measuring_exec;
pub mod node_id;
pub(crate) mod noted_rows;
pub mod otherwise_exec;
pub(crate) mod plan_members;
pub mod recursive_exec;
pub mod regret_exec;
pub mod restartable_exec;
pub mod row_by_row_exec;
pub(crate) mod row_file;
pub(crate) mod row_set;
pub mod scan_exec;
pub mod shared_exec;
pub mod sort_batches_exec;
pub(crate) mod source_exec;
pub mod spare_memory_exec;
pub mod subquery_values_exec;
pub mod values_exec;
pub mod window;
pub(crate) mod wrapped_expr;
