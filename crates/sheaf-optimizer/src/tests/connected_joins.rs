//! Which joins get which keys, and in which order.

use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion_expr::{Expr, JoinType, LogicalPlan, LogicalPlanBuilder, col, lit, table_scan};
use datafusion_optimizer::extract_equijoin_predicate::ExtractEquijoinPredicate;
use datafusion_optimizer::{Optimizer, OptimizerContext, OptimizerRule};

use crate::logical::connect_joins::ConnectJoins;

fn table(name: &str) -> LogicalPlanBuilder {
    let field = |name| Field::new(name, DataType::Int64, true);
    let schema = Schema::new(vec![field("x"), field("y"), field("z")]);
    table_scan(Some(name), &schema, None).unwrap()
}

/// The tables a, b and c in this order under a condition, with the joins connected.
fn connected(condition: Expr) -> String {
    let [a, b, c] = ["a", "b", "c"].map(table);
    let joins = a.cross_join(b.build().unwrap()).unwrap();
    let joins = joins.cross_join(c.build().unwrap()).unwrap();
    let plan = joins.filter(condition).unwrap();
    let plan = plan.project(vec![col("b.z")]).unwrap().build().unwrap();
    shown(&rewritten(plan))
}

fn rewritten(plan: LogicalPlan) -> LogicalPlan {
    let schema = plan.schema().clone();
    let connected = ConnectJoins
        .rewrite(plan, &OptimizerContext::new())
        .unwrap();
    assert_eq!(connected.data.schema(), &schema);
    connected.data
}

fn shown(plan: &LogicalPlan) -> String {
    let text = plan.display_indent().to_string();
    let lines = text.lines().map(str::trim_end);
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn equalities_become_keys_and_say_the_order() {
    let condition = col("a.x").eq(col("c.x")).and(col("b.y").eq(col("c.y")));
    assert_eq!(
        connected(condition),
        "Projection: b.z\n  \
           Inner Join: c.y = b.y\n    \
             Inner Join: a.x = c.x\n      \
               TableScan: a\n      \
               TableScan: c\n    \
             TableScan: b"
    );
}

#[test]
fn conditions_on_tables_go_to_them() {
    let keys = col("a.x").eq(col("b.x")).and(col("b.x").eq(col("c.x")));
    assert_eq!(
        connected(keys.clone().and(col("b.z").gt(lit(1i64)))),
        "Projection: b.z\n  \
           Inner Join: b.x = c.x\n    \
             Inner Join: a.x = b.x\n      \
               TableScan: a\n      \
               Filter: b.z > Int64(1)\n        \
                 TableScan: b\n    \
             TableScan: c"
    );
    // It holds for a.x and c.x, too: that is for the rule to find out which pushes it down.
    assert_eq!(
        connected(keys.and(col("b.x").gt(lit(1i64)))),
        "Projection: b.z\n  \
           Filter: b.x > Int64(1)\n    \
             Inner Join: b.x = c.x\n      \
               Inner Join: a.x = b.x\n        \
                 TableScan: a\n        \
                 TableScan: b\n      \
               TableScan: c"
    );
}

#[test]
fn an_equality_in_each_alternative_is_a_key() {
    let equality = || col("a.x").eq(col("b.x"));
    let first = equality().and(col("a.y").eq(lit(1i64)));
    let second = col("b.y").eq(lit(2i64)).and(equality());
    assert_eq!(
        connected(first.or(second)),
        "Projection: b.z\n  \
           Filter: a.y = Int64(1) OR b.y = Int64(2)\n    \
             Cross Join:\n      \
               Inner Join: a.x = b.x\n        \
                 TableScan: a\n        \
                 TableScan: b\n      \
               TableScan: c"
    );
    // True with the key, and so is the whole.
    assert_eq!(
        connected(equality().or(equality().and(col("a.y").eq(lit(1i64))))),
        "Projection: b.z\n  \
           Cross Join:\n    \
             Inner Join: a.x = b.x\n      \
               TableScan: a\n      \
               TableScan: b\n    \
             TableScan: c"
    );
}

#[test]
fn the_columns_keep_their_order_where_it_is_seen() {
    let [a, b, c] = ["a", "b", "c"].map(table);
    let joins = a.cross_join(b.build().unwrap()).unwrap();
    let joins = joins.cross_join(c.build().unwrap()).unwrap();
    let condition = col("a.x").eq(col("c.x")).and(col("b.y").eq(col("c.y")));
    let plan = joins.filter(condition).unwrap().build().unwrap();
    assert_eq!(
        shown(&rewritten(plan)),
        "Projection: a.x, a.y, a.z, b.x, b.y, b.z, c.x, c.y, c.z\n  \
           Inner Join: c.y = b.y\n    \
             Inner Join: a.x = c.x\n      \
               TableScan: a\n      \
               TableScan: c\n    \
             TableScan: b"
    );
}

#[test]
fn a_key_of_three_tables_becomes_a_condition_if_they_come_in_another_order() {
    let [a, b, c] = ["a", "b", "c"].map(table);
    let on = col("a.x").eq(col("c.x"));
    let on_three = (col("a.y") + col("b.y")).eq(col("c.y"));
    let joins = a.cross_join(b.build().unwrap()).unwrap();
    let joins = joins.join_on(c.build().unwrap(), JoinType::Inner, [on, on_three]);
    let plan = joins.unwrap().project(vec![col("b.z")]).unwrap();
    let plan = Optimizer::with_rules(vec![Arc::new(ExtractEquijoinPredicate::new())])
        .optimize(plan.build().unwrap(), &OptimizerContext::new(), |_, _| {})
        .unwrap();
    assert_eq!(
        shown(&plan),
        "Projection: b.z\n  \
           Inner Join: a.x = c.x, a.y + b.y = c.y\n    \
             Cross Join:\n      \
               TableScan: a\n      \
               TableScan: b\n    \
             TableScan: c"
    );
    assert_eq!(
        shown(&rewritten(plan)),
        "Projection: b.z\n  \
           Filter: a.y + b.y = c.y\n    \
             Cross Join:\n      \
               Inner Join: a.x = c.x\n        \
                 TableScan: a\n        \
                 TableScan: c\n      \
               TableScan: b"
    );
}
