//! What operators require of their inputs: where rows are gathered, divided and sorted.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion_common::config::ConfigOptions;
use datafusion_physical_expr::expressions::Column;
use datafusion_physical_expr::{LexOrdering, PhysicalExpr, PhysicalSortExpr};
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode, PhysicalGroupBy};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::empty::EmptyExec;
use datafusion_physical_plan::limit::GlobalLimitExec;
use datafusion_physical_plan::projection::{ProjectionExec, ProjectionExpr};
use datafusion_physical_plan::sorts::sort::SortExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use datafusion_physical_plan::{ExecutionPlan, displayable};

use crate::physical::properties::meet_requirements;

type Plan = Arc<dyn ExecutionPlan>;

const WORKERS: usize = 3;

/// A table with the columns `a` and `b`, read in so many streams.
fn table(streams: usize) -> Plan {
    let field = |name: &str| Field::new(name, DataType::Int64, true);
    let schema = Arc::new(Schema::new(vec![field("a"), field("b")]));
    Arc::new(EmptyExec::new(schema).with_partitions(streams))
}

fn column(plan: &Plan, place: usize) -> Arc<dyn PhysicalExpr> {
    Arc::new(Column::new(plan.schema().field(place).name(), place))
}

fn order(plan: &Plan, places: &[usize]) -> LexOrdering {
    let keys = places
        .iter()
        .map(|place| PhysicalSortExpr::new_default(column(plan, *place)));
    LexOrdering::new(keys).unwrap()
}

fn sorted(plan: Plan, places: &[usize]) -> Plan {
    Arc::new(SortExec::new(order(&plan, places), plan))
}

fn projected(plan: Plan, places: &[usize]) -> Plan {
    let list = places.iter().map(|place| ProjectionExpr {
        expr: column(&plan, *place),
        alias: plan.schema().field(*place).name().clone(),
    });
    let list: Vec<ProjectionExpr> = list.collect();
    Arc::new(ProjectionExec::try_new(list, plan).unwrap())
}

fn grouped(plan: Plan, mode: AggregateMode) -> Plan {
    let schema = plan.schema();
    let groups = PhysicalGroupBy::new_single(vec![(column(&plan, 0), "a".to_string())]);
    let nothing = (Vec::new(), Vec::new());
    Arc::new(AggregateExec::try_new(mode, groups, nothing.0, nothing.1, plan, schema).unwrap())
}

fn met(plan: Plan) -> Plan {
    let mut options = ConfigOptions::default();
    options.optimizer.enable_round_robin_repartition = false;
    meet_requirements(plan, WORKERS, &options).unwrap()
}

/// The operators of a plan, one a line, without what they say of themselves.
fn operators(plan: &Plan) -> Vec<String> {
    let shown = displayable(plan.as_ref()).indent(false).to_string();
    let name = |line: &str| {
        line.trim()
            .split(':')
            .next()
            .unwrap_or_default()
            .to_string()
    };
    shown.lines().map(name).collect()
}

#[test]
fn a_plan_in_one_stream_comes_out_as_it_went_in() {
    let plan = sorted(grouped(table(1), AggregateMode::Single), &[0]);
    assert!(Arc::ptr_eq(&met(Arc::clone(&plan)), &plan));
    let plan: Plan = Arc::new(GlobalLimitExec::new(plan, 0, Some(2)));
    assert!(Arc::ptr_eq(&met(Arc::clone(&plan)), &plan));
}

#[test]
fn each_stream_is_sorted_before_they_are_merged() {
    let plan = met(sorted(table(2), &[0]));
    let expected = ["SortPreservingMergeExec", "SortExec", "EmptyExec"];
    assert_eq!(operators(&plan), expected);
}

#[test]
fn groups_of_several_streams_are_divided_by_their_keys() {
    let partial = grouped(table(2), AggregateMode::Partial);
    let plan = met(grouped(partial, AggregateMode::FinalPartitioned));
    let expected = [
        "AggregateExec",
        "RepartitionExec",
        "AggregateExec",
        "EmptyExec",
    ];
    assert_eq!(operators(&plan), expected);
}

#[test]
fn exchanges_that_nothing_needs_are_left_out() {
    let gathered: Plan = Arc::new(CoalescePartitionsExec::new(table(2)));
    let plan = met(projected(gathered, &[1]));
    assert_eq!(operators(&plan), ["ProjectionExec", "EmptyExec"]);
}

#[test]
fn what_is_sorted_for_nobody_is_not_sorted() {
    let plan = met(grouped(
        projected(sorted(table(1), &[1]), &[0, 1]),
        AggregateMode::Single,
    ));
    let expected = ["AggregateExec", "ProjectionExec", "EmptyExec"];
    assert_eq!(operators(&plan), expected);
}

#[test]
fn a_sort_sinks_below_columns_and_meets_another() {
    let plan = met(sorted(projected(sorted(table(1), &[0]), &[1, 0]), &[1, 0]));
    assert_eq!(
        operators(&plan),
        ["ProjectionExec", "SortExec", "EmptyExec"]
    );
}

#[test]
fn an_order_that_streams_have_is_merged() {
    let streams = SortExec::new(order(&table(2), &[0]), table(2));
    let streams: Plan = Arc::new(streams.with_preserve_partitioning(true));
    let merge = SortPreservingMergeExec::new(order(&streams, &[0]), streams);
    let plan = met(projected(Arc::new(merge), &[0]));
    let expected = [
        "ProjectionExec",
        "SortPreservingMergeExec",
        "SortExec",
        "EmptyExec",
    ];
    assert_eq!(operators(&plan), expected);
}
