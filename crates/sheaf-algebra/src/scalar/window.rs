//! Functions over windows: one value for each row, computed from rows around it.

use arrow::datatypes::{DataType, FieldRef};
use datafusion_common::Result;
use datafusion_expr::expr::WindowFunction as WindowExpr;
use datafusion_expr::expr::{NullTreatment, WindowFunctionParams};
use datafusion_expr::{Expr, SortExpr, WindowFrame, WindowFunctionDefinition};

use super::Scalar;
use super::expression::as_taken;
use crate::column::ColumnId;

/// A function and its window. Unlike in a [Group](crate::relation::Group), what rows are divided and ordered by is
/// spelled out: sort keys of texts.
#[derive(Clone, Debug)]
pub struct WindowFunction {
    pub(super) function: WindowFunctionDefinition,
    pub(super) arguments: Vec<Scalar>,
    /// The types that the function takes its arguments in.
    pub(super) taken_types: Vec<DataType>,
    pub(super) partition_by: Vec<Scalar>,
    pub(super) order_by: Vec<WindowOrder>,
    pub(super) frame: WindowFrame,
    pub(super) null_treatment: Option<NullTreatment>,
    pub(super) distinct: bool,
    pub(super) field: FieldRef,
}

/// A part of a window's order.
#[derive(Clone, Debug, PartialEq)]
pub struct WindowOrder {
    pub value: Scalar,
    pub ascending: bool,
    pub nulls_first: bool,
}

impl PartialEq for WindowFunction {
    fn eq(&self, other: &WindowFunction) -> bool {
        // Arguments differ at a glance, by their fingerprints.
        self.arguments == other.arguments
            && self.function == other.function
            && self.partition_by == other.partition_by
            && self.order_by == other.order_by
            && self.frame == other.frame
            && self.null_treatment == other.null_treatment
            && self.distinct == other.distinct
    }
}

impl WindowFunction {
    pub fn name(&self) -> &str {
        self.function.name()
    }

    /// Whether both have one window: equal rows, in an equal order.
    pub fn shares_window_of(&self, other: &WindowFunction) -> bool {
        self.partition_by == other.partition_by
            && self.order_by == other.order_by
            && self.frame == other.frame
    }

    pub fn field(&self) -> &FieldRef {
        &self.field
    }

    pub fn arguments(&self) -> &[Scalar] {
        &self.arguments
    }

    pub fn partition_by(&self) -> &[Scalar] {
        &self.partition_by
    }

    pub fn order_by(&self) -> &[WindowOrder] {
        &self.order_by
    }

    /// The same, over other partitions.
    pub fn with_partition_by(self, partition_by: Vec<Scalar>) -> WindowFunction {
        WindowFunction {
            partition_by,
            ..self
        }
    }

    /// Calls `visit` with all that it is computed from.
    pub fn for_each_operand(&self, visit: &mut dyn FnMut(&Scalar)) {
        self.arguments.iter().for_each(&mut *visit);
        self.partition_by.iter().for_each(&mut *visit);
        self.order_by.iter().for_each(|order| visit(&order.value));
    }

    /// The same with other operands, of the same types.
    pub fn map_operands(self, map: &mut dyn FnMut(Scalar) -> Scalar) -> WindowFunction {
        let arguments = self.arguments.into_iter().map(&mut *map).collect();
        let partition_by = self.partition_by.into_iter().map(&mut *map).collect();
        let order_by = self.order_by.into_iter().map(|order| WindowOrder {
            value: map(order.value),
            ..order
        });
        let order_by = order_by.collect();
        WindowFunction {
            arguments,
            partition_by,
            order_by,
            ..self
        }
    }

    /// The call in a plan, with columns as `column` writes them.
    ///
    /// # Errors
    /// The statement shall stop.
    pub fn to_expr(&self, column: &dyn Fn(ColumnId, &FieldRef) -> Expr) -> Result<Expr> {
        let all = |operands: &[Scalar]| -> Result<Vec<Expr>> {
            operands
                .iter()
                .map(|operand| operand.to_plan_expr(column))
                .collect()
        };
        let order_by = self.order_by.iter().map(|order| {
            Ok(SortExpr {
                expr: order.value.to_plan_expr(column)?,
                asc: order.ascending,
                nulls_first: order.nulls_first,
            })
        });
        Ok(Expr::WindowFunction(Box::new(WindowExpr {
            fun: self.function.clone(),
            params: WindowFunctionParams {
                args: as_taken(&self.arguments, &self.taken_types, column)?,
                partition_by: all(&self.partition_by)?,
                order_by: order_by.collect::<Result<_>>()?,
                window_frame: self.frame.clone(),
                filter: None,
                null_treatment: self.null_treatment,
                distinct: self.distinct,
            },
        })))
    }
}
