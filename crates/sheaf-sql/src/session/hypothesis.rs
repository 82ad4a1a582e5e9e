//! What a statement plans with that is not there, for ADVISE INDEXES.

use std::sync::Arc;

use sheaf_optimizer::advisor::TableNeed;
use sheaf_table::Table;

/// What the running statement supposes, and what is noted of its plans. Of other statements: nothing.
#[derive(Default)]
pub(crate) struct Hypothesis {
    /// Tables with indexes that are only thought of. Each stands for the one of its version.
    pub(crate) tables: Vec<Arc<Table>>,
    /// Where plans write down what they could use of tables, if they shall.
    pub(crate) needs: Option<Vec<TableNeed>>,
}
