//! A union of unions becomes one.
//!
//! The columns of a union's inputs belong together by position, and their names may differ:
//!
//! ```text
//!   UNION ( Projection a+1 ( UNION ( t (a), u (b) ) ), v )      UNION ( Projection a+1 (t), Projection b+1 (u), v )
//! ```
//!
//! DataFusion's OptimizeUnions does the same, but takes the names of one input to another, and fails where these
//! differ. All inputs have the same types already.

use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Column, DFSchema, Result};
use datafusion_expr::{Distinct, Expr, LogicalPlan, Projection, Union};
use datafusion_optimizer::optimizer::ApplyOrder;
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

/// See the module's comment.
#[derive(Debug)]
pub(crate) struct FlatUnions;

impl OptimizerRule for FlatUnions {
    fn name(&self) -> &str {
        "flat_unions"
    }

    fn apply_order(&self) -> Option<ApplyOrder> {
        Some(ApplyOrder::BottomUp)
    }

    fn supports_rewrite(&self) -> bool {
        true
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        match plan {
            LogicalPlan::Union(union) => flat(union, false),
            LogicalPlan::Distinct(Distinct::All(input)) => match Arc::unwrap_or_clone(input) {
                LogicalPlan::Union(union) => Ok(flat(union, true)?
                    .update_data(|plan| LogicalPlan::Distinct(Distinct::All(Arc::new(plan))))),
                other => Ok(Transformed::no(LogicalPlan::Distinct(Distinct::All(
                    Arc::new(other),
                )))),
            },
            other => Ok(Transformed::no(other)),
        }
    }
}

/// `is_distinct`: equal rows become one afterwards, so it does not matter whether an input has done that before.
fn flat(union: Union, is_distinct: bool) -> Result<Transformed<LogicalPlan>> {
    let Union { inputs, schema } = union;
    let mut flattened = Vec::with_capacity(inputs.len());
    let mut changed = false;
    for input in inputs {
        changed |= add_input(input, is_distinct, &mut flattened)?;
    }
    // The operator calls its columns as its first input does.
    if changed && !has_names_of(flattened[0].schema(), &schema) {
        let first = flattened.remove(0);
        flattened.insert(0, Arc::new(under_names_of(first, &schema)?));
    }
    let plan = LogicalPlan::Union(Union {
        inputs: flattened,
        schema,
    });
    Ok(Transformed::new_transformed(plan, changed))
}

/// Adds an input, or the inputs of a union that it is. True if it is not added as it was.
fn add_input(
    input: Arc<LogicalPlan>,
    is_distinct: bool,
    out: &mut Vec<Arc<LogicalPlan>>,
) -> Result<bool> {
    match input.as_ref() {
        LogicalPlan::Union(union) => {
            for input in &union.inputs {
                add_input(Arc::clone(input), is_distinct, out)?;
            }
            return Ok(true);
        }
        LogicalPlan::Distinct(Distinct::All(below)) if is_distinct => {
            add_input(Arc::clone(below), is_distinct, out)?;
            return Ok(true);
        }
        LogicalPlan::Projection(projection) => {
            if let LogicalPlan::Union(union) = projection.input.as_ref() {
                for input in &union.inputs {
                    let pushed = projected(projection, &union.schema, input)?;
                    add_input(Arc::new(pushed), is_distinct, out)?;
                }
                return Ok(true);
            }
        }
        _ => {}
    }
    out.push(input);
    Ok(false)
}

/// The projection of a union, of one of its inputs.
fn projected(
    projection: &Projection,
    union: &DFSchema,
    input: &Arc<LogicalPlan>,
) -> Result<LogicalPlan> {
    let of_input = |expr: Expr| {
        expr.transform_up(|part| match &part {
            Expr::Column(column) => {
                let position = union.index_of_column(column)?;
                let column = Column::from(input.schema().qualified_field(position));
                Ok(Transformed::yes(Expr::Column(column)))
            }
            _ => Ok(Transformed::no(part)),
        })
    };
    let outputs = projection.expr.iter().zip(projection.schema.iter());
    let expr = outputs
        .map(|(expr, (relation, field))| {
            Ok(of_input(expr.clone())?
                .data
                .unalias()
                .alias_qualified(relation.cloned(), field.name()))
        })
        .collect::<Result<Vec<_>>>()?;
    Ok(LogicalPlan::Projection(Projection::try_new(
        expr,
        Arc::clone(input),
    )?))
}

/// True where both call their columns the same.
fn has_names_of(input: &DFSchema, union: &DFSchema) -> bool {
    let fields = input.fields().iter().zip(union.fields());
    fields
        .into_iter()
        .all(|(one, other)| one.name() == other.name())
}

/// The same rows under the names of a union.
fn under_names_of(input: Arc<LogicalPlan>, union: &DFSchema) -> Result<LogicalPlan> {
    let columns = input.schema().iter().zip(union.iter());
    let renamed = columns
        .map(|(column, (relation, field))| {
            let column = Expr::Column(Column::from(column));
            column.alias_qualified(relation.cloned(), field.name())
        })
        .collect();
    Ok(LogicalPlan::Projection(Projection::try_new(
        renamed, input,
    )?))
}
