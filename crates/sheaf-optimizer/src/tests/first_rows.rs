//! Joins below a LIMIT: that they stop early, in the right order, and that their rows are right.

use sheaf_exec::keyed_join::exec::KeyedJoinExec;
use sheaf_exec::operator::regret_exec::RegretExec;
use sheaf_exec::operator::scan_exec::ScanExec;
use sheaf_storage::Random;
use sheaf_types::Value;

use super::harness::{Lab, Rows, metric};

fn text(value: &str) -> Value {
    Value::Text(value.to_string())
}

/// 500 customers and their 20,011 orders, of which some have no customer. Orders of `kind` 3 are the 300 oldest ones.
fn shop() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(11);
    let orders = (0..20_011i64).map(|id| {
        let customer = match random.below(20) {
            0 => Value::Null,
            n => Value::Int((random.below(500) + n / 19 * 1_000) as i64),
        };
        vec![
            Value::Int(id),
            customer,
            Value::Int(id / 3),
            Value::Int(if id < 300 { 3 } else { random.below(3) as i64 }),
            text(&"wide row ".repeat(15 + random.below(10) as usize)),
        ]
    });
    lab.table(
        "orders",
        &[
            ("id", "int", false),
            ("customer", "int", true),
            ("day", "int", true),
            ("kind", "int", true),
            ("note", "varchar(400)", true),
        ],
        &["PRIMARY(id)", "by_day(day)", "by_customer(customer)"],
        orders.collect(),
    );
    let customers = (0..500i64).map(|id| {
        vec![
            Value::Int(id),
            text(&format!("customer {id}")),
            Value::Int(id % 10),
        ]
    });
    lab.table(
        "customers",
        &[
            ("id", "int", false),
            ("name", "varchar(40)", true),
            ("nation", "int", true),
        ],
        &["PRIMARY(id)"],
        customers.collect(),
    );
    let nations = (0..10i64).map(|id| vec![Value::Int(id), text(&format!("nation {id}"))]);
    let columns = [("id", "int", false), ("name", "varchar(40)", true)];
    lab.table("nations", &columns, &["PRIMARY(id)"], nations.collect());
    lab
}

fn tables(rows: &Rows) -> Vec<String> {
    let table = |row: &crate::explain::ExplainRow| {
        let columns = [&row.table, &row.type_, &row.key];
        let columns: Vec<&str> = columns.into_iter().flatten().map(String::as_str).collect();
        columns.join(" ")
    };
    rows.explain.iter().map(table).collect()
}

/// The rows come in their order, and the LIMIT stops the joins.
fn streams(rows: &Rows) -> bool {
    let extras = rows.explain.iter().flat_map(|row| &row.extra);
    !extras
        .into_iter()
        .any(|extra| extra.contains("Using filesort"))
}

fn examined(rows: &Rows) -> usize {
    metric::<ScanExec>(&rows.plan, "rows_examined")
        + metric::<KeyedJoinExec>(&rows.plan, "rows_examined")
}

#[test]
fn the_latest_orders_and_their_customers_are_all_that_is_read() {
    let lab = shop();
    let sql = "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer \
               ORDER BY o.day DESC, o.id DESC LIMIT 10";
    let latest = lab.run(sql);
    assert_eq!(
        tables(&latest),
        ["o index by_day", "c eq_ref PRIMARY"],
        "{}",
        latest.shown
    );
    assert!(streams(&latest), "{}", latest.shown);
    assert!(examined(&latest) < 400, "{}", examined(&latest));
    let all = lab.run(sql.strip_suffix(" LIMIT 10").unwrap()).text();
    let first: Vec<&str> = all.lines().take(10).collect();
    assert_eq!(latest.text(), first.join("\n"));
}

#[test]
fn outer_rows_without_a_match_keep_their_place() {
    let lab = shop();
    let sql = "SELECT o.id, c.name, n.name FROM orders o LEFT JOIN customers c ON c.id = o.customer \
               LEFT JOIN nations n ON n.id = c.nation ORDER BY o.id LIMIT 200";
    let oldest = lab.run(sql);
    assert!(streams(&oldest), "{}", oldest.shown);
    let all = lab.run(sql.strip_suffix(" LIMIT 200").unwrap()).text();
    let first: Vec<&str> = all.lines().take(200).collect();
    assert_eq!(oldest.text(), first.join("\n"));
    assert!(oldest.text().contains("NULL"));
}

#[test]
fn an_order_by_a_column_of_another_table_makes_that_one_the_first() {
    let lab = shop();
    let sql = "SELECT c.id, o.id FROM orders o JOIN customers c ON c.id = o.customer \
               ORDER BY c.id, o.id LIMIT 5";
    let rows = lab.run(sql);
    // Two tables: no index has that order.
    assert!(!streams(&rows), "{}", rows.shown);
    let sql = "SELECT c.id, o.day FROM orders o JOIN customers c ON c.id = o.customer \
               ORDER BY c.id LIMIT 5";
    let rows = lab.run(sql);
    assert_eq!(tables(&rows), ["c index PRIMARY", "o ref by_customer"]);
    assert!(rows.text().lines().all(|line| line.starts_with("0 ")));
    assert!(examined(&rows) < 3_000, "{}", examined(&rows));
}

#[test]
fn without_an_order_some_rows_are_enough() {
    let lab = shop();
    let sql = "SELECT o.id, c.id FROM orders o JOIN customers c ON c.id = o.customer LIMIT 7";
    let rows = lab.run(sql);
    assert_eq!(rows.text().lines().count(), 7);
    assert!(examined(&rows) < 2_000, "{}", examined(&rows));
}

/// No column is read of the rows that a LIMIT lets through.
#[test]
fn some_rows_are_counted() {
    let mut lab = shop();
    lab.settings.costs.hash_build_us = 1000.0;
    lab.settings.costs.hash_probe_us = 1000.0;
    let sql = "SELECT COUNT(*) FROM (SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer \
               WHERE o.id > 999 AND o.id < 1201 LIMIT 40) d";
    let rows = lab.run(sql);
    assert_eq!(rows.text(), "40", "{}", rows.shown);
    assert!(rows.shown.contains("KeyedJoinExec"), "{}", rows.shown);
    let all = lab.run(&sql.replace(" LIMIT 40", "")).text();
    assert_eq!(lab.run(&sql.replace("40", "400")).text(), all);
}

/// The same join twice in a statement, once in order: that one does not take the rows of the other.
#[test]
fn a_join_in_order_is_not_shared_with_one_in_no_order() {
    let mut lab = shop();
    lab.settings.costs.hash_build_us = 1000.0;
    lab.settings.costs.hash_probe_us = 1000.0;
    let part = "SELECT o.id, o.kind, c.name FROM orders o LEFT JOIN customers c ON c.id = o.customer \
                WHERE o.id < 10000";
    let sql = format!("{part} UNION ALL ({part} ORDER BY o.id LIMIT 4000)");
    lab.settings.switch.shared_subplans = false;
    let expected = lab.run(&sql);
    assert!(streams(&expected), "{}", expected.shown);
    let joins = expected.shown.matches("KeyedJoinExec").count();
    assert_eq!(joins, 2, "{}", expected.shown);
    lab.settings.switch.shared_subplans = true;
    let rows = lab.run(&sql);
    assert_eq!(rows.sorted(), expected.sorted(), "{}", rows.shown);
}

/// All matches lie where the walk ends, which no statistics of the columns can know.
#[test]
fn a_join_that_meets_its_matches_too_late_is_given_up() {
    let lab = shop();
    let sql = "SELECT o.id, c.name FROM orders o JOIN customers c ON c.id = o.customer \
               WHERE c.nation + o.kind > 11 ORDER BY o.day DESC, o.id DESC LIMIT 10";
    let rows = lab.run(sql);
    let extra = rows.explain[0].extra.clone().unwrap_or_default();
    assert!(extra.contains("May switch to another plan"), "{extra}");
    assert_eq!(metric::<RegretExec>(&rows.plan, "switches"), 1);
    let all = lab.run(sql.strip_suffix(" LIMIT 10").unwrap()).text();
    let first: Vec<&str> = all.lines().take(10).collect();
    assert_eq!(rows.text(), first.join("\n"));
    assert_eq!(first.len(), 10);
}

/// Random joins, orders and limits against the rows without the limit; plans are abandoned early, late and not at all.
#[test]
fn the_first_rows_are_those_of_all_rows() {
    let mut lab = shop();
    let mut random = Random::new(5);
    let (mut streaming, mut switched) = (0, 0);
    for _ in 0..60 {
        let outer = ["JOIN", "LEFT JOIN"][random.below(2) as usize];
        let nations = ["", "LEFT JOIN nations n ON n.id = c.nation"][random.below(2) as usize];
        let condition = match random.below(4) {
            0 => format!("o.kind = {}", random.below(4)),
            1 => format!("o.day > {}", random.below(7_000)),
            2 => format!("(c.nation < {} OR c.id IS NULL)", random.below(9)),
            _ => "o.id >= 0".to_string(),
        };
        let direction = ["ASC", "DESC"][random.below(2) as usize];
        let order = match random.below(3) {
            0 => format!("o.day {direction}, o.id {direction}"),
            1 => format!("o.customer {direction}, o.id {direction}"),
            _ => format!("o.id {direction}"),
        };
        let (limit, offset) = (1 + random.below(90) as usize, random.below(40) as usize);
        let all = format!(
            "SELECT o.id, c.name, o.day FROM orders o {outer} customers c ON c.id = o.customer {nations} \
             WHERE {condition} ORDER BY {order}"
        );
        lab.settings.regret_budget_us = None;
        let expected = lab.run(&all).text();
        let expected: Vec<&str> = expected.lines().skip(offset).take(limit).collect();
        let sql = format!("{all} LIMIT {limit} OFFSET {offset}");
        for budget_us in [None, Some(0.0), Some(20.0), Some(300.0)] {
            lab.settings.regret_budget_us = budget_us;
            let rows = lab.run(&sql);
            assert_eq!(rows.text(), expected.join("\n"), "{sql}\n{}", rows.shown);
            switched += metric::<RegretExec>(&rows.plan, "switches");
            streaming += usize::from(streams(&rows));
        }
    }
    assert!(streaming > 20 && switched > 20, "{streaming} {switched}");
}
