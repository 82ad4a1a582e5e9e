//! GROUP BY, DISTINCT (which is one), ROLLUP and grouping sets.
//!
//! An input in one partition is aggregated in one go. An input in several partitions is pre-aggregated in each, then
//! the groups are exchanged by hash and merged.

use std::sync::Arc;

use datafusion_common::{Result, ScalarValue};
use datafusion_expr::expr::{GroupingSet, physical_name};
use datafusion_expr::{Aggregate, Expr, LogicalPlan};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::aggregate::LoweredAggregateBuilder;
use datafusion_physical_expr::expressions::Literal;
use datafusion_physical_plan::ExecutionPlanProperties;
use datafusion_physical_plan::InputOrderMode;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};

use crate::bounded_regret::{Doubted, Expectation};
use crate::cost::grouping::grouping_us;
use crate::explain::ExtraNote;
use crate::group_rows::group_rows;
use crate::join_graph::plain_column;
use crate::loose_scan::plan_groups;
use crate::physical_planner::{Block, Planned, Planner, Wanted};

pub(crate) fn plan_aggregate(
    planner: &mut Planner<'_>,
    node: &LogicalPlan,
    aggregate: &Aggregate,
    block: &Block,
) -> Result<Planned> {
    let (planned, budget) = planner.watched(|planner| plan_once(planner, aggregate, block))?;
    let doubted = Doubted {
        node,
        planned,
        budget,
        expectation: Expectation::Worst,
        held_rows: 0,
        order: None,
    };
    planner.guard(doubted, |planner| plan_once(planner, aggregate, block))
}

fn plan_once(planner: &mut Planner<'_>, aggregate: &Aggregate, block: &Block) -> Result<Planned> {
    let mut input = match plan_groups(planner, aggregate, block)? {
        Some(loose) => loose,
        None => planner.plan(&aggregate.input, block, &Wanted::default())?,
    };
    let logical_schema = aggregate.input.schema();
    let physical_schema = input.plan.schema();
    let groups = group_by(planner, &aggregate.group_expr, aggregate, &input, block)?;
    let grouped = !groups.is_empty();

    let mut functions = Vec::with_capacity(aggregate.aggr_expr.len());
    let mut filters = Vec::with_capacity(aggregate.aggr_expr.len());
    for expr in &aggregate.aggr_expr {
        let lowered = LoweredAggregateBuilder::new(
            expr,
            logical_schema,
            &physical_schema,
            &planner.properties,
            &block.slots,
        )
        .build()?;
        functions.push(lowered.aggregate);
        filters.push(lowered.filter);
    }

    let partitions = input.plan.output_partitioning().partition_count();
    let constants = &planner.context.settings.costs;
    let own_us = grouping_us(constants, input.rows, grouped, functions.len(), partitions);
    let cost_us = input.cost_us + own_us;
    let first_mode = if partitions > 1 {
        AggregateMode::Partial
    } else {
        AggregateMode::Single
    };
    let child = Arc::clone(&input.plan);
    let first = AggregateExec::try_new(
        first_mode,
        groups,
        functions,
        filters.clone(),
        child,
        Arc::clone(&physical_schema),
    )?;
    if grouped
        && *first.input_order_mode() == InputOrderMode::Linear
        && let Some(row) = input.explain.first_mut()
    {
        row.add(ExtraNote::UsingTemporary);
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
    if partitions == 1 {
        return Ok(Planned {
            plan: Arc::new(first),
            rows,
            cost_us,
            risk: input.risk,
            explain: input.explain,
        });
    }
    let last_mode = if grouped {
        AggregateMode::FinalPartitioned
    } else {
        AggregateMode::Final
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
        plan: Arc::new(last),
        rows,
        cost_us,
        risk: input.risk,
        explain: input.explain,
    })
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

/// The grouping sets that GROUPING SETS, ROLLUP or CUBE stand for; `None` for a plain GROUP BY.
pub(crate) fn grouping_sets(group_expr: &[Expr]) -> Option<Vec<Vec<Expr>>> {
    let [Expr::GroupingSet(set)] = group_expr else {
        return None;
    };
    Some(match set {
        GroupingSet::GroupingSets(sets) => sets.clone(),
        // (a, b) WITH ROLLUP: (), (a), (a, b).
        GroupingSet::Rollup(exprs) => (0..=exprs.len()).map(|n| exprs[..n].to_vec()).collect(),
        GroupingSet::Cube(exprs) => {
            let subset = |mask: usize| {
                let chosen = exprs
                    .iter()
                    .enumerate()
                    .filter(move |(i, _)| mask & (1 << i) != 0);
                chosen.map(|(_, expr)| expr.clone()).collect()
            };
            (0..1usize << exprs.len()).map(subset).collect()
        }
    })
}
