//! A node of a logical plan: the rows of a query for each row of another one, `LATERAL`.
//!
//! The algebra makes joins of lateral derived tables where it can. The others run for each row. The planner takes the
//! node apart before any rule sees it.

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use datafusion_common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion_expr::logical_plan::Subquery;
use datafusion_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};

/// Rows of the input, each with the rows of the query that runs for it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Lateral {
    pub input: Arc<LogicalPlan>,
    /// It stands in an expression, as all correlated queries do.
    pub query: Subquery,
    /// A row for which the query has no rows comes once, with NULL in all columns of the query.
    pub keeps_rows: bool,
    /// Columns of the input, and behind them those of the query.
    schema: DFSchemaRef,
}

impl Lateral {
    /// # Errors
    /// Two columns have one name.
    pub fn try_new(input: Arc<LogicalPlan>, query: Subquery, keeps_rows: bool) -> Result<Lateral> {
        let schema = schema_of(&input, &query.subquery)?;
        Ok(Lateral {
            input,
            query,
            keeps_rows,
            schema: Arc::new(schema),
        })
    }

    pub fn into_plan(self) -> LogicalPlan {
        let node = Arc::new(self);
        LogicalPlan::Extension(Extension { node })
    }
}

/// The columns of a query and of another one that runs for each of its rows. What these are may be NULL: where there
/// is no row, and where a plan for some values knows less.
pub fn schema_of(input: &LogicalPlan, query: &LogicalPlan) -> Result<DFSchema> {
    let of_input = input.schema().iter();
    let of_input = of_input.map(|(table, field)| (table.cloned(), Arc::clone(field)));
    let of_query = query.schema().iter().map(|(table, field)| {
        let field = field.as_ref().clone().with_nullable(true);
        (table.cloned(), Arc::new(field))
    });
    let columns = of_input.chain(of_query).collect();
    DFSchema::new_with_metadata(columns, input.schema().metadata().clone())
}

impl PartialOrd for Lateral {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Lateral {
    fn name(&self) -> &str {
        "Lateral"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        vec![&self.input]
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        vec![Expr::ScalarSubquery(self.query.clone())]
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "Lateral")
    }

    fn with_exprs_and_inputs(
        &self,
        mut expressions: Vec<Expr>,
        mut inputs: Vec<LogicalPlan>,
    ) -> Result<Self> {
        let (Some(Expr::ScalarSubquery(query)), Some(input)) = (expressions.pop(), inputs.pop())
        else {
            return internal_err!("a lateral query without its input");
        };
        Lateral::try_new(Arc::new(input), query, self.keeps_rows)
    }
}
