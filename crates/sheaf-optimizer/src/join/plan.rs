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

use std::collections::BTreeSet;
use std::sync::Arc;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Fields, Schema};
use datafusion_common::{Column, DFSchema, JoinSide, JoinType, NullEquality, Result, internal_err};
use datafusion_expr::utils::conjunction;
use datafusion_expr::{Expr, LogicalPlan};
use datafusion_physical_expr::expressions::{CastExpr, Column as PhysicalColumn, Literal};
use datafusion_physical_expr::{LexOrdering, Partitioning, PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::joins::utils::{ColumnIndex, JoinFilter, JoinOn};
use datafusion_physical_plan::joins::{
    CrossJoinExec, HashJoinExec, NestedLoopJoinExec, PartitionMode, SortMergeJoinExec,
};
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_access::{Fetch, IndexRef, KeyedLookupSpec, arrow_type};
use sheaf_exec::SheafTableSource;
use sheaf_exec::keyed_join::exec::{KeyColumn, KeyedJoin, KeyedJoinExec, KeyedJoinType};
use sheaf_exec::operator::interruptible_expr::InterruptibleExpr;
use sheaf_exec::operator::less_order_exec::{in_streamed_order, without_constants, without_order};
use sheaf_exec::operator::restartable_exec::{RestartableExec, SecondRun};

use crate::access::keyed_access::{KeySource, LookupPath, outer_value};
use crate::access::table_reference::TableReference;
use crate::access::table_reference::table_column;
use crate::access::wanted::Wanted;
use crate::adaptive::lookup_regret::DoubtedLookups;
use crate::estimate::risk::Risk;
use crate::estimate::statistics::layout as key_layout;
use crate::explain::outline::{About, Note};
use crate::explain::table_detail::TableDetail;
use crate::explain::{ExplainRow, ExtraNote};
use crate::hints::JoinHints;
use crate::join::connection::{Connections, equalities};
use crate::join::distinct_semijoin::join_distinct_rows;
use crate::join::first_rows::{FirstRows, steps_for_first_rows};
use crate::join::order::{BUILD_SHARE, Chooser, Goal, Input, Method, Step};
use crate::join::reduction::reduced;
use crate::join::trace::chosen_order;
use crate::logical::equality::Equality;
use crate::logical::join_graph::{
    JoinGraph, Relation, RelationKind, RelationSet, graph_schema, plain_scan,
};
use crate::logical::semantics;
use crate::physical::planner::{Block, Planned, Planner};

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
        known: Connections::default(),
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
            let planned = match reduced(graph, number, &inputs)? {
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
        let mut row = block.row(&format!("<derived{id}>"), "ALL");
        row.estimate(planned.rows, planned.rows);
        planned.explain.insert(0, row);
    }
    Ok(planned)
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
            self.plan = Arc::new(FilterExec::try_new(predicate, self.plan)?);
            let note = Note {
                rows: self.rows,
                cost_us: self.cost_us,
                about: About::Condition(conditions),
            };
            planner.notes.add(&self.plan, note);
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
        let joined = match (&step.method, input) {
            (Method::Keyed(path), Input::Table(table)) => {
                self.keyed(before, step, &table, path, condition, &needed)?
            }
            (Method::Keyed(_) | Method::First, _) => {
                return internal_err!("a step that does not fit its input");
            }
            (method, input) => {
                let new = self.read(relation, input, &Wanted::default())?;
                self.scanned(before, relation, new, method, condition, &needed)?
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
        self.planner.notes.add(&joined.plan, note);
        let joined = joined.filter(self.planner, self.block, after)?;
        Ok(joined.after(step))
    }

    /// Reads a relation by itself.
    fn read(&self, relation: &Relation<'_>, input: Input<'_>, wanted: &Wanted) -> Result<Joined> {
        let planned = match input {
            Input::Table(table) => {
                let planned = table.plan_scan(self.planner, self.block, wanted)?;
                self.planner.notes.add_table(planned.made());
                planned
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

    /// A join that looks keys up.
    fn keyed(
        &self,
        before: Joined,
        step: &Step,
        table: &TableReference<'_>,
        path: &LookupPath,
        condition: JoinCondition,
        needed: &BTreeSet<Column>,
    ) -> Result<Joined> {
        let (planner, block) = (self.planner, self.block);
        let context = planner.context;
        let relation = &self.graph.relations[step.relation];
        let outer_schema = before.schema()?;
        let definition = &table.table.definition;
        let layout = key_layout(table.table, path.index);
        let mut keys = Vec::with_capacity(path.key.len());
        let mut in_key = BTreeSet::new();
        for (source, part) in path.key.iter().zip(&layout.parts) {
            let Some(column) = part.column else {
                return internal_err!("a row id in a join key");
            };
            let expr: Arc<dyn PhysicalExpr> = match source {
                KeySource::Join(position) => {
                    in_key.insert(*position);
                    planner.expr(
                        outer_value(&condition.equalities[*position].outer),
                        &outer_schema,
                        block,
                    )?
                }
                KeySource::Constant(value) => Arc::new(Literal::new(value.clone())),
            };
            keys.push(KeyColumn {
                expr,
                data_type: arrow_type(&definition.columns[column].ty),
            });
        }
        // What the key does not say is tested on the joined row.
        let open = condition
            .equalities
            .iter()
            .enumerate()
            .filter(|(position, _)| !in_key.contains(position));
        let residual: Vec<Expr> = open
            .map(|(_, equality)| equality.condition())
            .chain(condition.rest)
            .collect();

        let join_type = match relation.kind {
            RelationKind::Inner => KeyedJoinType::Inner,
            RelationKind::Outer => KeyedJoinType::LeftOuter,
            RelationKind::Semi => KeyedJoinType::Semi,
            RelationKind::Anti { .. } => KeyedJoinType::Anti,
            RelationKind::Mark => KeyedJoinType::Mark,
        };
        let delivers_inner = matches!(join_type, KeyedJoinType::Inner | KeyedJoinType::LeftOuter);
        // Columns of the table that are looked up: delivered, or read by the residual condition.
        let mut inner_columns: Vec<Column> = Vec::new();
        for column in &relation.columns {
            let in_residual = residual
                .iter()
                .any(|expr| expr.column_refs().contains(column));
            if in_residual || (delivers_inner && needed.contains(column)) {
                inner_columns.push(column.clone());
            }
        }
        let mut projection = Vec::with_capacity(inner_columns.len());
        let mut inner_fields = Vec::with_capacity(inner_columns.len());
        for column in &inner_columns {
            let Some(position) = table_column(relation, table, column) else {
                return internal_err!("column {column} is not in its table");
            };
            projection.push(position);
            let field = sheaf_access::field_at(definition, position).with_name(column.name());
            let nullable = field.is_nullable() || join_type == KeyedJoinType::LeftOuter;
            inner_fields.push(Arc::new(field.with_nullable(nullable)));
        }
        let switch = match context.settings.switch.bounded_regret
            && self.hints.methods(step.relation).hash
        {
            true => planner.lookup_switch(
                block,
                &DoubtedLookups {
                    table,
                    path,
                    keys: &keys,
                    projection: &projection,
                    rows: before.rows,
                    most_rows: before.most_rows,
                    workers: step.workers,
                    row_bytes: relation.row_bytes,
                    max_bytes: self.switch_bytes,
                },
            )?,
            false => None,
        };
        let spec = KeyedLookupSpec {
            table: Arc::clone(table.table),
            view: context.view.clone(),
            index: path.index,
            key_parts: path.key.len(),
            index_condition: table.condition(planner, block, &path.index_filters)?,
            row_condition: table.condition(planner, block, &path.row_filters)?,
            projection,
            fetch: path.fetch,
            batched: path.batched,
            sort_keys: path.sort_keys,
            buffer_bytes: path.buffer_bytes,
            batch_rows: context.settings.batch_rows,
        };
        let inner_fields = Fields::from(inner_fields);
        let mut row = self.explain_lookup(table, path, &condition.equalities, &residual, join_type);
        if let Some(switch) = &switch {
            row.may_switch_to_hash_join(switch.limit_us);
        }
        let filter = self.join_filter(
            residual,
            &before.layout,
            before.plan.schema().fields(),
            &inner_columns,
            &inner_fields,
        )?;

        let outer_fields = before.plan.schema();
        let mut both: Vec<(Column, Arc<Field>)> = before
            .layout
            .iter()
            .cloned()
            .zip(outer_fields.fields().iter().cloned())
            .collect();
        if delivers_inner {
            both.extend(inner_columns.into_iter().zip(inner_fields.iter().cloned()));
        } else if let Some(mark) = &relation.mark {
            both.push((
                mark.clone(),
                Arc::new(Field::new(mark.name(), DataType::Boolean, false)),
            ));
        }
        let kept: Vec<usize> = (0..both.len())
            .filter(|position| needed.contains(&both[*position].0))
            .collect();
        let fields: Vec<_> = kept
            .iter()
            .map(|position| Arc::clone(&both[*position].1))
            .collect();
        let mut explain = before.explain;
        explain.push(row);
        let budget = match &planner.budget {
            Some(budget) => {
                let prices = path.prices(table, before.rows, &context.settings.costs)?;
                Some((budget.clone(), prices))
            }
            None => None,
        };
        let plan = KeyedJoinExec::new(KeyedJoin {
            outer: before.plan,
            spec: Arc::new(spec),
            keys,
            join_type,
            filter,
            schema: Arc::new(Schema::new(fields)),
            alias: table.source.alias.clone(),
            counters: Arc::clone(&context.counters),
            cancel: context.cancel.clone(),
            projection: kept.clone(),
            in_order: self.first_rows.as_ref().is_some_and(FirstRows::is_ordered),
            starts_small: self.first_rows.is_some(),
            budget,
            switch,
        })?;
        let layout = kept
            .into_iter()
            .map(|position| both[position].0.clone())
            .collect();
        Ok(Joined {
            plan: Arc::new(plan),
            layout,
            rows: before.rows,
            cost_us: before.cost_us,
            unstopped_us: before.unstopped_us,
            most_rows: before.most_rows,
            explain,
        })
    }

    /// A join with a relation that is read by itself.
    fn scanned(
        &self,
        before: Joined,
        relation: &Relation<'_>,
        new: Joined,
        method: &Method,
        condition: JoinCondition,
        needed: &BTreeSet<Column>,
    ) -> Result<Joined> {
        let build_new = match method {
            Method::Hash { build_new } | Method::NestedLoop { build_new } => *build_new,
            _ => false,
        };
        // `left` is kept in memory (or simply comes first), `right` streams by.
        let (left, right) = if build_new {
            (&new, &before)
        } else {
            (&before, &new)
        };
        let join_type = join_type(&relation.kind, build_new);
        let (left_schema, right_schema) = (left.schema()?, right.schema()?);
        let (equalities, null_equality, rest) = condition.into_keys();
        let mut on = Vec::with_capacity(equalities.len());
        for equality in &equalities {
            let (left_key, right_key) = if build_new {
                (&equality.inner, &equality.outer)
            } else {
                (&equality.outer, &equality.inner)
            };
            let left_key = self.planner.expr(left_key, &left_schema, self.block)?;
            let right_key = self.planner.expr(right_key, &right_schema, self.block)?;
            on.push((left_key, right_key));
        }
        let filter = self.join_filter(
            rest,
            &left.layout,
            left.plan.schema().fields(),
            &right.layout,
            right.plan.schema().fields(),
        )?;

        // The join's own output, before columns are dropped.
        let both = || {
            left.layout
                .iter()
                .chain(&right.layout)
                .cloned()
                .collect::<Vec<_>>()
        };
        let with_mark = |side: &Joined| {
            side.layout
                .iter()
                .chain(&relation.mark)
                .cloned()
                .collect::<Vec<_>>()
        };
        let full_layout = match join_type {
            JoinType::LeftSemi | JoinType::LeftAnti => left.layout.clone(),
            JoinType::RightSemi | JoinType::RightAnti => right.layout.clone(),
            JoinType::LeftMark => with_mark(left),
            JoinType::RightMark => with_mark(right),
            _ => both(),
        };
        let kept: Vec<usize> = (0..full_layout.len())
            .filter(|position| needed.contains(&full_layout[*position]))
            .collect();
        let layout: Vec<Column> = kept
            .iter()
            .map(|position| full_layout[*position].clone())
            .collect();
        let projection = (kept.len() < full_layout.len()).then_some(kept);

        let (mut left_plan, mut right_plan) = (Arc::clone(&left.plan), Arc::clone(&right.plan));
        // What is constant in a side is NULL besides where the side has no row. DataFusion forgets that.
        if matches!(join_type, JoinType::Left | JoinType::Full) {
            right_plan = without_constants(right_plan)?;
        }
        if matches!(join_type, JoinType::Right | JoinType::Full) {
            left_plan = without_constants(left_plan)?;
        }
        let null_aware = matches!(relation.kind, RelationKind::Anti { null_aware: true });
        let (plan, note): (Arc<dyn ExecutionPlan>, ExtraNote) = match method {
            Method::Merge => {
                let merge = self.merge_join(
                    [left_plan, right_plan],
                    on,
                    filter,
                    join_type,
                    null_equality,
                )?;
                (project(merge, projection)?, ExtraNote::JoinBufferMerge)
            }
            Method::NestedLoop { .. } if filter.is_none() && join_type == JoinType::Inner => {
                let cross = CrossJoinExec::new(left_plan, right_plan);
                (
                    project(Arc::new(cross), projection)?,
                    ExtraNote::JoinBufferNestedLoop,
                )
            }
            Method::NestedLoop { .. } => {
                let sides = self.nested_loop_sides(left_plan, right_plan, join_type);
                let [left, right] = sides;
                let nested =
                    NestedLoopJoinExec::try_new(left, right, filter, &join_type, projection)?;
                (Arc::new(nested), ExtraNote::JoinBufferNestedLoop)
            }
            _ => {
                // DataFusion moves sorts below joins. Where it looks up the columns of a projection in such a join, it
                // forgets the mark.
                let (inside, above) = match join_type {
                    JoinType::RightMark => (None, projection),
                    _ => (projection, None),
                };
                let hash = HashJoinExec::try_new(
                    without_order(left_plan)?,
                    right_plan,
                    on,
                    filter,
                    &join_type,
                    inside,
                    PartitionMode::CollectLeft,
                    null_equality,
                    null_aware,
                )?;
                (project(Arc::new(hash), above)?, ExtraNote::JoinBufferHash)
            }
        };
        // In the order in which the tables are read: what is kept in memory first.
        let (mut explain, mut later) = if build_new {
            (new.explain, before.explain)
        } else {
            (before.explain, new.explain)
        };
        if let Some(row) = later.first_mut() {
            row.add(note);
        }
        explain.extend(later);
        Ok(Joined {
            plan,
            layout,
            rows: before.rows,
            cost_us: before.cost_us,
            unstopped_us: before.unstopped_us,
            most_rows: before.most_rows,
            explain,
        })
    }

    /// Both sides of a join of all pairs, ready for [what it does](sheaf_exec::operator::restartable_exec) when the
    /// left one does not fit in memory.
    fn nested_loop_sides(
        &self,
        left: Arc<dyn ExecutionPlan>,
        right: Arc<dyn ExecutionPlan>,
        join_type: JoinType,
    ) -> [Arc<dyn ExecutionPlan>; 2] {
        let delivers_unmatched_left = matches!(
            join_type,
            JoinType::Left
                | JoinType::LeftSemi
                | JoinType::LeftAnti
                | JoinType::LeftMark
                | JoinType::Full
        );
        let settings = &self.planner.context.settings;
        let (second_run, right): (_, Arc<dyn ExecutionPlan>) = if !delivers_unmatched_left {
            (SecondRun::Copy, right)
        } else if settings.target_partitions == 1 || settings.is_thrifty() {
            let right = RestartableExec::new(right, SecondRun::Copy);
            (SecondRun::Copy, Arc::new(right))
        } else {
            (SecondRun::Refused, right)
        };
        [Arc::new(RestartableExec::new(left, second_run)), right]
    }

    /// A sort-merge join. Its inputs are sorted here already and divided between its workers, as the physical rules
    /// would have it. The order that the join promises follows from its inputs, and operators above it rely on that.
    fn merge_join(
        &self,
        inputs: [Arc<dyn ExecutionPlan>; 2],
        on: JoinOn,
        filter: Option<JoinFilter>,
        join_type: JoinType,
        null_equality: NullEquality,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let workers = self
            .planner
            .context
            .task
            .session_config()
            .target_partitions();
        let [left, right] = inputs;
        let (left_schema, right_schema) = (left.schema(), right.schema());
        let on: JoinOn = on
            .into_iter()
            .map(|(l, r)| Ok((merge_key(l, &left_schema)?, merge_key(r, &right_schema)?)))
            .collect::<Result<_>>()?;
        let (left_keys, right_keys): (Vec<_>, Vec<_>) = on.iter().cloned().unzip();
        let left = sorted_by_keys(left, left_keys, workers)?;
        let right = sorted_by_keys(right, right_keys, workers)?;
        let options = vec![MERGE_ORDER; on.len()];
        let merge =
            SortMergeJoinExec::try_new(left, right, on, filter, join_type, options, null_equality)?;
        in_streamed_order(Arc::new(merge))
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

    fn explain_lookup(
        &self,
        table: &TableReference<'_>,
        path: &LookupPath,
        equalities: &[Equality],
        residual: &[Expr],
        join_type: KeyedJoinType,
    ) -> ExplainRow {
        let type_ = if path.is_unique(table) {
            "eq_ref"
        } else {
            "ref"
        };
        let mut row = self.block.row(&table.source.alias, type_);
        let layout = key_layout(table.table, path.index);
        let columns: Vec<usize> = layout.parts[..path.key.len()]
            .iter()
            .filter_map(|part| part.column)
            .collect();
        row.possible_keys = table.possible_keys(&columns);
        row.key = Some(table.index_name(path.index).to_string());
        row.key_len = Some(layout.mysql_key_len(path.key.len()).to_string());
        let sources = path.key.iter().map(|source| match source {
            KeySource::Constant(_) => "const".to_string(),
            KeySource::Join(position) => self.column_name(&equalities[*position].outer),
        });
        row.ref_ = Some(sources.collect::<Vec<_>>().join(","));
        let tested: Vec<usize> = [path.index_filters.as_slice(), &path.row_filters].concat();
        let kept = table.shares.kept(&tested, &path.implied);
        row.estimate(path.entries_per_key, path.entries_per_key * kept);
        if !path.index_filters.is_empty() {
            row.add(ExtraNote::UsingIndexCondition);
        }
        if !path.row_filters.is_empty() || !residual.is_empty() {
            row.add(ExtraNote::UsingWhere);
        }
        match path.fetch {
            Fetch::MultiRange { .. } => row.add(ExtraNote::UsingMrr),
            Fetch::Covering if path.index != IndexRef::Clustered => row.add(ExtraNote::UsingIndex),
            _ => {}
        }
        match join_type {
            KeyedJoinType::Semi => row.add(ExtraNote::FirstMatch),
            KeyedJoinType::Anti => row.add(ExtraNote::NotExists),
            _ => {}
        }
        if path.batched {
            row.add(ExtraNote::BatchedKeyAccess);
        }
        row.detail = Some(Arc::new(TableDetail {
            fetch: path.fetch,
            key_parts: path.key.len(),
            residual: residual.to_vec(),
            ..table.detail(path.index, &path.index_filters, &path.row_filters)
        }));
        row
    }

    /// What EXPLAIN's `ref` says for a value of a join key: a column with its database and table, or "func".
    fn column_name(&self, expr: &Expr) -> String {
        let named = semantics::compared_column(expr).and_then(|column| {
            let number = self.graph.relation_of(column).ok()?;
            let (scan, _) = plain_scan(self.graph.relations[number].plan)?;
            let source = scan.source.downcast_ref::<SheafTableSource>()?;
            Some(format!(
                "{}.{}.{}",
                source.table.definition.database,
                source.alias,
                column.name()
            ))
        });
        named.unwrap_or_else(|| "func".to_string())
    }
}

/// DataFusion's join type, with the rows so far on the right if the new relation is built on.
fn join_type(kind: &RelationKind, build_new: bool) -> JoinType {
    match (kind, build_new) {
        (RelationKind::Inner, _) => JoinType::Inner,
        (RelationKind::Outer, false) => JoinType::Left,
        (RelationKind::Outer, true) => JoinType::Right,
        (RelationKind::Semi, false) => JoinType::LeftSemi,
        (RelationKind::Semi, true) => JoinType::RightSemi,
        (RelationKind::Anti { .. }, false) => JoinType::LeftAnti,
        (RelationKind::Anti { .. }, true) => JoinType::RightAnti,
        (RelationKind::Mark, false) => JoinType::LeftMark,
        (RelationKind::Mark, true) => JoinType::RightMark,
    }
}

/// The order in which a sort-merge join wants its keys.
const MERGE_ORDER: SortOptions = SortOptions {
    descending: false,
    nulls_first: true,
};

/// A key as a merge join takes it. Of the types of columns, DataFusion's cannot compare TIME.
fn merge_key(key: Arc<dyn PhysicalExpr>, schema: &Schema) -> Result<Arc<dyn PhysicalExpr>> {
    Ok(match key.data_type(schema)? {
        DataType::Duration(_) => Arc::new(CastExpr::new(key, DataType::Int64, None)),
        _ => key,
    })
}

/// The rows of `plan`, divided between workers by their keys and sorted by them.
fn sorted_by_keys(
    plan: Arc<dyn ExecutionPlan>,
    keys: Vec<Arc<dyn PhysicalExpr>>,
    workers: usize,
) -> Result<Arc<dyn ExecutionPlan>> {
    let order = keys
        .iter()
        .map(|key| PhysicalSortExpr::new(Arc::clone(key), MERGE_ORDER));
    let Some(order) = LexOrdering::new(order) else {
        return internal_err!("a merge join without keys");
    };
    let divided: Arc<dyn ExecutionPlan> = match workers {
        1 if plan.output_partitioning().partition_count() == 1 => plan,
        1 => Arc::new(CoalescePartitionsExec::new(plan)),
        _ => Arc::new(RepartitionExec::try_new(
            plan,
            Partitioning::Hash(keys, workers),
        )?),
    };
    let is_sorted = divided
        .equivalence_properties()
        .ordering_satisfy(order.clone())?;
    Ok(match is_sorted {
        true => divided,
        false => Arc::new(SortExec::new(order, divided).with_preserve_partitioning(workers > 1)),
    })
}

/// Keeps some columns of an operator that cannot do so itself.
fn project(
    plan: Arc<dyn ExecutionPlan>,
    columns: Option<Vec<usize>>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(columns) = columns else {
        return Ok(plan);
    };
    let schema = plan.schema();
    let expressions = columns.into_iter().map(|position| {
        let name = schema.field(position).name();
        ProjectionExpr {
            expr: Arc::new(PhysicalColumn::new(name, position)),
            alias: name.clone(),
        }
    });
    Ok(Arc::new(ProjectionExec::try_new(
        expressions.collect::<Vec<_>>(),
        plan,
    )?))
}
