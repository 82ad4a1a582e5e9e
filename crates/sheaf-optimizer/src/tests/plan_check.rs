//! Plans that contradict themselves are found before they run.

use std::sync::Arc;
use std::time::Instant;

use arrow::compute::SortOptions;
use arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion_common::config::ConfigOptions;
use datafusion_common::{JoinType, NullEquality, Result};
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_expr::execution_props::ExecutionProps;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{
    EquivalenceProperties, LexOrdering, PhysicalExpr, PhysicalSortExpr,
};
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::execution_plan::{Boundedness, EmissionType};
use datafusion_physical_plan::joins::SortMergeJoinExec;
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::{
    DisplayAs, DisplayFormatType, ExecutionPlan, Partitioning, PlanProperties,
};
use sheaf_types::Value;

use super::harness::Lab;
use crate::physical::plan_check::check;

/// An operator that says of its columns what it likes.
#[derive(Debug)]
struct Claims {
    input: Arc<dyn ExecutionPlan>,
    properties: Arc<PlanProperties>,
}

impl Claims {
    fn of(input: Arc<dyn ExecutionPlan>, schema: SchemaRef) -> Arc<dyn ExecutionPlan> {
        let properties = PlanProperties::new(
            EquivalenceProperties::new(schema),
            Partitioning::UnknownPartitioning(1),
            EmissionType::Incremental,
            Boundedness::Bounded,
        );
        Arc::new(Claims {
            input,
            properties: Arc::new(properties),
        })
    }
}

impl DisplayAs for Claims {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Claims")
    }
}

impl ExecutionPlan for Claims {
    fn name(&self) -> &'static str {
        "Claims"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        &self.properties
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.input]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(
            &Arc<dyn PhysicalExpr>,
        ) -> Result<datafusion_common::tree_node::TreeNodeRecursion>,
    ) -> Result<datafusion_common::tree_node::TreeNodeRecursion> {
        Ok(datafusion_common::tree_node::TreeNodeRecursion::Continue)
    }

    fn with_new_children(
        self: Arc<Self>,
        _: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(self)
    }

    fn execute(&self, _: usize, _: Arc<TaskContext>) -> Result<SendableRecordBatchStream> {
        unreachable!("it is never run")
    }
}

fn rows(data_type: DataType, nullable: bool) -> (Arc<dyn ExecutionPlan>, SchemaRef) {
    let schema = Arc::new(Schema::new(vec![
        Field::new("k", data_type, nullable),
        Field::new("v", DataType::Int64, true),
    ]));
    (Arc::new(EmptyExec::new(Arc::clone(&schema))), schema)
}

fn column(name: &str, index: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(name, index))
}

/// What the check says of a plan of a statement that promises nothing.
fn complaint(plan: &Arc<dyn ExecutionPlan>) -> String {
    let logical = Lab::new().logical("SELECT 1").unwrap();
    match check(
        plan,
        &logical,
        &ExecutionProps::new(),
        &ConfigOptions::new(),
    ) {
        Ok(()) => String::new(),
        Err(error) => error.to_string(),
    }
}

#[test]
fn a_column_that_is_not_there_is_found() {
    // That a name is another one is looked at in builds with debug assertions alone.
    let wrong: &[(&str, usize)] = match cfg!(debug_assertions) {
        true => &[("w", 2), ("v", 0)],
        false => &[("w", 2)],
    };
    for (name, index) in wrong.iter().copied() {
        let (input, _) = rows(DataType::Int64, false);
        let order = PhysicalSortExpr::new(column(name, index), SortOptions::default());
        let order = LexOrdering::new([order]).unwrap();
        let sort: Arc<dyn ExecutionPlan> = Arc::new(SortExec::new(order, input));
        let complaint = complaint(&sort);
        let expected = format!("SortExec: it reads the column {name}@{index} of (k, v)");
        assert!(complaint.contains(&expected), "{complaint}");
    }
}

#[test]
fn a_null_that_nobody_expects_is_found() {
    let (nullable, _) = rows(DataType::Int64, true);
    let (never_null, schema) = rows(DataType::Int64, false);
    assert_eq!(complaint(&Claims::of(never_null, Arc::clone(&schema))), "");
    let found = complaint(&Claims::of(nullable, schema));
    assert!(
        found.contains("Claims: its column k is never NULL, but what it is made of may be"),
        "{found}"
    );
}

#[test]
fn another_type_is_found() {
    let (integers, _) = rows(DataType::Int32, false);
    let (_, schema) = rows(DataType::Int64, false);
    let found = complaint(&Claims::of(integers, schema));
    assert!(
        found.contains("Claims: its column k is Int64, and made of Int32"),
        "{found}"
    );
}

#[test]
fn a_merge_join_of_unsorted_rows_is_found() {
    let ((left, _), (right, _)) = (rows(DataType::Int64, false), rows(DataType::Int64, false));
    let join = SortMergeJoinExec::try_new(
        left,
        right,
        vec![(column("k", 0), column("k", 0))],
        None,
        JoinType::Left,
        vec![SortOptions::default()],
        NullEquality::NullEqualsNothing,
    );
    let join: Arc<dyn ExecutionPlan> = Arc::new(join.unwrap());
    let found = complaint(&join);
    assert!(
        found.contains("at SortMergeJoinExec") && found.contains("order"),
        "{found}"
    );
}

/// The plan of one statement is held against what another one asks for.
#[test]
fn an_order_that_nobody_delivers_is_found() {
    let mut lab = Lab::new();
    let values = (0..100).map(|id| vec![Value::Int(id), Value::Int(id * 7 % 100)]);
    lab.table(
        "t",
        &[("id", "int", false), ("v", "int", false)],
        &["PRIMARY(id)"],
        values.collect(),
    );
    let complaint = |plan: &str, wanted: &str| {
        let (query, context) = lab.plan(plan).unwrap();
        let logical = crate::optimize_logical(lab.logical(wanted).unwrap(), &context).unwrap();
        match check(
            &query.plan,
            &logical,
            &ExecutionProps::new(),
            &ConfigOptions::new(),
        ) {
            Ok(()) => String::new(),
            Err(error) => error.to_string(),
        }
    };
    let by_v = "SELECT v, id FROM t ORDER BY v, id";
    assert_eq!(complaint(by_v, by_v), "");
    assert_eq!(complaint(by_v, "SELECT v, id FROM t ORDER BY v"), "");
    // The order of what does not come out cannot be looked at.
    assert_eq!(
        complaint("SELECT id FROM t", "SELECT id FROM t ORDER BY v, id"),
        ""
    );
    for (plan, wanted) in [
        ("SELECT v, id FROM t", by_v),
        ("SELECT v, id FROM t ORDER BY v", by_v),
        ("SELECT v, id FROM t ORDER BY v DESC, id", by_v),
        (
            "SELECT v, id FROM t ORDER BY id",
            "SELECT v, id FROM t ORDER BY v LIMIT 3",
        ),
        ("SELECT v FROM t", "SELECT v FROM t ORDER BY v, id"),
    ] {
        let found = complaint(plan, wanted);
        assert!(
            found.contains("rows do not come in the order of v"),
            "{plan}: {found}"
        );
    }
}

/// Prints what a check costs, for engineers that change it.
#[test]
#[ignore = "a measurement"]
fn the_cost_of_a_check() {
    let mut lab = Lab::new();
    let values = (0..1000).map(|id| vec![Value::Int(id), Value::Int(id * 7 % 100)]);
    lab.table(
        "t",
        &[("id", "int", false), ("v", "int", false)],
        &["PRIMARY(id)", "by_v(v)"],
        values.collect(),
    );
    for sql in [
        "SELECT id, v FROM t WHERE v > 3 ORDER BY id LIMIT 10",
        "SELECT x.id, COUNT(*) FROM t x JOIN t y ON x.id = y.v WHERE x.v < 10 GROUP BY x.id ORDER BY x.id",
    ] {
        let (query, context) = lab.plan(sql).unwrap();
        let logical = crate::optimize_logical(lab.logical(sql).unwrap(), &context).unwrap();
        let options = ConfigOptions::new();
        let runs = 2_000;
        let started = Instant::now();
        for _ in 0..runs {
            check(&query.plan, &logical, &ExecutionProps::new(), &options).unwrap();
        }
        println!("{:?} for {sql}", started.elapsed() / runs);
    }
}
