//! GROUP BY, DISTINCT (which is one), ROLLUP and grouping sets.
//!
//! An input in one partition is aggregated in one go, and so are few rows of a UNION. An input in several partitions is
//! pre-aggregated in each, then the groups are exchanged by hash and merged. Grouping sets are always pre-aggregated
//! and merged: what does both at once loses the number of the set when it spills.
//!
//! Where the first groups of an order are wanted, rows may come in that order (`planner/ordered_groups.rs`).
//!
//! Where memory is short the rows of a GROUP_CONCAT are sorted first (`texts_in_order.rs`).
//!
//! DataFusion adds the hashes of byte strings up from the second key on. So (a, x, y) and (a, y, x) have the same hash,
//! and of ten columns of 'Y' and 'N' whole chains of groups do. Views of byte strings are hashed one after the other.
//! So a hash table with several such keys is given views, and the groups become byte strings again above it.

use std::sync::Arc;

use arrow::datatypes::{DataType, Schema, SchemaRef};
use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::physical_name;
use datafusion_expr::{Aggregate, AggregateUDF, Expr, LogicalPlan};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::aggregate::{AggregateFunctionExpr, LoweredAggregateBuilder};
use datafusion_physical_expr::expressions::{CastExpr, Column, Literal};
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties, InputOrderMode};
use sheaf_exec::aggregates::{GROUP_CONCAT, GroupConcat};
use sheaf_exec::functions::limits::OversizedResults;
use sheaf_exec::operator::gather_in_order_exec::{GatherInOrderExec, Running, is_union};
use sheaf_exec::operator::less_order_exec::without_facts;
use sheaf_exec::operator::otherwise_exec::OtherwiseExec;

use crate::access::loose_scan::plan_groups;
use crate::access::wanted::Wanted;
use crate::adaptive::bounded_regret::Doubted;
use crate::cost::grouping::grouping_us;
use crate::estimate::group_rows::group_rows;
use crate::estimate::risk::Expectation;
use crate::explain::ExtraNote;
use crate::logical::grouping_sets::grouping_sets;
use crate::logical::join_graph::plain_column;
use crate::physical::long_keys::computed_below;
use crate::physical::planner::Planner;
use crate::physical::planner::ordered_groups::rows_of_first_groups;
use crate::physical::rules::result_limits;
use crate::physical::texts_in_order::{
    by_texts, in_order_of_groups, in_order_of_texts, keep_values, texts_kept,
};
use crate::planned::{Block, Planned};
use crate::row_width::{copies_with_room, longest_row_bytes, row_bytes};

pub(crate) fn plan_aggregate(
    planner: &mut Planner<'_>,
    node: &LogicalPlan,
    aggregate: &Aggregate,
    block: &Block,
    wanted: &Wanted,
) -> Result<Planned> {
    let (planned, budget) =
        planner.watched(|planner| plan_once(planner, aggregate, block, wanted))?;
    let doubted = Doubted {
        node,
        planned,
        budget,
        expectation: Expectation::Worst,
        held_rows: 0,
        order: None,
    };
    planner.guard(doubted, |planner| {
        plan_once(planner, aggregate, block, &Wanted::default())
    })
}

fn plan_once(
    planner: &mut Planner<'_>,
    aggregate: &Aggregate,
    block: &Block,
    wanted: &Wanted,
) -> Result<Planned> {
    let (mut input, taken) = match plan_groups(planner, aggregate, block)? {
        Some(loose) => {
            let rows = loose.rows;
            (loose, rows)
        }
        None => {
            let all = planner.plan(&aggregate.input, block, &Wanted::default())?;
            rows_of_first_groups(planner, aggregate, block, wanted, all)?
        }
    };
    let logical_schema = aggregate.input.schema();
    let physical_schema = input.plan.schema();
    let groups = group_by(planner, &aggregate.group_expr, aggregate, &input, block)?;
    let grouped = !groups.is_empty();

    let mut functions = Vec::with_capacity(aggregate.aggr_expr.len());
    let mut filters = Vec::with_capacity(aggregate.aggr_expr.len());
    let oversized = result_limits(planner.context).and_then(|limits| limits.oversized.as_ref());
    for expr in &aggregate.aggr_expr {
        let expr = noting_what_is_cut(expr, oversized)?;
        let lowered = LoweredAggregateBuilder::new(
            &expr,
            logical_schema,
            &physical_schema,
            &planner.properties,
            &block.slots,
        )
        .build()?;
        functions.push(lowered.aggregate);
        filters.push(lowered.filter);
    }

    let mut physical_schema = physical_schema;
    let mut groups = groups;
    let most_copies = || copies_with_room(&aggregate.input, &planner.context.settings);
    if let Some((rows, keys)) = computed_below(&input.plan, &groups, most_copies)? {
        (input.plan, groups) = (rows, keys);
        physical_schema = input.plan.schema();
    }
    let mut of_no_rows = None;
    let texts = match grouped {
        true => texts_kept(&functions, &physical_schema)?,
        false => 0,
    };
    let is_in_order = match planner.context.settings.is_thrifty() {
        true => texts > 0 || keep_values(&functions, &physical_schema)?,
        false => texts > 0 && keeps_much(planner, aggregate, texts, input.rows)?,
    };
    if is_in_order {
        planner.sorts_long_texts |= texts > 0;
        let is_total = |set: &Vec<bool>| set.iter().all(|is_null| *is_null);
        if groups.has_grouping_set() && groups.groups().iter().any(is_total) {
            let parts = (groups.clone(), functions.clone(), filters.clone());
            of_no_rows = Some(groups_of_no_rows(parts, &physical_schema)?);
        }
        let in_order = in_order_of_texts(planner, input.plan, &groups, &functions, &filters)?;
        input.plan = in_order.plan;
        groups = in_order.groups;
        functions = in_order.functions;
        filters = in_order.filters;
        physical_schema = input.plan.schema();
    } else if by_texts(&groups, &physical_schema)? && takes_much(planner, aggregate, &input)? {
        planner.sorts_long_texts = true;
        input.plan = in_order_of_groups(planner, input.plan, &groups)?;
    } else if groups.has_grouping_set() {
        // DataFusion takes what it knows of the rows for true of the groups.
        input.plan = without_facts(input.plan)?;
    }
    if grouped && input.rows <= ROWS_OF_ONE_WORKER && is_union(&input.plan) {
        input.plan = Arc::new(GatherInOrderExec::new(input.plan, Running::Workers));
    }
    let partitions = input.plan.output_partitioning().partition_count();
    let constants = &planner.context.settings.costs;
    let own_us = grouping_us(constants, taken, grouped, functions.len(), partitions);
    let cost_us = input.cost_us + own_us;
    let in_one_step = partitions == 1 && !groups.has_grouping_set();
    let first_mode = match in_one_step {
        true => AggregateMode::Single,
        false => AggregateMode::Partial,
    };
    let aggregated_by = |groups: PhysicalGroupBy| {
        AggregateExec::try_new(
            first_mode,
            groups,
            functions.clone(),
            filters.clone(),
            Arc::clone(&input.plan),
            Arc::clone(&physical_schema),
        )
    };
    let keys = groups.group_schema(&physical_schema)?;
    // Views of a key come in blocks of 2 MiB, in each stream: too much where memory is short.
    let views = match planner.context.settings.is_thrifty() {
        true => None,
        false => keys_as_views(&groups, &keys)?,
    };
    let mut first = aggregated_by(groups)?;
    if grouped && *first.input_order_mode() == InputOrderMode::Linear {
        if let Some(views) = views {
            first = aggregated_by(views)?;
        }
        if let Some(row) = input.explain.first_mut() {
            row.add(ExtraNote::UsingTemporary);
        }
    }
    let rows = if grouped {
        group_rows(aggregate, input.rows)
    } else {
        1.0
    };
    // How many values an expression has is a guess.
    let is_known = |expr: &Expr| plain_column(expr).is_some();
    planner.note_kept(match aggregate.group_expr.iter().all(is_known) {
        true => rows,
        false => input.rows,
    });
    if in_one_step {
        let plan = with_keys(Arc::new(first), &keys)?;
        return Ok(Planned {
            plan: match of_no_rows {
                Some(of_no_rows) => Arc::new(OtherwiseExec::new(plan, of_no_rows)),
                None => plan,
            },
            rows,
            cost_us,
            risk: input.risk,
            explain: input.explain,
        });
    }
    let last_mode = match grouped && partitions > 1 {
        true => AggregateMode::FinalPartitioned,
        false => AggregateMode::Final,
    };
    let first = Arc::new(first);
    let last = AggregateExec::try_new(
        last_mode,
        first.group_expr().as_final(),
        first.aggr_expr().to_vec(),
        filters,
        Arc::clone(&first) as _,
        physical_schema,
    )?;
    Ok(Planned {
        plan: with_keys(Arc::new(last), &keys)?,
        rows,
        cost_us,
        risk: input.risk,
        explain: input.explain,
    })
}

/// Rows of a UNION that one worker groups in less time than an exchange between workers takes. It shows them in the
/// order in which they came first: `SELECT 1 UNION SELECT 2 LIMIT 1` is 1, as in MySQL, though no standard says so.
const ROWS_OF_ONE_WORKER: f64 = 4096.0;

/// A share of the query memory: where the texts of rows take more, a hash table of them is likely to spill. It may run
/// out of memory then when groups of its file have left it already, and the query cannot be planned again.
const SHARE_OF_TEXTS: usize = 4;

/// Rows that are so long are no more work for one stream than for several: their bytes are.
const LONG_ROW_BYTES: usize = 16 << 10;

/// Whether little memory must do, or groups of texts are likely to need much. Several streams have a table each, and
/// would have a sort together.
fn takes_much(planner: &Planner<'_>, aggregate: &Aggregate, input: &Planned) -> Result<bool> {
    let settings = &planner.context.settings;
    if settings.is_thrifty() {
        return Ok(true);
    }
    let row_bytes = longest_row_bytes(&aggregate.input)?;
    let is_divided = input.plan.output_partitioning().partition_count() > 1;
    if is_divided && row_bytes < LONG_ROW_BYTES {
        return Ok(false);
    }
    let bytes = row_bytes as f64 * input.rows;
    Ok(bytes > (settings.query_memory_bytes / SHARE_OF_TEXTS) as f64)
}

/// Whether so many texts of each group take more than half of a little memory. A hash table of them spills, and what it
/// reads again may be more than there is; a change has no other plan then.
fn keeps_much(
    planner: &Planner<'_>,
    aggregate: &Aggregate,
    texts: usize,
    rows: f64,
) -> Result<bool> {
    let settings = &planner.context.settings;
    if !settings.has_little_memory() {
        return Ok(false);
    }
    let group_bytes = (texts * row_bytes(&aggregate.input)?) as f64;
    let bytes = group_bytes * group_rows(aggregate, rows);
    Ok(bytes > settings.query_memory_bytes as f64 / 2.0)
}

type Parts = (
    PhysicalGroupBy,
    Vec<Arc<AggregateFunctionExpr>>,
    Vec<Option<Arc<dyn PhysicalExpr>>>,
);

/// The groups that grouping sets make of no rows: the grand total.
fn groups_of_no_rows(
    (groups, functions, filters): Parts,
    schema: &SchemaRef,
) -> Result<Arc<dyn ExecutionPlan>> {
    let nothing = Arc::new(EmptyExec::new(Arc::clone(schema)));
    let first = Arc::new(AggregateExec::try_new(
        AggregateMode::Partial,
        groups,
        functions,
        filters.clone(),
        nothing,
        Arc::clone(schema),
    )?);
    Ok(Arc::new(AggregateExec::try_new(
        AggregateMode::Final,
        first.group_expr().as_final(),
        first.aggr_expr().to_vec(),
        filters,
        Arc::clone(&first) as _,
        Arc::clone(schema),
    )?))
}

/// An aggregate whose GROUP_CONCATs tell which results they have cut.
fn noting_what_is_cut(expr: &Expr, oversized: Option<&OversizedResults>) -> Result<Expr> {
    let Some(oversized) = oversized else {
        return Ok(expr.clone());
    };
    let noting = expr.clone().transform(|expr| match expr {
        Expr::AggregateFunction(mut function) if function.func.name() == GROUP_CONCAT => {
            let noting = GroupConcat::noting(oversized.clone());
            function.func = Arc::new(AggregateUDF::from(noting));
            Ok(Transformed::yes(Expr::AggregateFunction(function)))
        }
        other => Ok(Transformed::no(other)),
    })?;
    Ok(noting.data)
}

type NamedExpr = (Arc<dyn PhysicalExpr>, String);

fn group_by(
    planner: &Planner<'_>,
    group_expr: &[Expr],
    aggregate: &Aggregate,
    input: &Planned,
    block: &Block,
) -> Result<PhysicalGroupBy> {
    let schema = aggregate.input.schema();
    let named = |expr: &Expr| -> Result<NamedExpr> {
        Ok((planner.expr(expr, schema, block)?, physical_name(expr)?))
    };
    let Some(sets) = grouping_sets(group_expr) else {
        let exprs = group_expr.iter().map(named).collect::<Result<Vec<_>>>()?;
        return Ok(PhysicalGroupBy::new_single(exprs));
    };
    // Every set is said over the union of all expressions: `true` marks the ones that are NULL in this set.
    let mut all: Vec<Expr> = Vec::new();
    for expr in sets.iter().flatten() {
        if !all.contains(expr) {
            all.push(expr.clone());
        }
    }
    let exprs = all.iter().map(named).collect::<Result<Vec<_>>>()?;
    let physical_schema = input.plan.schema();
    let nulls = exprs.iter().map(|(expr, name)| {
        let null = ScalarValue::try_from(&expr.data_type(&physical_schema)?)?;
        Ok((
            Arc::new(Literal::new(null)) as Arc<dyn PhysicalExpr>,
            name.clone(),
        ))
    });
    let nulls = nulls.collect::<Result<Vec<_>>>()?;
    let masks = sets
        .iter()
        .map(|set| all.iter().map(|expr| !set.contains(expr)).collect())
        .collect();
    Ok(PhysicalGroupBy::new(exprs, nulls, masks, true))
}

/// The type of a key whose hash depends on the place of the key among the others.
fn view_type(ty: &DataType) -> Option<DataType> {
    match ty {
        DataType::Binary => Some(DataType::BinaryView),
        DataType::Utf8 => Some(DataType::Utf8View),
        _ => None,
    }
}

/// The groups with views in the place of byte strings; `None` if the hashes of no two keys are added up.
fn keys_as_views(groups: &PhysicalGroupBy, keys: &Schema) -> Result<Option<PhysicalGroupBy>> {
    let exprs = groups.expr();
    let views: Vec<Option<DataType>> = keys
        .fields()
        .iter()
        .take(exprs.len())
        .enumerate()
        .map(|(at, key)| view_type(key.data_type()).filter(|_| at > 0))
        .collect();
    if views.iter().flatten().count() < 2 {
        return Ok(None);
    }
    let as_view = |(at, (expr, name)): (usize, &NamedExpr)| -> NamedExpr {
        let expr = Arc::clone(expr);
        let expr: Arc<dyn PhysicalExpr> = match &views[at] {
            Some(view) => Arc::new(CastExpr::new(expr, view.clone(), None)),
            None => expr,
        };
        (expr, name.clone())
    };
    let nulls = groups.null_expr().iter().zip(&views);
    let nulls = nulls.map(|((expr, name), view)| {
        let null: Arc<dyn PhysicalExpr> = match view {
            Some(view) => Arc::new(Literal::new(ScalarValue::try_from(view)?)),
            None => Arc::clone(expr),
        };
        Ok((null, name.clone()))
    });
    Ok(Some(PhysicalGroupBy::new(
        exprs.iter().enumerate().map(as_view).collect(),
        nulls.collect::<Result<Vec<_>>>()?,
        groups.groups().to_vec(),
        groups.has_grouping_set(),
    )))
}

/// The groups with keys of the types that the nodes above know.
fn with_keys(plan: Arc<dyn ExecutionPlan>, keys: &Schema) -> Result<Arc<dyn ExecutionPlan>> {
    let schema = plan.schema();
    let fields = || schema.fields().iter().enumerate();
    let wanted = |at: usize| {
        let key = keys.fields().get(at).map(|key| key.data_type());
        key.filter(|key| *key != schema.field(at).data_type())
    };
    if fields().all(|(at, _)| wanted(at).is_none()) {
        return Ok(plan);
    }
    let columns = fields().map(|(at, field)| {
        let column: Arc<dyn PhysicalExpr> = Arc::new(Column::new(field.name(), at));
        let expr: Arc<dyn PhysicalExpr> = match wanted(at) {
            Some(key) => Arc::new(CastExpr::new(column, key.clone(), None)),
            None => column,
        };
        ProjectionExpr {
            expr,
            alias: field.name().clone(),
        }
    });
    let columns: Vec<ProjectionExpr> = columns.collect();
    Ok(Arc::new(ProjectionExec::try_new(columns, plan)?))
}
