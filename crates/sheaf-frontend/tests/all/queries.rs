//! Values, types, plans and errors of queries, as MySQL has them.

use std::sync::Arc;

use arrow::array::{Array, StringViewArray};
use datafusion_expr::{Expr, LogicalPlan};
use sheaf_access::CancelFlag;
use sheaf_exec::functions::conversion::to_text;
use sheaf_exec::{QueryRuntime, RuntimeOptions};
use sheaf_optimizer::{PlannerContext, PlannerSettings, optimize_logical, plan_physical};
use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{Storage, StorageOptions, TempSpace};
use sheaf_table::{Catalog, Column, CreateTable, IndexPartSpec, TableNames};
use sheaf_types::{Collation, ColumnType, Value};
use sqlparser::ast::{Query, Statement};
use sqlparser::parser::Parser;

use sheaf_frontend::bind::logical_plan;
use sheaf_frontend::dialect::SheafDialect;
use sheaf_frontend::error::SqlError;
use sheaf_frontend::query::{BoundQuery, Listed, QueryContext, SessionValues};

struct FixedSession;

impl SessionValues for FixedSession {
    fn current_database(&self) -> Option<&str> {
        Some("test")
    }
    fn user(&self) -> String {
        "root@localhost".to_string()
    }
    fn connection_id(&self) -> u64 {
        7
    }
    fn last_insert_id(&self) -> u64 {
        0
    }
    fn row_count(&self) -> i64 {
        -1
    }
    fn found_rows(&self) -> u64 {
        3
    }
    fn now_utc_micros(&self) -> i64 {
        // 2024-02-29 12:34:56.789012
        1_709_210_096_789_012
    }
    fn time_zone_offset_seconds(&self) -> i32 {
        3600
    }
    fn version(&self) -> String {
        "8.0.0-test".to_string()
    }
    fn system_variable(&self, _global: bool, name: &str) -> Option<Value> {
        (name == "max_allowed_packet").then_some(Value::Int(64 << 20))
    }
    fn user_variable(&self, name: &str) -> Value {
        if name == "x" {
            Value::Int(42)
        } else {
            Value::Null
        }
    }
}

fn table(name: &str, columns: &[(&str, &str)], key: &[&str]) -> CreateTable {
    let columns = columns
        .iter()
        .map(|(name, ty)| {
            let not_null = key.contains(name);
            Column::new(*name, ColumnType::parse(ty).unwrap(), !not_null)
        })
        .collect();
    let mut request = CreateTable::new("test", name, columns);
    if !key.is_empty() {
        request.primary_key = Some(
            key.iter()
                .map(|column| IndexPartSpec::column(*column))
                .collect(),
        );
    }
    request.collation = Collation::default();
    request
}

/// A catalog with an excerpt of TPC-H and a table of many types.
fn catalog() -> Arc<Catalog> {
    let disk = SimulatedDisk::new(SimulationOptions::new(1));
    let storage = Storage::open_on(disk, StorageOptions::default()).unwrap();
    let catalog = Catalog::open(storage).unwrap();
    catalog.create_database("test").unwrap();
    let tables = [
        table(
            "nation",
            &[
                ("n_nationkey", "int"),
                ("n_name", "char(25)"),
                ("n_regionkey", "int"),
            ],
            &["n_nationkey"],
        ),
        table(
            "customer",
            &[
                ("c_custkey", "int"),
                ("c_name", "varchar(25)"),
                ("c_nationkey", "int"),
                ("c_acctbal", "decimal(15,2)"),
                ("c_mktsegment", "char(10)"),
            ],
            &["c_custkey"],
        ),
        table(
            "lineitem",
            &[
                ("l_orderkey", "int"),
                ("l_linenumber", "int"),
                ("l_quantity", "decimal(15,2)"),
                ("l_extendedprice", "decimal(15,2)"),
                ("l_discount", "decimal(15,2)"),
                ("l_returnflag", "char(1)"),
                ("l_shipdate", "date"),
                ("l_shipmode", "char(10)"),
            ],
            &["l_orderkey", "l_linenumber"],
        ),
        table(
            "kinds",
            &[
                ("Id", "int"),
                ("tiny", "tinyint"),
                ("ubig", "bigint unsigned"),
                ("price", "decimal(10,2)"),
                ("ratio", "double"),
                ("bin", "varchar(20) collate utf8mb4_bin"),
                ("txt", "varchar(20)"),
                ("at", "datetime(3)"),
                ("clock", "time"),
                ("y", "year"),
                ("size", "enum('small','large')"),
            ],
            &["Id"],
        ),
    ];
    for request in tables {
        catalog.create_table(request).unwrap();
    }
    catalog
}

fn parse(sql: &str) -> Query {
    let dialect = SheafDialect::default();
    let mut parser = Parser::new(&dialect).try_with_sql(sql).unwrap();
    match parser
        .parse_statement()
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
    {
        Statement::Query(query) => *query,
        other => panic!("{other} is no query"),
    }
}

fn plan_with(
    catalog: &Arc<Catalog>,
    sql: &str,
    parameters: &[Value],
) -> Result<BoundQuery, SqlError> {
    let query = parse(sql);
    logical_plan(
        &query,
        &QueryContext {
            listed: Listed::Items,
            notes: None,
            is_over_rows: false,
            locked: None,
            sql,
            tables: TableNames::new(catalog, None),
            session: &FixedSession,
            parameters,
            virtual_tables: &|_, _, _| Ok(None),
            rights: None,
        },
    )
}

fn plan(catalog: &Arc<Catalog>, sql: &str) -> Result<BoundQuery, SqlError> {
    plan_with(catalog, sql, &[])
}

/// Runs queries as a session does, without one.
struct Runner {
    catalog: Arc<Catalog>,
    runtime: Arc<QueryRuntime>,
}

impl Runner {
    fn new() -> Runner {
        let options = RuntimeOptions {
            threads: 1,
            query_memory_bytes: 64 << 20,
            temp_space: TempSpace::new(&std::env::temp_dir(), 64 << 20),
        };
        Runner {
            catalog: catalog(),
            runtime: QueryRuntime::new(options).unwrap(),
        }
    }

    /// The rows of a query as texts, NULL as `NULL`.
    fn rows(&self, sql: &str) -> Result<Vec<Vec<String>>, SqlError> {
        let lowered = plan(&self.catalog, sql)?;
        let fields = lowered.plan.schema().fields().clone();
        let context = PlannerContext {
            settings: PlannerSettings::default(),
            counters: Arc::default(),
            view: sheaf_storage::ReadView::newest(),
            view_beside_locks: None,
            cancel: CancelFlag::default(),
            task: self.runtime.task_context(
                "test".to_string(),
                self.runtime.session_config(64, 1),
                self.runtime
                    .statement_pool(CancelFlag::new().statement_memory()),
            ),
            trace: sheaf_optimizer::Trace::default(),
            expectation: sheaf_optimizer::Expectation::default(),
            common_tables: sheaf_optimizer::CommonTables::default(),
            places: None,
        };
        let optimized = optimize_logical(lowered.plan, &context)?;
        let physical = plan_physical(&optimized, &context)?;
        let mut rows = Vec::new();
        for batch in self
            .runtime
            .run(physical.plan, context.task, context.cancel)
        {
            let batch = batch?;
            let columns: Vec<_> = batch
                .columns()
                .iter()
                .zip(&fields)
                .map(|(array, field)| to_text(array, field).unwrap())
                .collect();
            for row in 0..batch.num_rows() {
                let text = |column: &StringViewArray| match column.is_valid(row) {
                    true => column.value(row).to_string(),
                    false => "NULL".to_string(),
                };
                rows.push(columns.iter().map(text).collect());
            }
        }
        Ok(rows)
    }

    /// The value of an expression.
    fn value(&self, expression: &str) -> Result<String, SqlError> {
        let rows = self.rows(&format!("SELECT {expression}"))?;
        match rows.as_slice() {
            [row] if row.len() == 1 => Ok(row[0].clone()),
            other => Err(SqlError::unknown(format!("{other:?} is not one value"))),
        }
    }
}

#[test]
fn expressions_have_the_values_of_mysql() {
    let runner = Runner::new();
    let mut wrong = Vec::new();
    for line in include_str!("testdata/expressions.tsv").lines() {
        let (expression, expected) = line.split_once('\t').unwrap();
        match runner.value(expression) {
            Ok(text) if text == expected => {}
            Ok(text) => wrong.push(format!("{expression}: {text}, not {expected}")),
            Err(error) => wrong.push(format!("{expression}: {error}, not {expected}")),
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

/// The predicate of the plan's filter, or of its scan.
fn filter_of(catalog: &Arc<Catalog>, condition: &str, table: &str) -> String {
    fn find(plan: &LogicalPlan) -> Option<Expr> {
        match plan {
            LogicalPlan::Filter(filter) => Some(filter.predicate.clone()),
            LogicalPlan::TableScan(scan) => scan.filters.iter().cloned().reduce(Expr::and),
            other => other.inputs().into_iter().find_map(find),
        }
    }
    match plan(catalog, &format!("SELECT 1 FROM {table} WHERE {condition}")) {
        Ok(lowered) => {
            find(&lowered.plan).map_or_else(String::new, |predicate| predicate.to_string())
        }
        Err(error) => error.to_string(),
    }
}

#[test]
fn conditions_on_columns_compare_with_literals_of_the_columns_type() {
    let catalog = catalog();
    let mut wrong = Vec::new();
    for (table, condition, expected) in [
        (
            "lineitem",
            "l_shipdate >= '1997-01-01'",
            "lineitem.l_shipdate >= Date32(\"1997-01-01\")",
        ),
        (
            "lineitem",
            "l_shipdate < DATE_ADD('1997-01-01', INTERVAL '1' MONTH)",
            "lineitem.l_shipdate < Date32(\"1997-02-01\")",
        ),
        (
            "lineitem",
            "l_shipdate < '1997-01-01 12:00:00'",
            "lineitem.l_shipdate <= Date32(\"1997-01-01\")",
        ),
        (
            "lineitem",
            "l_discount BETWEEN 0.05 - 0.01 AND 0.05 + 0.01",
            "lineitem.l_discount >= Decimal128(0.04,15,2) AND lineitem.l_discount <= Decimal128(0.06,15,2)",
        ),
        (
            "lineitem",
            "l_quantity < 25",
            "lineitem.l_quantity < Decimal128(25.00,15,2)",
        ),
        (
            "lineitem",
            "l_quantity < 0.005",
            "lineitem.l_quantity <= Decimal128(0.00,15,2)",
        ),
        (
            "lineitem",
            "5 < l_orderkey",
            "lineitem.l_orderkey > Int32(5)",
        ),
        (
            "lineitem",
            "l_orderkey = '5'",
            "lineitem.l_orderkey = Int32(5)",
        ),
        (
            "lineitem",
            "l_orderkey < 5.5",
            "lineitem.l_orderkey <= Int32(5)",
        ),
        (
            "lineitem",
            "l_orderkey IN (1, '2', 3.0)",
            "lineitem.l_orderkey IN ([Int32(1), Int32(2), Int32(3)])",
        ),
        (
            "kinds",
            "tiny < 1000",
            "kinds.tiny IS NOT NULL OR Boolean(NULL)",
        ),
        (
            "kinds",
            "at = '2024-01-01'",
            "kinds.at = TimestampMicrosecond(1704067200000000, None)",
        ),
        ("kinds", "tiny", "kinds.tiny != Int8(0)"),
        ("kinds", "NOT tiny", "NOT kinds.tiny != Int8(0)"),
        (
            "kinds",
            "tiny = 1 || tiny = 2",
            "kinds.tiny = Int8(1) OR kinds.tiny = Int8(2)",
        ),
        (
            "kinds",
            "bin = 'a '",
            "ck(kinds.bin, Utf8(\"utf8mb4_bin\")) = Binary(\"97,1\")",
        ),
        ("kinds", "ID = 3", "kinds.Id = Int32(3)"),
        ("kinds", "y = 24", "kinds.y = UInt16(2024)"),
    ] {
        let found = filter_of(&catalog, condition, table);
        if found != expected {
            wrong.push(format!("{condition}: {found}, not {expected}"));
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn errors_have_the_numbers_of_mysql() {
    let catalog = catalog();
    let mut wrong = Vec::new();
    for (sql, code, message) in [
        (
            "SELECT x FROM nation",
            1054,
            "Unknown column 'x' in 'field list'",
        ),
        (
            "SELECT 1 FROM nation WHERE x = 1",
            1054,
            "Unknown column 'x' in 'where clause'",
        ),
        (
            "SELECT 1 FROM nation ORDER BY x",
            1054,
            "Unknown column 'x' in 'order clause'",
        ),
        (
            "SELECT n.x FROM nation n",
            1054,
            "Unknown column 'n.x' in 'field list'",
        ),
        (
            "SELECT 1 FROM nowhere",
            1146,
            "Table 'test.nowhere' doesn't exist",
        ),
        (
            "SELECT n_name FROM nation a, nation b",
            1052,
            "Column 'n_name' in field list is ambiguous",
        ),
        (
            "SELECT frobnicate(1)",
            1305,
            "FUNCTION test.frobnicate does not exist",
        ),
        (
            "SELECT abs(1, 2)",
            1582,
            "Incorrect parameter count in the call to native function 'abs'",
        ),
        ("SELECT (1, 2)", 1241, "Operand should contain 1 column(s)"),
        (
            "SELECT 1 FROM nation WHERE sum(n_nationkey) > 1",
            1111,
            "Invalid use of group function",
        ),
        (
            "SELECT sum(count(*)) FROM nation",
            1111,
            "Invalid use of group function",
        ),
        (
            "SELECT * FROM (SELECT 1 a, 2 a) x",
            1060,
            "Duplicate column name 'a'",
        ),
        (
            "SELECT 1 FROM nation USE INDEX (nope)",
            1176,
            "Key 'nope' doesn't exist in table 'nation'",
        ),
        ("SELECT @@nope", 1193, "Unknown system variable 'nope'"),
        (
            "SELECT 1 FROM lineitem WHERE l_shipdate > 'soon'",
            1525,
            "Incorrect DATE value: 'soon'",
        ),
    ] {
        match plan(&catalog, sql) {
            Err(error) if error.code == code && error.message == message => {}
            Err(error) => wrong.push(format!("{sql}: {error}")),
            Ok(_) => wrong.push(format!("{sql}: no error")),
        }
    }
    let ungrouped = plan(
        &catalog,
        "SELECT n_name, count(*) FROM nation GROUP BY n_regionkey",
    );
    assert_eq!(ungrouped.err().map(|error| error.code), Some(1055));
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn headers_are_what_the_client_wrote() {
    let catalog = catalog();
    let headers = |sql: &str| -> Vec<String> {
        let lowered = plan(&catalog, sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
        lowered
            .headers
            .into_iter()
            .map(|header| header.name)
            .collect()
    };
    assert_eq!(
        headers("SELECT 1+ 1, COUNT( * ), 'text', NULL"),
        ["1+ 1", "COUNT( * )", "text", "NULL"]
    );
    assert_eq!(
        headers("SELECT n_name, n_name, N.n_name AS Other FROM nation N"),
        ["n_name", "n_name", "Other"]
    );
    assert_eq!(
        headers("SELECT *, n_name FROM nation"),
        ["n_nationkey", "n_name", "n_regionkey", "n_name"]
    );
    assert_eq!(headers("SELECT id FROM kinds"), ["id"]);
    assert_eq!(
        headers(
            "select DISTINCT  COUNT( * ) ,\n  concat('a,b', max(txt))  from kinds where (1, 2) = (id, tiny)"
        ),
        ["COUNT( * )", "concat('a,b', max(txt))"]
    );
    assert_eq!(headers("SELECT 'é' , 1 AS c UNION SELECT 2, 3"), ["é", "c"]);
    assert_eq!(
        headers("SELECT (SELECT max(id) FROM kinds), EXTRACT(DAY FROM at) FROM kinds"),
        ["(SELECT max(id) FROM kinds)", "EXTRACT(DAY FROM at)"]
    );
    let lowered = plan(
        &catalog,
        "SELECT n_name AS label, upper(n_name) FROM nation AS x",
    )
    .unwrap();
    let first = &lowered.headers[0];
    assert_eq!(
        (
            &*first.name,
            &*first.org_name,
            &*first.table,
            &*first.org_table
        ),
        ("label", "n_name", "x", "nation")
    );
    assert_eq!(lowered.headers[1].table, "");
}

#[test]
fn parameters_are_values() {
    let catalog = catalog();
    let lowered = plan_with(
        &catalog,
        "SELECT ?, '?' AS `?` FROM nation WHERE n_nationkey = ?",
        &[Value::Text("x".into()), Value::Int(3)],
    )
    .unwrap();
    assert_eq!(lowered.parameter_count, 2);
    let shown = lowered.plan.display_indent().to_string();
    assert!(
        shown.contains("nation.n_nationkey = Int32(3)") && shown.contains("Utf8View(\"x\")"),
        "{shown}"
    );
}

/// The nodes of a plan, one a line.
fn shape(catalog: &Arc<Catalog>, sql: &str) -> String {
    plan(catalog, sql)
        .unwrap_or_else(|error| panic!("{sql}: {error}"))
        .plan
        .display_indent()
        .to_string()
}

#[test]
fn strings_are_grouped_sorted_and_joined_by_sort_key() {
    let catalog = catalog();
    let grouped = shape(
        &catalog,
        "SELECT n_name, count(*) FROM nation GROUP BY n_name ORDER BY n_name",
    );
    assert!(
        grouped.contains("groupBy=[[ck(nation.n_name, Utf8(\"utf8mb4_0900_ai_ci\"))]]"),
        "{grouped}"
    );
    assert!(grouped.contains("any_value(nation.n_name)"), "{grouped}");
    assert!(
        grouped.contains("Sort: ck(nation.n_name, Utf8(\"utf8mb4_0900_ai_ci\")) ASC NULLS FIRST"),
        "{grouped}"
    );
    let distinct = shape(&catalog, "SELECT DISTINCT n_name FROM nation");
    assert!(
        distinct.contains("groupBy=[[ck(nation.n_name"),
        "{distinct}"
    );
    let joined = shape(
        &catalog,
        "SELECT 1 FROM nation a JOIN nation b USING (n_name)",
    );
    assert!(
        joined.contains("ck(a.n_name") && joined.contains("ck(b.n_name"),
        "{joined}"
    );
}

#[test]
fn columns_that_the_key_determines_are_not_grouped_by() {
    let catalog = catalog();
    let plan = shape(
        &catalog,
        "SELECT c_custkey, c_name, sum(l_extendedprice), n_name FROM customer, lineitem, nation \
         WHERE c_custkey = l_orderkey AND c_nationkey = n_nationkey GROUP BY c_custkey, c_name, n_name",
    );
    assert!(
        plan.contains("groupBy=[[customer.c_custkey, ck(nation.n_name"),
        "{plan}"
    );
}
