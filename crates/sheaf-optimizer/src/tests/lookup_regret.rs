//! Keyed joins that stop their lookups: when that happens, and that the rows are right wherever it does.

use std::sync::Arc;
use std::time::{Duration, Instant};

use datafusion_physical_plan::ExecutionPlan;
use sheaf_exec::ExecError;
use sheaf_exec::keyed_join::exec::KeyedJoinExec;
use sheaf_storage::Random;
use sheaf_types::Value;

use super::harness::{Lab, Rows, metric};
use crate::Trace;
use crate::json::Layout;

fn text(value: &str) -> Value {
    Value::Text(value.to_string())
}

/// 20,011 orders of 10,007 customers. `a` to `d` are four names of one column of three values. Conditions on all of
/// them keep a third of the orders, or none if they differ. A planner that knows nothing of that expects the 81st part.
fn shop() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(17);
    let orders = (0..20_011i64).map(|id| {
        let same = Value::Int(random.below(3) as i64);
        vec![
            Value::Int(id),
            Value::Int(random.below(10_007) as i64),
            same.clone(),
            same.clone(),
            same.clone(),
            same,
        ]
    });
    let columns = [
        ("id", "int", false),
        ("customer", "int", true),
        ("a", "int", true),
        ("b", "int", true),
        ("c", "int", true),
        ("d", "int", true),
    ];
    lab.table("orders", &columns, &["PRIMARY(id)"], orders.collect());
    let customers = (0..10_007i64).map(|id| {
        vec![
            Value::Int(id),
            text(&format!("customer {id}")),
            Value::Int(id % 100),
        ]
    });
    let columns = [
        ("id", "int", false),
        ("name", "varchar(40)", true),
        ("balance", "int", true),
    ];
    lab.table("customers", &columns, &["PRIMARY(id)"], customers.collect());
    lab
}

const CORRELATED: &str = "SELECT COUNT(*), SUM(c.balance), MIN(c.name) \
     FROM orders o JOIN customers c ON c.id = o.customer WHERE a = 2 AND b = 2 AND o.c = 2 AND d = 2";

fn switches(rows: &Rows) -> usize {
    metric::<KeyedJoinExec>(&rows.plan, "switches")
}

fn extras(rows: &Rows) -> String {
    let extras = rows.explain.iter().flat_map(|row| row.extra.clone());
    extras.collect::<Vec<_>>().join(" | ")
}

fn keyed_join(plan: &Arc<dyn ExecutionPlan>) -> Option<&KeyedJoinExec> {
    plan.downcast_ref::<KeyedJoinExec>()
        .or_else(|| plan.children().into_iter().find_map(keyed_join))
}

#[test]
fn more_outer_rows_than_expected_are_not_looked_up() {
    let mut lab = shop();
    let many = lab.run(CORRELATED);
    assert!(
        extras(&many).contains("Using join buffer (Batched Key Access); May switch to hash join"),
        "{}",
        extras(&many)
    );
    assert_eq!(switches(&many), 1, "{}", many.shown);
    // Some were looked up, and the table was read once.
    let join = keyed_join(&many.plan).unwrap();
    let count = many.text().split(' ').next().map(str::to_string);
    let outer_rows: usize = count.and_then(|count| count.parse().ok()).unwrap();
    let looked_up = metric::<KeyedJoinExec>(&many.plan, "row_lookups");
    assert!(
        looked_up > 0 && looked_up < outer_rows / 2,
        "{looked_up} of {outer_rows}"
    );
    let read = join.switched_scan().unwrap().metrics().unwrap();
    let read = read.sum_by_name("rows_examined").unwrap().as_usize();
    assert_eq!(read, 10_007);

    // The same plan where the estimate is right: nothing matches.
    let few = lab.run(&CORRELATED.replace("d = 2", "d = 1"));
    assert!(extras(&few).contains("May switch to hash join"));
    assert_eq!(switches(&few), 0);

    lab.settings.switch.bounded_regret = false;
    let to_the_end = lab.run(CORRELATED);
    assert!(!extras(&to_the_end).contains("May switch"));
    assert_eq!(to_the_end.text(), many.text());
    // Each customer once.
    let all = metric::<KeyedJoinExec>(&to_the_end.plan, "row_lookups");
    assert!(all > looked_up && all <= outer_rows, "{all}");
}

#[test]
fn a_join_is_guarded_only_where_it_can_be_regretted() {
    let mut lab = shop();
    let is_guarded = |lab: &Lab, sql: &str| {
        let rows = lab.run(sql);
        assert!(
            rows.shown.contains("KeyedJoinExec"),
            "{sql}\n{}",
            rows.shown
        );
        extras(&rows).contains("May switch to hash join")
    };
    // One order, and as many as an index dive has counted.
    let one = "SELECT c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE o.id = 7";
    assert!(!is_guarded(&lab, one));
    let few = one.replace("o.id = 7", "o.id < 9 AND a + b = 3");
    assert!(!is_guarded(&lab, &few));
    assert!(is_guarded(&lab, CORRELATED));
    for switch in ["bounded_regret=off", "hash_join=off"] {
        lab.settings.switch.apply(switch).unwrap();
        assert!(!is_guarded(&lab, CORRELATED), "{switch}");
        lab.settings.switch.apply("default").unwrap();
    }
    // No room for the table.
    lab.settings.query_memory_bytes = 100 << 10;
    assert!(!is_guarded(&lab, CORRELATED));
}

#[test]
fn the_trace_says_what_was_weighed() {
    let mut lab = shop();
    lab.trace = Trace::on(1 << 20);
    lab.plan(CORRELATED).unwrap();
    let trace = lab.trace.finish().unwrap().document.print(Layout {
        one_line: true,
        end_markers: false,
    });
    let expected = "\"bounded_regret\": {\"table\": \"c\", \"cost_of_lookups_at_worst\": ";
    assert!(trace.contains(expected), "{trace}");
    assert!(trace.contains("\"guards\": true"), "{trace}");
}

#[test]
fn explain_says_when_and_whether() {
    let lab = shop();
    let (mut query, context) = lab.plan(CORRELATED).unwrap();
    let json = crate::json::Json::from(&query.explanation());
    let json = json.print(Layout {
        one_line: true,
        end_markers: false,
    });
    assert!(json.contains("\"notes\": [\"May switch to hash join\"], \"switches_after_cost\": \""));
    let tree = query.explanation().text();
    assert!(
        tree.contains("-> In place of lookups once they have cost as much  (cost="),
        "{tree}"
    );
    assert!(tree.contains("-> Table scan on c\n"), "{tree}");
    assert!(!tree.contains("May switch"), "{tree}");

    query.measure().unwrap();
    for _ in lab.start(&query, &context) {}
    let tree = query.explain_run().text();
    let line = |start: &str| tree.lines().find(|line| line.contains(start)).unwrap();
    let switch = line("In place of lookups");
    for counted in ["[switches=1 ", "spent_us=", "switched_after_us="] {
        assert!(switch.contains(counted), "{tree}");
    }
    assert!(
        line("Table scan on c ").contains("rows_examined=10007"),
        "{tree}"
    );
    let lookup = line("Single-row index lookup on c ");
    assert!(
        lookup.contains("row_lookups=") && !lookup.contains("spent_us"),
        "{tree}"
    );

    let (mut query, context) = lab.plan(&CORRELATED.replace("d = 2", "d = 1")).unwrap();
    query.measure().unwrap();
    for _ in lab.start(&query, &context) {}
    let tree = query.explain_run().text();
    let switch = tree
        .lines()
        .find(|line| line.contains("In place of"))
        .unwrap();
    assert!(switch.contains("(never executed)"), "{tree}");
}

/// Tables whose keys have NULLs, duplicates, and values that the other side does not have.
fn random_tables(random: &mut Random, outer_rows: i64) -> Lab {
    let mut lab = Lab::new();
    let mut small = |most: u64| match random.below(9) {
        0 => Value::Null,
        _ => Value::Int(random.below(most) as i64),
    };
    let words = ["Ulm", "ulm", "Bonn", "Köln", "KÖLN ", "", "Kiel"];
    let outer = (0..outer_rows).map(|id| {
        let word = match small(9) {
            Value::Int(word) if word < 7 => text(words[word as usize]),
            _ => Value::Null,
        };
        vec![Value::Int(id), small(300), small(7), word]
    });
    let columns = [
        ("id", "int", false),
        ("k", "bigint", true),
        ("v", "int", true),
        ("word", "varchar(20)", true),
    ];
    lab.table("t", &columns, &["PRIMARY(id)"], outer.collect());
    let inner = (0..997i64).map(|id| {
        let word = match small(14) {
            Value::Int(word) => text(words[word as usize % 7]),
            _ => Value::Null,
        };
        vec![Value::Int(id), small(200), small(7), word]
    });
    let columns = [
        ("id", "int", false),
        ("k", "int", true),
        ("v", "int", true),
        ("word", "varchar(20)", true),
    ];
    let keys = ["PRIMARY(id)", "by_k(k,v)", "by_word(word)"];
    lab.table("u", &columns, &keys, inner.collect());
    // Of tables as small as these, keys are looked up only if hashing is dear.
    lab.settings.costs.hash_build_us = 1000.0;
    lab.settings.costs.hash_probe_us = 1000.0;
    lab
}

/// Every form of join, by whole primary keys, by prefixes of an index, by constants in the key, and by strings.
const JOINS: &[&str] = &[
    "SELECT t.id, u.id, u.word FROM t JOIN u ON u.id = t.k",
    "SELECT t.id, u.id, u.word FROM t JOIN u ON u.k = t.k AND u.v < t.v",
    "SELECT t.id, u.id FROM t JOIN u ON u.k = t.k AND u.v = 3",
    "SELECT t.id, u.v FROM t JOIN u ON u.k = t.k AND u.v = t.v WHERE u.id % 3 = 1",
    "SELECT COUNT(*) FROM t JOIN u ON u.k = t.k",
    "SELECT t.id, u.id, u.word FROM t LEFT JOIN u ON u.k = t.k AND u.v > t.v AND u.id % 2 = 0",
    "SELECT t.id, u.word FROM t LEFT JOIN u ON u.id = t.k",
    "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v < t.v)",
    "SELECT t.id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k)",
    "SELECT t.id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v < t.v)",
    "SELECT t.id FROM t WHERE t.v = 2 OR EXISTS (SELECT 1 FROM u WHERE u.k = t.k AND u.v < 3)",
    r#"SELECT t.id, u.id FROM t JOIN u ON u.word = t.word WHERE u.id < 40"#,
];

/// Every keyed join that can stop its lookups does, at every moment, and the rows are those of lookups alone.
#[test]
fn the_rows_are_the_same_whenever_lookups_are_given_up() {
    let mut random = Random::new(23);
    let mut lab = random_tables(&mut random, 2_003);
    let mut looked_up = 0;
    for sql in JOINS {
        for change in [
            "batched_key_access=off",
            "mrr_sort_keys=off,mrr=off",
            "mrr=on",
        ] {
            lab.settings.switch.apply("default").unwrap();
            lab.settings.switch.apply(change).unwrap();
            lab.settings.batch_rows = [100, 8192][random.below(2) as usize];
            lab.settings.lookup_budget_us = None;
            lab.settings.switch.bounded_regret = false;
            let expected = lab.run(sql);
            looked_up += usize::from(expected.shown.contains("KeyedJoinExec"));
            lab.settings.switch.bounded_regret = true;
            let mut budget_us = 0.0;
            let mut looked_up_before_us = Vec::new();
            loop {
                lab.settings.lookup_budget_us = Some(budget_us);
                let rows = lab.run(sql);
                assert_eq!(
                    rows.sorted(),
                    expected.sorted(),
                    "{budget_us} us: {sql} with {change}\n{}",
                    rows.shown
                );
                if switches(&rows) == 0 {
                    break;
                }
                looked_up_before_us.push(metric::<KeyedJoinExec>(&rows.plan, "spent_us"));
                budget_us = budget_us * 2.0 + 30.0;
            }
            // Early, in the middle, and late.
            if expected.shown.contains("KeyedJoinExec") {
                assert!(
                    looked_up_before_us.len() > 2,
                    "{sql}: {looked_up_before_us:?}"
                );
                assert!(
                    looked_up_before_us.is_sorted(),
                    "{sql}: {looked_up_before_us:?}"
                );
            }
        }
    }
    assert!(looked_up >= 30, "{looked_up} of {}", JOINS.len() * 3);
}

/// Rows that come in the order of the outer rows go on to.
#[test]
fn the_order_of_the_outer_rows_is_kept() {
    let mut random = Random::new(29);
    let mut lab = random_tables(&mut random, 2_003);
    lab.settings.switch.apply("shared_subplans=off").unwrap();
    let mut switched = 0;
    for sql in [
        "SELECT t.id FROM t WHERE EXISTS (SELECT 1 FROM u WHERE u.k = t.k) ORDER BY t.id",
        "SELECT t.id FROM t WHERE NOT EXISTS (SELECT 1 FROM u WHERE u.k = t.k) ORDER BY t.id DESC",
        "SELECT t.id, u.word FROM t LEFT JOIN u ON u.id = t.k ORDER BY t.id LIMIT 900",
        "SELECT t.id, u.word FROM t JOIN u ON u.id = t.k ORDER BY t.id DESC LIMIT 700",
    ] {
        lab.settings.lookup_budget_us = None;
        let expected = lab.run(sql);
        let join = keyed_join(&expected.plan).unwrap();
        assert!(
            join.properties().output_ordering().is_some(),
            "{sql}\n{}",
            expected.shown
        );
        for budget_us in [0.0, 50.0, 300.0] {
            lab.settings.lookup_budget_us = Some(budget_us);
            let rows = lab.run(sql);
            assert_eq!(rows.text(), expected.text(), "{budget_us} us: {sql}");
            switched += switches(&rows);
        }
    }
    assert!(switched > 6, "{switched}");
}

/// Several workers look up; the table is read once for all of them.
#[test]
fn all_partitions_share_the_table() {
    let mut random = Random::new(31);
    let mut lab = random_tables(&mut random, 60_013);
    let sql = "SELECT COUNT(*), SUM(t.id * u.id), MAX(HEX(u.word)) FROM t JOIN u ON u.k = t.k AND u.v <= t.v";
    let expected = lab.rows(sql);
    lab.settings.target_partitions = 2;
    for budget_us in [0.0, 500.0, 5_000.0, 1e9] {
        lab.settings.lookup_budget_us = Some(budget_us);
        let rows = lab.run(sql);
        assert!(rows.shown.contains("partitions=2"), "{}", rows.shown);
        assert_eq!(rows.text(), expected, "{budget_us} us");
        let join = keyed_join(&rows.plan).unwrap();
        match budget_us < 1e9 {
            true => {
                assert_eq!(switches(&rows), 1);
                let read = join.switched_scan().unwrap().metrics().unwrap();
                assert_eq!(read.sum_by_name("rows_examined").unwrap().as_usize(), 997);
            }
            false => assert!(join.switched_scan().is_none()),
        }
    }
}

#[test]
fn without_memory_for_the_table_lookups_go_on() {
    let mut random = Random::new(37);
    let mut lab = random_tables(&mut random, 2_003);
    lab.settings.switch.apply("mrr=off").unwrap();
    lab.settings.lookup_budget_us = None;
    let expected: Vec<String> = JOINS.iter().map(|sql| lab.run(sql).sorted()).collect();
    lab.settings.lookup_budget_us = Some(0.0);
    lab.settings.query_memory_bytes = 1_000;
    // Nor are they hashed in files.
    lab.settings.costs.hash_build_us = 1000.0;
    let mut refused = 0;
    for (sql, expected) in JOINS.iter().zip(expected) {
        let rows = lab.run(sql);
        assert_eq!(rows.sorted(), expected, "{sql}");
        assert_eq!(switches(&rows), 0, "{sql}");
        refused += metric::<KeyedJoinExec>(&rows.plan, "refused");
    }
    assert!(refused > 5, "{refused}");
}

/// A condition that fails on rows which are not looked up makes no statement fail.
#[test]
fn a_condition_that_fails_elsewhere_leaves_it_at_lookups() {
    let mut lab = Lab::new();
    let columns = [("id", "int", false), ("v", "int", true)];
    let rows = |most: i64| (0..most).map(|id| vec![Value::Int(id), Value::Int(id)]);
    lab.table("t", &columns, &["PRIMARY(id)"], rows(500).collect());
    lab.table("u", &columns, &["PRIMARY(id)"], rows(1_000).collect());
    lab.settings.costs.hash_build_us = 1000.0;
    lab.settings.costs.hash_probe_us = 1000.0;
    lab.settings.lookup_budget_us = Some(0.0);
    let sql = |row: i64| {
        format!(
            "SELECT SUM(t.v) FROM t JOIN u ON u.id = t.v WHERE POW(10, 400 * (u.v = {row})) > 0 AND t.id > 10"
        )
    };
    // Row 700 is in no join.
    let rows = lab.run(&sql(700));
    assert_eq!(
        rows.text(),
        (11..500).sum::<i64>().to_string(),
        "{}",
        rows.shown
    );
    assert_eq!(metric::<KeyedJoinExec>(&rows.plan, "refused"), 1);
    assert_eq!(switches(&rows), 0);
    // Row 400 is.
    let error = lab.try_run(&sql(400)).err().unwrap();
    assert!(error.contains("out of range"), "{error}");
}

/// KILL and time limits raise the flag.
#[test]
fn a_join_can_be_stopped_while_it_switches() {
    let mut lab = shop();
    lab.settings.batch_rows = 64;
    lab.settings.lookup_budget_us = Some(0.0);
    let sql = "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer WHERE a = 2 AND b = 2 AND o.c = 2";
    let (query, context) = lab.plan(sql).unwrap();
    assert!(keyed_join(&query.plan).unwrap().switch().is_some());
    let mut rows = lab.start(&query, &context);
    assert!(rows.next().unwrap().is_ok());
    context.cancel.cancel();
    let last = rows.last().unwrap();
    assert!(matches!(last, Err(ExecError::Cancelled)), "{last:?}");

    // Before the first row.
    let (query, context) = lab.plan(sql).unwrap();
    context.cancel.cancel();
    let last = lab.start(&query, &context).last().unwrap();
    assert!(matches!(last, Err(ExecError::Cancelled)), "{last:?}");
}

/// A reader that goes away in the middle of the switch takes the table along, as far as it was read.
#[test]
fn a_join_that_ends_while_it_switches_keeps_nothing() {
    let mut lab = shop();
    lab.settings.batch_rows = 8;
    lab.settings.lookup_budget_us = Some(0.0);
    for attempt in 0..60 {
        let (query, context) = lab.plan(CORRELATED).unwrap();
        let rows = lab.start(&query, &context);
        std::thread::sleep(Duration::from_micros(attempt * 200));
        drop(rows);
    }
    // The plans end soon after their readers have gone.
    let started = Instant::now();
    while lab.reserved_bytes() > 0 && started.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    assert_eq!(lab.reserved_bytes(), 0);
}

/// A transaction that locks what a join has looked up locks the same keys if the join has found them in memory.
#[test]
fn keys_are_noted_down_also_when_they_are_not_looked_up() {
    let mut random = Random::new(41);
    let mut lab = random_tables(&mut random, 503);
    let noted = |lab: &Lab, switched: usize| {
        let (query, context) = lab.plan(JOINS[1]).unwrap();
        let record = keyed_join(&query.plan).unwrap().record_lookups();
        for batch in lab.start(&query, &context) {
            batch.unwrap();
        }
        assert_eq!(metric::<KeyedJoinExec>(&query.plan, "switches"), switched);
        record.ranges()
    };
    let expected = noted(&lab, 0);
    assert!(expected.len() > 100);
    lab.settings.lookup_budget_us = Some(0.0);
    assert_eq!(noted(&lab, 1), expected);
}
