//! Aggregates: one value for a group of rows.

use std::sync::Arc;

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::AggregateUDF;
use datafusion_expr::expr::AggregateFunction;
use datafusion_expr::{Expr, SortExpr};

use super::Scalar;
use super::expression::as_taken;
use crate::column::ColumnId;

/// An aggregate. AVG is none: it is a quotient of two.
#[derive(Clone, Debug)]
pub struct Aggregate {
    pub(super) function: Arc<AggregateUDF>,
    pub(super) arguments: Vec<Scalar>,
    /// The types that the function takes its arguments in: integers add up as DECIMALs.
    pub(super) taken_types: Vec<DataType>,
    pub(super) distinct: bool,
    /// Sort keys, and whether they descend.
    pub(super) order_by: Vec<(Scalar, bool)>,
    pub(super) field: FieldRef,
}

impl PartialEq for Aggregate {
    fn eq(&self, other: &Aggregate) -> bool {
        // Arguments differ at a glance, by their fingerprints.
        self.arguments == other.arguments
            && self.distinct == other.distinct
            && self.function == other.function
            && self.order_by == other.order_by
    }
}

impl Aggregate {
    pub fn name(&self) -> &str {
        self.function.name()
    }

    pub fn function(&self) -> &Arc<AggregateUDF> {
        &self.function
    }

    /// It takes the rows of a group in an order.
    pub fn is_ordered(&self) -> bool {
        !self.order_by.is_empty()
    }

    pub fn arguments(&self) -> &[Scalar] {
        &self.arguments
    }

    /// Sort keys that its rows are ordered by, and whether they descend.
    pub fn order_by(&self) -> &[(Scalar, bool)] {
        &self.order_by
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

    /// The call in a plan, with columns as `column` writes them.
    ///
    /// # Errors
    /// The statement shall stop.
    pub fn to_expr(&self, column: &dyn Fn(ColumnId, &FieldRef) -> Expr) -> Result<Expr> {
        let order_by = self.order_by.iter().map(|(key, descends)| {
            Ok(SortExpr {
                expr: key.to_plan_expr(column)?,
                asc: !descends,
                nulls_first: !descends,
            })
        });
        let order_by = order_by.collect::<Result<_>>()?;
        Ok(Expr::AggregateFunction(AggregateFunction::new_udf(
            Arc::clone(&self.function),
            as_taken(&self.arguments, &self.taken_types, column)?,
            self.distinct,
            None,
            order_by,
            None,
        )))
    }

    /// The same over rows in this order.
    pub fn ordered_by(self, order_by: Vec<(Scalar, bool)>) -> Aggregate {
        Aggregate { order_by, ..self }
    }

    /// Arguments, and what rows are ordered by.
    pub fn operands(&self) -> impl Iterator<Item = &Scalar> {
        let order_by = self.order_by.iter().map(|(key, _)| key);
        self.arguments.iter().chain(order_by)
    }

    /// The same with other arguments, of the same types.
    pub fn map_arguments(self, map: &mut dyn FnMut(Scalar) -> Scalar) -> Aggregate {
        let arguments = self.arguments.into_iter().map(&mut *map).collect();
        let order_by = self.order_by.into_iter();
        let order_by = order_by.map(|(key, descends)| (map(key), descends));
        Aggregate {
            arguments,
            order_by: order_by.collect(),
            ..self
        }
    }
}
