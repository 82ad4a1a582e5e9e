//! Texts that functions lengthen are made below the operators that group, join or order by them, or keep them.
//!
//! ```text
//!   Aggregate count(d) by repeat(s, 1000)   -->     Aggregate count(d) by $key_0
//!     Scan s, d                                       Projection s, d, repeat(s, 1000) AS $key_0
//!                                                       Scan s, d
//! ```
//!
//! An operator evaluates its keys and arguments for a whole batch, and an aggregate has them once more in its table. A
//! projection hands on as many rows at a time as fit ([`sheaf_exec::operator::bounded_projection`]). Windows and joins
//! have columns more then, which a projection above them leaves out.

use std::sync::Arc;

use arrow::datatypes::DataType;
use datafusion_common::Result;
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::PhysicalGroupBy;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use sheaf_exec::operator::bounded_projection::{
    MOST_COPIES, copies_made, lengthens_much, makes_text,
};

/// Rows that get such texts as columns behind their own.
pub(crate) struct Lengthened {
    rows: Arc<dyn ExecutionPlan>,
    /// What the columns are called, but for their numbers.
    prefix: &'static str,
    /// The rows' columns, and what is computed.
    list: Vec<ProjectionExpr>,
}

impl Lengthened {
    pub(crate) fn new(rows: Arc<dyn ExecutionPlan>, prefix: &'static str) -> Lengthened {
        let list = columns_of(&rows);
        Lengthened { rows, prefix, list }
    }

    /// The expression in terms of the rows with the columns: itself, or a column if it is such a text.
    pub(crate) fn column_of(&mut self, expr: Arc<dyn PhysicalExpr>) -> Arc<dyn PhysicalExpr> {
        use DataType::{Binary, BinaryView, Utf8, Utf8View};

        let is_text = || {
            let ty = expr.data_type(&self.rows.schema());
            matches!(ty, Ok(Utf8 | Utf8View | Binary | BinaryView))
        };
        if !lengthens_much(&expr) || !is_text() {
            return expr;
        }
        let own = self.rows.schema().fields().len();
        let known = self.list[own..].iter().position(|item| item.expr.eq(&expr));
        let at = known.map_or(self.list.len(), |at| own + at);
        let alias = format!("${}_{}", self.prefix, at - own);
        let column = Column::new(&alias, at);
        if known.is_none() {
            self.list.push(ProjectionExpr { expr, alias });
        }
        Arc::new(column)
    }

    /// So many columns are behind the rows' own.
    pub(crate) fn added(&self) -> usize {
        self.list.len() - self.rows.schema().fields().len()
    }

    /// The rows with the columns.
    pub(crate) fn plan(self) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(match self.added() {
            0 => self.rows,
            _ => Arc::new(ProjectionExec::try_new(self.list, self.rows)?),
        })
    }
}

/// The columns of rows, as the list of a projection.
fn columns_of(rows: &Arc<dyn ExecutionPlan>) -> Vec<ProjectionExpr> {
    let schema = rows.schema();
    let fields = schema.fields().iter();
    let columns = fields.enumerate().map(|(at, field)| ProjectionExpr {
        expr: Arc::new(Column::new(field.name(), at)),
        alias: field.name().clone(),
    });
    columns.collect()
}

/// The rows without some of their columns: so many from this place on.
pub(crate) fn without_columns(
    rows: Arc<dyn ExecutionPlan>,
    first: usize,
    count: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    if count == 0 {
        return Ok(rows);
    }
    let mut list = columns_of(&rows);
    list.drain(first..first + count);
    Ok(Arc::new(ProjectionExec::try_new(list, rows)?))
}

/// The rows with the keys behind their columns, and the keys in terms of these. `None`: no key is made by such a
/// function, and the keys are not many texts: they have no string of a column more often than there is room for.
pub(super) fn computed_below(
    plan: &Arc<dyn ExecutionPlan>,
    groups: &PhysicalGroupBy,
    most_copies: impl FnOnce() -> usize,
) -> Result<Option<(Arc<dyn ExecutionPlan>, PhysicalGroupBy)>> {
    let rows = plan.schema();
    let keys = groups.expr().iter().map(|(key, _)| key);
    let copies = copies_made(keys, &rows);
    let are_many = copies > MOST_COPIES && copies > most_copies();
    let is_long = |key: &(Arc<dyn PhysicalExpr>, String)| {
        lengthens_much(&key.0) || are_many && makes_text(&key.0, &rows)
    };
    if !groups.expr().iter().any(is_long) {
        return Ok(None);
    }
    let mut list = columns_of(plan);
    let mut keys = Vec::with_capacity(groups.expr().len());
    for (position, key) in groups.expr().iter().enumerate() {
        let (expr, name) = key.clone();
        if !is_long(key) {
            keys.push((expr, name));
            continue;
        }
        let alias = format!("$key_{position}");
        let column = Column::new(&alias, list.len());
        keys.push((Arc::new(column) as _, name));
        list.push(ProjectionExpr { expr, alias });
    }
    let groups = PhysicalGroupBy::new(
        keys,
        groups.null_expr().to_vec(),
        groups.groups().to_vec(),
        groups.has_grouping_set(),
    );
    let plan = ProjectionExec::try_new(list, Arc::clone(plan))?;
    Ok(Some((Arc::new(plan), groups)))
}
