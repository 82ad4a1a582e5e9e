//! Conditions of a WHERE that say how tables are joined become keys of the joins. The joins are put in an order in
//! which each has a key, if there is such an order.
//!
//! ```text
//!   Filter a.x = c.x and c.y = b.y and a.z > 1          Filter a.z > 1
//!     Join                                                Join c.y = b.y
//!       Join                                  -->           Join a.x = c.x
//!         a                                                   a
//!         b                                                   c
//!       c                                                   b
//! ```
//!
//! The tables are taken as they are written, each time the first that an equality connects with those before it, and
//! the first of all if none does. EliminateCrossJoin of DataFusion does the same, but makes all joins again, with their
//! schemas of all columns, below each join that it has made. That took a third of the time of optimising a join of
//! eight tables. It also loses keys that are none in the new order, and takes those for which NULL equals NULL for
//! others.
//!
//! What is left of the condition PushDownFilter takes to the tables, from join to join. If it is nothing but conditions
//! on single tables, which imply none on others, it goes there right away.

use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode};
use datafusion_common::{
    Column, HashSet, NullEquality, Result, internal_datafusion_err, internal_err,
};
use datafusion_expr::logical_plan::{Filter, Join, JoinConstraint, Projection};
use datafusion_expr::utils::{conjunction, split_conjunction};
use datafusion_expr::{BinaryExpr, Expr, JoinType, LogicalPlan, Operator, build_join_schema};
use datafusion_optimizer::{OptimizerConfig, OptimizerRule};

use crate::logical::join_graph::plain_scan;

/// See the module's comment.
#[derive(Debug)]
pub(crate) struct ConnectJoins;

impl OptimizerRule for ConnectJoins {
    fn name(&self) -> &str {
        "connect_joins"
    }

    fn rewrite(
        &self,
        plan: LogicalPlan,
        _: &dyn OptimizerConfig,
    ) -> Result<Transformed<LogicalPlan>> {
        connect(plan)
    }
}

/// Whether the plan is an inner join, or a condition above one, or makes its columns of those of such a plan.
pub(crate) fn is_above_joins(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Projection(projection) => is_condition_on_joins(&projection.input),
        LogicalPlan::Aggregate(aggregate) => is_condition_on_joins(&aggregate.input),
        plan => is_condition_on_joins(plan),
    }
}

fn is_condition_on_joins(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Filter(filter) => is_inner(&filter.input),
        plan => is_inner(plan),
    }
}

fn is_inner(plan: &LogicalPlan) -> bool {
    matches!(plan, LogicalPlan::Join(join) if can_be_flat(join))
}

/// A join whose keys are equal when they are NULL does not mix with others.
fn can_be_flat(join: &Join) -> bool {
    let is_equality = join.null_equality == NullEquality::NullEqualsNothing;
    join.join_type == JoinType::Inner && (is_equality || join.on.is_empty())
}

/// Rewrites a plan and its uncorrelated subqueries.
fn connect(plan: LogicalPlan) -> Result<Transformed<LogicalPlan>> {
    if is_condition_on_joins(&plan) {
        let schema = Arc::clone(plan.schema());
        let connected = connect_joins(plan)?;
        return Ok(Transformed::yes(match connected.schema() == &schema {
            true => connected,
            false => {
                let in_order = Projection::new_from_schema(Arc::new(connected), schema);
                LogicalPlan::Projection(in_order)
            }
        }));
    }
    let plan = plan.map_uncorrelated_subqueries(connect)?;
    match plan.data {
        // These find the columns by their names, in any order.
        LogicalPlan::Projection(mut projection) if is_condition_on_joins(&projection.input) => {
            let input = Arc::unwrap_or_clone(projection.input);
            projection.input = Arc::new(connect_joins(input)?);
            Ok(Transformed::yes(LogicalPlan::Projection(projection)))
        }
        LogicalPlan::Aggregate(mut aggregate) if is_condition_on_joins(&aggregate.input) => {
            let input = Arc::unwrap_or_clone(aggregate.input);
            aggregate.input = Arc::new(connect_joins(input)?);
            Ok(Transformed::yes(LogicalPlan::Aggregate(aggregate)))
        }
        data => {
            let plan = Transformed { data, ..plan };
            let connected = plan.transform_sibling(|plan| plan.map_children(connect))?;
            match connected.transformed {
                true => connected.map_data(LogicalPlan::recompute_schema),
                false => Ok(connected),
            }
        }
    }
}

/// The inner joins of a plan that is nothing but those and perhaps a condition above them. Columns come in any order.
fn connect_joins(plan: LogicalPlan) -> Result<LogicalPlan> {
    let (condition, plan) = match plan {
        LogicalPlan::Filter(Filter {
            predicate, input, ..
        }) => (Some(predicate), Arc::unwrap_or_clone(input)),
        plan => (None, plan),
    };
    let LogicalPlan::Join(join) = plan else {
        return internal_err!("only joins can be connected");
    };
    let mut flat = FlatJoin::default();
    flat.add_join(join)?;
    let keys_before = flat.equalities.len();
    if let Some(condition) = &condition {
        add_equalities(condition, &mut flat.equalities);
    }
    let steps = flat.steps();
    // One between more than two tables may be none in the new order.
    for (left, right) in &flat.equalities[..keys_before] {
        if !is_key(left, right, &steps) {
            flat.filters.push(left.clone().eq(right.clone()));
        }
    }
    let condition = condition.and_then(|condition| without(condition, &steps));
    let condition = flat.push_to_tables(condition, &steps)?;
    let filters = std::mem::take(&mut flat.filters);
    let mut plan = flat.joined(steps)?;
    for condition in [conjunction(filters), condition].into_iter().flatten() {
        plan = LogicalPlan::Filter(Filter::try_new(condition, Arc::new(plan))?);
    }
    Ok(plan)
}

/// Sides of an equality.
type Sides = (Expr, Expr);

/// A tree of inner joins.
#[derive(Default)]
struct FlatJoin {
    /// Its leaves, from left to right, with the joins in them connected.
    inputs: Vec<LogicalPlan>,
    /// Equalities that may be keys; no two are the same.
    equalities: Vec<Sides>,
    /// Conditions of the joins that are no keys.
    filters: Vec<Expr>,
}

impl FlatJoin {
    fn add_join(&mut self, join: Join) -> Result<()> {
        self.filters.extend(join.filter);
        for (left, right) in join.on {
            match may_be_key(&left, &right) {
                true => add_equality(left, right, &mut self.equalities),
                false => self.filters.push(left.eq(right)),
            }
        }
        for input in [join.left, join.right] {
            match Arc::unwrap_or_clone(input) {
                LogicalPlan::Join(join) if can_be_flat(&join) => self.add_join(join)?,
                input => self.inputs.push(connect(input)?.data),
            }
        }
        Ok(())
    }

    /// In which order the inputs are joined, by which keys.
    fn steps(&self) -> Vec<Step> {
        let homes = |(left, right): &Sides| (self.homes(left), self.homes(right));
        let homes: Vec<(Homes, Homes)> = self.equalities.iter().map(homes).collect();
        let mut is_joined = vec![false; self.inputs.len()];
        let mut steps = Vec::with_capacity(self.inputs.len());
        for _ in 0..self.inputs.len() {
            let open = || (0..self.inputs.len()).filter(|input| !is_joined[*input]);
            let on = |input: usize| {
                let pairs = self.equalities.iter().zip(&homes);
                let on = pairs.filter_map(|(sides, homes)| key(sides, homes, &is_joined, input));
                on.collect::<Vec<Sides>>()
            };
            let connected = open().find_map(|input| {
                let on = on(input);
                (!on.is_empty()).then_some(Step { input, on })
            });
            let first = || {
                open().next().map(|input| Step {
                    input,
                    on: Vec::new(),
                })
            };
            let Some(step) = connected.or_else(first) else {
                break;
            };
            is_joined[step.input] = true;
            steps.push(step);
        }
        steps
    }

    fn homes(&self, expr: &Expr) -> Homes {
        let homes = |column: &Column| {
            let has_it = |input: &usize| {
                let schema = self.inputs[*input].schema();
                schema.is_column_from_schema(column)
            };
            (0..self.inputs.len()).filter(has_it).collect()
        };
        expr.column_refs().into_iter().map(homes).collect()
    }

    /// Puts the parts of a condition above the tables that they are about, and returns what is left of it: all or
    /// nothing.
    fn push_to_tables(&mut self, condition: Option<Expr>, steps: &[Step]) -> Result<Option<Expr>> {
        let Some(condition) = condition else {
            return Ok(None);
        };
        let keys = steps.iter().flat_map(|step| &step.on);
        let sides = keys.flat_map(|(left, right)| [left, right]);
        let key_columns: HashSet<&Column> = sides.flat_map(Expr::column_refs).collect();
        let mut of_table: BTreeMap<usize, Vec<Expr>> = BTreeMap::new();
        for part in split_conjunction(&condition) {
            // What says something about a key says it about the other side, too.
            let mut columns = part.column_refs().into_iter();
            let is_about_key = columns.any(|column| key_columns.contains(column));
            match self.table_of(part) {
                Some(table) if !is_about_key => {
                    of_table.entry(table).or_default().push(part.clone());
                }
                _ => return Ok(Some(condition)),
            }
        }
        if !self.filters.is_empty() {
            return Ok(Some(condition));
        }
        for (table, parts) in of_table {
            if let Some(condition) = conjunction(parts) {
                let table = &mut self.inputs[table];
                let filter = Filter::try_new(condition, Arc::new(std::mem::take(table)))?;
                *table = LogicalPlan::Filter(filter);
            }
        }
        Ok(None)
    }

    /// The only input that has columns of a condition, if that is a stored table.
    fn table_of(&self, condition: &Expr) -> Option<usize> {
        let homes = self.homes(condition);
        let table = *homes.first()?.first()?;
        let is_only_one = homes.iter().all(|homes| homes.as_slice() == [table]);
        let is_table = plain_scan(&self.inputs[table]).is_some();
        (is_only_one && is_table && !condition.is_volatile()).then_some(table)
    }

    fn joined(self, steps: Vec<Step>) -> Result<LogicalPlan> {
        let mut inputs: Vec<Option<LogicalPlan>> = self.inputs.into_iter().map(Some).collect();
        let mut joined: Option<LogicalPlan> = None;
        for Step { input, on } in steps {
            joined = match (joined, inputs[input].take()) {
                (Some(left), Some(right)) => Some(inner_join(left, right, on)?),
                (left, right) => left.or(right),
            };
        }
        joined.ok_or_else(|| internal_datafusion_err!("a join of nothing"))
    }
}

/// An input that is joined to those before it.
struct Step {
    input: usize,
    /// The keys, on both sides.
    on: Vec<Sides>,
}

/// For each column of an expression the inputs that have it.
type Homes = Vec<Vec<usize>>;

/// The sides of an equality as a key between the inputs that are joined and a further one.
fn key(
    (left, right): &Sides,
    (left_homes, right_homes): &(Homes, Homes),
    is_joined: &[bool],
    input: usize,
) -> Option<Sides> {
    let is_before = |homes: &Homes| {
        let mut columns = homes.iter();
        columns.all(|homes| homes.iter().any(|home| is_joined[*home]))
    };
    let is_new = |homes: &Homes| homes.iter().all(|homes| homes.contains(&input));
    if is_before(left_homes) && is_new(right_homes) {
        Some((left.clone(), right.clone()))
    } else if is_before(right_homes) && is_new(left_homes) {
        Some((right.clone(), left.clone()))
    } else {
        None
    }
}

fn inner_join(left: LogicalPlan, right: LogicalPlan, on: Vec<Sides>) -> Result<LogicalPlan> {
    let schema = build_join_schema(left.schema(), right.schema(), &JoinType::Inner)?;
    Ok(LogicalPlan::Join(Join {
        left: Arc::new(left),
        right: Arc::new(right),
        on,
        filter: None,
        join_type: JoinType::Inner,
        join_constraint: JoinConstraint::On,
        schema: Arc::new(schema),
        null_equality: NullEquality::NullEqualsNothing,
        null_aware: false,
    }))
}

fn may_be_key(left: &Expr, right: &Expr) -> bool {
    left.any_column_refs() && right.any_column_refs()
}

/// Adds an equality, unless it is known or can be no key.
fn add_equality(left: Expr, right: Expr, equalities: &mut Vec<Sides>) {
    if may_be_key(&left, &right) && !is_among(&left, &right, equalities) {
        equalities.push((left, right));
    }
}

/// Whether an equality is there, either way round.
fn is_among(left: &Expr, right: &Expr, equalities: &[Sides]) -> bool {
    let mut equalities = equalities.iter();
    equalities.any(|(a, b)| (a == left && b == right) || (a == right && b == left))
}

/// Whether an equality is a key of a join.
fn is_key(left: &Expr, right: &Expr, steps: &[Step]) -> bool {
    let mut steps = steps.iter();
    steps.any(|step| is_among(left, right, &step.on))
}

/// Adds the equalities that follow from a condition.
fn add_equalities(condition: &Expr, equalities: &mut Vec<Sides>) {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else {
        return;
    };
    match op {
        Operator::Eq => add_equality(left.as_ref().clone(), right.as_ref().clone(), equalities),
        Operator::And => {
            add_equalities(left, equalities);
            add_equalities(right, equalities);
        }
        // What both alternatives have.
        Operator::Or => {
            let (mut of_left, mut of_right) = (Vec::new(), Vec::new());
            add_equalities(left, &mut of_left);
            add_equalities(right, &mut of_right);
            for (left, right) in of_left {
                if is_among(&left, &right, &of_right) {
                    add_equality(left, right, equalities);
                }
            }
        }
        _ => {}
    }
}

/// A condition without the equalities that are keys; `None`: nothing is left of it.
fn without(condition: Expr, steps: &[Step]) -> Option<Expr> {
    let Expr::BinaryExpr(BinaryExpr { left, op, right }) = condition else {
        return Some(condition);
    };
    match op {
        Operator::Eq if is_key(&left, &right, steps) => None,
        Operator::And | Operator::Or => {
            let (left, right) = (without(*left, steps), without(*right, steps));
            let both = |left, right| {
                Expr::BinaryExpr(BinaryExpr::new(Box::new(left), op, Box::new(right)))
            };
            match (left, right) {
                (Some(left), Some(right)) => Some(both(left, right)),
                // An alternative that holds, because it was a key, makes the other one true.
                (left, right) if op == Operator::And => left.or(right),
                _ => None,
            }
        }
        op => Some(Expr::BinaryExpr(BinaryExpr { left, op, right })),
    }
}
