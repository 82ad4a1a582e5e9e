//! Window functions.

use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::SchemaRef;
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue, internal_err};
use datafusion_expr::expr::{NullTreatment, WindowFunctionParams};
use datafusion_expr::{
    Expr, LogicalPlan, Window, WindowFrame, WindowFrameBound, WindowFrameUnits,
    WindowFunctionDefinition,
};
use datafusion_physical_expr::expressions::{BinaryExpr, CastExpr};
use datafusion_physical_expr::{
    EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr, create_physical_sort_exprs,
};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::windows::{BoundedWindowAggExec, WindowAggExec, create_window_expr};
use datafusion_physical_plan::{
    ExecutionPlan, ExecutionPlanProperties, InputOrderMode, WindowExpr,
};
use sheaf_exec::group_keys::has_doubtful_keys;

use crate::access::wanted::Wanted;
use crate::physical::long_keys::{Lengthened, without_columns};
use crate::physical::planner::Planner;
use crate::physical::sort_keys::bounded_sort_keys;
use crate::planned::{Block, Planned};

/// All expressions of one Window node share PARTITION BY and ORDER BY. The sort below is written out here, not left to
/// [`properties`](crate::physical::properties). An operator above looks at the order that this plan really has. It must
/// not see the input's order, which that sort destroys.
pub(crate) fn plan_window(
    planner: &mut Planner<'_>,
    window: &Window,
    block: &Block,
) -> Result<Planned> {
    let input = planner.plan(&window.input, block, &Wanted::default())?;
    let functions = window
        .window_expr
        .iter()
        .map(|expr| window_function(planner, expr, window, &input, block));
    let mut functions = functions.collect::<Result<Vec<_>>>()?;
    let columns = input.plan.schema().fields().len();
    let mut rows = Lengthened::new(Arc::clone(&input.plan), "window");
    functions
        .iter_mut()
        .for_each(|function| function.take_texts_of(&mut rows));
    let added = rows.added();
    let rows = rows.plan()?;
    let schema = rows.schema();
    let expressions = functions
        .into_iter()
        .map(|function| function.over(Arc::clone(&schema)));
    let expressions = expressions.collect::<Result<Vec<_>>>()?;
    planner.note_kept(input.rows);
    let child = sorted_for(&rows, &expressions)?;
    // Each worker would have a sort of its own, and these would divide the memory.
    let is_thrifty = planner.context.settings.is_thrifty();
    let parallel = child.output_partitioning().partition_count() > 1 && !is_thrifty;
    // Bounded frames need only the rows of the frame in memory.
    let plan: Arc<dyn ExecutionPlan> = if expressions.iter().all(|expr| expr.uses_bounded_memory())
    {
        Arc::new(BoundedWindowAggExec::try_new(
            expressions,
            child,
            InputOrderMode::Sorted,
            parallel,
        )?)
    } else {
        Arc::new(WindowAggExec::try_new(expressions, child, parallel)?)
    };
    let plan = without_columns(plan, columns, added)?;
    Ok(Planned { plan, ..input })
}

/// The input in the order that the window functions need it in.
fn sorted_for(
    rows: &Arc<dyn ExecutionPlan>,
    expressions: &[Arc<dyn WindowExpr>],
) -> Result<Arc<dyn ExecutionPlan>> {
    let child = Arc::clone(rows);
    let Some(first) = expressions.first() else {
        return internal_err!("a window without functions");
    };
    let partition = first.partition_by().iter();
    // Any order tells partitions apart. This one is what a window requires. So it is also that of a sort that comes in
    // the place of ours, when operators above have looked at ours.
    let options = SortOptions::new(false, false);
    let keys: Vec<PhysicalSortExpr> = partition
        .map(|expr| PhysicalSortExpr::new(Arc::clone(expr), options))
        .chain(first.order_by().iter().cloned())
        .collect();
    let Some(ordering) = LexOrdering::new(keys.clone()) else {
        return Ok(child);
    };
    if child.equivalence_properties().ordering_satisfy(keys)? {
        return Ok(child);
    }
    Ok(Arc::new(
        SortExec::new(ordering, child).with_preserve_partitioning(true),
    ))
}

/// A window function over the rows of a plan, and what it is computed from.
struct WindowFunction {
    function: WindowFunctionDefinition,
    name: String,
    args: Vec<Arc<dyn PhysicalExpr>>,
    partition_by: Vec<Arc<dyn PhysicalExpr>>,
    order_by: Vec<PhysicalSortExpr>,
    frame: WindowFrame,
    ignores_nulls: bool,
    distinct: bool,
    filter: Option<Arc<dyn PhysicalExpr>>,
}

impl WindowFunction {
    /// Has texts that functions lengthen computed with the rows. The other arguments of functions are constants.
    fn take_texts_of(&mut self, rows: &mut Lengthened) {
        let arguments = self.args.iter_mut().take(1);
        for expr in arguments.chain(&mut self.partition_by) {
            *expr = rows.column_of(Arc::clone(expr));
        }
        for key in &mut self.order_by {
            key.expr = rows.column_of(Arc::clone(&key.expr));
        }
    }

    /// The function over rows of this schema.
    fn over(self, schema: SchemaRef) -> Result<Arc<dyn WindowExpr>> {
        create_window_expr(
            &self.function,
            self.name,
            &self.args,
            &self.partition_by,
            &self.order_by,
            Arc::new(self.frame),
            schema,
            self.ignores_nulls,
            self.distinct,
            self.filter,
        )
    }
}

fn window_function(
    planner: &Planner<'_>,
    expr: &Expr,
    window: &Window,
    input: &Planned,
    block: &Block,
) -> Result<WindowFunction> {
    let (name, expr) = match expr {
        Expr::Alias(alias) => (
            alias.name.clone(),
            alias.expr.as_ref().clone().unalias_nested().data,
        ),
        expr => (expr.schema_name().to_string(), expr.clone()),
    };
    let Expr::WindowFunction(function) = &expr else {
        return internal_err!("not a window function: {expr}");
    };
    let WindowFunctionParams {
        args,
        partition_by,
        order_by,
        window_frame,
        null_treatment,
        distinct,
        filter,
    } = &function.params;
    let frame = match starts_after_end(window_frame) {
        true => frame_without_rows(),
        false => within_reach(window_frame.clone()),
    };
    let schema = window.input.schema();
    let physical = |exprs: &[Expr]| -> Result<Vec<_>> {
        exprs
            .iter()
            .map(|expr| planner.expr(expr, schema, block))
            .collect()
    };
    let args = physical(args)?;
    let input_schema = input.plan.schema();
    let partition_by = physical(&undetermined(partition_by, &window.input))?
        .into_iter()
        .map(|key| with_typed_operands(key, &input_schema))
        .collect::<Result<Vec<_>>>()?;
    let order_by = create_physical_sort_exprs(order_by, schema, &planner.properties, &block.slots)?;
    let mut order_by = bounded_sort_keys(order_by, &planner.properties);
    for key in &mut order_by {
        key.expr = with_typed_operands(Arc::clone(&key.expr), &input_schema)?;
    }
    let filter = filter
        .as_ref()
        .map(|filter| planner.expr(filter, schema, block))
        .transpose()?;
    Ok(WindowFunction {
        function: function.fun.clone(),
        name,
        args,
        partition_by,
        order_by,
        frame,
        ignores_nulls: *null_treatment == Some(NullTreatment::IgnoreNulls),
        distinct: *distinct,
        filter,
    })
}

/// A key whose comparisons know the types of their operands. DataFusion asks a comparison for the values that it may
/// have. A CASE or a function among its operands may not tell their type. Then it forgets that rows are in the order of
/// the key.
fn with_typed_operands(
    key: Arc<dyn PhysicalExpr>,
    schema: &SchemaRef,
) -> Result<Arc<dyn PhysicalExpr>> {
    let properties = EquivalenceProperties::new(Arc::clone(schema));
    let typed = |operand: &Arc<dyn PhysicalExpr>| -> Result<Option<Arc<dyn PhysicalExpr>>> {
        let ty = operand.data_type(schema)?;
        let known = properties.get_expr_properties(Arc::clone(operand));
        Ok(match known.range.data_type() == ty {
            true => None,
            false => Some(Arc::new(CastExpr::new(Arc::clone(operand), ty, None))),
        })
    };
    let key = key.transform_up(|part| {
        let Some(both) = part.downcast_ref::<BinaryExpr>() else {
            return Ok(Transformed::no(part));
        };
        let (left, right) = (typed(both.left())?, typed(both.right())?);
        if left.is_none() && right.is_none() {
            return Ok(Transformed::no(part));
        }
        let operands = vec![
            left.unwrap_or_else(|| Arc::clone(both.left())),
            right.unwrap_or_else(|| Arc::clone(both.right())),
        ];
        Ok(Transformed::yes(part.with_new_children(operands)?))
    })?;
    Ok(key.data)
}

/// The PARTITION BY without columns that its other columns determine, such as the aggregates of a group. The order of
/// rows need not tell them apart, and the window operators want an order that does.
fn undetermined(partition_by: &[Expr], input: &LogicalPlan) -> Vec<Expr> {
    if has_doubtful_keys(input) {
        return partition_by.to_vec();
    }
    let schema = input.schema();
    let index_of = |expr: &Expr| match expr {
        Expr::Column(column) => schema.maybe_index_of_column(column),
        _ => None,
    };
    let mut kept = partition_by.to_vec();
    for dependence in schema.functional_dependencies().iter() {
        let keys = &dependence.source_indices;
        let is_key = |expr: &Expr| index_of(expr).is_some_and(|index| keys.contains(&index));
        let has_key = |key: &usize| kept.iter().any(|expr| index_of(expr) == Some(*key));
        if dependence.nullable || keys.is_empty() || !keys.iter().all(has_key) {
            continue;
        }
        let is_determined = |expr: &Expr| {
            index_of(expr).is_some_and(|index| dependence.target_indices.contains(&index))
        };
        kept.retain(|expr| is_key(expr) || !is_determined(expr));
    }
    kept
}

/// No partition has as many rows. The operators add such distances to positions.
const BEYOND_ALL_ROWS: u64 = 1 << 60;

/// The frame of a window function that has no row to look at.
fn frame_without_rows() -> WindowFrame {
    let beyond = || WindowFrameBound::Following(ScalarValue::UInt64(Some(BEYOND_ALL_ROWS)));
    WindowFrame::new_bounds(WindowFrameUnits::Rows, beyond(), beyond())
}

/// The same frame with distances in rows that fit into sums.
fn within_reach(mut frame: WindowFrame) -> WindowFrame {
    for bound in [&mut frame.start_bound, &mut frame.end_bound] {
        if let WindowFrameBound::Preceding(ScalarValue::UInt64(Some(rows)))
        | WindowFrameBound::Following(ScalarValue::UInt64(Some(rows))) = bound
            && frame.units == WindowFrameUnits::Rows
        {
            *rows = BEYOND_ALL_ROWS.min(*rows);
        }
    }
    frame
}

/// Whether a frame can never hold a row because of the kinds of its bounds, or their distances in rows. Those of a
/// RANGE have been compared when they were read: the rows whose key is NULL may have such a frame.
fn starts_after_end(frame: &WindowFrame) -> bool {
    use WindowFrameBound::{CurrentRow, Following, Preceding};
    let unbounded = ScalarValue::is_null;
    let is_range = frame.units == WindowFrameUnits::Range;
    match (&frame.start_bound, &frame.end_bound) {
        (Following(start), _) if unbounded(start) => true,
        (_, Preceding(end)) if unbounded(end) => true,
        (Following(_), CurrentRow | Preceding(_)) | (CurrentRow, Preceding(_)) => true,
        (Following(start), Following(end)) => !is_range && !unbounded(end) && end < start,
        (Preceding(start), Preceding(end)) => !is_range && !unbounded(start) && end > start,
        _ => false,
    }
}
