//! Stored tables: which access path is taken, what EXPLAIN says of it, and that every path finds the same rows.

use sheaf_types::Value;

use super::harness::Lab;

const CITIES: [&str; 5] = ["Ulm", "Bonn", "Kiel", "bonn", "Köln"];

fn text(value: &str) -> Value {
    Value::Text(value.to_string())
}

/// 2,000 orders and 6,000 lines, three to an order.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let orders = (0..2000i64).map(|id| {
        let customer = if id % 10 == 9 {
            Value::Null
        } else {
            Value::Int(id % 100)
        };
        let city = text(CITIES[(id % 5) as usize]);
        vec![
            Value::Int(id),
            customer,
            Value::Date(9000 + (id % 365) as i32),
            city,
            text(&format!("note {id}")),
        ]
    });
    lab.table(
        "orders",
        &[
            ("id", "int", false),
            ("customer", "int", true),
            ("day", "date", true),
            ("city", "varchar(20)", true),
            ("note", "varchar(100)", true),
        ],
        &[
            "PRIMARY(id)",
            "by_day(day)",
            "by_customer(customer,day)",
            "by_city(city)",
            "by_note(note:4)",
        ],
        orders.collect(),
    );
    let lines = (0..6000i64).map(|n| {
        let quantity = Value::Decimal {
            unscaled: i128::from(n % 50) * 100,
            scale: 2,
        };
        vec![
            Value::Int(n / 3),
            Value::Int(n % 3),
            Value::Int(n % 40),
            quantity,
        ]
    });
    lab.table(
        "lines",
        &[
            ("orderid", "int", false),
            ("line", "int", false),
            ("part", "int", true),
            ("quantity", "decimal(15,2)", true),
        ],
        &["PRIMARY(orderid,line)", "by_part(part,quantity)"],
        lines.collect(),
    );
    lab.table(
        "customers",
        &[("id", "int", false), ("name", "varchar(20)", true)],
        &["PRIMARY(id)"],
        (0..100i64)
            .map(|id| vec![Value::Int(id), text(&format!("c{id}"))])
            .collect(),
    );
    lab
}

/// The first line of EXPLAIN without its estimates.
fn path(lab: &Lab, sql: &str) -> String {
    let explain = lab.run(sql).explain;
    let row = &explain[0];
    let columns = [&row.type_, &row.key, &row.key_len];
    let columns: Vec<&str> = columns.into_iter().flatten().map(String::as_str).collect();
    format!(
        "{} | {}",
        columns.join(" "),
        row.extra.as_deref().unwrap_or("")
    )
}

#[test]
fn conditions_choose_the_path() {
    let lab = lab();
    for (condition, expected) in [
        ("id = 7", "const PRIMARY 4 | "),
        ("id = 7 AND city IS NULL", "const PRIMARY 4 | Using where"),
        ("id IN (1, 5, 9)", "range PRIMARY 4 | "),
        ("id BETWEEN 3 AND 9", "range PRIMARY 4 | "),
        ("id > 1995 OR id < 2", "range PRIMARY 4 | "),
        ("customer = 42", "ref by_customer 5 | "),
        (
            "customer = 42 AND day < DATE '1994-09-01'",
            "range by_customer 9 | ",
        ),
        (
            "customer IS NULL AND day = DATE '1994-09-01'",
            "ref by_customer 9 | ",
        ),
        ("note IS NULL", "ref by_note 19 | Using where"),
        ("1 = 1", "ALL | "),
        ("id + 1 = 3", "ALL | Using where"),
    ] {
        let sql = format!("SELECT note FROM orders WHERE {condition}");
        assert_eq!(path(&lab, &sql), expected, "{condition}");
    }
    assert_eq!(
        path(&lab, "SELECT day FROM orders WHERE customer = 42"),
        "ref by_customer 5 | Using index"
    );
    // Any index has all rows; the one with the fewest pages is read.
    assert_eq!(
        path(&lab, "SELECT COUNT(*) FROM orders"),
        "index by_day 4 | Using index"
    );
}

#[test]
fn strings_are_ranges_under_their_collation() {
    let lab = lab();
    let bonn = r#"SELECT id FROM orders WHERE city = 'BONN' ORDER BY id LIMIT 4"#;
    assert_eq!(lab.rows(bonn), "1\n3\n6\n8");
    let sql = r#"SELECT COUNT(*) FROM orders WHERE city = 'köln'"#;
    assert_eq!(
        (lab.rows(sql).as_str(), path(&lab, sql).as_str()),
        ("400", "ref by_city 83 | Using index")
    );
    let sql = r#"SELECT COUNT(*) FROM orders WHERE note LIKE 'NOTE 19%'"#;
    assert_eq!(lab.rows(sql), "111");
    assert!(path(&lab, sql).contains("Using where"));
}

/// Every way to read a table gives the same rows.
#[test]
fn every_path_finds_the_same_rows() {
    let mut lab = lab();
    let conditions = [
        "customer = 42",
        "customer IN (1, 2, 55) AND day >= DATE '1994-10-01'",
        "customer IS NULL OR customer > 97",
        "(customer = 5 AND day < DATE '1994-12-01') OR (customer = 6 AND id > 1000)",
        "day BETWEEN DATE '1994-09-01' AND DATE '1994-09-20' AND id <> 100",
        "id < 50 AND NOT (customer = 7)",
        "id >= 1990 OR day = DATE '1994-08-25'",
        r#"city <= 'KIEL' AND id < 500"#,
        r#"city LIKE 'b%' AND customer < 50"#,
        "customer = 3 AND 1 = 0",
    ];
    for condition in conditions {
        let sql = format!("SELECT id, customer, day, city FROM orders WHERE {condition}");
        lab.no_hints();
        lab.settings = Default::default();
        lab.force_index("orders", "PRIMARY");
        let expected = lab.run(&sql).sorted();
        for index in ["PRIMARY", "by_day", "by_customer", "by_city", "by_note"] {
            for switch in [
                "mrr=off",
                "mrr_cost_based=off",
                "index_condition_pushdown=off",
                "mrr=on",
            ] {
                lab.settings = Default::default();
                lab.settings.switch.apply(switch).unwrap();
                lab.settings.batch_rows = 100;
                lab.settings.mrr_buffer_bytes = 512;
                lab.force_index("orders", index);
                assert_eq!(
                    lab.run(&sql).sorted(),
                    expected,
                    "{condition} by {index} with {switch}"
                );
            }
        }
    }
}

#[test]
fn hints_are_obeyed() {
    let mut lab = lab();
    lab.settings.switch.apply("skip_scan=off").unwrap();
    let sql = "SELECT note FROM orders WHERE id < 1500 AND day < DATE '1994-09-01'";
    lab.force_index("orders", "PRIMARY");
    assert_eq!(path(&lab, sql), "range PRIMARY 4 | Using where");
    lab.force_index("orders", "by_day");
    assert_eq!(path(&lab, sql), "range by_day 4 | Using index condition");
    lab.force_index("orders", "by_city");
    assert_eq!(
        path(&lab, sql),
        "ALL | Using where",
        "an index that is of no use is not used"
    );
}

#[test]
fn switches_are_obeyed() {
    let mut lab = lab();
    lab.force_index("orders", "by_customer");
    let sql = "SELECT note FROM orders WHERE customer < 60 AND day = DATE '1994-09-01'";
    lab.settings.switch.apply("mrr=off").unwrap();
    assert_eq!(
        path(&lab, sql),
        "range by_customer 9 | Using index condition; Using jumps"
    );
    lab.settings.switch.apply("index_jumps=off").unwrap();
    assert_eq!(
        path(&lab, sql),
        "range by_customer 5 | Using index condition"
    );
    lab.settings
        .switch
        .apply("index_condition_pushdown=off")
        .unwrap();
    assert_eq!(path(&lab, sql), "range by_customer 5 | Using where");
    lab.settings
        .switch
        .apply("mrr=on,mrr_cost_based=off,index_condition_pushdown=on")
        .unwrap();
    assert_eq!(
        path(&lab, sql),
        "range by_customer 5 | Using index condition; Using MRR"
    );
}

#[test]
fn an_index_satisfies_order_by() {
    let lab = lab();
    let sql = "SELECT id, note FROM orders ORDER BY id DESC LIMIT 2";
    assert_eq!(lab.rows(sql), "1999 note 1999\n1998 note 1998");
    assert_eq!(path(&lab, sql), "index PRIMARY 4 | Backward index scan");
    let sql = "SELECT id FROM orders WHERE id > 10 ORDER BY id LIMIT 2";
    assert_eq!(
        (lab.rows(sql).as_str(), path(&lab, sql).as_str()),
        ("11\n12", "range PRIMARY 4 | ")
    );
    let sql = "SELECT day, id FROM orders WHERE customer = 42 ORDER BY day, id LIMIT 2";
    assert_eq!(path(&lab, sql), "ref by_customer 5 | Using index");
    let sql = "SELECT note FROM orders WHERE customer = 42 ORDER BY note";
    assert!(path(&lab, sql).ends_with("Using filesort"));
    let rows = lab.run("SELECT id FROM orders ORDER BY id LIMIT 3 OFFSET 5");
    assert_eq!(rows.text(), "5\n6\n7");
    assert!(!rows.shown.contains("SortExec"), "{}", rows.shown);
}

#[test]
fn keyed_joins_find_what_hash_joins_find() {
    let mut lab = lab();
    let queries = [
        "SELECT o.id, l.line FROM orders o JOIN lines l ON l.orderid = o.id WHERE o.day = DATE '1994-09-01'",
        "SELECT o.id, c.name, l.line FROM orders o, customers c, lines l \
         WHERE o.customer = c.id AND l.orderid = o.id AND o.day < DATE '1994-08-27' AND l.part = 4",
        "SELECT o.id, c.name FROM orders o LEFT JOIN customers c ON o.customer = c.id AND c.name <> 'c3' WHERE o.id < 40",
        "SELECT o.id FROM orders o WHERE o.id < 100 AND EXISTS (SELECT 1 FROM lines l WHERE l.orderid = o.id AND l.line = 2)",
        "SELECT o.id FROM orders o WHERE o.id < 20 AND NOT EXISTS (SELECT 1 FROM lines l WHERE l.orderid = o.id AND l.line = o.customer)",
        "SELECT o.id FROM orders o WHERE o.id < 20 AND (o.id = 3 OR o.id IN (SELECT part FROM lines WHERE quantity > 48))",
        "SELECT l.part, o.id FROM lines l JOIN orders o ON o.customer = l.part AND o.day > DATE '1995-08-20' WHERE l.orderid = 1000",
        "SELECT COUNT(*) FROM orders a JOIN orders b ON a.customer = b.customer AND a.day = b.day WHERE a.id < 300",
    ];
    let mut looked_up = 0;
    for sql in queries {
        lab.settings = Default::default();
        // Of tables as small as these, keys are looked up only if hashing is dear.
        lab.settings.costs.hash_build_us = 1000.0;
        lab.settings.costs.hash_probe_us = 1000.0;
        let keyed = lab.run(sql);
        looked_up += usize::from(keyed.shown.contains("KeyedJoinExec"));
        for (name, change) in [
            ("batched_key_access=off", 1),
            ("mrr=off", 2),
            ("mrr_sort_keys=off,mrr_cost_based=off", 3),
        ] {
            lab.settings.switch.apply("default").unwrap();
            lab.settings.switch.apply(name).unwrap();
            lab.settings.join_buffer_bytes = 64 * change;
            assert_eq!(lab.run(sql).sorted(), keyed.sorted(), "{sql} with {name}");
        }
        // Without any index to look up in, the join is a hash join.
        for table in ["orders", "lines", "customers"] {
            lab.ignore_all(table);
        }
        let hashed = lab.run(sql);
        lab.no_hints();
        assert!(
            !hashed.shown.contains("KeyedJoinExec"),
            "{sql}\n{}",
            hashed.shown
        );
        assert_eq!(hashed.sorted(), keyed.sorted(), "{sql}");
    }
    assert!(
        looked_up >= 5,
        "{looked_up} of {} queries look keys up",
        queries.len()
    );
}

#[test]
fn the_plan_of_a_join_starts_with_the_selective_table() {
    let lab = lab();
    let sql = "SELECT c.name, SUM(l.quantity) FROM lines l, customers c, orders o \
               WHERE l.orderid = o.id AND o.customer = c.id AND o.day = DATE '1994-09-01' GROUP BY c.name";
    let explain = lab.explain(sql);
    let tables: Vec<_> = explain
        .lines()
        .map(|line| line.split(' ').take(4).collect::<Vec<_>>().join(" "))
        .collect();
    assert_eq!(
        tables,
        [
            "1 SIMPLE o type=ref",
            "1 SIMPLE c type=eq_ref",
            "1 SIMPLE l type=ref"
        ]
    );
    assert!(explain.contains("ref=lab.o.customer"), "{explain}");
    assert!(
        explain.contains("Using join buffer (Batched Key Access)"),
        "{explain}"
    );
}

/// The subquery's table is looked at first, although the semijoin was written the other way round: its key is unique.
#[test]
fn a_semijoin_on_a_unique_key_may_come_in_any_order() {
    let lab = lab();
    let explain = lab.explain(
        r#"SELECT SUM(quantity) FROM lines WHERE part IN (SELECT id FROM customers WHERE name = 'c7')"#,
    );
    let tables: Vec<_> = explain
        .lines()
        .map(|line| {
            line.split(' ')
                .skip(2)
                .take(2)
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(
        tables,
        ["customers type=ALL", "lines type=ref"],
        "{explain}"
    );
}
