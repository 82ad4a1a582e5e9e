//! Joins of which only the first rows are wanted: ORDER BY and LIMIT without joining everything.
//!
//! `SELECT ... FROM orders JOIN customer ... ORDER BY o_orderdate LIMIT 10` needs ten orders and their customers, if
//! the orders come in the order of their dates. So besides the best plan for all rows one is looked for that streams:
//!
//! ```text
//!   first table, walked in the wanted order --> keyed join --> keyed or hash join --> ... --> LIMIT stops all of it
//!                                                in order        the new table is kept in memory
//! ```
//!
//! With `n` rows wanted of the `N` that the joins would deliver, the first table is expected to be walked for n / N of
//! its rows, and every step to do that share of its work. What a hash join keeps in memory is read whole. Where no
//! order is wanted, any table may be the first one.
//!
//! The plan for all rows has to be sorted, which is added to its cost. What the streaming plan would cost if its LIMIT
//! never stopped it is its [risk](crate::estimate::risk::Risk): matches may all lie at the far end of the
//! walk.

use datafusion_common::{Column, HashMap, Result};
use datafusion_expr::utils::expr_to_columns;
use datafusion_expr::{Expr, LogicalPlan, SortExpr};

use crate::PlannerContext;
use crate::access::table_reference::table_column;
use crate::access::wanted::Wanted;
use crate::adaptive::bounded_regret::MAX_HELD_ROWS;
use crate::cost::sort::sort_us;
use crate::estimate::risk::Expectation;
use crate::join::order::{Chooser, Goal, Input, Step};
use crate::json::{Json, Object};
use crate::logical::join_graph::{JoinGraph, RelationKind};
use crate::logical::replace_columns;

/// Share of the rows from which on they are all as good as wanted.
const MOST_SHARE: f64 = 0.5;

/// What is wanted of a streaming plan.
#[derive(Debug, Clone)]
pub(crate) struct FirstRows {
    /// Share of all rows that is wanted.
    pub share: f64,
    /// The table that has the wanted order, and that order in terms of its columns; `None`: there is none.
    order: Option<(usize, Vec<SortExpr>)>,
}

impl FirstRows {
    /// What a parent that wants `wanted` of the joins of `node` is offered; `None` if a streaming plan cannot have the
    /// order, or nearly all rows are wanted. The joins have `rows` rows.
    fn new(
        graph: &JoinGraph<'_>,
        inputs: &[Input<'_>],
        node: &LogicalPlan,
        wanted: &Wanted,
        rows: f64,
    ) -> Result<Option<FirstRows>> {
        let Some(limit) = wanted.limit.filter(|limit| *limit <= MAX_HELD_ROWS) else {
            return Ok(None);
        };
        let share = limit as f64 / rows.max(1.0);
        if share >= MOST_SHARE {
            return Ok(None);
        }
        let order = match wanted.order.is_empty() {
            true => None,
            false => match table_order(graph, inputs, node, &wanted.order)? {
                Some(order) => Some(order),
                None => return Ok(None),
            },
        };
        Ok(Some(FirstRows { share, order }))
    }

    /// Whether they are wanted in an order.
    pub(crate) fn is_ordered(&self) -> bool {
        self.order.is_some()
    }

    /// What is wanted of a table if it is the first; `None`: another one has to be.
    pub(crate) fn wanted_of(&self, relation: usize, table_rows: f64) -> Option<Wanted> {
        let order = match &self.order {
            None => Vec::new(),
            Some((first, order)) if *first == relation => order.clone(),
            Some(_) => return None,
        };
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "no more than the rows of a table"
        )]
        let limit = (table_rows * self.share).ceil().max(1.0) as usize;
        Some(Wanted {
            order,
            limit: Some(limit),
        })
    }
}

/// The one table that all columns of `order` are from, and the order in terms of its own columns.
fn table_order(
    graph: &JoinGraph<'_>,
    inputs: &[Input<'_>],
    node: &LogicalPlan,
    order: &[SortExpr],
) -> Result<Option<(usize, Vec<SortExpr>)>> {
    let mut columns = Default::default();
    for sort in order {
        expr_to_columns(&sort.expr, &mut columns)?;
    }
    let schema = node.schema();
    let Some(first) = columns.iter().next() else {
        return Ok(None);
    };
    let Some(position) = schema.maybe_index_of_column(first) else {
        return Ok(None);
    };
    let number = graph.relation_of(&graph.output[position])?;
    let relation = &graph.relations[number];
    let Input::Table(table) = &inputs[number] else {
        return Ok(None);
    };
    if relation.kind != RelationKind::Inner {
        return Ok(None);
    }
    let definition = &table.table.definition;
    let mut own: HashMap<String, Expr> = HashMap::new();
    for ((qualifier, field), column) in schema.iter().zip(&graph.output) {
        let position = table_column(relation, table, column);
        // A statement that locks rows reads their encoded keys, too: one column more than are defined.
        if let Some(column) = position.and_then(|at| definition.columns.get(at)) {
            let name = &column.name;
            let known = Column::new(qualifier.cloned(), field.name());
            own.insert(
                known.flat_name(),
                Expr::Column(Column::new_unqualified(name)),
            );
        }
    }
    let order = order.iter().map(|sort| {
        let expr = replace_columns(&sort.expr, &own)?;
        Some(SortExpr::new(expr, sort.asc, sort.nulls_first))
    });
    let order: Option<Vec<_>> = order.collect();
    Ok(order.map(|order| (number, order)))
}

/// The steps of a streaming plan, if that is expected to cost less than `all`, the steps for all rows, and a sort.
pub(crate) fn steps_for_first_rows(
    chooser: Chooser<'_, '_>,
    node: &LogicalPlan,
    wanted: &Wanted,
    all: &[Step],
) -> Result<Option<(FirstRows, Vec<Step>)>> {
    let context: &PlannerContext = chooser.context;
    let Some(last) = all.last() else {
        return Ok(None);
    };
    if context.expectation != Expectation::Estimates {
        return Ok(None);
    }
    let (graph, inputs) = (chooser.graph, chooser.inputs);
    let Some(first_rows) = FirstRows::new(graph, inputs, node, wanted, last.rows)? else {
        return Ok(None);
    };
    let sorting_us = match (&first_rows.order, wanted.limit) {
        (Some(_), Some(limit)) => sort_us(&context.settings.costs, last.rows, limit as f64),
        _ => 0.0,
    };
    let all_us = last.cost_us + sorting_us;
    let _traced = context.trace.begin("joins_for_first_rows", || {
        Object::new()
            .with("share_of_rows", Json::fixed(first_rows.share, 6))
            .with("cost_of_all_rows", Json::fixed(all_us, 2))
    });
    let streaming = Chooser {
        goal: Goal::FirstRows(&first_rows),
        ..chooser
    };
    let steps = streaming.choose_if_any()?;
    let cost_us = steps.as_ref().and_then(|steps| steps.last());
    let cost_us = cost_us.map(|step| step.cost_us);
    let is_chosen = cost_us.is_some_and(|cost_us| cost_us < all_us);
    context.trace.step("streaming_plan", || {
        let cost = cost_us.map_or(Json::Null, |cost_us| Json::fixed(cost_us, 2));
        let object = Object::new().with("cost", cost);
        object.with("used", is_chosen).into()
    });
    Ok(steps.filter(|_| is_chosen).map(|steps| (first_rows, steps)))
}
