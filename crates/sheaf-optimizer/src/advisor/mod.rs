//! What the index advisor asks of the optimizer: what a statement could use of each table, which indexes would serve
//! that, and what keeping an index costs.
//!
//! There is no second cost model. A candidate becomes a
//! [hypothetical index](sheaf_table::table::hypothetical_index) of the table, the statement is planned once more,
//! and the plan's cost is compared. So what the advisor promises is what the optimizer will choose.
//!
//! | file | what it holds |
//! |---|---|
//! | [`needs`] | the columns by which a plan finds, joins, orders and groups the rows of each table |
//! | [`candidates`] | the column lists of indexes that may serve these |
//! | [`upkeep`] | what a change of a row costs for each index |
//! | [`replanning`] | a query that is planned again over tables with candidates |
//! | [`uses`] | which indexes a plan reads |

pub mod candidates;
pub mod needs;
pub mod replanning;
pub mod upkeep;
pub mod uses;

pub use candidates::{MAX_COVERING_COLUMNS, column_lists, merged_lists};
pub use needs::{BranchNeed, RangedColumn, TableNeed, table_needs};
pub use replanning::{is_settled, over_tables};
pub use upkeep::upkeep_us;
pub use uses::{IndexInUse, indexes_in_use};
