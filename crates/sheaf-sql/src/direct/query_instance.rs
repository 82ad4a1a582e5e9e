//! The plan of what a query does with its rows, for some values of what it is given. A session keeps it.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_physical_plan::ExecutionPlan;
use smallvec::SmallVec;

use super::row_query::ComputedRows;
use crate::session::result::ColumnMeta;

/// What is done with the rows.
pub(super) enum Work {
    Operators(Arc<dyn ExecutionPlan>),
    /// What is computed of each, or of groups of them.
    Computed(Box<ComputedRows>),
}

/// The plan for some values of the inputs.
pub(super) struct QueryInstance {
    pub(super) work: Work,
    /// The columns of the rows, and the inputs that are columns.
    pub(super) schema: SchemaRef,
    pub(super) free: SmallVec<[usize; 4]>,
    pub(super) metas: Vec<ColumnMeta>,
}
