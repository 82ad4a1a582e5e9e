//! Long conditions are laid aside while rules are applied.
//!
//! Each rule goes through all expressions of a plan, and finds nothing in an OR of ten thousand terms that the typing
//! rule has left. So such a condition on one table is a call of a function meanwhile, be it of a filter or of a scan:
//!
//! ```text
//!   Filter a >= 1 and a < 2 or a >= 5 and a < 6 or ...         Filter $condition_7(a)
//!     Scan                                               -->     Scan
//! ```
//!
//! Arguments are the columns that it names. What a rule puts in the place of a column, it puts there. Above an outer
//! join nothing is laid aside: whether a condition is true of NULL decides what the join is.

use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arrow::array::RecordBatch;
use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, DFSchema, Result};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::logical_plan::Filter;
use datafusion_expr::utils::{conjunction, split_conjunction, split_conjunction_owned};
use datafusion_expr::{
    BinaryExpr, ColumnarValue, Expr, JoinType, LogicalPlan, Operator, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, lit,
};
use datafusion_physical_expr::create_physical_expr;

/// Terms of an OR from which on it is laid aside.
const MIN_TERMS: usize = 500;

/// A plan, and whether some of its conditions are laid aside.
pub(crate) struct LaidAside {
    pub(crate) plan: LogicalPlan,
    pub(crate) any: bool,
}

/// Lays long conditions aside.
pub(crate) fn lay_aside(plan: LogicalPlan) -> Result<LaidAside> {
    let mut any = false;
    plan.apply(|node| {
        any |= match node {
            LogicalPlan::Filter(filter) => has_long(&filter.predicate),
            LogicalPlan::TableScan(scan) => scan.filters.iter().any(has_long),
            _ => false,
        };
        Ok(match any {
            true => TreeNodeRecursion::Stop,
            false => TreeNodeRecursion::Continue,
        })
    })?;
    if !any {
        return Ok(LaidAside { plan, any });
    }
    let plan = plan.transform_down(|node| match node {
        LogicalPlan::Filter(filter)
            if has_long(&filter.predicate) && !is_above_outer_join(&filter.input)? =>
        {
            let predicate = with_long_aside(filter.predicate, filter.input.schema())?;
            let filter = Filter::try_new(predicate, filter.input)?;
            Ok(Transformed::yes(LogicalPlan::Filter(filter)))
        }
        LogicalPlan::TableScan(mut scan) if scan.filters.iter().any(has_long) => {
            for filter in &mut scan.filters {
                *filter = with_long_aside(std::mem::take(filter), &scan.projected_schema)?;
            }
            Ok(Transformed::yes(LogicalPlan::TableScan(scan)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(LaidAside {
        plan: plan.data,
        any,
    })
}

/// What rules have made of a plan, with its conditions in their places, if `any` are laid aside.
pub(crate) fn put_back(plan: LogicalPlan, any: bool) -> Result<LogicalPlan> {
    if !any {
        return Ok(plan);
    }
    let plan = plan.transform_down(|node| {
        node.map_expressions(|expr| {
            expr.transform_down(|expr| match opened(&expr)? {
                Some(condition) => Ok(Transformed::new(condition, true, TreeNodeRecursion::Jump)),
                None => Ok(Transformed::no(expr)),
            })
        })
    })?;
    Ok(plan.data)
}

fn has_long(condition: &Expr) -> bool {
    split_conjunction(condition).into_iter().any(is_long)
}

/// The condition with calls in the place of its long parts.
fn with_long_aside(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    let parts = split_conjunction_owned(condition).into_iter();
    let parts = parts.map(|part| match is_long(&part) {
        true => aside(part, schema),
        false => Ok(part),
    });
    let parts = parts.collect::<Result<Vec<_>>>()?;
    Ok(conjunction(parts).unwrap_or_else(|| lit(true)))
}

fn is_above_outer_join(plan: &LogicalPlan) -> Result<bool> {
    plan.exists(|node| {
        Ok(matches!(node, LogicalPlan::Join(join) if join.join_type != JoinType::Inner))
    })
}

/// Whether this is an OR of many terms. Those of ANDs in it count, too.
fn is_long(condition: &Expr) -> bool {
    let Expr::BinaryExpr(BinaryExpr {
        op: Operator::Or, ..
    }) = condition
    else {
        return false;
    };
    let mut open = vec![condition];
    let mut terms = 0;
    while let Some(expr) = open.pop() {
        match expr {
            Expr::BinaryExpr(BinaryExpr {
                left,
                op: Operator::Or | Operator::And,
                right,
            }) => open.extend([left.as_ref(), right.as_ref()]),
            _ => terms += 1,
        }
        if terms >= MIN_TERMS {
            return true;
        }
    }
    false
}

/// The call that stands for a condition; the condition itself, where it is not of one table's columns alone.
fn aside(condition: Expr, schema: &DFSchema) -> Result<Expr> {
    let columns = condition.column_refs();
    let mut columns: Vec<Column> = columns.into_iter().cloned().collect();
    columns.sort();
    let is_of_one = columns
        .windows(2)
        .all(|pair| pair[0].relation == pair[1].relation);
    let is_open = |expr: &Expr| {
        matches!(
            expr,
            Expr::OuterReferenceColumn(..)
                | Expr::ScalarSubquery(_)
                | Expr::Exists(_)
                | Expr::InSubquery(_)
                | Expr::SetComparison(_)
                | Expr::Placeholder(_)
        )
    };
    if columns.is_empty()
        || !is_of_one
        || condition.is_volatile()
        || condition.exists(|expr| Ok(is_open(expr)))?
    {
        return Ok(condition);
    }
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let fields = columns.iter().map(|column| {
        let (qualifier, field) = schema.qualified_field_from_column(column)?;
        Ok((qualifier.cloned(), Arc::clone(field)))
    });
    let fields = fields.collect::<Result<Vec<_>>>()?;
    let function = Condition {
        name: format!("$condition_{}", NUMBER.fetch_add(1, Ordering::Relaxed)),
        condition,
        schema: DFSchema::new_with_metadata(fields, Default::default())?,
        signature: Signature::any(columns.len(), Volatility::Immutable),
        columns: columns.clone(),
    };
    Ok(ScalarUDF::from(function).call(columns.into_iter().map(Expr::Column).collect()))
}

/// The condition that a call stands for; `None` if it stands for none.
fn opened(call: &Expr) -> Result<Option<Expr>> {
    let Expr::ScalarFunction(call) = call else {
        return Ok(None);
    };
    let Some(function) = call.func.inner().downcast_ref::<Condition>() else {
        return Ok(None);
    };
    let arguments = || function.columns.iter().zip(&call.args);
    if arguments()
        .all(|(column, argument)| matches!(argument, Expr::Column(known) if known == column))
    {
        return Ok(Some(function.condition.clone()));
    }
    let condition = function.condition.clone().transform_down(|expr| {
        let Expr::Column(column) = &expr else {
            return Ok(Transformed::no(expr));
        };
        let argument = arguments().find(|(known, _)| *known == column);
        Ok(match argument {
            Some((_, argument)) => {
                Transformed::new(argument.clone(), true, TreeNodeRecursion::Jump)
            }
            None => Transformed::no(expr),
        })
    })?;
    Ok(Some(condition.data))
}

/// A condition behind a function's name.
#[derive(Debug)]
struct Condition {
    /// No other has this name.
    name: String,
    condition: Expr,
    /// What it names.
    columns: Vec<Column>,
    /// Of these.
    schema: DFSchema,
    signature: Signature,
}

impl PartialEq for Condition {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Condition {}

impl Hash for Condition {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name.hash(state);
    }
}

impl ScalarUDFImpl for Condition {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _arguments: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    /// Only where a rule has put constants in the places of all columns.
    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let context = Default::default();
        let properties = ExecutionProps::new();
        let condition = create_physical_expr(&self.condition, &self.schema, &properties, &context)?;
        let values = args.args.into_iter();
        let values = values.map(|value| value.into_array(args.number_rows));
        let values = values.collect::<Result<Vec<_>>>()?;
        let fields = values.iter().zip(self.schema.fields());
        let fields =
            fields.map(|(value, field)| Field::new(field.name(), value.data_type().clone(), true));
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        condition.evaluate(&RecordBatch::try_new(schema, values)?)
    }
}
