//! Aggregates: one value for a group of rows.

use std::sync::Arc;

use arrow::datatypes::FieldRef;
use datafusion_expr::AggregateUDF;
use datafusion_expr::Expr;
use datafusion_expr::expr::AggregateFunction;

use super::Scalar;
use crate::column::ColumnId;

/// An aggregate, with arguments as its function wants them. AVG is none: it is a quotient of two.
#[derive(Clone, Debug)]
pub struct Aggregate {
    pub(super) function: Arc<AggregateUDF>,
    pub(super) arguments: Vec<Scalar>,
    pub(super) distinct: bool,
    pub(super) field: FieldRef,
}

impl PartialEq for Aggregate {
    fn eq(&self, other: &Aggregate) -> bool {
        self.distinct == other.distinct
            && self.function == other.function
            && self.arguments == other.arguments
    }
}

impl Aggregate {
    pub fn name(&self) -> &str {
        self.function.name()
    }

    pub fn arguments(&self) -> &[Scalar] {
        &self.arguments
    }

    pub fn is_distinct(&self) -> bool {
        self.distinct
    }

    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    /// Of no rows at all it is 0; the others are NULL then.
    pub fn counts(&self) -> bool {
        self.function.name() == "count"
    }

    pub fn to_expr(&self, column: &dyn Fn(ColumnId, &FieldRef) -> Expr) -> Expr {
        let arguments = self.arguments.iter();
        let arguments = arguments.map(|argument| argument.to_expr(column)).collect();
        Expr::AggregateFunction(AggregateFunction::new_udf(
            Arc::clone(&self.function),
            arguments,
            self.distinct,
            None,
            Vec::new(),
            None,
        ))
    }

    /// The same with other arguments, of the same types.
    pub fn map_arguments(self, map: &mut dyn FnMut(Scalar) -> Scalar) -> Aggregate {
        let arguments = self.arguments.into_iter().map(map).collect();
        Aggregate { arguments, ..self }
    }
}
