//! The rows of a table, as one reference to it in the statement sees them.

use std::fmt;
use std::sync::Arc;

use datafusion_expr::TableSource;

use super::{Operator, Relation};
use crate::column::ColumnId;

/// A reference to a table.
#[derive(Clone)]
pub struct Scan {
    /// The number of the reference in the statement.
    pub reference: u32,
    /// What the statement calls it.
    pub name: String,
    pub source: Arc<dyn TableSource>,
    /// One for each column of the source, in its order.
    pub columns: Vec<ColumnId>,
}

impl Scan {
    pub fn relation(self) -> Relation {
        Operator::Scan(self).into()
    }
}

impl fmt::Debug for Scan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Scan {} {:?}", self.name, self.columns)
    }
}
