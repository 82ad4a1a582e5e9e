//! Runs SQL through the front end and the planner for the tests.

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arrow::datatypes::SchemaRef;
use arrow::util::display::{ArrayFormatter, FormatOptions};
use datafusion_common::{DataFusionError, Result};
use datafusion_expr::{LogicalPlan, TableSource};
use datafusion_physical_plan::ExecutionPlan;
use sheaf_access::{CancelFlag, SessionCounters};
use sheaf_exec::{
    IndexHints, MemoryTableSource, QueryRuntime, QueryStream, RuntimeOptions, SheafTableSource,
};
use sheaf_frontend::bind::logical_plan;
use sheaf_frontend::dialect::SheafDialect;
use sheaf_frontend::parser::{Statement, parse_statement};
use sheaf_frontend::query::{Listed, QueryContext, SessionValues};
use sheaf_storage::{Storage, StorageOptions, TempSpace};
use sheaf_table::{
    AnalyzeOptions, Catalog, Column, CreateTable, IndexPartSpec, IndexSpec, Table, TableNames,
};
use sheaf_types::{ColumnType, Value};

use crate::{
    CommonTables, Expectation, ExplainRow, PhysicalQuery, PlannerContext, PlannerSettings, Trace,
    optimize_logical, plan_physical,
};

/// A session of which tests ask nothing.
struct NoSession;

impl SessionValues for NoSession {
    fn current_database(&self) -> Option<&str> {
        Some(DATABASE)
    }
    fn user(&self) -> String {
        "root@localhost".to_string()
    }
    fn connection_id(&self) -> u64 {
        1
    }
    fn last_insert_id(&self) -> u64 {
        0
    }
    fn row_count(&self) -> i64 {
        -1
    }
    fn found_rows(&self) -> u64 {
        0
    }
    fn now_utc_micros(&self) -> i64 {
        0
    }
    fn time_zone_offset_seconds(&self) -> i32 {
        0
    }
    fn version(&self) -> String {
        "lab".to_string()
    }
    fn system_variable(&self, _global: bool, _name: &str) -> Option<Value> {
        None
    }
    fn user_variable(&self, _name: &str) -> Value {
        Value::Null
    }
}

/// A database in a temporary directory, and tables that are only in memory.
pub(super) struct Lab {
    pub settings: PlannerSettings,
    pub trace: Trace,
    memory: BTreeMap<String, (SchemaRef, Vec<arrow::array::RecordBatch>)>,
    tables: BTreeMap<String, Arc<Table>>,
    hints: BTreeMap<String, IndexHints>,
    /// Opened with the first stored table.
    catalog: OnceLock<Arc<Catalog>>,
    runtime: Arc<QueryRuntime>,
    directory: tempfile::TempDir,
}

/// Name of the database that the tables are in.
const DATABASE: &str = "lab";

impl Lab {
    pub(super) fn new() -> Lab {
        let directory = tempfile::tempdir().unwrap();
        let runtime = QueryRuntime::new(RuntimeOptions {
            threads: 2,
            query_memory_bytes: 64 << 20,
            temp_space: TempSpace::new(&directory.path().join("spill"), 1 << 30),
        });
        let runtime = runtime.unwrap();
        Lab {
            settings: PlannerSettings::default(),
            trace: Trace::default(),
            memory: BTreeMap::new(),
            tables: BTreeMap::new(),
            hints: BTreeMap::new(),
            catalog: OnceLock::new(),
            runtime,
            directory,
        }
    }

    /// A table in memory with the rows of a VALUES list.
    pub(super) fn memory_table(&mut self, name: &str, columns: &str, values: &str) {
        let rows = self
            .run(&format!("SELECT * FROM (VALUES {values}) AS v ({columns})"))
            .batches;
        let schema = rows[0].schema();
        self.memory.insert(name.to_string(), (schema, rows));
    }

    fn catalog(&self) -> &Arc<Catalog> {
        self.catalog.get_or_init(|| {
            let storage =
                Storage::open(&self.directory.path().join("data"), storage_options()).unwrap();
            let catalog = Catalog::open(storage).unwrap();
            catalog.create_database(DATABASE).unwrap();
            catalog
        })
    }

    /// A stored table. `columns` are (name, type, nullable); the first index is the primary key.
    pub(super) fn table(
        &mut self,
        name: &str,
        columns: &[(&str, &str, bool)],
        keys: &[&str],
        rows: Vec<Vec<Value>>,
    ) {
        let columns = columns
            .iter()
            .map(|(name, ty, nullable)| {
                Column::new(*name, ColumnType::parse(ty).unwrap(), *nullable)
            })
            .collect();
        let mut request = CreateTable::new(DATABASE, name, columns);
        for (position, key) in keys.iter().enumerate() {
            let (key_name, parts) = key.split_once('(').unwrap();
            let parts: Vec<IndexPartSpec> =
                parts.trim_end_matches(')').split(',').map(part).collect();
            if position == 0 {
                request.primary_key = Some(parts);
            } else {
                let name = Some(key_name.to_string());
                request.indexes.push(IndexSpec {
                    name,
                    parts,
                    unique: false,
                    comment: String::new(),
                    invisible: false,
                });
            }
        }
        let table = self.catalog().create_table(request).unwrap();
        let mut transaction = self.catalog().storage().begin_transaction();
        // In no order of any key, as an application would.
        for n in 0..rows.len() {
            table
                .insert(&mut transaction, &rows[n * 7919 % rows.len()])
                .unwrap();
        }
        transaction.commit().unwrap();
        self.catalog()
            .analyze(DATABASE, name, Duration::ZERO)
            .unwrap();
        self.tables.insert(
            name.to_string(),
            self.catalog().table(DATABASE, name).unwrap(),
        );
    }

    /// Analyzes all tables from a sample of so many leaves.
    pub(super) fn analyze(&self, seed: u64, sample_leaves: usize) {
        let options = AnalyzeOptions {
            seed,
            sample_leaves,
            ..AnalyzeOptions::default()
        };
        for name in self.tables.keys() {
            let catalog = self.catalog();
            let analyzed = catalog.analyze_with(DATABASE, name, &options, Duration::ZERO);
            analyzed.unwrap();
        }
    }

    pub(super) fn force_index(&mut self, table: &str, index: &str) {
        let hints = IndexHints {
            force_index: vec![index.to_string()],
            ..IndexHints::default()
        };
        self.hints.insert(table.to_string(), hints);
    }

    /// USE INDEX () on every reference to the table.
    pub(super) fn ignore_all(&mut self, table: &str) {
        let hints = IndexHints {
            use_index: Some(Vec::new()),
            ..IndexHints::default()
        };
        self.hints.insert(table.to_string(), hints);
    }

    pub(super) fn no_hints(&mut self) {
        self.hints.clear();
    }

    fn context(&self) -> PlannerContext {
        let config = self
            .runtime
            .session_config(self.settings.batch_rows, self.settings.target_partitions);
        PlannerContext {
            settings: self.settings.clone(),
            counters: Arc::new(SessionCounters::default()),
            view: sheaf_storage::ReadView::newest(),
            view_beside_locks: None,
            cancel: CancelFlag::new(),
            task: self.runtime.task_context(
                "test".to_string(),
                config,
                self.runtime
                    .statement_pool(CancelFlag::new().statement_memory()),
            ),
            trace: self.trace.clone(),
            expectation: Expectation::default(),
            common_tables: CommonTables::default(),
            places: None,
        }
    }

    pub(super) fn logical(&self, sql: &str) -> Result<LogicalPlan> {
        let failed =
            |error: sheaf_frontend::error::SqlError| DataFusionError::Plan(error.to_string());
        let Statement::Query(query) =
            parse_statement(sql, &SheafDialect::default()).map_err(failed)?
        else {
            return Err(DataFusionError::Plan("not a query".to_string()));
        };
        let bound = logical_plan(
            &query,
            &QueryContext {
                sql,
                tables: TableNames::new(self.catalog(), None),
                session: &NoSession,
                parameters: &[],
                virtual_tables: &|_, table, _| Ok(self.source(table)),
                rights: None,
                listed: Listed::Items,
                notes: None,
                is_over_rows: false,
                locked: None,
            },
        );
        Ok(bound.map_err(failed)?.plan)
    }

    /// Tables in memory, and those with hints. Others are found in the catalog.
    fn source(&self, name: &str) -> Option<Arc<dyn TableSource>> {
        if let Some((schema, batches)) = self.memory.get(name) {
            let (schema, batches) = (Arc::clone(schema), batches.clone());
            return Some(Arc::new(MemoryTableSource::new(
                name.to_string(),
                schema,
                batches,
            )));
        }
        let (table, hints) = (self.tables.get(name)?, self.hints.get(name)?);
        let (table, hints) = (Arc::clone(table), hints.clone());
        Some(Arc::new(SheafTableSource::new(
            table,
            0,
            name.to_string(),
            hints,
        )))
    }

    pub(super) fn plan(&self, sql: &str) -> Result<(PhysicalQuery, PlannerContext)> {
        let context = self.context();
        let logical = optimize_logical(self.logical(sql)?, &context)?;
        let query = plan_physical(&logical, &context)?;
        Ok((query, context))
    }

    pub(super) fn try_run(&self, sql: &str) -> std::result::Result<Rows, String> {
        let (query, context) = self.plan(sql).map_err(|error| error.to_string())?;
        let shown = datafusion_physical_plan::displayable(query.plan.as_ref())
            .indent(false)
            .to_string();
        let stream = self.runtime.run(
            Arc::clone(&query.plan),
            Arc::clone(&context.task),
            context.cancel.clone(),
        );
        let batches = stream
            .collect::<std::result::Result<Vec<_>, _>>()
            .map_err(|error| format!("{error}\n{shown}"))?;
        Ok(Rows {
            batches,
            explain: query.explain,
            plan: query.plan,
            shown,
        })
    }

    /// Starts a plan that [`Self::plan`] has made.
    pub(super) fn start(&self, query: &PhysicalQuery, context: &PlannerContext) -> QueryStream {
        let (plan, task) = (Arc::clone(&query.plan), Arc::clone(&context.task));
        self.runtime.run(plan, task, context.cancel.clone())
    }

    /// Bytes that plans hold that run, or ran.
    pub(super) fn reserved_bytes(&self) -> usize {
        self.runtime.reserved_bytes()
    }

    pub(super) fn run(&self, sql: &str) -> Rows {
        self.try_run(sql)
            .unwrap_or_else(|error| panic!("{sql}\n{error}"))
    }

    /// The rows of a query as text, one line each.
    pub(super) fn rows(&self, sql: &str) -> String {
        self.run(sql).text()
    }

    /// How many rows the planner expects of a query.
    pub(super) fn estimated_rows(&self, sql: &str) -> f64 {
        let planned = self.plan(sql);
        planned
            .unwrap_or_else(|error| panic!("{sql}\n{error}"))
            .0
            .rows
    }

    /// EXPLAIN as text, one line for each table.
    pub(super) fn explain(&self, sql: &str) -> String {
        let (query, _) = self
            .plan(sql)
            .unwrap_or_else(|error| panic!("{sql}\n{error}"));
        query
            .explain
            .iter()
            .map(explain_line)
            .collect::<Vec<_>>()
            .join("\n")
    }
}

/// `column` or `column:length` for a prefix.
fn part(text: &str) -> IndexPartSpec {
    match text.split_once(':') {
        Some((column, length)) => IndexPartSpec {
            prefix_length: Some(length.parse().unwrap()),
            ..IndexPartSpec::column(column)
        },
        None => IndexPartSpec::column(text),
    }
}

fn storage_options() -> StorageOptions {
    StorageOptions {
        pool_bytes: 16 << 20,
        ..StorageOptions::default()
    }
}

/// What a query returned, and by which plan.
pub(super) struct Rows {
    pub batches: Vec<arrow::array::RecordBatch>,
    pub explain: Vec<ExplainRow>,
    /// The operators that ran, and how they look.
    pub plan: Arc<dyn ExecutionPlan>,
    pub shown: String,
}

impl Rows {
    pub(super) fn text(&self) -> String {
        let options = FormatOptions::new().with_null("NULL");
        let mut lines = Vec::new();
        for batch in &self.batches {
            let columns: Vec<_> = batch
                .columns()
                .iter()
                .map(|column| ArrayFormatter::try_new(column, &options).unwrap())
                .collect();
            for row in 0..batch.num_rows() {
                let values: Vec<_> = columns
                    .iter()
                    .map(|column| column.value(row).to_string())
                    .collect();
                lines.push(values.join(" "));
            }
        }
        lines.join("\n")
    }

    /// The same, sorted: for queries whose order is not defined.
    pub(super) fn sorted(&self) -> String {
        let text = self.text();
        let mut lines: Vec<_> = text.lines().collect();
        lines.sort_unstable();
        lines.join("\n")
    }
}

fn explain_line(row: &ExplainRow) -> String {
    let show = |value: &Option<String>| value.clone().unwrap_or_else(|| "-".to_string());
    format!(
        "{} {} {} type={} possible={} key={} len={} ref={} rows={} filtered={} | {}",
        row.id.map_or("-".to_string(), |id| id.to_string()),
        row.select_type,
        show(&row.table),
        show(&row.type_),
        show(&row.possible_keys),
        show(&row.key),
        show(&row.key_len),
        show(&row.ref_),
        row.rows.map_or("-".to_string(), |rows| rows.to_string()),
        row.filtered
            .map_or("-".to_string(), |share| share.to_string()),
        show(&row.extra)
    )
}

/// A metric of all operators of one kind, summed up.
pub(super) fn metric<P: ExecutionPlan + 'static>(
    plan: &Arc<dyn ExecutionPlan>,
    name: &str,
) -> usize {
    let metrics = plan.metrics().filter(|_| plan.is::<P>());
    let own = metrics.and_then(|metrics| metrics.sum_by_name(name));
    let below = plan.children().into_iter();
    own.map_or(0, |own| own.as_usize()) + below.map(|child| metric::<P>(child, name)).sum::<usize>()
}
