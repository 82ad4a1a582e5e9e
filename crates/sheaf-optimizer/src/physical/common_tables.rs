//! Common table expressions that a statement names several times.
//!
//! A reference to one is a scan of a [`CommonTableSource`], which has the plan of its query. Each of these plans is
//! optimised and planned once, before the plans that read it:
//!
//! ```text
//!   1. the statement's plan is optimised: its scans tell which columns of c are wanted
//!   2. the query of c, with these columns alone, is optimised, and tells what is wanted of those that it reads
//!   3. the queries are planned, those first that others read: so the rows of c are estimated
//!   4. the statement is planned; CommonTablesExec above it has the operators of all of them
//! ```
//!
//! A subquery that runs for each row reads the rows that the statement has kept.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};

use datafusion_common::tree_node::TreeNodeRecursion;
use datafusion_common::{Column, Result, internal_err};
use datafusion_expr::logical_plan::{Projection, TableScan};
use datafusion_expr::{Expr, LogicalPlan, TableSource, cast};
use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::CommonTableSource;
use sheaf_exec::operator::common_tables_exec::{
    CommonTable, CommonTableReadExec, CommonTablesExec,
};

use crate::estimate::risk::Risk;
use crate::explain::ExplainRow;
use crate::logical::apply::Apply;
use crate::physical::planner::Planner;
use crate::physical::rules::one_stream;
use crate::planned::{Block, Planned};
use crate::{PlannerContext, optimize_logical};

/// What it costs to read a row that was kept, in microseconds: a copy of some words in memory.
const READ_US: f64 = 0.05;

/// The part of the query memory that the rows of one may take; the operators that read them need the rest.
const KEPT_SHARE: usize = 4;

/// What is planned once for a whole statement, by numbers.
#[derive(Clone, Default)]
pub struct CommonTables(Arc<Mutex<HashMap<u32, Known>>>);

#[derive(Clone)]
struct Known {
    table: Arc<CommonTable>,
    /// The columns of the source that it keeps.
    columns: Vec<usize>,
    rows: f64,
    /// EXPLAIN's number of its query.
    block: u64,
}

impl CommonTables {
    fn get(&self, number: u32) -> Option<Known> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(&number).cloned()
    }

    fn add(&self, number: u32, table: Known) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(number, table);
    }
}

impl PlannerContext {
    /// The same for one plan: what is planned for it is no other plan's.
    pub(crate) fn with_own_common_tables(&self) -> PlannerContext {
        let known = self.common_tables.0.lock();
        let known = known.unwrap_or_else(PoisonError::into_inner).clone();
        PlannerContext {
            common_tables: CommonTables(Arc::new(Mutex::new(known))),
            ..self.clone()
        }
    }
}

/// The queries of the tables that a plan reads, optimised, those first that others read.
pub(crate) struct Definitions(Vec<Definition>);

struct Definition {
    source: Arc<dyn TableSource>,
    /// The columns of the source that somebody reads.
    columns: Vec<usize>,
    plan: LogicalPlan,
    /// Those that it reads.
    reads: Vec<u32>,
}

/// What plans read of a table.
struct Wanted {
    source: Arc<dyn TableSource>,
    columns: BTreeSet<usize>,
}

type WantedByNumber = BTreeMap<u32, Wanted>;

impl Definitions {
    /// Those that the plan reads and that are not planned yet.
    pub(crate) fn of(plan: &LogicalPlan, context: &PlannerContext) -> Result<Definitions> {
        let mut wanted = WantedByNumber::new();
        add_wanted(plan, context, &mut wanted, &mut Vec::new())?;
        let mut definitions = Vec::new();
        let mut last = u32::MAX;
        // All that read a table have greater numbers, so by then it is known what is read of it.
        while let Some((number, of_table)) = wanted.range(..last).next_back() {
            last = *number;
            let (source, mut columns) = (Arc::clone(&of_table.source), of_table.columns.clone());
            if columns.is_empty() {
                // A file does not count rows that have no columns.
                columns.insert(0);
            }
            let columns: Vec<usize> = columns.into_iter().collect();
            let plan = optimize_logical(query_of(&source, &columns)?, context)?;
            let mut reads = Vec::new();
            add_wanted(&plan, context, &mut wanted, &mut reads)?;
            definitions.push(Definition {
                source,
                columns,
                plan,
                reads,
            });
        }
        definitions.reverse();
        Ok(Definitions(definitions))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Adds what a plan reads of tables that are not planned yet; `reads` gets the numbers of all tables that it reads.
fn add_wanted(
    plan: &LogicalPlan,
    context: &PlannerContext,
    wanted: &mut WantedByNumber,
    reads: &mut Vec<u32>,
) -> Result<()> {
    plan.apply_with_subqueries(|node| {
        match node {
            LogicalPlan::TableScan(scan) => {
                let Some(table) = CommonTableSource::of(&scan.source) else {
                    return Ok(TreeNodeRecursion::Continue);
                };
                if !reads.contains(&table.number) {
                    reads.push(table.number);
                }
                if context.common_tables.get(table.number).is_none() {
                    let of_table = wanted.entry(table.number).or_insert_with(|| Wanted {
                        source: Arc::clone(&scan.source),
                        columns: BTreeSet::new(),
                    });
                    match &scan.projection {
                        Some(columns) => of_table.columns.extend(columns),
                        None => of_table.columns.extend(0..table.schema().fields().len()),
                    }
                }
            }
            LogicalPlan::Extension(extension) => {
                if let Some(apply) = extension.node.as_any().downcast_ref::<Apply>() {
                    add_wanted(&apply.subquery, context, wanted, reads)?;
                }
            }
            _ => {}
        }
        Ok(TreeNodeRecursion::Continue)
    })?;
    Ok(())
}

/// The query of a table with some of its columns, in the types that the source has.
fn query_of(source: &Arc<dyn TableSource>, columns: &[usize]) -> Result<LogicalPlan> {
    let definition = CommonTableSource::of(source).and_then(CommonTableSource::definition);
    let Some(definition) = definition else {
        return internal_err!("a common table expression without its query");
    };
    let (given, wanted) = (definition.schema(), source.schema());
    if given.fields().len() != wanted.fields().len() {
        return internal_err!("a common table expression whose query has other columns");
    }
    let mut is_same = columns.len() == wanted.fields().len();
    let mut items = Vec::with_capacity(columns.len());
    for column in columns {
        let (qualifier, field) = given.qualified_field(*column);
        let wanted = wanted.field(*column);
        let value = Expr::Column(Column::new(qualifier.cloned(), field.name()));
        items.push(match field.data_type() == wanted.data_type() {
            true => value,
            false => {
                is_same = false;
                cast(value, wanted.data_type().clone()).alias(field.name())
            }
        });
    }
    if is_same {
        return Ok(definition.as_ref().clone());
    }
    let projection = Projection::try_new(items, Arc::clone(definition))?;
    Ok(LogicalPlan::Projection(projection))
}

/// The operators of tables, and what the planner thinks of them.
pub(crate) struct PlannedTables {
    tables: Vec<(Arc<CommonTable>, Arc<dyn ExecutionPlan>)>,
    cost_us: f64,
    explain: Vec<ExplainRow>,
}

/// The plan below an operator that has those of the tables.
pub(crate) fn with_common_tables(mut planned: Planned, tables: PlannedTables) -> Planned {
    planned.cost_us += tables.cost_us;
    planned.explain.extend(tables.explain);
    let input = Arc::clone(&planned.plan);
    planned.wrap(CommonTablesExec::new(input, tables.tables))
}

impl Planner<'_> {
    /// Plans the queries of tables.
    pub(crate) fn plan_common_tables(&mut self, definitions: Definitions) -> Result<PlannedTables> {
        let mut all = PlannedTables {
            tables: Vec::new(),
            cost_us: 0.0,
            explain: Vec::new(),
        };
        let settings = &self.context.settings;
        let kept_bytes = settings
            .kept_bytes
            .min(settings.query_memory_bytes / KEPT_SHARE);
        for definition in definitions.0 {
            let Some(source) = CommonTableSource::of(&definition.source) else {
                return internal_err!("not a common table expression");
            };
            let known = &self.context.common_tables;
            let reads = definition.reads.iter();
            let reads = reads.filter_map(|number| Some(known.get(*number)?.table));
            let table = Arc::new(CommonTable::new(
                source.number,
                source.name.clone(),
                reads.collect(),
                kept_bytes,
                self.context.cancel.clone(),
            ));
            let block = self.next_block();
            let planned = self.plan_numbered_block(&definition.plan, block, "DERIVED")?;
            let known = Known {
                table: Arc::clone(&table),
                columns: definition.columns,
                rows: planned.rows,
                block,
            };
            self.context.common_tables.add(source.number, known);
            all.tables.push((table, one_stream(planned.plan)));
            all.cost_us += planned.cost_us;
            all.explain.extend(planned.explain);
        }
        Ok(all)
    }

    /// A reference to one of the tables.
    pub(crate) fn plan_common_table(
        &self,
        scan: &TableScan,
        source: &CommonTableSource,
        block: &Block,
    ) -> Result<Planned> {
        let Some(known) = self.context.common_tables.get(source.number) else {
            return internal_err!("{} is not planned yet", source.name);
        };
        let columns: Vec<usize> = match &scan.projection {
            Some(columns) => columns.clone(),
            None => (0..source.schema().fields().len()).collect(),
        };
        let kept = |column: &usize| known.columns.binary_search(column).ok();
        let Some(positions) = columns.iter().map(kept).collect::<Option<Vec<_>>>() else {
            return internal_err!("{} does not keep all of its columns", source.name);
        };
        let schema = Arc::clone(scan.projected_schema.inner());
        let mut row = block.derived_row(known.block);
        row.estimate(known.rows, known.rows);
        let cost_us = known.rows * READ_US;
        Ok(Planned {
            plan: Arc::new(CommonTableReadExec::new(known.table, positions, schema)),
            rows: known.rows,
            cost_us,
            risk: Risk::none(cost_us),
            explain: vec![row],
        })
    }
}
