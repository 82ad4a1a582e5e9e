//! Operators and their nodes, whatever the rules make of a plan, and what a measured run says of each.

use std::collections::BTreeSet;
use std::sync::Arc;

use datafusion_physical_plan::ExecutionPlan;
use datafusion_physical_plan::aggregates::{AggregateExec, AggregateMode};
use datafusion_physical_plan::coalesce_partitions::CoalescePartitionsExec;
use datafusion_physical_plan::limit::{GlobalLimitExec, LocalLimitExec};
use datafusion_physical_plan::repartition::RepartitionExec;
use datafusion_physical_plan::sorts::sort_preserving_merge::SortPreservingMergeExec;
use sheaf_exec::operator::first_rows_exec::sort_of;
use sheaf_exec::operator::gather_in_order_exec::GatherInOrderExec;
use sheaf_exec::operator::measuring_exec::MeasuringExec;
use sheaf_exec::operator::node_id::NodeId;
use sheaf_exec::operator::otherwise_exec::OtherwiseExec;
use sheaf_exec::operator::shared_exec::SharedExec;
use sheaf_types::Value;

use super::harness::Lab;
use crate::explain::tree::has_line;
use crate::{ExplainRow, PlanNode};

type Plan = Arc<dyn ExecutionPlan>;

/// 20,000 sales of 400 shops in 7 regions, and values in memory.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let sales = (0..20_000i64).map(|id| {
        vec![
            Value::Int(id),
            Value::Int(id * 7919 % 400),
            Value::Int(id * 31 % 1000),
        ]
    });
    let columns = [
        ("id", "int", false),
        ("shop", "int", false),
        ("amount", "int", true),
    ];
    let keys = ["PRIMARY(id)", "by_shop(shop)"];
    lab.table("sale", &columns, &keys, sales.collect());
    let shops = (0..400i64).map(|id| {
        vec![
            Value::Int(id),
            Value::Int(id % 7),
            Value::Text(format!("shop {id}")),
        ]
    });
    let columns = [
        ("id", "int", false),
        ("region", "int", false),
        ("name", "varchar(20)", false),
    ];
    lab.table("shop", &columns, &["PRIMARY(id)"], shops.collect());
    lab.memory_table("few", "a, b", "(1, 10), (2, 20), (3, 20), (4, NULL)");
    lab
}

/// Operators that rules add. Sorts and limits are added, too, but most are planned.
fn may_be_added(plan: &Plan) -> bool {
    let groups = plan.downcast_ref::<AggregateExec>();
    plan.is::<CoalescePartitionsExec>()
        || plan.is::<RepartitionExec>()
        || plan.is::<SortPreservingMergeExec>()
        || plan.is::<GatherInOrderExec>()
        || plan.is::<SharedExec>()
        || plan.is::<OtherwiseExec>()
        || plan.is::<GlobalLimitExec>()
        || plan.is::<LocalLimitExec>()
        || sort_of(plan).is_some()
        || groups.is_some_and(|groups| *groups.mode() == AggregateMode::Partial)
}

/// Names of the operators with a line that belong to no node, and may not be added by a rule.
fn without_node(plan: &Plan, names: &mut BTreeSet<String>) {
    if has_line(plan) && NodeId::of(plan).is_none() && !may_be_added(plan) {
        names.insert(plan.name().to_string());
    }
    for child in plan.children() {
        without_node(child, names);
    }
}

fn count(plan: &Plan, is_counted: &dyn Fn(&Plan) -> bool) -> usize {
    let below = plan.children().into_iter();
    usize::from(is_counted(plan)) + below.map(|child| count(child, is_counted)).sum::<usize>()
}

fn lines<'t>(tree: &'t PlanNode, found: &mut Vec<&'t PlanNode>) {
    found.push(tree);
    tree.children.iter().for_each(|child| lines(child, found));
}

/// Plans a query, runs it measured, and returns its tree as EXPLAIN ANALYZE has it.
fn analyzed(lab: &Lab, sql: &str) -> String {
    let planned = lab.plan(sql);
    let (mut query, context) = planned.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let shown = query.explanation().text();
    let mut names = BTreeSet::new();
    without_node(&query.plan, &mut names);
    assert!(names.is_empty(), "{sql}\n{names:?}\n{shown}");
    let explanation = query.explanation();
    let mut planned = Vec::new();
    explanation
        .tree
        .iter()
        .for_each(|tree| lines(tree, &mut planned));
    // Each table that EXPLAIN names is one that a line is about.
    for line in &planned {
        for row in line.tables.iter().filter(|row| row.type_.is_some()) {
            let is_shown = row.node.is_some() && line.id == row.node;
            assert!(is_shown, "{sql}\n{row:?}\n{shown}");
        }
    }
    // EXPLAIN's table has each of the planner's rows, in its order.
    let of_row = |row: &ExplainRow| (row.id, row.table.clone(), row.key.clone());
    let tables = explanation.tables().into_iter().map(of_row);
    assert!(
        tables.eq(query.explain.iter().map(of_row)),
        "{sql}\n{shown}"
    );
    // A line per operator of a node, and another one for the lookups of a join.
    let with_node: BTreeSet<NodeId> = planned.iter().filter_map(|line| line.id).collect();
    assert!(!with_node.is_empty(), "{sql}\n{shown}");
    query.measure().unwrap();
    for batch in lab.start(&query, &context) {
        batch.unwrap_or_else(|error| panic!("{sql}\n{error}"));
    }
    let analyzed = query.explain_run();
    let mut run = Vec::new();
    analyzed.tree.iter().for_each(|tree| lines(tree, &mut run));
    let measured = run.iter().filter(|line| line.measured.is_some()).count();
    let operators = count(&query.plan, &|plan| has_line(plan));
    let measuring = count(&query.plan, &|plan| {
        // It has no line of its own, and stands above an operator that has one.
        plan.is::<MeasuringExec>()
    });
    let text = analyzed.text();
    assert_eq!(
        (measured, measuring),
        (operators, operators),
        "{sql}\n{text}"
    );
    let nodes: BTreeSet<NodeId> = run.iter().filter_map(|line| line.id).collect();
    assert_eq!(nodes, with_node, "{sql}\n{shown}\n{text}");
    text
}

/// Queries of each form, and what their trees say.
const FORMS: &[(&str, &[&str])] = &[
    ("SELECT 1 + 1", &["Rows fetched before execution  (cost="]),
    (
        "SELECT id FROM sale WHERE amount > 7 AND id < 100 ORDER BY amount LIMIT 3",
        &["Sort: sale.amount, limit input to 3 row(s)  (cost="],
    ),
    (
        "SELECT shop FROM sale WHERE id < 50 UNION ALL SELECT id FROM shop LIMIT 30",
        &["Append  (cost="],
    ),
    (
        "SELECT shop FROM sale WHERE id < 50 UNION SELECT region FROM shop",
        &["Append  (cost="],
    ),
    (
        "SELECT region, COUNT(*) AS n FROM shop GROUP BY region HAVING COUNT(*) > 3 ORDER BY n DESC",
        &["Filter: (count(1) > 3)  (cost=", "by shop.region  (cost="],
    ),
    (
        "SELECT name FROM shop WHERE id = (SELECT MAX(shop) FROM sale WHERE amount = 31)",
        &["Aggregate: max(sale.shop)  (cost="],
    ),
    (
        "SELECT name, (SELECT COUNT(*) FROM sale WHERE shop = shop.id) FROM shop WHERE region = 2",
        &["(cost="],
    ),
    (
        "SELECT name FROM shop WHERE EXISTS (SELECT 1 FROM sale WHERE shop = shop.id AND amount > 990)",
        &["semijoin"],
    ),
    (
        "WITH c AS (SELECT shop, SUM(amount) AS s FROM sale GROUP BY shop) \
         SELECT COUNT(*) FROM c x, c y WHERE x.s = y.s",
        &["Materialize CTE c", "Rows of CTE c"],
    ),
    (
        "WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r WHERE n < 20) SELECT SUM(n) FROM r",
        &[
            "Repeat until convergence  (cost=",
            "Table scan on r  (cost=",
        ],
    ),
    (
        "SELECT id, SUM(amount) OVER (PARTITION BY shop ORDER BY id) FROM sale WHERE id < 500",
        &["Window aggregate: sum(sale.amount) OVER"],
    ),
    (
        "SELECT COUNT(*) FROM sale, shop WHERE sale.shop = shop.id AND name > 'shop 3'",
        &[
            "Batched key access inner join  (cost=",
            "Covering index lookup on sale using by_shop (shop=shop.id)  (cost=",
        ],
    ),
    (
        "SELECT COUNT(*) FROM sale x, sale y WHERE x.amount = y.amount AND x.id < 5000",
        &["(x.amount = y.amount)  (cost="],
    ),
    (
        "SELECT COUNT(*) FROM shop x, shop y WHERE x.id + y.id < 30",
        &["over pairs"],
    ),
    (
        "SELECT name, amount FROM sale, shop WHERE sale.shop = shop.id AND sale.id BETWEEN 5 AND 9",
        &["Single-row index lookup on shop using PRIMARY (id=sale.shop)  (cost="],
    ),
    (
        "SELECT a, COUNT(*) FROM few GROUP BY a WITH ROLLUP ORDER BY a",
        &["Sort: "],
    ),
    (
        "SELECT x.id FROM (SELECT id, amount FROM sale ORDER BY amount LIMIT 50) x ORDER BY x.id LIMIT 5",
        &[
            "Sort: sale.id, limit input to 5 row(s)  (cost=",
            "Sort: sale.amount, limit input to 50 row(s)  (cost=",
        ],
    ),
    (
        "SELECT DISTINCT amount FROM sale LIMIT 4 OFFSET 2",
        &["(cost="],
    ),
    (
        "SELECT a FROM few UNION SELECT b FROM few ORDER BY 1 LIMIT 2",
        &["(cost="],
    ),
];

#[test]
fn each_operator_belongs_to_a_node_and_is_measured() {
    let mut lab = lab();
    for memory_bytes in [64 << 20, 0] {
        for partitions in 1..=3 {
            lab.settings.query_memory_bytes = memory_bytes;
            lab.settings.target_partitions = partitions;
            for (sql, parts) in FORMS {
                let text = analyzed(&lab, sql);
                let is_usual = memory_bytes > 0 && partitions == 1;
                for part in parts.iter().filter(|_| is_usual) {
                    assert!(text.contains(part), "{sql}\n{part}\n{text}");
                }
            }
        }
    }
}

/// One group in two steps is one node: what gathers rows, and what is done before, was not planned.
#[test]
fn what_rules_add_belongs_to_no_node() {
    let mut lab = lab();
    lab.settings.target_partitions = 3;
    lab.settings.switch.shared_subplans = false;
    lab.force_index("sale", "PRIMARY");
    // A table as small as this is read by one worker, and two of them by two.
    let twice = "SELECT amount FROM sale UNION ALL SELECT amount FROM sale";
    let text = analyzed(
        &lab,
        &format!("SELECT amount, COUNT(*) FROM ({twice}) x GROUP BY amount"),
    );
    let estimated = |line: &str| line.contains("(cost=");
    let of = |word: &str| {
        let mut lines = text.lines().filter(|line| line.contains(word));
        lines.next().map(estimated)
    };
    assert_eq!(of("-> Aggregate"), Some(true), "{text}");
    assert_eq!(of("Partial aggregate"), Some(false), "{text}");
    assert_eq!(of("Exchange between"), Some(false), "{text}");
    assert_eq!(of("Table scan on sale"), Some(true), "{text}");
}

/// What several workers need (interleaved parts of a union, groups of groups) does not hide what is known of the rest.
#[test]
fn notes_are_found_below_a_union_that_is_interleaved() {
    let mut lab = lab();
    lab.settings.target_partitions = 3;
    lab.settings.switch.shared_subplans = false;
    lab.force_index("sale", "PRIMARY");
    let part =
        "SELECT shop, COUNT(*) AS n FROM sale WHERE amount > 5 GROUP BY shop HAVING COUNT(*) > 2";
    let text = analyzed(
        &lab,
        &format!("SELECT MAX(n) FROM ({part} UNION ALL {part}) x"),
    );
    assert_eq!(text.matches(" > 2)  (cost=").count(), 2, "{text}");
    assert_eq!(text.matches(" by sale.shop  (cost=").count(), 2, "{text}");
    let groups =
        "SELECT n, COUNT(*) FROM (SELECT shop, COUNT(*) AS n FROM sale GROUP BY shop) x GROUP BY n";
    let text = analyzed(&lab, groups);
    assert_eq!(text.matches(" by n  (cost=").count(), 1, "{text}");
    assert_eq!(text.matches(" by sale.shop  (cost=").count(), 1, "{text}");
}

/// An expression that occurs several times is computed once, in a column of which the statement knows nothing.
#[test]
fn what_is_computed_once_is_shown_as_what_it_is() {
    let lab = lab();
    let sql =
        "SELECT shop, SUM(amount * (1 + id)), MAX(amount * (1 + id) - 7) FROM sale GROUP BY shop";
    let text = analyzed(&lab, sql);
    assert!(
        text.contains("sum((sale.amount * (1 + sale.id)))"),
        "{text}"
    );
    assert!(!text.contains("__common_expr"), "{text}");
}
