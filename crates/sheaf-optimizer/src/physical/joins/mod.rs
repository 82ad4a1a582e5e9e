//! The operators of a tree of joins: reads its inputs, lets [`crate::join::order`] choose, and builds the steps.
//!
//! In comes a logical plan whose root is a join, out comes a [`Planned`] with its columns in the order of that root:
//!
//! ```text
//!   JoinGraph --> inputs --> reduction, distinct semijoins --> order (all rows; first rows) --> steps --> output
//! ```
//!
//! Tables are only described at first: how each is read is part of the search. Derived tables are planned before it,
//! each as a block of its own, because what the tables leave may reduce their groups.
//!
//! While the steps are built, `layout` says which column of the graph each output column is. A predicate is tested at
//! the first step that has all of its relations. After each step only the columns that later steps, predicates or the
//! output still read are kept.
//!
//! | file | what it holds |
//! |---|---|
//! | [`keyed`] | the step that looks keys up |
//! | [`scanned`] | the step with a relation that is read by itself |
//! | [`distinct_semijoin`] | a semijoin with few values begins with them |

mod distinct_semijoin;
mod keyed;
mod scanned;

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion_common::{
    Column, DFSchema, JoinSide, NullEquality, Result, internal_err, not_impl_err,
};
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_physical_expr::PhysicalExpr;
use datafusion_physical_expr::expressions::Column as PhysicalColumn;
use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter};
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use sheaf_exec::SheafTableSource;
use sheaf_exec::operator::interruptible_expr::InterruptibleExpr;
use sheaf_exec::operator::row_by_row_exec::RowByRowExec;

use crate::access::table_reference::TableReference;
use crate::access::wanted::Wanted;
use crate::estimate::risk::Risk;
use crate::explain::notes::{About, Note, node_of};
use crate::explain::{ExplainRow, ExtraNote};
use crate::join::edge::{JoinEdges, equalities};
use crate::join::first_rows::{FirstRows, steps_for_first_rows};
use crate::join::hints::JoinHints;
use crate::join::method::Method;
use crate::join::order::{BUILD_SHARE, Chooser, Goal, Input, Step};
use crate::join::reduction::reduced;
use crate::join::trace::chosen_order;
use crate::logical::equality::Equality;
use crate::logical::join_graph::{
    JoinGraph, Relation, RelationKind, RelationSet, graph_schema, plain_scan,
};
use crate::physical::planner::Planner;
use crate::planned::{Block, Planned};

use distinct_semijoin::join_distinct_rows;

/// Plans a tree of joins.
pub(crate) fn plan_joins(
    planner: &mut Planner<'_>,
    node: &LogicalPlan,
    block: &Block,
    wanted: &Wanted,
) -> Result<Planned> {
    let switch = &planner.context.settings.switch;
    let mut graph = JoinGraph::new(node, switch)?;
    let mut inputs = read_inputs(planner, &graph, block)?;
    join_distinct_rows(planner, &mut graph, &mut inputs)?;
    let schema = whole_schema(&graph)?;
    let mut hints = JoinHints::new(&graph, switch)?;
    planner.conflicting_hints.append(&mut hints.conflicts);
    let chooser = Chooser {
        graph: &graph,
        inputs: &inputs,
        context: planner.context,
        schema: &schema,
        hints: &hints,
        goal: Goal::AllRows,
        known: JoinEdges::default(),
    };
    let all = chooser.choose()?;
    let (first_rows, steps) = match steps_for_first_rows(chooser, node, wanted, &all)? {
        Some((first_rows, steps)) => (Some(first_rows), steps),
        None => (None, all),
    };
    chosen_order(&planner.context.trace, &steps, &inputs);
    let switch_bytes = switch_bytes(&steps, planner.context.settings.query_memory_bytes);
    let mut builder = Builder {
        hints: &hints,
        switch_bytes,
        planner,
        block,
        graph: &graph,
        inputs: inputs.into_iter().map(Some).collect(),
        applied: vec![false; graph.predicates.len()],
        joined: RelationSet::default(),
        first_assigning: None,
        first_rows,
    };
    let mut current: Option<Joined> = None;
    for step in &steps {
        current = Some(builder.add(current, step)?);
    }
    let Some(joined) = current else {
        return internal_err!("a join without relations");
    };
    joined.into_output(&graph, node)
}

/// What each keyed join may keep in memory when it stops its lookups: what the others leave.
fn switch_bytes(steps: &[Step], query_memory_bytes: usize) -> f64 {
    let held = steps.last().map_or(0.0, |step| step.held_bytes);
    let is_keyed = |step: &&Step| matches!(step.method, Method::Keyed(_));
    let keyed = steps.iter().filter(is_keyed).count().max(1);
    (query_memory_bytes as f64 * BUILD_SHARE - held).max(0.0) / keyed as f64
}

/// How each relation is read: a table if it is one, else planned now.
fn read_inputs<'p>(
    planner: &mut Planner<'_>,
    graph: &JoinGraph<'p>,
    block: &Block,
) -> Result<Vec<Input<'p>>> {
    let mut inputs: Vec<Option<Input<'p>>> = Vec::with_capacity(graph.relations.len());
    for relation in &graph.relations {
        inputs.push(stored_table(planner, relation)?);
    }
    // What the tables leave decides what is needed of the others.
    for (number, relation) in graph.relations.iter().enumerate() {
        if inputs[number].is_none() {
            let planned = match reduced(graph, number, &inputs, planner.context)? {
                Some(plan) => read_derived(planner, &plan, block)?,
                None => read_derived(planner, relation.plan, block)?,
            };
            inputs[number] = Some(Input::Derived(planned));
        }
    }
    Ok(inputs.into_iter().flatten().collect())
}

/// The table that a relation is, under aliases and projections of plain columns.
fn stored_table<'p>(planner: &Planner<'_>, relation: &Relation<'p>) -> Result<Option<Input<'p>>> {
    let Some((scan, columns)) = plain_scan(relation.plan) else {
        return Ok(None);
    };
    let Some(source) = scan.source.downcast_ref::<SheafTableSource>() else {
        return Ok(None);
    };
    if scan.fetch.is_some() {
        return Ok(None);
    }
    let fields = relation.plan.schema().fields().iter();
    let names = fields.map(|field| field.name().as_str());
    let table = TableReference::new(scan, source, planner.context)?.select(&columns, names);
    if table.has_places() {
        return not_impl_err!("a join by values that a run has of its own");
    }
    Ok(Some(Input::Table(Box::new(table))))
}

/// Plans a derived table as a block of its own.
fn read_derived(planner: &mut Planner<'_>, plan: &LogicalPlan, block: &Block) -> Result<Planned> {
    let mut planned = planner.plan(plan, block, &Wanted::default())?;
    let inner_block = planned
        .explain
        .first()
        .and_then(|row| row.id)
        .filter(|id| *id != block.id);
    if let Some(id) = inner_block {
        let mut row = block.derived_row(id);
        row.estimate(planned.rows, planned.rows);
        row.node = node_of(&planned.plan);
        planned.explain.insert(0, row);
    }
    Ok(planned)
}

/// Whether rows come one by one because user variables are assigned.
fn assigns_variables(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.is::<RowByRowExec>() || plan.children().into_iter().any(assigns_variables)
}

/// All columns of the graph with their types.
fn whole_schema(graph: &JoinGraph<'_>) -> Result<DFSchema> {
    let mut fields = Vec::new();
    for relation in &graph.relations {
        for (column, field) in relation.columns.iter().zip(relation.plan.schema().fields()) {
            fields.push((column.relation.clone(), Arc::clone(field)));
        }
        if let Some(mark) = &relation.mark {
            fields.push((
                mark.relation.clone(),
                Arc::new(Field::new(mark.name(), DataType::Boolean, true)),
            ));
        }
    }
    DFSchema::new_with_metadata(fields, Default::default())
}

/// The plan of the relations joined so far.
struct Joined {
    plan: Arc<dyn ExecutionPlan>,
    /// Estimated cost up to here, in microseconds.
    cost_us: f64,
    /// The same if no LIMIT stops it.
    unstopped_us: f64,
    /// See [`Step::most_rows`].
    most_rows: f64,
    /// The column of the graph that each output column is.
    layout: Vec<Column>,
    rows: f64,
    explain: Vec<ExplainRow>,
}

impl Joined {
    fn schema(&self) -> Result<DFSchema> {
        graph_schema(&self.layout, self.plan.schema().fields())
    }

    /// Keeps only rows that satisfy `conditions`.
    fn filter(
        mut self,
        planner: &Planner<'_>,
        block: &Block,
        conditions: Vec<Expr>,
    ) -> Result<Joined> {
        if let Some(condition) = conjunction(conditions.clone()) {
            let predicate = planner.expr(&condition, &self.schema()?, block)?;
            let filter: Arc<dyn ExecutionPlan> = Arc::new(planner.filtered(self.plan, predicate)?);
            let note = Note {
                rows: self.rows,
                cost_us: self.cost_us,
                about: About::Condition(conditions),
            };
            (_, self.plan) = planner.notes.add(&filter, note)?;
            if let Some(row) = self.explain.last_mut() {
                row.add(ExtraNote::UsingWhere);
            }
        }
        Ok(self)
    }

    /// With the estimates of the step that made it.
    fn after(mut self, step: &Step) -> Joined {
        let step_us = step.cost_us - self.cost_us;
        (self.rows, self.cost_us) = (step.rows, step.cost_us);
        (self.unstopped_us, self.most_rows) = (step.unstopped_us, step.most_rows);
        if let Some(row) = self.explain.last_mut() {
            row.cost_us.get_or_insert(step_us);
            row.prefix_cost_us = Some(step.cost_us);
            row.produced = Some(step.rows);
        }
        self
    }

    /// Brings the columns into the order, and under the names, of the tree's root.
    fn into_output(self, graph: &JoinGraph<'_>, node: &LogicalPlan) -> Result<Planned> {
        let plan_schema = self.plan.schema();
        let mut expressions = Vec::with_capacity(graph.output.len());
        for (column, field) in graph.output.iter().zip(node.schema().fields()) {
            let Some(position) = self.layout.iter().position(|known| known == column) else {
                return internal_err!("column {column} got lost in a join");
            };
            let expr: Arc<dyn PhysicalExpr> = Arc::new(PhysicalColumn::new(
                plan_schema.field(position).name(),
                position,
            ));
            expressions.push((
                position,
                ProjectionExpr {
                    expr,
                    alias: field.name().clone(),
                },
            ));
        }
        let same = expressions.len() == self.layout.len()
            && expressions
                .iter()
                .enumerate()
                .all(|(at, (position, expr))| {
                    at == *position && plan_schema.field(at).name() == &expr.alias
                });
        let plan: Arc<dyn ExecutionPlan> = if same {
            self.plan
        } else {
            let expressions: Vec<_> = expressions.into_iter().map(|(_, expr)| expr).collect();
            Arc::new(ProjectionExec::try_new(expressions, self.plan)?)
        };
        Ok(Planned {
            plan,
            rows: self.rows,
            cost_us: self.cost_us,
            risk: Risk {
                unstopped_us: self.unstopped_us,
                worst_us: self.unstopped_us,
            },
            explain: self.explain,
        })
    }
}

/// Builds the steps of a chosen order.
struct Builder<'b, 'c, 'p> {
    planner: &'b Planner<'c>,
    block: &'b Block,
    graph: &'b JoinGraph<'p>,
    /// Taken one by one.
    inputs: Vec<Option<Input<'p>>>,
    /// Predicates that hold already.
    applied: Vec<bool>,
    joined: RelationSet,
    /// The first of these, in the order of FROM, that assigns user variables.
    first_assigning: Option<usize>,
    /// The plan streams.
    first_rows: Option<FirstRows>,
    hints: &'b JoinHints,
    /// Bytes of memory for each table that a keyed join may have to keep.
    switch_bytes: f64,
}

/// A join's condition, taken apart for an operator.
struct JoinCondition {
    equalities: Vec<Equality>,
    /// What is not an equality.
    rest: Vec<Expr>,
}

impl JoinCondition {
    /// The keys of an operator that takes NULL for equal to NULL in all of its keys or in none, and what is left.
    fn into_keys(self) -> (Vec<Equality>, NullEquality, Vec<Expr>) {
        let (null_safe, plain): (Vec<_>, Vec<_>) = self
            .equalities
            .into_iter()
            .partition(|equality| equality.null_equals_null);
        if plain.is_empty() {
            return (null_safe, NullEquality::NullEqualsNull, self.rest);
        }
        let mut rest: Vec<Expr> = null_safe.iter().map(Equality::condition).collect();
        rest.extend(self.rest);
        (plain, NullEquality::NullEqualsNothing, rest)
    }
}

impl<'p> Builder<'_, '_, 'p> {
    /// The same method, but what comes first in FROM is kept, and so read, first: a relation that assigns user
    /// variables does so before another one that may read them.
    fn in_turn(&mut self, method: &Method, number: usize, new: &Joined) -> Method {
        let kind = &self.graph.relations[number].kind;
        let is_of_from = matches!(kind, RelationKind::Inner | RelationKind::Outer);
        if !is_of_from || !assigns_variables(&new.plan) {
            return method.clone();
        }
        let first = self.first_assigning.unwrap_or(number);
        self.first_assigning = Some(first.min(number));
        let is_alone = first == number;
        match method {
            Method::Hash { .. } if !is_alone => Method::Hash {
                build_new: number < first,
            },
            Method::NestedLoop { .. } if !is_alone => Method::NestedLoop {
                build_new: number < first,
            },
            other => other.clone(),
        }
    }

    fn add(&mut self, before: Option<Joined>, step: &Step) -> Result<Joined> {
        let graph = self.graph;
        let relation = &graph.relations[step.relation];
        let Some(input) = self.inputs[step.relation].take() else {
            return internal_err!("a relation is joined twice");
        };
        let Some(before) = before else {
            let wanted = match (&self.first_rows, &input) {
                (Some(first_rows), Input::Table(table)) => {
                    first_rows.wanted_of(step.relation, table.rows)
                }
                _ => None,
            };
            let joined = self.read(relation, input, &wanted.unwrap_or_default())?;
            self.joined = RelationSet::one(step.relation);
            if assigns_variables(&joined.plan) {
                self.first_assigning = Some(step.relation);
            }
            let conditions = self.now_applicable();
            return Ok(joined
                .filter(self.planner, self.block, conditions)?
                .after(step));
        };
        let condition = self.condition(step.relation)?;
        self.joined = self.joined.with(step.relation);
        // Predicates over the new columns of an outer or mark join hold after it, not in it.
        let after = self.now_applicable();
        let needed = self.needed(&after);
        let mut about = About::join(&condition.equalities, &condition.rest);
        let mut joined = match (&step.method, input) {
            (Method::Keyed(path), Input::Table(table)) => {
                self.keyed(before, step, &table, path, condition, &needed)?
            }
            (Method::Keyed(_) | Method::First, _) => {
                return internal_err!("a step that does not fit its input");
            }
            (method, input) => {
                let new = self.read(relation, input, &Wanted::default())?;
                let method = self.in_turn(method, step.relation, &new);
                self.scanned(before, relation, new, &method, condition, &needed)?
            }
        };
        if let (Method::Keyed(_), Some(row)) = (&step.method, joined.explain.last()) {
            let mut row = row.clone();
            row.cost_us = Some(step.cost_us - joined.cost_us);
            about = About::Table(Box::new(row));
        }
        let (rows, cost_us) = (step.rows, step.cost_us);
        let note = Note {
            rows,
            cost_us,
            about,
        };
        let id;
        (id, joined.plan) = self.planner.notes.add(&joined.plan, note)?;
        if let (Method::Keyed(_), Some(row)) = (&step.method, joined.explain.last_mut()) {
            row.node = Some(id);
        }
        let joined = joined.filter(self.planner, self.block, after)?;
        Ok(joined.after(step))
    }

    /// Reads a relation by itself.
    fn read(&self, relation: &Relation<'_>, input: Input<'_>, wanted: &Wanted) -> Result<Joined> {
        let planned = match input {
            Input::Table(table) => {
                let planned = table.plan_scan(self.planner, self.block, wanted)?;
                planned.noted_as_table(&self.planner.notes)?
            }
            Input::Derived(planned) => planned,
        };
        let Planned {
            plan,
            rows,
            cost_us,
            risk,
            explain,
        } = planned;
        Ok(Joined {
            plan,
            rows,
            cost_us,
            unstopped_us: risk.unstopped_us,
            most_rows: rows,
            explain,
            layout: relation.columns.clone(),
        })
    }

    /// The condition that joins a relation: its own, or the predicates that can be tested now. Those are marked.
    fn condition(&mut self, number: usize) -> Result<JoinCondition> {
        let equalities = equalities(self.graph, self.joined, number);
        let used: BTreeSet<usize> = equalities.iter().map(|equality| equality.origin).collect();
        let relation = &self.graph.relations[number];
        if relation.kind != RelationKind::Inner {
            let rest = relation
                .on
                .iter()
                .enumerate()
                .filter(|(position, _)| !used.contains(position));
            return Ok(JoinCondition {
                equalities,
                rest: rest.map(|(_, predicate)| predicate.expr.clone()).collect(),
            });
        }
        let now = self.joined.with(number);
        let mut rest = Vec::new();
        for (position, predicate) in self.graph.predicates.iter().enumerate() {
            if self.applied[position] || !predicate.relations.is_subset(now) {
                continue;
            }
            self.applied[position] = true;
            if !used.contains(&position) {
                rest.push(predicate.expr.clone());
            }
        }
        Ok(JoinCondition { equalities, rest })
    }

    /// Predicates whose relations are all joined and that do not hold yet. They are marked.
    fn now_applicable(&mut self) -> Vec<Expr> {
        let mut found = Vec::new();
        for (position, predicate) in self.graph.predicates.iter().enumerate() {
            if !self.applied[position] && predicate.relations.is_subset(self.joined) {
                self.applied[position] = true;
                found.push(predicate.expr.clone());
            }
        }
        found
    }

    /// Columns that something after the current join reads; `after` are the filters right above it.
    fn needed(&self, after: &[Expr]) -> BTreeSet<Column> {
        let mut needed: BTreeSet<Column> = self.graph.output.iter().cloned().collect();
        let mut read = |expr: &Expr| needed.extend(expr.column_refs().into_iter().cloned());
        after.iter().for_each(&mut read);
        let open = self
            .graph
            .predicates
            .iter()
            .zip(&self.applied)
            .filter(|(_, applied)| !**applied);
        open.for_each(|(predicate, _)| read(&predicate.expr));
        for (number, relation) in self.graph.relations.iter().enumerate() {
            if !self.joined.contains(number) {
                let own = relation.on.iter();
                own.for_each(|predicate| read(&predicate.expr));
            }
        }
        needed
    }

    /// A condition over rows of both sides, as join operators take it.
    fn join_filter(
        &self,
        conditions: Vec<Expr>,
        left: &[Column],
        left_fields: &Fields,
        right: &[Column],
        right_fields: &Fields,
    ) -> Result<Option<JoinFilter>> {
        let Some(condition) = conjunction(conditions) else {
            return Ok(None);
        };
        let mut columns = Vec::new();
        let mut fields = Vec::new();
        let mut layout = Vec::new();
        let mut refs: Vec<&Column> = condition.column_refs().into_iter().collect();
        // DataFusion's merge join gives the condition the columns of the left side first.
        refs.sort_by_key(|column| (!left.contains(column), *column));
        for column in refs {
            let (side, index, field) =
                if let Some(index) = left.iter().position(|known| known == column) {
                    (JoinSide::Left, index, &left_fields[index])
                } else if let Some(index) = right.iter().position(|known| known == column) {
                    (JoinSide::Right, index, &right_fields[index])
                } else {
                    return internal_err!("column {column} of a join condition got lost");
                };
            columns.push(ColumnIndex { index, side });
            // The merge join of an outer join has it see rows without a partner too.
            fields.push(Arc::new(field.as_ref().clone().with_nullable(true)));
            layout.push(column.clone());
        }
        let fields = Fields::from(fields);
        let schema = graph_schema(&layout, &fields)?;
        let expr = self.planner.expr(&condition, &schema, self.block)?;
        let cancel = self.planner.context.cancel.clone();
        Ok(Some(JoinFilter::new(
            Arc::new(InterruptibleExpr::new(expr, cancel)),
            columns,
            Arc::new(Schema::new(fields)),
        )))
    }
}
