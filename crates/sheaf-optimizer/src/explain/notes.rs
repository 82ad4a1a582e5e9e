//! What the planner knew and estimated of each node, kept with the plan for EXPLAIN.
//!
//! The planner notes its estimates, and what it knows of an operator as expressions of the statement. The operator gets
//! the [number](NodeId) of a node, which it keeps through the rules, and the note is found by that. The first one to
//! note something made the operator. Those that note something of it later passed it on, so what they say is left out.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_common::{Column, Result};
use datafusion_expr::{Aggregate, Expr, Filter, LogicalPlan, Operator, SortExpr};
use datafusion_physical_plan::projection::ProjectionExec;
use datafusion_physical_plan::{ExecutionPlan, replace_children_if_necessary};
use sheaf_exec::operator::gather_in_order_exec::GatherInOrderExec;
use sheaf_exec::operator::less_order_exec::LessOrderExec;
use sheaf_exec::operator::node_id::{NodeId, of_node};
use sheaf_exec::operator::restartable_exec::RestartableExec;

use crate::explain::ExplainRow;
use crate::explain::sql_text::{Names, expression_text};
use crate::logical::equality::Equality;

/// What an operator does, in terms of the statement.
#[derive(Debug, Clone)]
pub(crate) enum About {
    Nothing,
    /// Reads a table, or looks one up: what EXPLAIN's table says of it.
    Table(Box<ExplainRow>),
    Condition(Vec<Expr>),
    Order(Vec<SortExpr>),
    Groups {
        keys: Vec<Expr>,
        functions: Vec<Expr>,
    },
    Functions(Vec<Expr>),
    /// Joins on equalities, each with its operator, and other conditions.
    Join {
        on: Vec<(Expr, Operator, Expr)>,
        rest: Vec<Expr>,
    },
}

impl About {
    pub(crate) fn join(equalities: &[Equality], rest: &[Expr]) -> About {
        let pairs = equalities.iter();
        About::Join {
            on: pairs
                .map(|equality| {
                    let (outer, inner) = (equality.outer.clone(), equality.inner.clone());
                    (outer, equality.operator(), inner)
                })
                .collect(),
            rest: rest.to_vec(),
        }
    }
}

/// An operator as it was planned.
pub(crate) struct Made<'p> {
    pub plan: &'p Arc<dyn ExecutionPlan>,
    /// Estimated rows.
    pub rows: f64,
    /// Estimated cost of it and all below, in microseconds.
    pub cost_us: f64,
    /// The row of EXPLAIN's table of the last table that is read below it.
    pub table: Option<&'p ExplainRow>,
}

impl Made<'_> {
    fn note(&self, about: About) -> Note {
        Note {
            rows: self.rows,
            cost_us: self.cost_us,
            about,
        }
    }
}

/// A note about one node.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    /// Estimated rows.
    pub rows: f64,
    /// Estimated cost of it and all below, in microseconds.
    pub cost_us: f64,
    pub about: About,
}

/// The notes about a plan.
#[derive(Debug, Default)]
pub(crate) struct NodeNotes(BTreeMap<NodeId, Note>);

impl NodeNotes {
    /// That of the node that an operator belongs to.
    pub(crate) fn of(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<&Note> {
        self.0.get(&NodeId::of(plan)?)
    }
}

/// Notes while a statement is being planned.
#[derive(Default)]
pub(crate) struct Notes(RefCell<NodeNotes>);

/// The number of a node, and the plan whose operator belongs to it.
pub(crate) type Noted = (NodeId, Arc<dyn ExecutionPlan>);

impl Notes {
    /// Notes something of the operator of a plan, which belongs to a node from now on.
    pub(crate) fn add(&self, plan: &Arc<dyn ExecutionPlan>, note: Note) -> Result<Noted> {
        let (id, plan) = in_a_node(plan)?;
        self.0.borrow_mut().0.entry(id).or_insert(note);
        Ok((id, plan))
    }

    /// Takes over the notes about another plan.
    pub(crate) fn absorb(&self, other: Notes) {
        let mut own = self.0.borrow_mut();
        for (id, note) in other.into_inner().0 {
            own.0.entry(id).or_insert(note);
        }
    }

    /// Those of a plan that is complete.
    pub(crate) fn into_inner(self) -> NodeNotes {
        self.0.into_inner()
    }

    /// Notes what became of a node of the logical plan.
    pub(crate) fn add_node(&self, node: &LogicalPlan, made: Made<'_>) -> Result<Noted> {
        let about = match node {
            LogicalPlan::Filter(filter) => {
                let condition = in_terms_of_groups(filter);
                About::Condition(vec![in_terms_of_sources(condition, &filter.input)])
            }
            LogicalPlan::Sort(sort) => {
                let keys = sort.expr.iter().map(|key| SortExpr {
                    expr: in_terms_of_sources(key.expr.clone(), &sort.input),
                    ..key.clone()
                });
                About::Order(keys.collect())
            }
            LogicalPlan::Aggregate(aggregate) => {
                let shown = |exprs: &[Expr]| {
                    let exprs = exprs.iter().cloned();
                    let exprs = exprs.map(|expr| in_terms_of_sources(expr, &aggregate.input));
                    exprs.collect()
                };
                About::Groups {
                    keys: shown(&aggregate.group_expr),
                    functions: shown(&aggregate.aggr_expr),
                }
            }
            LogicalPlan::Window(window) => {
                let functions = window.window_expr.iter().cloned();
                let functions = functions.map(|expr| in_terms_of_sources(expr, &window.input));
                About::Functions(functions.collect())
            }
            _ => About::Nothing,
        };
        self.add(made.plan, made.note(about))
    }

    /// Notes a table that is read.
    pub(crate) fn add_table(&self, made: Made<'_>) -> Result<Noted> {
        let about = match made.table {
            Some(row) => About::Table(Box::new(row.clone())),
            None => About::Nothing,
        };
        self.add(made.plan, made.note(about))
    }
}

/// The plan with its operator in a node. A join that cannot drop columns itself has a projection above it, which has
/// nothing to be noted of.
fn in_a_node(plan: &Arc<dyn ExecutionPlan>) -> Result<Noted> {
    if let Some(id) = NodeId::of(plan) {
        return Ok((id, Arc::clone(plan)));
    }
    if is_above_operator(plan)
        && let [input] = plan.children().as_slice()
    {
        let (id, input) = in_a_node(input)?;
        let plan = replace_children_if_necessary(Arc::clone(plan), vec![input])?;
        return Ok((id, plan));
    }
    let id = NodeId::fresh();
    Ok((id, of_node(id, Arc::clone(plan))))
}

/// The number of the node that a plan is, if something was noted of it.
pub(crate) fn node_of(plan: &Arc<dyn ExecutionPlan>) -> Option<NodeId> {
    match plan.children().as_slice() {
        [input] if is_above_operator(plan) => node_of(input),
        _ => NodeId::of(plan),
    }
}

/// Whether it is a projection, or only says less of a join's order, runs it again, or runs its parts in turn.
fn is_above_operator(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<ProjectionExec>()
        || plan.is::<LessOrderExec>()
        || plan.is::<RestartableExec>()
        || plan
            .downcast_ref::<GatherInOrderExec>()
            .is_some_and(GatherInOrderExec::runs_one)
}

/// What the names of columns begin with that stand for expressions which occur several times.
const COMMON: &str = "__common_expr_";

/// An expression over the rows of `input`, with what such columns stand for.
fn in_terms_of_sources(expr: Expr, input: &LogicalPlan) -> Expr {
    let is_common = |expr: &Expr| {
        let name = expr.try_as_col().map(|column| column.name.as_str());
        name.is_some_and(|name| name.starts_with(COMMON))
    };
    let mut shown = expr;
    let mut input = input;
    // Most have none.
    while shown.exists(|expr| Ok(is_common(expr))).unwrap_or(false) {
        match input {
            LogicalPlan::Window(window) => input = &window.input,
            LogicalPlan::Sort(sort) => input = &sort.input,
            LogicalPlan::Projection(projection) => {
                let source = |column: &Expr| {
                    let name = &column.try_as_col()?.name;
                    let mut items = projection.expr.iter();
                    items.find_map(|item| match item {
                        Expr::Alias(alias) if alias.name == *name => Some((*alias.expr).clone()),
                        _ => None,
                    })
                };
                let replaced = shown.clone().transform(|expr| {
                    Ok(
                        match Some(&expr).filter(|expr| is_common(expr)).and_then(source) {
                            Some(source) => Transformed::new(source, true, TreeNodeRecursion::Jump),
                            None => Transformed::no(expr),
                        },
                    )
                });
                shown = replaced.map_or(shown, |replaced| replaced.data);
                input = &projection.input;
            }
            _ => break,
        }
    }
    shown
}

/// The condition of a filter; above a grouping (HAVING) with the aggregates that its columns are.
fn in_terms_of_groups(filter: &Filter) -> Expr {
    let predicate = filter.predicate.clone();
    let LogicalPlan::Aggregate(aggregate) = filter.input.as_ref() else {
        return predicate;
    };
    let schema = &aggregate.schema;
    // ROLLUP has one expression for all of them, and a column that says which were rolled up: GROUPING of all.
    let keys = schema.fields().len() - aggregate.aggr_expr.len();
    let aggregate_of = |column: &Column| {
        if column.name() == Aggregate::INTERNAL_GROUPING_ID {
            let keys = (0..keys - 1).map(|key| Expr::Column(schema.columns().swap_remove(key)));
            let keys: Vec<String> = keys
                .map(|key| expression_text(&key, Names::PLAIN))
                .collect();
            let grouping = Column::new_unqualified(format!("grouping({})", keys.join(", ")));
            return Some(Expr::Column(grouping));
        }
        let position = schema.index_of_column(column).ok()?.checked_sub(keys)?;
        aggregate.aggr_expr.get(position).cloned()
    };
    let replaced = predicate.clone().transform(|expr| {
        Ok(match expr.try_as_col().and_then(aggregate_of) {
            Some(aggregate) => Transformed::new(aggregate, true, TreeNodeRecursion::Jump),
            None => Transformed::no(expr),
        })
    });
    replaced.map_or(predicate, |replaced| replaced.data)
}
