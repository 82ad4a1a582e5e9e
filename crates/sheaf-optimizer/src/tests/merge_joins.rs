//! Sort-merge joins: what they promise of the order of their rows, alone and divided between workers.

use sheaf_types::Value;

use super::harness::Lab;

/// Two tables whose keys are in another order than what joins them, with NULLs, and several rows of a value.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let nullable = |value: i64, null: bool| match null {
        true => Value::Null,
        false => Value::Int(value),
    };
    let a = (0..400i64).map(|id| {
        vec![
            Value::Int(id),
            nullable(id * 37 % 90, id % 11 == 0),
            Value::Int(id % 7),
        ]
    });
    lab.table(
        "a",
        &[
            ("id", "int", false),
            ("k", "int", true),
            ("v", "int", false),
        ],
        &["PRIMARY(id)"],
        a.collect(),
    );
    let b = (0..150i64).map(|bid| {
        vec![
            Value::Int(bid),
            nullable(bid * 53 % 120, bid % 13 == 0),
            Value::Int(bid % 5),
        ]
    });
    lab.table(
        "b",
        &[
            ("bid", "int", false),
            ("kb", "int", true),
            ("w", "int", false),
        ],
        &["PRIMARY(bid)"],
        b.collect(),
    );
    lab
}

/// The same statements by hash joins, whose order is not doubted: their plans sort.
fn check(statements: &[String]) {
    let mut lab = lab();
    for sql in statements {
        lab.settings.switch.apply("default").unwrap();
        lab.settings.batch_rows = 8192;
        lab.settings.target_partitions = 1;
        let hashed = lab.run(sql);
        assert!(!hashed.shown.contains("SortMergeJoin"), "{}", hashed.shown);
        lab.settings.switch.apply("hash_join=off").unwrap();
        for (partitions, batch_rows) in [(1, 8192), (1, 7), (2, 8192), (3, 16)] {
            lab.settings.target_partitions = partitions;
            lab.settings.batch_rows = batch_rows;
            let merged = lab.run(sql);
            assert!(merged.shown.contains("SortMergeJoin"), "{}", merged.shown);
            assert_eq!(
                merged.text(),
                hashed.text(),
                "{partitions} partitions, batches of {batch_rows}: {sql}\n{}",
                merged.shown
            );
        }
    }
}

#[test]
fn rows_come_in_the_wanted_order() {
    let joins = [
        "a JOIN b ON k = kb",
        "a LEFT JOIN b ON k = kb",
        "b LEFT JOIN a ON k = kb",
        "a RIGHT JOIN b ON k = kb AND v < w",
        "a LEFT JOIN b ON k = kb AND v < w",
        "a LEFT JOIN b ON k = kb AND v = w",
        "(SELECT * FROM a ORDER BY id LIMIT 350) a LEFT JOIN b ON k = kb",
    ];
    let orders = [
        "id, bid",
        "bid, id",
        "id DESC, bid LIMIT 9",
        "k, id, bid",
        "kb, id, bid LIMIT 40",
        "k DESC, v, id, bid LIMIT 300",
    ];
    let statements = joins.iter().flat_map(|join| {
        let statement = move |order| format!("SELECT id, k, bid, kb FROM {join} ORDER BY {order}");
        orders.iter().map(statement)
    });
    check(&statements.collect::<Vec<_>>());
}

/// Whether the rows are in the order that the join promises is looked at while it runs.
#[test]
fn joins_promise_the_order_that_they_have() {
    let mut lab = lab();
    lab.settings.switch.apply("hash_join=off").unwrap();
    for join in [
        "a JOIN b ON k = kb",
        "a LEFT JOIN b ON k = kb",
        "a LEFT JOIN b ON k = kb AND bid < 30",
        "(SELECT * FROM a WHERE k < 100) a LEFT JOIN (SELECT * FROM b WHERE kb < 20) b ON k = kb",
        "a LEFT JOIN b ON k = kb AND v < w",
        "a RIGHT JOIN b ON k = kb AND v < w",
        "b LEFT JOIN a ON k = kb",
        "b JOIN a ON k = kb AND v < w",
        "(SELECT id, k, k AS kb FROM a WHERE EXISTS (SELECT 1 FROM b WHERE k = kb AND v < w)) x",
        "(SELECT id, k, k AS kb FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE k = kb AND v < w)) x",
    ] {
        for (partitions, batch_rows) in [(1, 8192), (1, 7), (3, 16)] {
            lab.settings.target_partitions = partitions;
            lab.settings.batch_rows = batch_rows;
            for order in ["", " ORDER BY k", " ORDER BY kb", " ORDER BY k LIMIT 100"] {
                lab.run(&format!("SELECT k, kb, id FROM {join}{order}"));
            }
        }
    }
}

#[test]
fn semijoins_and_their_kind_keep_the_order() {
    let conditions = [
        "EXISTS (SELECT 1 FROM b WHERE kb = k)",
        "EXISTS (SELECT 1 FROM b WHERE kb = k AND w > v)",
        "NOT EXISTS (SELECT 1 FROM b WHERE kb = k)",
        "NOT EXISTS (SELECT 1 FROM b WHERE kb = k AND w > v)",
    ];
    let statements = conditions.iter().flat_map(|condition| {
        ["id", "k, id", "v, k DESC, id LIMIT 20"]
            .map(|order| format!("SELECT id, k, v FROM a WHERE {condition} ORDER BY {order}"))
    });
    check(&statements.collect::<Vec<_>>());
}

#[test]
fn what_is_above_a_merge_join_sees_all_of_a_group() {
    check(&[
        "SELECT k, COUNT(*), COUNT(bid), MIN(id) FROM a LEFT JOIN b ON k = kb GROUP BY k ORDER BY k"
            .to_string(),
        "SELECT id, ROW_NUMBER() OVER (PARTITION BY v ORDER BY id, bid) AS n FROM a LEFT JOIN b ON k = kb ORDER BY id, n"
            .to_string(),
        "SELECT x.id, y.bid, z.bid FROM a x JOIN b y ON x.k = y.kb JOIN b z ON z.kb = x.v ORDER BY x.id, y.bid, z.bid"
            .to_string(),
        "SELECT id, bid FROM (SELECT id, bid, k FROM a LEFT JOIN b ON k = kb ORDER BY id, bid LIMIT 30) x ORDER BY k, id, bid"
            .to_string(),
    ]);
}
