//! The optimizer trace says what was considered and why it lost.

use sheaf_types::Value;

use super::harness::Lab;
use crate::Trace;
use crate::json::Layout;

/// 3,000 orders of 100 customers.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let text = |text: String| Value::Text(text);
    lab.table(
        "orders",
        &[
            ("id", "int", false),
            ("customer", "int", true),
            ("city", "varchar(20)", true),
            ("note", "varchar(100)", true),
        ],
        &[
            "PRIMARY(id)",
            "by_customer(customer,city)",
            "by_city(city)",
            "by_note(note)",
        ],
        (0..3000i64)
            .map(|id| {
                vec![
                    Value::Int(id),
                    Value::Int(id % 100),
                    text(format!("city {}", id % 3)),
                    text(format!("note {id}")),
                ]
            })
            .collect(),
    );
    lab.table(
        "customers",
        &[("id", "int", false), ("name", "varchar(20)", true)],
        &["PRIMARY(id)"],
        (0..100i64)
            .map(|id| vec![Value::Int(id), text(format!("c{id}"))])
            .collect(),
    );
    lab
}

/// The trace of planning `sql`, on one line.
fn trace(lab: &mut Lab, sql: &str) -> String {
    lab.trace = Trace::on(1 << 20);
    lab.plan(sql)
        .unwrap_or_else(|error| panic!("{sql}\n{error}"));
    let recorded = lab.trace.finish().unwrap();
    assert_eq!(recorded.missing_bytes, 0);
    recorded.document.print(Layout {
        one_line: true,
        end_markers: false,
    })
}

/// The part of a trace from `start` to the next `end`.
fn between<'t>(trace: &'t str, start: &str, end: &str) -> &'t str {
    let (_, rest) = trace
        .split_once(start)
        .unwrap_or_else(|| panic!("no {start} in {trace}"));
    rest.split_once(end).map_or(rest, |(part, _)| part)
}

/// A limit makes multi-range reads pointless only where it ends the walk.
#[test]
fn what_is_to_be_sorted_may_be_fetched_by_multi_range_reads_whatever_the_limit() {
    let mut lab = lab();
    let sql = "SELECT * FROM orders WHERE customer = 7";
    let trace = |lab: &mut Lab, rest: &str| trace(lab, &format!("{sql} {rest}"));
    let all = trace(&mut lab, "");
    assert!(!all.contains("too few rows"), "{all}");
    let first = trace(&mut lab, "LIMIT 1");
    assert!(first.contains("too few rows"), "{first}");
    let sorted = trace(&mut lab, "ORDER BY id + 1 LIMIT 1");
    assert!(!sorted.contains("too few rows"), "{sorted}");
}

#[test]
fn every_index_is_named_with_its_ranges_and_its_verdict() {
    let mut lab = lab();
    // Otherwise a skip scan finds `id < 10` behind each note.
    lab.settings.switch.skip_scan = false;
    let trace = trace(
        &mut lab,
        "SELECT note FROM orders WHERE customer IN (7, 8) AND id < 10",
    );
    assert!(trace.contains("\"ranges\": [\"id < 10\"]"), "{trace}");
    assert!(
        trace.contains("\"ranges\": [\"customer = 7\", \"customer = 8\"]"),
        "{trace}"
    );
    let primary = between(&trace, "\"index\": \"PRIMARY\"", "}");
    assert!(primary.contains("\"rows\": 10"), "{trace}");
    let unused = between(&trace, "\"index\": \"by_note\"", "}");
    assert_eq!(
        unused,
        ", \"usable\": false, \"chosen\": false, \"cause\": \"no condition, order or column\""
    );
    assert_eq!(trace.matches("\"chosen\": true").count(), 1, "{trace}");
    assert!(trace.contains("\"cause\": \"cost\""), "{trace}");
}

#[test]
fn hints_and_switches_are_causes() {
    let mut lab = lab();
    let sql = "SELECT note FROM orders WHERE customer < 90 AND city = 'x'";
    lab.settings.switch.mrr = false;
    let off = trace(&mut lab, sql);
    assert!(
        off.contains("\"cause\": \"optimizer_switch mrr=off\""),
        "{off}"
    );
    lab.ignore_all("orders");
    let hinted = trace(&mut lab, sql);
    assert_eq!(hinted.matches("\"cause\": \"hint\"").count(), 3, "{hinted}");
}

#[test]
fn each_step_of_a_join_names_the_ways_to_do_it() {
    let mut lab = lab();
    let trace = trace(
        &mut lab,
        "SELECT name FROM orders JOIN customers ON customers.id = orders.customer WHERE orders.id < 10",
    );
    let step = between(
        &trace,
        "\"plan_prefix\": [\"orders\"], \"table\": \"customers\"",
        "\"rows_for_plan\"",
    );
    for way in ["\"eq_ref\"", "\"hash_join\""] {
        assert!(step.contains(way), "{way}: {trace}");
    }
    assert!(
        trace.contains("\"plan_prefix\": [\"customers\"]"),
        "{trace}"
    );
    assert!(trace.contains("\"pruned_by_cost\": true"), "{trace}");
    let order = between(&trace, "\"chosen_join_order\": [", "]");
    assert!(order.starts_with("{\"table\": \"orders\""), "{trace}");
}

#[test]
fn a_trace_keeps_to_its_limit() {
    let mut lab = lab();
    lab.trace = Trace::on(100);
    lab.plan("SELECT note FROM orders WHERE id < 10").unwrap();
    let recorded = lab.trace.finish().unwrap();
    assert!(recorded.missing_bytes > 100, "{recorded:?}");
}
