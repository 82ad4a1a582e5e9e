//! From an optimised logical plan to operators.
//!
//! One recursive walk. Everything that is not a table or a join maps one to one to DataFusion's operators. A table goes
//! through [`crate::access::path`], and a tree of joins is taken as a whole to [`crate::join::plan`].
//!
//! What flows down is a wish ([`Wanted`]): the order in which the parent would like its rows, and how many of them it
//! will take. So a table can be read in an order that makes a sort unnecessary. What flows up is the operator, an
//! estimate, and the EXPLAIN rows of the tables below it ([`Planned`]). The wish promises nothing: a parent reads from
//! the operator's own properties what it really got.
//!
//! An uncorrelated scalar subquery is a query block of its own: it runs first, and expressions read its result from
//! a slot (`operator/subquery_values_exec.rs`).

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions};
use arrow::datatypes::{FieldRef, Schema, SchemaRef};
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, HashMap, Result, ScalarValue, internal_err, not_impl_err};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::logical_plan::Subquery;
use datafusion_expr::physical_planning_context::{
    PhysicalPlanningContext, ScalarSubqueryResults, SubqueryIndex,
};
use datafusion_expr::{
    EmptyRelation, Expr, FetchType, Filter, Limit, LogicalPlan, Projection, RecursiveQuery,
    SkipType, Sort, SortExpr, TableScan, TableSource, Union, UserDefinedLogicalNodeCore, Values,
};
use datafusion_physical_expr::{
    Distribution, LexOrdering, OrderingRequirements, PhysicalExpr, PhysicalSortExpr,
    create_physical_expr, create_physical_sort_exprs,
};
use datafusion_physical_optimizer::output_requirements::OutputRequirementExec;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::filter::FilterExec;
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::recursive_query::RecursiveQueryExec;
use datafusion_physical_plan::scalar_subquery::ScalarSubqueryLink;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::union::UnionExec;
use datafusion_physical_plan::work_table::WorkTableExec;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_access::Budget;
use sheaf_exec::functions::limits::ResultLimits;
use sheaf_exec::operator::apply_exec::ApplyExec;
use sheaf_exec::operator::bounded_expr::bounded;
use sheaf_exec::operator::gather_in_order_exec::{GatherInOrderExec, Running};
use sheaf_exec::operator::lazy_connective::lazily_connected;
use sheaf_exec::operator::less_order_exec::without_constants;
use sheaf_exec::operator::new_rows_exec::NewRows;
use sheaf_exec::operator::recursion_limit_exec::RecursionLimitExec;
use sheaf_exec::operator::round_exec::{RoundExec, RoundRows, RoundRowsExec};
use sheaf_exec::operator::row_by_row_exec::RowByRowExec;
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_exec::operator::subquery_values_exec::SubqueryValuesExec;
use sheaf_exec::operator::values_exec::ValuesExec;
use sheaf_exec::plan_size::check_room_for_list;
use sheaf_exec::row_by_row::RowByRow;
use sheaf_exec::{CommonTableSource, MemoryTableSource, SheafTableSource, WorkTableSource};

use crate::access::table_reference;
use crate::access::wanted::Wanted;
use crate::adaptive::bounded_regret::Doubted;
use crate::cost::sort::sort_us;
use crate::estimate::risk::{Expectation, Risk};
use crate::estimate::selectivity;
use crate::explain::outline::{Made, Notes};
use crate::explain::{ExplainRow, ExtraNote};
use crate::json::Object;
use crate::logical::apply::{AppliedSubquery, Apply};
use crate::logical::join_graph;
use crate::physical::common_tables::{Definitions, with_common_tables};
use crate::physical::finish::finished;
use crate::physical::rules::{self, one_stream, result_limits};
use crate::{PhysicalQuery, PlannerContext, join};

/// Chooses access paths, join order and join methods, and builds the operators.
pub fn plan_physical(logical: &LogicalPlan, context: &PlannerContext) -> Result<PhysicalQuery> {
    let definitions = Definitions::of(logical, context)?;
    let in_statement;
    let context = match definitions.is_empty() {
        true => context,
        false => {
            in_statement = context.with_own_common_tables();
            &in_statement
        }
    };
    // Kernels find the limits of what they may make there.
    let mut properties = ExecutionProps::new();
    properties.config_options = Some(Arc::clone(context.task.session_config().options()));
    let mut planner = Planner {
        context,
        properties,
        notes: Notes::default(),
        blocks: 0,
        conflicting_hints: Vec::new(),
        budget: None,
        repeats: false,
        shared_rounds: Vec::new(),
        most_kept: 0.0,
    };
    let planned = match definitions.is_empty() {
        true => planner.plan_block(logical, "PRIMARY")?,
        false => {
            // MySQL numbers the query before them.
            let first = planner.next_block();
            let tables = planner.plan_common_tables(definitions)?;
            let planned = planner.plan_numbered_block(logical, first, "PRIMARY")?;
            with_common_tables(planned, tables)
        }
    };
    let cost_us = planned.cost_us;
    let outline = planner.notes.outline(&planned.plan);
    let rows = planned.rows;
    let plan = rules::apply(planned.plan, context.task.session_config().options())?;
    let plan = finished(plan, logical, &outline, &planner.properties, context)?;
    let mut explain = planned.explain;
    if planner.blocks == 1 {
        // One query block: MySQL calls it SIMPLE.
        explain
            .iter_mut()
            .for_each(|row| row.select_type = "SIMPLE".to_string());
    }
    explain.sort_by_key(|row| row.id.unwrap_or(u64::MAX));
    if explain.is_empty() {
        explain.push(ExplainRow::no_tables("SIMPLE"));
    }
    context
        .trace
        .outcome("final_plan", || crate::explain::plan_summary(&explain));
    Ok(PhysicalQuery {
        plan,
        rows,
        explain,
        conflicting_hints: planner.conflicting_hints,
        cost_us,
        most_kept: planner.most_kept,
        outline,
    })
}

/// The columns of the outer rows as they come, which may be NULL where the logical plan rules that out, and the value.
fn applied_schema(outer: &SchemaRef, applied: &[FieldRef]) -> SchemaRef {
    let fields = outer.fields().iter().chain(applied).cloned();
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

/// Whether parts of a union assign user variables: the next part may read them, so it begins when this one has ended.
fn assigns_variables(union: &Union) -> Result<bool> {
    let assigns = |node: &LogicalPlan| match node {
        LogicalPlan::Extension(extension) => extension.node.as_any().is::<RowByRow>(),
        _ => false,
    };
    for input in &union.inputs {
        if input.exists(|node| Ok(assigns(node)))? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The expressions of a sort, evaluated for fewer rows at a time where that is needed.
pub(crate) fn bounded_sort_keys(
    mut keys: Vec<PhysicalSortExpr>,
    properties: &ExecutionProps,
) -> Vec<PhysicalSortExpr> {
    let options = properties.config_options.as_ref();
    if let Some(limits) = options.and_then(|options| options.extensions.get::<ResultLimits>()) {
        for key in &mut keys {
            key.expr = bounded(Arc::clone(&key.expr), limits);
        }
    }
    keys
}

/// An operator and what the planner thinks of it.
pub(crate) struct Planned {
    pub plan: Arc<dyn ExecutionPlan>,
    /// Estimated rows.
    pub rows: f64,
    /// Estimated cost, in microseconds.
    pub cost_us: f64,
    /// What it may cost.
    pub risk: Risk,
    /// Tables below, in the order they are joined.
    pub explain: Vec<ExplainRow>,
}

impl Planned {
    /// What EXPLAIN is told of the operator.
    pub(crate) fn made(&self) -> Made<'_> {
        Made {
            plan: &self.plan,
            rows: self.rows,
            cost_us: self.cost_us,
            table: self.explain.last(),
        }
    }

    /// The same tables and row count under another operator.
    pub(crate) fn wrap(self, plan: impl ExecutionPlan + 'static) -> Planned {
        Planned {
            plan: Arc::new(plan),
            ..self
        }
    }

    /// Adds a note on what happens to the rows of this block to the first table, where MySQL shows it.
    fn note(mut self, note: ExtraNote) -> Planned {
        if let Some(row) = self.explain.first_mut() {
            row.add(note);
        }
        self
    }
}

/// Rows that a round of a recursive query is guessed to find, and rounds.
const GUESSED_ROUND_ROWS: f64 = 100.0;
const GUESSED_ROUNDS: f64 = 10.0;

/// A query block that is being planned.
#[derive(Clone)]
pub(crate) struct Block {
    /// EXPLAIN's `id`.
    pub id: u64,
    pub select_type: &'static str,
    /// Slots of the block's scalar subqueries.
    pub slots: PhysicalPlanningContext,
}

impl Block {
    /// EXPLAIN's row of a table in it.
    pub(crate) fn row(&self, table: &str, type_: &str) -> ExplainRow {
        ExplainRow::table(self.id, self.select_type, table, type_)
    }
}

pub(crate) struct Planner<'a> {
    pub context: &'a PlannerContext,
    pub properties: ExecutionProps,
    /// What is known of the operators, for EXPLAIN.
    pub notes: Notes,
    /// Query blocks numbered so far.
    pub blocks: u64,
    /// See [`PhysicalQuery::conflicting_hints`].
    pub conflicting_hints: Vec<String>,
    /// What the scans of the part that is being planned pay from.
    pub budget: Option<Budget>,
    /// The part that is being planned runs again and again: the repeated half of a recursive query.
    pub repeats: bool,
    /// The rows of the rounds that are being planned, where several members read them.
    pub shared_rounds: Vec<(Arc<dyn TableSource>, Arc<RoundRows>)>,
    /// See [`PhysicalQuery::most_kept`].
    pub most_kept: f64,
}

/// The rows of the round before, if this plan of a round reads them more than once.
fn read_by_several(round: &LogicalPlan) -> Option<Arc<dyn TableSource>> {
    let mut sources: Vec<Arc<dyn TableSource>> = Vec::new();
    let mut plans = vec![round];
    while let Some(plan) = plans.pop() {
        if let LogicalPlan::TableScan(scan) = plan
            && scan.source.is::<WorkTableSource>()
        {
            if sources.iter().any(|known| Arc::ptr_eq(known, &scan.source)) {
                return Some(Arc::clone(&scan.source));
            }
            sources.push(Arc::clone(&scan.source));
        }
        plans.extend(plan.inputs());
    }
    None
}

impl Planner<'_> {
    /// Notes that an operator keeps so many rows or groups, unless it spills.
    pub(crate) fn note_kept(&mut self, rows: f64) {
        self.most_kept = self.most_kept.max(rows);
    }

    /// The same of a sort of so many rows, of which the first `fetch` are wanted.
    fn note_sort(&mut self, rows: f64, fetch: Option<usize>) {
        if fetch.is_none_or(|fetch| fetch > rules::FEW_ROWS) {
            self.note_kept(rows);
        }
    }

    pub(crate) fn next_block(&mut self) -> u64 {
        self.blocks += 1;
        self.blocks
    }

    /// Plans a query block: its scalar subqueries first, then itself.
    pub(crate) fn plan_block(
        &mut self,
        plan: &LogicalPlan,
        select_type: &'static str,
    ) -> Result<Planned> {
        let id = self.next_block();
        self.plan_numbered_block(plan, id, select_type)
    }

    pub(crate) fn plan_numbered_block(
        &mut self,
        plan: &LogicalPlan,
        id: u64,
        select_type: &'static str,
    ) -> Result<Planned> {
        let _traced = self
            .context
            .trace
            .begin("query_block", || Object::new().with("select#", id));
        let mut links = Vec::new();
        let mut indexes = HashMap::new();
        let mut subquery_rows = Vec::new();
        let mut subquery_us = 0.0;
        for subquery in scalar_subqueries(plan)? {
            let planned = self.plan_block(&subquery.subquery, "SUBQUERY")?;
            let index = SubqueryIndex::new(links.len());
            links.push(ScalarSubqueryLink {
                plan: planned.plan,
                index,
            });
            indexes.insert(subquery, index);
            subquery_us += planned.cost_us;
            subquery_rows.extend(planned.explain);
        }
        if links.is_empty() {
            let block = Block {
                id,
                select_type,
                slots: PhysicalPlanningContext::default(),
            };
            return self.plan(plan, &block, &Wanted::default());
        }
        let results = ScalarSubqueryResults::new(links.len());
        let slots = PhysicalPlanningContext::new(indexes, results.clone());
        let mut planned = self.plan(
            plan,
            &Block {
                id,
                select_type,
                slots,
            },
            &Wanted::default(),
        )?;
        planned.explain.extend(subquery_rows);
        planned.cost_us += subquery_us;
        let input = Arc::clone(&planned.plan);
        Ok(planned.wrap(SubqueryValuesExec::new(input, links, results)))
    }

    /// A block number for a derived table or a branch of a UNION that is planned inside `outer`.
    pub(crate) fn inner_block(&mut self, outer: &Block, select_type: &'static str) -> Block {
        self.blocks += 1;
        Block {
            id: self.blocks,
            select_type,
            slots: outer.slots.clone(),
        }
    }

    /// Plans one node and everything below it.
    pub(crate) fn plan(
        &mut self,
        node: &LogicalPlan,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        self.context.cancel.check().map_err(access_error)?;
        let planned = self.plan_node(node, block, wanted)?;
        self.notes.add_node(node, planned.made());
        Ok(planned)
    }

    fn plan_node(&mut self, node: &LogicalPlan, block: &Block, wanted: &Wanted) -> Result<Planned> {
        if join_graph::is_join_tree(node) {
            return join::plan::plan_joins(self, node, block, wanted);
        }
        match node {
            LogicalPlan::TableScan(scan) => self.plan_table(scan, block, wanted),
            LogicalPlan::SubqueryAlias(alias) => {
                let wanted = through_schema(wanted, node.schema(), alias.input.schema());
                if is_named_table(&alias.input) {
                    self.plan(&alias.input, block, &wanted)
                } else {
                    let inner = self.inner_block(block, "DERIVED");
                    self.plan(&alias.input, &inner, &wanted)
                }
            }
            LogicalPlan::Projection(projection) => self.plan_projection(projection, block, wanted),
            LogicalPlan::Filter(filter) => self.plan_filter(filter, block, wanted),
            LogicalPlan::Sort(sort) => self.plan_sort(node, sort, block, wanted),
            LogicalPlan::Limit(limit) => self.plan_limit(node, limit, block, wanted),
            LogicalPlan::Aggregate(aggregate) => {
                crate::physical::aggregate::plan_aggregate(self, node, aggregate, block)
            }
            LogicalPlan::Window(window) => {
                crate::physical::window::plan_window(self, window, block)
            }
            LogicalPlan::Union(union) => self.plan_union(union, block),
            LogicalPlan::RecursiveQuery(query) => self.plan_recursive(query, block),
            LogicalPlan::Values(values) => self.plan_values(values, block),
            LogicalPlan::EmptyRelation(EmptyRelation {
                produce_one_row,
                schema,
            }) => {
                let schema = Arc::clone(schema.inner());
                let plan: Arc<dyn ExecutionPlan> = if *produce_one_row {
                    Arc::new(PlaceholderRowExec::new(schema))
                } else {
                    Arc::new(EmptyExec::new(schema))
                };
                let rows = f64::from(u8::from(*produce_one_row));
                Ok(Planned {
                    plan,
                    rows,
                    cost_us: 0.0,
                    risk: Risk::default(),
                    explain: vec![ExplainRow::no_tables(block.select_type).with_id(block.id)],
                })
            }
            LogicalPlan::Extension(extension) => {
                let known = extension.node.as_any();
                if let Some(apply) = known.downcast_ref::<Apply>() {
                    return self.plan_apply(apply, block, wanted);
                }
                match known.downcast_ref::<RowByRow>() {
                    Some(rows) => self.plan_row_by_row(rows, block),
                    None => not_impl_err!("{} in a query", node.display()),
                }
            }
            LogicalPlan::Subquery(_) => not_impl_err!("this correlated subquery"),
            LogicalPlan::Join(_) => internal_err!("joins are planned as a graph"),
            other => not_impl_err!("{} in a query", other.display()),
        }
    }

    /// A physical expression over rows of `schema`.
    pub(crate) fn expr(
        &self,
        expr: &Expr,
        schema: &DFSchema,
        block: &Block,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let expr = create_physical_expr(expr, schema, &self.properties, &block.slots)?;
        let expr = lazily_connected(expr)?;
        Ok(match result_limits(self.context) {
            Some(limits) => bounded(expr, limits),
            None => expr,
        })
    }

    fn plan_table(&mut self, scan: &TableScan, block: &Block, wanted: &Wanted) -> Result<Planned> {
        if let Some(source) = scan.source.downcast_ref::<SheafTableSource>() {
            let table = table_reference::TableReference::new(scan, source, self.context)?;
            return table.plan_scan(self, block, wanted);
        }
        if let Some(source) = scan.source.downcast_ref::<MemoryTableSource>() {
            return self.plan_memory_table(scan, source, block);
        }
        if let Some(source) = scan.source.downcast_ref::<WorkTableSource>() {
            let schema = datafusion_expr::TableSource::schema(source);
            let (name, projection) = (source.name.clone(), scan.projection.clone());
            let mut shared = self.shared_rounds.iter().rev();
            let shared = shared.find(|(of, _)| Arc::ptr_eq(of, &scan.source));
            let plan: Arc<dyn ExecutionPlan> = match shared {
                Some((_, rows)) => {
                    let rows = Arc::clone(rows);
                    Arc::new(RoundRowsExec::new(name, &schema, projection, rows)?)
                }
                None => Arc::new(WorkTableExec::new(name, schema, projection)?),
            };
            let mut row = block.row(&source.name, "ALL");
            row.add(ExtraNote::Recursive);
            return Ok(Planned {
                plan,
                rows: GUESSED_ROUND_ROWS,
                cost_us: 0.0,
                risk: Risk::default(),
                explain: vec![row],
            });
        }
        if let Some(source) = CommonTableSource::of(&scan.source) {
            return self.plan_common_table(scan, source, block);
        }
        internal_err!("table {} has a source of an unknown kind", scan.table_name)
    }

    fn plan_memory_table(
        &self,
        scan: &TableScan,
        source: &MemoryTableSource,
        block: &Block,
    ) -> Result<Planned> {
        let table_schema = datafusion_expr::TableSource::schema(source);
        let qualified =
            DFSchema::try_from_qualified_schema(scan.table_name.clone(), &table_schema)?;
        let rows: usize = source.batches.iter().map(RecordBatch::num_rows).sum();
        let mut plan: Arc<dyn ExecutionPlan> = Arc::new(ValuesExec::new(
            Arc::clone(&table_schema),
            source.batches.clone(),
        ));
        let mut row = block.row(&source.name, "ALL");
        let selectivity: f64 = scan.filters.iter().map(selectivity::guess).product();
        row.estimate(rows as f64, rows as f64 * selectivity);
        if let Some(filter) = datafusion_expr::utils::conjunction(scan.filters.iter().cloned()) {
            plan = Arc::new(FilterExec::try_new(
                self.expr(&filter, &qualified, block)?,
                plan,
            )?);
            row.add(ExtraNote::UsingWhere);
        }
        if let Some(columns) = &scan.projection {
            let columns = columns.iter().map(|index| {
                let name = table_schema.field(*index).name();
                ProjectionExpr {
                    expr: Arc::new(datafusion_physical_expr::expressions::Column::new(
                        name, *index,
                    )),
                    alias: name.clone(),
                }
            });
            plan = Arc::new(ProjectionExec::try_new(columns.collect::<Vec<_>>(), plan)?);
        }
        Ok(Planned {
            plan,
            rows: rows as f64 * selectivity,
            cost_us: 0.0,
            risk: Risk::default(),
            explain: vec![row],
        })
    }

    fn plan_projection(
        &mut self,
        projection: &Projection,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let input = self.plan(
            &projection.input,
            block,
            &through_projection(wanted, projection),
        )?;
        let expressions =
            projection
                .expr
                .iter()
                .zip(projection.schema.fields())
                .map(|(expr, field)| {
                    // A list may have many thousands of them.
                    self.context.cancel.check().map_err(access_error)?;
                    let expr = self.expr(expr, projection.input.schema(), block)?;
                    Ok(ProjectionExpr {
                        expr,
                        alias: field.name().clone(),
                    })
                });
        let expressions = expressions.collect::<Result<Vec<_>>>()?;
        check_room_for_list(expressions.len())?;
        let plan = ProjectionExec::try_new_with_schema_metadata(
            expressions,
            Arc::clone(&input.plan),
            projection.schema.as_arrow(),
        )?;
        Ok(input.wrap(plan))
    }

    /// Rows come one by one in the order of the input, or of the table: from one worker.
    fn plan_row_by_row(&mut self, rows: &RowByRow, block: &Block) -> Result<Planned> {
        let mut context = self.context.clone();
        context.settings.target_partitions = 1;
        let mut planner = Planner {
            context: &context,
            properties: self.properties.clone(),
            notes: std::mem::take(&mut self.notes),
            blocks: self.blocks,
            conflicting_hints: std::mem::take(&mut self.conflicting_hints),
            budget: self.budget.take(),
            repeats: self.repeats,
            shared_rounds: self.shared_rounds.clone(),
            most_kept: self.most_kept,
        };
        let input = planner.plan(&rows.input, block, &Wanted::default());
        (self.notes, self.blocks) = (planner.notes, planner.blocks);
        self.conflicting_hints = planner.conflicting_hints;
        (self.budget, self.most_kept) = (planner.budget, planner.most_kept);
        let input = input?;
        let plan = Arc::clone(&input.plan);
        Ok(input.wrap(RowByRowExec::new(plan, rows.step)))
    }

    fn plan_apply(&mut self, apply: &Apply, block: &Block, wanted: &Wanted) -> Result<Planned> {
        let own = apply.input.schema().fields().len();
        let applied = apply.schema().columns().split_off(own);
        let names_value = |sort: &SortExpr| {
            let mut columns = sort.expr.column_refs().into_iter();
            columns.any(|column| applied.contains(column))
        };
        let wanted = match wanted.order.iter().any(names_value) {
            true => Wanted::default(),
            false => wanted.clone(),
        };
        let mut input = self.plan(&apply.input, block, &wanted)?;
        let schema = apply.input.schema();
        let parameters = apply.parameters.iter();
        let parameters: Vec<Arc<dyn PhysicalExpr>> = parameters
            .map(|parameter| self.expr(parameter, schema, block))
            .collect::<Result<_>>()?;
        let subquery = AppliedSubquery::new(apply, self.context)?;
        // A plan for some values shows how it will be planned.
        let examples = parameters.iter().map(|parameter| {
            let data_type = parameter.data_type(input.plan.schema().as_ref())?;
            ScalarValue::new_default(&data_type)
        });
        let example = subquery.with_values(&examples.collect::<Result<Vec<_>>>()?)?;
        let example = self.plan_block(&example, "DEPENDENT SUBQUERY")?;
        input.cost_us += example.cost_us * input.rows;
        input.explain.extend(example.explain);
        let plan = ApplyExec::new(
            Arc::clone(&input.plan),
            parameters,
            Arc::new(subquery),
            self.context.cancel.clone(),
            applied_schema(&input.plan.schema(), &apply.schema().fields()[own..]),
        );
        Ok(input.wrap(plan))
    }

    fn plan_filter(&mut self, filter: &Filter, block: &Block, wanted: &Wanted) -> Result<Planned> {
        let input = self.plan(
            &filter.input,
            block,
            &Wanted {
                order: wanted.order.clone(),
                limit: None,
            },
        )?;
        let predicate = self.expr(&filter.predicate, filter.input.schema(), block)?;
        let rows = input.rows * selectivity::guess(&filter.predicate);
        let plan = FilterExec::try_new(predicate, Arc::clone(&input.plan))?;
        Ok(Planned {
            rows,
            ..input.wrap(plan)
        })
    }

    fn plan_sort(
        &mut self,
        node: &LogicalPlan,
        sort: &Sort,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let fetch = smaller(sort.fetch, wanted.limit);
        let wanted = Wanted {
            order: sort.expr.clone(),
            limit: fetch,
        };
        let (input, budget) = self.watched(|planner| planner.plan(&sort.input, block, &wanted))?;
        let exprs = create_physical_sort_exprs(
            &sort.expr,
            sort.input.schema(),
            &self.properties,
            &block.slots,
        )?;
        let exprs = bounded_sort_keys(exprs, &self.properties);
        let Some(ordering) = LexOrdering::new(exprs.clone()) else {
            return internal_err!("a sort without expressions");
        };
        let partitions = input.plan.output_partitioning().partition_count();
        let sorted = input
            .plan
            .equivalence_properties()
            .ordering_satisfy(exprs)?;
        if sorted && partitions > 1 {
            let rows = fetched_rows(&input, sort.fetch);
            let child = Arc::clone(&input.plan);
            let merge = SortPreservingMergeExec::new(ordering, child).with_fetch(sort.fetch);
            return Ok(Planned {
                rows,
                ..input.wrap(merge)
            });
        }
        if !sorted {
            self.note_sort(input.rows, sort.fetch);
        }
        let (planned, expectation, held_rows) = match (sorted, sort.fetch) {
            (true, None) => return Ok(kept_in_order(input, ordering)),
            (true, Some(fetch)) => {
                let ordered = kept_in_order(input, ordering.clone());
                (limited(ordered, fetch), Expectation::NoEarlyStop, fetch)
            }
            (false, _) => (sorted_rows(sort, &ordering, input), Expectation::Worst, 0),
        };
        let doubted = Doubted {
            node,
            planned,
            budget,
            expectation,
            held_rows,
            order: Some(ordering.clone()),
        };
        self.guard(doubted, |planner| {
            let input = planner.plan(&sort.input, block, &Wanted::default())?;
            let rows = input.rows;
            planner.note_sort(rows, sort.fetch);
            let mut sorted = sorted_rows(sort, &ordering, input);
            let kept = sort.fetch.map_or(rows, |fetch| fetch as f64);
            sorted.cost_us += sort_us(&planner.context.settings.costs, rows, kept);
            Ok(sorted)
        })
    }

    fn plan_limit(
        &mut self,
        node: &LogicalPlan,
        limit: &Limit,
        block: &Block,
        wanted: &Wanted,
    ) -> Result<Planned> {
        let (SkipType::Literal(skip), FetchType::Literal(fetch)) =
            (limit.get_skip_type()?, limit.get_fetch_type()?)
        else {
            return not_impl_err!("LIMIT with an expression");
        };
        let taken = fetch.map(|fetch| fetch.saturating_add(skip));
        // An order that is wanted above the limit would choose other rows.
        let wanted = Wanted {
            limit: smaller(taken, wanted.limit),
            ..Wanted::default()
        };
        let (mut input, budget) =
            self.watched(|planner| planner.plan(&limit.input, block, &wanted))?;
        if let Some(taken) = taken {
            let doubted = Doubted {
                node,
                planned: limited(input, taken),
                budget,
                expectation: Expectation::NoEarlyStop,
                held_rows: taken,
                order: None,
            };
            input = self.guard(doubted, |planner| {
                let all = planner.plan(&limit.input, block, &Wanted::default())?;
                Ok(limited(all, taken))
            })?;
        }
        if skip == 0 && input.plan.is::<GlobalLimitExec>() {
            return Ok(input);
        }
        let child = Arc::clone(&input.plan);
        let rows = (input.rows - skip as f64).max(1.0);
        let rows = fetch.map_or(rows, |fetch| rows.min(fetch as f64));
        Ok(Planned {
            rows,
            ..input.wrap(GlobalLimitExec::new(child, skip, fetch))
        })
    }

    fn plan_union(&mut self, union: &Union, block: &Block) -> Result<Planned> {
        let mut plans = Vec::with_capacity(union.inputs.len());
        let (mut rows, mut cost_us) = (0.0, 0.0);
        let mut explain = Vec::new();
        for (position, input) in union.inputs.iter().enumerate() {
            let branch = if position == 0 {
                block.clone()
            } else {
                self.inner_block(block, "UNION")
            };
            let planned = self.plan(input, &branch, &Wanted::default())?;
            rows += planned.rows;
            cost_us += planned.cost_us;
            explain.extend(planned.explain);
            plans.push(planned.plan);
        }
        Ok(Planned {
            plan: match self.context.settings.is_thrifty() || assigns_variables(union)? {
                true => {
                    let plans = plans.into_iter().map(one_stream).collect();
                    let union = without_constants(UnionExec::try_new(plans)?)?;
                    Arc::new(GatherInOrderExec::new(union, Running::One))
                }
                false => without_constants(UnionExec::try_new(plans)?)?,
            },
            rows,
            cost_us,
            risk: Risk::none(cost_us),
            explain,
        })
    }

    fn plan_recursive(&mut self, query: &RecursiveQuery, block: &Block) -> Result<Planned> {
        let first = self.plan(&query.static_term, block, &Wanted::default())?;
        let inner = self.inner_block(block, "UNION");
        let outer = std::mem::replace(&mut self.repeats, true);
        let shared_so_far = self.shared_rounds.len();
        let shared = read_by_several(&query.recursive_term);
        let shared = shared.map(|source| (source, Arc::new(RoundRows::default())));
        self.shared_rounds.extend(shared.clone());
        let round = self.plan(&query.recursive_term, &inner, &Wanted::default());
        self.shared_rounds.truncate(shared_so_far);
        self.repeats = outer;
        let mut round = round?;
        if let Some((source, rows)) = shared {
            let before = WorkTableExec::new(query.name.clone(), source.schema(), None)?;
            let members = one_stream(round.plan);
            round.plan = Arc::new(RoundExec::new(Arc::new(before), members, rows));
        }
        let limit = self.context.settings.max_recursion_rounds;
        let (first_plan, round_plan) = RecursionLimitExec::above(first.plan, round.plan, limit);
        let new_rows = query.is_distinct.then(NewRows::default);
        let half = |plan| match &new_rows {
            Some(new_rows) => new_rows.above_half(one_stream(plan)),
            None => plan,
        };
        let plan: Arc<dyn ExecutionPlan> = Arc::new(RecursiveQueryExec::try_new(
            query.name.clone(),
            Arc::clone(query.schema.inner()),
            half(first_plan),
            half(round_plan),
            false,
        )?);
        let plan = match &new_rows {
            Some(new_rows) => new_rows.above_whole(plan),
            None => plan,
        };
        let mut explain = first.explain;
        explain.extend(round.explain);
        let cost_us = first.cost_us + round.cost_us * GUESSED_ROUNDS;
        Ok(Planned {
            plan,
            rows: first.rows + round.rows * GUESSED_ROUNDS,
            cost_us,
            risk: Risk::none(cost_us),
            explain,
        })
    }

    /// The rows of VALUES are computed now: they are literals and functions of literals.
    fn plan_values(&self, values: &Values, block: &Block) -> Result<Planned> {
        let schema: SchemaRef = Arc::clone(values.schema.inner());
        let nothing = Arc::new(Schema::empty());
        let one_row = RecordBatchOptions::new().with_row_count(Some(1));
        let one_row = RecordBatch::try_new_with_options(nothing, Vec::new(), &one_row)?;
        let mut columns: Vec<Vec<ScalarValue>> =
            vec![Vec::with_capacity(values.values.len()); schema.fields().len()];
        for row in &values.values {
            for ((expr, field), column) in row.iter().zip(schema.fields()).zip(&mut columns) {
                let value = self
                    .expr(expr, &DFSchema::empty(), block)?
                    .evaluate(&one_row)?;
                let value = ScalarValue::try_from_array(&value.into_array(1)?, 0)?;
                column.push(value.cast_to(field.data_type())?);
            }
        }
        let arrays = columns
            .into_iter()
            .map(ScalarValue::iter_to_array)
            .collect::<Result<Vec<_>>>()?;
        let batch = RecordBatch::try_new(Arc::clone(&schema), arrays)?;
        let plan = Arc::new(ValuesExec::new(schema, vec![batch]));
        let row = ExplainRow::no_tables(block.select_type).with_id(block.id);
        Ok(Planned {
            plan,
            rows: values.values.len() as f64,
            cost_us: 0.0,
            risk: Risk::default(),
            explain: vec![row],
        })
    }
}

/// Whether an alias of this names a table, not a query. A LIMIT of the query around it may have come down to the table.
fn is_named_table(aliased: &LogicalPlan) -> bool {
    match aliased {
        LogicalPlan::TableScan(_) | LogicalPlan::SubqueryAlias(_) => true,
        LogicalPlan::Limit(limit) => matches!(limit.input.as_ref(), LogicalPlan::TableScan(_)),
        _ => false,
    }
}

/// The uncorrelated scalar subqueries in the expressions of this block, each once, in order of appearance. Those
/// inside other subqueries belong to their blocks.
fn scalar_subqueries(plan: &LogicalPlan) -> Result<Vec<Subquery>> {
    let mut found: Vec<Subquery> = Vec::new();
    plan.apply(|node| {
        for expr in node.expressions() {
            expr.apply(|expr| {
                if let Expr::ScalarSubquery(subquery) = expr
                    && subquery.outer_ref_columns.is_empty()
                    && !found.contains(subquery)
                {
                    found.push(subquery.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })?;
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(found)
}

/// Estimated rows of an input of which so many are fetched.
fn fetched_rows(input: &Planned, fetch: Option<usize>) -> f64 {
    fetch.map_or(input.rows, |fetch| input.rows.min(fetch as f64))
}

/// The rows of an input, sorted.
fn sorted_rows(sort: &Sort, ordering: &LexOrdering, input: Planned) -> Planned {
    let rows = fetched_rows(&input, sort.fetch);
    let child = Arc::clone(&input.plan);
    let sort = SortExec::new(ordering.clone(), child).with_fetch(sort.fetch);
    Planned {
        rows,
        ..input.wrap(sort).note(ExtraNote::UsingFilesort)
    }
}

/// Rows that come in the wanted order by themselves. The rules that exchange rows between workers learn from it that
/// the order is relied on; then it is removed.
fn kept_in_order(input: Planned, ordering: LexOrdering) -> Planned {
    let plan = relied_on(Arc::clone(&input.plan), ordering);
    Planned { plan, ..input }
}

/// See [`kept_in_order`].
pub(crate) fn relied_on(
    rows: Arc<dyn ExecutionPlan>,
    ordering: LexOrdering,
) -> Arc<dyn ExecutionPlan> {
    Arc::new(OutputRequirementExec::new(
        rows,
        Some(OrderingRequirements::from(ordering)),
        Distribution::SinglePartition,
        None,
    ))
}

/// The first rows of each partition.
fn limited(input: Planned, taken: usize) -> Planned {
    let rows = fetched_rows(&input, Some(taken));
    let child = Arc::clone(&input.plan);
    let limited = match child.output_partitioning().partition_count() {
        1 => input.wrap(GlobalLimitExec::new(child, 0, Some(taken))),
        _ => input.wrap(LocalLimitExec::new(child, taken)),
    };
    Planned { rows, ..limited }
}

fn smaller(a: Option<usize>, b: Option<usize>) -> Option<usize> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.min(b)),
        (a, b) => a.or(b),
    }
}

/// The wish, said over the projection's input. An order that cannot be said there is dropped.
fn through_projection(wanted: &Wanted, projection: &Projection) -> Wanted {
    let mut replacements: HashMap<String, Expr> = HashMap::new();
    for ((qualifier, field), expr) in projection.schema.iter().zip(&projection.expr) {
        let column = datafusion_common::Column::new(qualifier.cloned(), field.name());
        replacements.insert(column.flat_name(), expr.clone().unalias());
    }
    let order = wanted.order.iter().map(|sort| {
        let expr = replace_columns(&sort.expr, &replacements)?;
        Some(SortExpr::new(expr, sort.asc, sort.nulls_first))
    });
    Wanted::said(order.collect(), wanted.limit)
}

/// The wish, said over an input that has the same columns under other qualifiers.
pub(crate) fn through_schema(wanted: &Wanted, outer: &DFSchema, inner: &DFSchema) -> Wanted {
    let mut replacements: HashMap<String, Expr> = HashMap::new();
    for ((qualifier, field), (inner_qualifier, inner_field)) in outer.iter().zip(inner.iter()) {
        let column = datafusion_common::Column::new(qualifier.cloned(), field.name());
        let inner = datafusion_common::Column::new(inner_qualifier.cloned(), inner_field.name());
        replacements.insert(column.flat_name(), Expr::Column(inner));
    }
    let order = wanted.order.iter().map(|sort| {
        let expr = replace_columns(&sort.expr, &replacements)?;
        Some(SortExpr::new(expr, sort.asc, sort.nulls_first))
    });
    Wanted::said(order.collect(), wanted.limit)
}

/// `expr` with its columns replaced; `None` if one has no replacement.
pub(crate) fn replace_columns(expr: &Expr, replacements: &HashMap<String, Expr>) -> Option<Expr> {
    use datafusion_common::tree_node::Transformed;
    let mut complete = true;
    let replaced = expr.clone().transform(|expr| {
        let Expr::Column(column) = &expr else {
            return Ok(Transformed::no(expr));
        };
        match replacements.get(&column.flat_name()) {
            // The replacement is final: it may contain a column of the same name.
            Some(new) => Ok(Transformed::new(new.clone(), true, TreeNodeRecursion::Jump)),
            None => {
                complete = false;
                Ok(Transformed::no(expr))
            }
        }
    });
    replaced
        .ok()
        .filter(|_| complete)
        .map(|replaced| replaced.data)
}
