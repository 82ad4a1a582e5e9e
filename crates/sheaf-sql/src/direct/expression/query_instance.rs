//! The plan of what a query does with its rows, for some values of what it is given. A session keeps it.

use std::sync::Arc;

use arrow::datatypes::SchemaRef;
use datafusion_physical_plan::ExecutionPlan;
use smallvec::SmallVec;

use super::row_query::ComputedRows;
use crate::session::result::ColumnMeta;

/// What is done with the rows.
pub(in crate::direct) enum Work {
    Operators(Arc<dyn ExecutionPlan>),
    /// What is computed of each, or of groups of them.
    Computed(Box<ComputedRows>),
}

/// The plan for some values of the inputs.
pub(in crate::direct) struct QueryInstance {
    pub(in crate::direct) work: Work,
    /// The columns of the rows, and the inputs that are columns.
    pub(in crate::direct) schema: SchemaRef,
    pub(in crate::direct) free: SmallVec<[usize; 4]>,
    pub(in crate::direct) metas: Vec<ColumnMeta>,
}
