//! What the planner knew and estimated of each operator, kept with the plan for EXPLAIN.
//!
//! The planner notes its estimates, and what it knows of an operator as expressions of the statement, beside the
//! operators that it makes. The physical rules then make others of them: they insert exchanges, merge projections and
//! hand limits down. Operators that read tables carry numbers through the rules ([`OperatorId`]), which find their
//! notes again.
//!
//! DataFusion's own operators carry none. Their notes are found again by walking both trees side by side, past the
//! projections. Operators of the same name correspond. Where the names differ, one tree has an operator too many: the
//! one under which the other's name comes up next.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use datafusion_common::Column;
use datafusion_common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion_expr::{Aggregate, Expr, Filter, LogicalPlan, Operator, SortExpr};
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::projection::ProjectionExec;
use sheaf_exec::keyed_join::exec::KeyedJoinExec;
use sheaf_exec::operator::gather_in_order_exec::GatherInOrderExec;
use sheaf_exec::operator::less_order_exec::LessOrderExec;
use sheaf_exec::operator::operator_id::OperatorId;
use sheaf_exec::operator::restartable_exec::RestartableExec;
use sheaf_exec::operator::scan_exec::ScanExec;

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

/// A note about one operator.
#[derive(Debug, Clone)]
pub(crate) struct Note {
    /// Estimated rows.
    pub rows: f64,
    /// Estimated cost of it and all below, in microseconds.
    pub cost_us: f64,
    pub about: About,
}

/// Notes while a statement is being planned.
#[derive(Default)]
pub(crate) struct Notes(RefCell<Vec<(Arc<dyn ExecutionPlan>, Note)>>);

impl Notes {
    pub(crate) fn add(&self, plan: &Arc<dyn ExecutionPlan>, note: Note) {
        // A join that cannot drop columns itself has a projection above it.
        let operator = below_projections(plan);
        self.0.borrow_mut().push((Arc::clone(operator), note));
    }

    /// Takes over the notes about another plan.
    pub(crate) fn absorb(&self, other: Notes) {
        self.0.borrow_mut().extend(other.0.into_inner());
    }

    /// Notes what became of a node of the logical plan.
    pub(crate) fn add_node(&self, node: &LogicalPlan, made: Made<'_>) {
        let about = match node {
            LogicalPlan::TableScan(_) => return self.add_table(made),
            LogicalPlan::Filter(filter) => About::Condition(vec![in_terms_of_groups(filter)]),
            LogicalPlan::Sort(sort) => {
                let keys = sort.expr.iter().map(|key| SortExpr {
                    expr: in_terms_of_sources(key.expr.clone(), &sort.input),
                    ..key.clone()
                });
                About::Order(keys.collect())
            }
            LogicalPlan::Aggregate(aggregate) => About::Groups {
                keys: aggregate.group_expr.clone(),
                functions: aggregate.aggr_expr.clone(),
            },
            LogicalPlan::Window(window) => {
                let functions = window.window_expr.iter().cloned();
                let functions = functions.map(|expr| in_terms_of_sources(expr, &window.input));
                About::Functions(functions.collect())
            }
            _ => About::Nothing,
        };
        self.add(made.plan, made.note(about));
    }

    /// Notes a table that a join reads by itself.
    pub(crate) fn add_table(&self, made: Made<'_>) {
        if let Some(row) = made.table {
            let about = About::Table(Box::new(row.clone()));
            self.add(made.plan, made.note(about));
        }
    }

    pub(crate) fn outline(self, planned: &Arc<dyn ExecutionPlan>) -> PlanOutline {
        PlanOutline {
            planned: Arc::clone(planned),
            notes: self.0.into_inner(),
        }
    }
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
    loop {
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
            _ => return shown,
        }
    }
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

/// The operators as they were planned, with the notes about them.
pub(crate) struct PlanOutline {
    planned: Arc<dyn ExecutionPlan>,
    notes: Vec<(Arc<dyn ExecutionPlan>, Note)>,
}

/// Notes on the operators of a plan.
#[derive(Default)]
pub(crate) struct NotesByOperator<'o> {
    by_id: BTreeMap<OperatorId, &'o Note>,
    /// Of operators without numbers.
    by_address: BTreeMap<usize, &'o Note>,
}

impl<'o> NotesByOperator<'o> {
    pub(crate) fn of(&self, plan: &Arc<dyn ExecutionPlan>) -> Option<&'o Note> {
        let found = match carried_id(plan) {
            Some(id) => self.by_id.get(&id),
            None => self.by_address.get(&address(plan)),
        };
        found.copied()
    }

    /// The first one to note something made the operator; later ones passed it on.
    fn add(&mut self, plan: &Arc<dyn ExecutionPlan>, note: &'o Note) {
        match carried_id(plan) {
            Some(id) => self.by_id.entry(id).or_insert(note),
            None => self.by_address.entry(address(plan)).or_insert(note),
        };
    }
}

/// The number that an operator carries; `None`: it is one of DataFusion's, or reads no table itself.
fn carried_id(plan: &Arc<dyn ExecutionPlan>) -> Option<OperatorId> {
    if let Some(scan) = plan.downcast_ref::<ScanExec>() {
        return Some(scan.id());
    }
    Some(plan.downcast_ref::<KeyedJoinExec>()?.id())
}

/// Tells an operator from others of the same plan.
pub(crate) fn address(plan: &Arc<dyn ExecutionPlan>) -> usize {
    Arc::as_ptr(plan).cast::<()>() as usize
}

impl PlanOutline {
    /// Without notes.
    pub(crate) fn of(planned: &Arc<dyn ExecutionPlan>) -> PlanOutline {
        PlanOutline {
            planned: Arc::clone(planned),
            notes: Vec::new(),
        }
    }

    /// The notes about the operators of `plan`, which was made of the planned one.
    pub(crate) fn notes_on(&self, plan: &Arc<dyn ExecutionPlan>) -> NotesByOperator<'_> {
        let mut known = NotesByOperator::default();
        for (operator, note) in &self.notes {
            known.add(operator, note);
        }
        let mut found = NotesByOperator {
            by_id: known.by_id.clone(),
            by_address: BTreeMap::new(),
        };
        pair(plan, &self.planned, &known, &mut found);
        found
    }
}

fn pair<'o>(
    plan: &Arc<dyn ExecutionPlan>,
    planned: &Arc<dyn ExecutionPlan>,
    known: &NotesByOperator<'o>,
    found: &mut NotesByOperator<'o>,
) {
    // The rules merge projections and move them, and there are no notes about them.
    let (plan, planned) = (below_projections(plan), below_projections(planned));
    let (children, planned_children) = (plan.children(), planned.children());
    if plan.name() == planned.name() {
        if let (None, Some(note)) = (carried_id(plan), known.of(planned)) {
            found.by_address.insert(address(plan), note);
        }
        for (child, planned_child) in children.into_iter().zip(planned_children) {
            pair(child, planned_child, known, found);
        }
        return;
    }
    match (children.as_slice(), planned_children.as_slice()) {
        ([child], _) if is_below(plan, planned.name()) => pair(child, planned, known, found),
        (_, [planned_child]) => {
            // What was merged into the operator below hands its note down.
            pair(plan, planned_child, known, found);
        }
        ([child], _) => pair(child, planned, known, found),
        _ => {}
    }
}

/// The operator below projections, and below what only says less of a join's order, runs it again, or runs its parts
/// in turn.
fn below_projections(plan: &Arc<dyn ExecutionPlan>) -> &Arc<dyn ExecutionPlan> {
    let mut operator = plan;
    while (operator.is::<ProjectionExec>()
        || operator.is::<LessOrderExec>()
        || operator.is::<RestartableExec>()
        || operator
            .downcast_ref::<GatherInOrderExec>()
            .is_some_and(GatherInOrderExec::runs_one))
        && let [input] = operator.children().as_slice()
    {
        operator = input;
    }
    operator
}

/// Whether an operator of this name comes before the plan forks.
fn is_below(plan: &Arc<dyn ExecutionPlan>, name: &str) -> bool {
    let mut current = plan;
    loop {
        if current.name() == name {
            return true;
        }
        match current.children().as_slice() {
            [child] => current = child,
            _ => return false,
        }
    }
}
