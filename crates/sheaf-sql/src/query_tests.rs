//! Values, types, plans and errors of queries, as MySQL has them.

use std::sync::Arc;

use arrow::array::{RecordBatch, RecordBatchOptions, new_null_array};
use arrow::datatypes::{DataType, Schema};
use datafusion_common::{DFSchema, ScalarValue};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_expr::{ColumnarValue, Expr, LogicalPlan};
use sheaf_exec::functions::argument::to_text;
use sheaf_storage::disk::simulated::{SimulatedDisk, SimulationOptions};
use sheaf_storage::{Storage, StorageOptions};
use sheaf_table::{Catalog, Collation, Column, ColumnType, CreateTable, IndexPartSpec, Value};
use sqlparser::ast::{Query, Statement};
use sqlparser::parser::Parser;

use crate::dialect::SheafDialect;
use crate::error::SqlError;
use crate::query::{LoweredQuery, QueryContext, SessionValues, logical_plan};

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

fn plan_with(catalog: &Catalog, sql: &str, parameters: &[Value]) -> Result<LoweredQuery, SqlError> {
    let query = parse(sql);
    logical_plan(
        &query,
        &QueryContext {
            sql,
            catalog,
            session: &FixedSession,
            parameters,
            virtual_tables: &|_, _| Ok(None),
        },
    )
}

fn plan(catalog: &Catalog, sql: &str) -> Result<LoweredQuery, SqlError> {
    plan_with(catalog, sql, &[])
}

/// One value of a query without tables: its text and its type.
fn evaluate(catalog: &Catalog, expression: &str) -> Result<(String, String), SqlError> {
    let lowered = plan(catalog, &format!("SELECT {expression}"))?;
    let LogicalPlan::Projection(projection) = &lowered.plan else {
        return Err(SqlError::unknown(format!(
            "no projection: {}",
            lowered.plan.display_indent()
        )));
    };
    let field = Arc::clone(&lowered.plan.schema().fields()[0]);
    let failed = |error: datafusion_common::DataFusionError| SqlError::unknown(error.to_string());
    let physical = datafusion_physical_expr::create_physical_expr(
        &projection.expr[0],
        &DFSchema::empty(),
        &ExecutionProps::new(),
    )
    .map_err(failed)?;
    let one_row = RecordBatch::try_new_with_options(
        Arc::new(Schema::empty()),
        vec![],
        &RecordBatchOptions::new().with_row_count(Some(1)),
    )
    .unwrap();
    let array = match physical.evaluate(&one_row).map_err(failed)? {
        ColumnarValue::Array(array) => array,
        ColumnarValue::Scalar(ScalarValue::Null) => new_null_array(&DataType::Null, 1),
        ColumnarValue::Scalar(value) => value.to_array_of_size(1).map_err(failed)?,
    };
    let text = to_text(&array, &field).map_err(failed)?;
    let text = text.iter().next().flatten().unwrap_or("NULL").to_string();
    let ty = match field.data_type() {
        DataType::Decimal128(_, scale) => format!("decimal({scale})"),
        other => other.to_string(),
    };
    Ok((text, ty))
}

#[test]
fn expressions_have_the_values_of_mysql() {
    let catalog = catalog();
    let mut wrong = Vec::new();
    for line in include_str!("testdata/expressions.tsv").lines() {
        let (expression, expected) = line.split_once('\t').unwrap();
        match evaluate(&catalog, expression) {
            Ok((text, _)) if text == expected => {}
            Ok((text, ty)) => wrong.push(format!("{expression}: {text} ({ty}), not {expected}")),
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

/// The predicate of the plan's filter.
fn filter_of(catalog: &Catalog, condition: &str, table: &str) -> String {
    fn find(plan: &LogicalPlan) -> Option<Expr> {
        match plan {
            LogicalPlan::Filter(filter) => Some(filter.predicate.clone()),
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
    for (condition, expected) in [("l_shipdate >= '1997-01-01'", "")] {
        println!(
            "{condition}  =>  {} {expected}",
            filter_of(&catalog, condition, "lineitem")
        );
    }
}
