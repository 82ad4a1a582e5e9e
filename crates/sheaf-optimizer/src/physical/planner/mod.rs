//! From an optimised logical plan to operators.
//!
//! One recursive walk. Everything that is not a table or a join maps one to one to DataFusion's operators. A table goes
//! through [`crate::access::path`], and a tree of joins is taken as a whole to [`crate::physical::joins`].
//!
//! What flows down is a wish ([`Wanted`]): the order in which the parent would like its rows, and how many of them it
//! will take. So a table can be read in an order that makes a sort unnecessary. What flows up is the operator, an
//! estimate, and the EXPLAIN rows of the tables below it ([`Planned`]). The wish promises nothing: a parent reads from
//! the operator's own properties what it really got.
//!
//! An uncorrelated scalar subquery is a query block of its own: it runs first, and expressions read its result from
//! a slot (`operator/subquery_values_exec.rs`).

mod apply;
mod expand;
mod filter;
pub(crate) mod ordered_groups;
mod ordered_rows;
mod recursive;
mod row_by_row;
mod sort;
mod table;
mod union;
mod values;
mod wish;

use std::sync::Arc;

use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_common::{DFSchema, HashMap, Result, internal_err, not_impl_err};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::logical_plan::Subquery;
use datafusion_expr::physical_planning_context::{
    PhysicalPlanningContext, ScalarSubqueryResults, SubqueryIndex,
};
use datafusion_expr::{EmptyRelation, Expr, LogicalPlan};
use datafusion_physical_expr::{PhysicalExpr, create_physical_expr};
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::placeholder_row::PlaceholderRowExec;
use datafusion_physical_plan::scalar_subquery::ScalarSubqueryLink;
use datafusion_physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use sheaf_access::Budget;
use sheaf_exec::json_table::Expand;
use sheaf_exec::operator::bounded_expr::bounded;
use sheaf_exec::operator::lazy_connective::lazily_connected;
use sheaf_exec::operator::recursive_exec::RoundRows;
use sheaf_exec::operator::scan_exec::access_error;
use sheaf_exec::operator::subquery_values_exec::SubqueryValuesExec;
use sheaf_exec::plan_size::check_room_for_expression;
use sheaf_exec::row_by_row::RowByRow;

use crate::access::wanted::Wanted;
use crate::estimate::risk::Risk;
use crate::explain::ExplainRow;
use crate::explain::notes::Notes;
use crate::json::Object;
use crate::logical::apply::Apply;
use crate::logical::join_graph;
use crate::physical::common_tables::{Definitions, with_common_tables};
use crate::physical::finish::finished;
use crate::physical::joins;
use crate::physical::rules::{self, result_limits};
use crate::planned::{Block, Planned};
use crate::{PhysicalQuery, PlannerContext};

use wish::through_schema;

pub(crate) use ordered_rows::relied_on;

/// A plan that costs less than so many microseconds is not divided between workers: to start them, and to wait for
/// them, takes some hundred.
const SMALL_COST_US: f64 = 2_000.0;

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
        rounds: Vec::new(),
        most_kept: 0.0,
        sorts_long_texts: false,
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
    let rows = planned.rows;
    let is_small = cost_us < SMALL_COST_US && is_one_stream(&planned.plan);
    let workers = match is_small {
        true => 1,
        false => context.task.session_config().target_partitions(),
    };
    let options = context.task.session_config().options();
    let plan = rules::apply(planned.plan, workers, options)?;
    let saves_memory = context.settings.is_thrifty()
        || context.settings.sorts_in_one_stream
        || planner.sorts_long_texts;
    let notes = planner.notes.into_inner();
    let notes_and_facts = (&notes, &planner.properties);
    let plan = finished((plan, saves_memory), logical, notes_and_facts, context)?;
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
    let is_small = is_small && is_one_stream(&plan);
    let query = PhysicalQuery {
        plan,
        is_small,
        rows,
        explain,
        conflicting_hints: planner.conflicting_hints,
        cost_us,
        most_kept: planner.most_kept,
        notes,
    };
    context
        .trace
        .outcome("final_plan", || query.explanation().summary());
    Ok(query)
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
    /// By their names, the recursive queries whose rounds are being planned, the innermost behind.
    pub rounds: Vec<(String, Arc<RoundRows>)>,
    /// See [`PhysicalQuery::most_kept`].
    pub most_kept: f64,
    /// Long texts are sorted to group them, which leaves one sort at a time room for no other.
    pub sorts_long_texts: bool,
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
        planned.noted(&self.notes, node)
    }

    fn plan_node(&mut self, node: &LogicalPlan, block: &Block, wanted: &Wanted) -> Result<Planned> {
        if join_graph::is_join_tree(node) {
            return joins::plan_joins(self, node, block, wanted);
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
                crate::physical::aggregate::plan_aggregate(self, node, aggregate, block, wanted)
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
                if let Some(expand) = known.downcast_ref::<Expand>() {
                    return self.plan_expand(expand, block);
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
        check_room_for_expression(expr)?;
        let expr = create_physical_expr(expr, schema, &self.properties, &block.slots)?;
        let expr = lazily_connected(expr)?;
        Ok(match result_limits(self.context) {
            Some(limits) => bounded(expr, limits),
            None => expr,
        })
    }
}

/// Whether all operators of a plan deliver their rows in one stream.
fn is_one_stream(plan: &Arc<dyn ExecutionPlan>) -> bool {
    plan.output_partitioning().partition_count() == 1
        && plan.children().into_iter().all(is_one_stream)
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
        node.apply_expressions(|expr| {
            expr.apply(|expr| {
                if let Expr::ScalarSubquery(subquery) = expr
                    && subquery.outer_ref_columns.is_empty()
                    && !found.contains(subquery)
                {
                    found.push(subquery.clone());
                }
                Ok(TreeNodeRecursion::Continue)
            })
        })
    })?;
    Ok(found)
}
