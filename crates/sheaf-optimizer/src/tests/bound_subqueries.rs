//! Which subqueries that run for each row have one plan for all of them.

use std::sync::Arc;

use datafusion_common::ScalarValue;
use datafusion_common::tree_node::{TreeNode, TreeNodeRecursion};
use datafusion_expr::LogicalPlan;
use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::operator::correlation::{SubplanRuns, Subplans};
use sheaf_exec::operator::scan_exec::ScanExec;
use sheaf_types::Value;

use super::harness::Lab;
use crate::logical::apply::Apply;
use crate::optimize_logical;
use crate::physical::applied_subquery::AppliedSubquery;

fn lab() -> Lab {
    let mut lab = Lab::new();
    let columns = [
        ("id", "int", false),
        ("k", "int", false),
        ("v", "int", true),
    ];
    for (table, rows) in [("o", 40), ("t", 3000)] {
        let rows = (0..rows).map(|id| {
            let v = match id % 7 {
                0 => Value::Null,
                rest => Value::Int(rest),
            };
            vec![Value::Int(id), Value::Int(id * 7 % 3000), v]
        });
        lab.table(table, &columns, &["PRIMARY(id)", "by_k(k)"], rows.collect());
    }
    lab
}

/// The runs of the only subquery of a statement that runs for each row.
fn runs(lab: &Lab, sql: &str) -> Box<dyn SubplanRuns> {
    let (_, context) = lab.plan(sql).unwrap();
    let plan = optimize_logical(lab.logical(sql).unwrap(), &context).unwrap();
    let mut found = None;
    let is_apply = |node: &LogicalPlan| {
        if let LogicalPlan::Extension(extension) = node
            && let Some(apply) = extension.node.as_any().downcast_ref::<Apply>()
        {
            found = Some(AppliedSubquery::new(apply, &context)?);
        }
        Ok(TreeNodeRecursion::Continue)
    };
    plan.apply(is_apply).unwrap();
    found
        .unwrap_or_else(|| panic!("nothing runs for each row of {sql}"))
        .begin()
}

fn scan(plan: &Arc<dyn ExecutionPlan>) -> Arc<dyn ExecutionPlan> {
    match plan.children().first() {
        Some(child) => scan(child),
        None => {
            assert!(plan.is::<ScanExec>());
            Arc::clone(plan)
        }
    }
}

/// Whether the plan for one value is the one for another, too.
fn is_shared(lab: &Lab, sql: &str, [one, other]: [Option<i32>; 2]) -> bool {
    let mut runs = runs(lab, sql);
    let mut plan = |value| scan(&runs.plan(&[ScalarValue::Int32(value)]).unwrap());
    let (one, other) = (plan(one), plan(other));
    Arc::ptr_eq(&one, &other)
}

#[test]
fn a_subquery_over_one_table_has_one_plan() {
    let lab = lab();
    for subquery in [
        "SELECT v FROM t WHERE t.k <= o.k ORDER BY t.k DESC LIMIT 1",
        "SELECT v FROM t WHERE t.k > o.k ORDER BY t.k LIMIT 1",
        "SELECT t.id FROM t WHERE t.k > o.k + 1 ORDER BY t.k, t.id LIMIT 1 OFFSET 2",
        "SELECT MAX(t.k) FROM t WHERE t.k < o.k",
        "SELECT COUNT(v) FROM t WHERE t.k > o.k",
        "SELECT t.v + o.k FROM t WHERE t.k >= o.k AND t.v > 2 ORDER BY t.k LIMIT 1",
    ] {
        let sql = format!("SELECT o.id, ({subquery}) FROM o");
        assert!(is_shared(&lab, &sql, [Some(2900), Some(2920)]), "{sql}");
    }
}

#[test]
fn null_and_a_range_of_another_size_have_plans_of_their_own() {
    let lab = lab();
    let sql = "SELECT o.id, (SELECT v FROM t WHERE t.k <= o.k ORDER BY t.k DESC LIMIT 1) FROM o";
    assert!(!is_shared(&lab, sql, [Some(100), None]));
    let sql = "SELECT o.id, (SELECT COUNT(*) FROM t WHERE t.k > o.k) FROM o";
    assert!(!is_shared(&lab, sql, [Some(2990), Some(10)]));
    assert!(is_shared(&lab, sql, [Some(10), Some(2990)]));
}

#[test]
fn what_a_plan_finds_follows_the_values() {
    let lab = lab();
    for (subquery, join) in [
        (
            "SELECT t.id FROM t WHERE t.k <= o.k + 1 ORDER BY t.k DESC, t.id DESC LIMIT 1",
            "SELECT o.id, t.id FROM o JOIN t ON t.k = (SELECT MAX(k) FROM t u WHERE u.k <= o.k + 1) \
             AND t.id = (SELECT MAX(id) FROM t w WHERE w.k = t.k) ORDER BY o.id",
        ),
        (
            "SELECT COUNT(t.v) FROM t WHERE t.k > o.k",
            "SELECT o.id, COUNT(t.v) FROM o LEFT JOIN t ON t.k > o.k GROUP BY o.id ORDER BY o.id",
        ),
    ] {
        let sql = format!("SELECT o.id, ({subquery}) FROM o ORDER BY o.id");
        assert_eq!(lab.rows(&sql), lab.rows(join), "{sql}");
    }
}
