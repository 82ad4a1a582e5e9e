//! From an optimised logical plan to operators.
//!
//! | file | what it holds |
//! |---|---|
//! | [`planner`] | one method for each kind of node |
//! | [`joins`] | the steps of a chosen order of joins |
//! | [`applied_subquery`] | a subquery that is planned with values |
//! | [`bound_subquery`] | one plan for all runs of a subquery |
//! | [`common_tables`] | common table expressions that are named several times |
//! | [`aggregate`] | GROUP BY, DISTINCT, ROLLUP and grouping sets |
//! | [`texts_in_order`] | sorts the rows of a GROUP_CONCAT, where memory is short |
//! | [`window`] | window functions |
//! | [`sort_keys`] | the expressions of a sort |
//! | [`properties`] | rows in one stream or divided by keys, and in an order, as operators require it |
//! | [`rules`] | the order of the physical rules, and those of DataFusion that we keep |
//! | [`finish`] | what is done to a plan that has all operators, step by step |
//! | [`made_anew`] | nodes of operators that rules of DataFusion's make anew |
//! | [`late_columns`] | long columns of sorts that keep few rows, read after the sort |
//! | [`plan_check`] | does the finished plan contradict itself |

pub(crate) mod aggregate;
pub(crate) mod applied_subquery;
pub(crate) mod bound_subquery;
pub(crate) mod common_tables;
pub(crate) mod finish;
pub(crate) mod joins;
pub(crate) mod late_columns;
pub(crate) mod long_keys;
mod made_anew;
pub(crate) mod plan_check;
pub(crate) mod planner;
pub(crate) mod properties;
pub(crate) mod rules;
pub(crate) mod sort_keys;
pub(crate) mod texts_in_order;
pub(crate) mod window;
