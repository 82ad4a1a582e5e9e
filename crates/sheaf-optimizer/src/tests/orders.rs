//! Sorts that could move below operators, and what these promise of the order of their rows.

use sheaf_types::Value;

use super::harness::Lab;

fn text(value: &str) -> Value {
    Value::Text(value.to_string())
}

/// 3,001 wide rows, and 40 small ones whose keys and values are in different orders.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let rows = (0..3_001i64).map(|id| {
        vec![
            Value::Int(id),
            Value::Int(id % 60),
            Value::Int(id * 7 % 50),
            text(&"wide row ".repeat(15)),
        ]
    });
    lab.table(
        "many",
        &[
            ("id", "int", false),
            ("few_id", "int", false),
            ("host", "int", false),
            ("message", "varchar(400)", true),
        ],
        &["PRIMARY(id)", "by_few(few_id)"],
        rows.collect(),
    );
    let rows = (0..40i64).map(|id| vec![Value::Int(id), Value::Int(id * 7 % 40)]);
    lab.table(
        "few",
        &[("id", "int", false), ("v", "int", false)],
        &["PRIMARY(id)"],
        rows.collect(),
    );
    lab
}

/// The join delivers one column, in the place that the key has in its outer rows.
#[test]
fn rows_of_a_keyed_join_are_sorted_by_their_own_columns() {
    let lab = lab();
    let found = lab.run(
        "SELECT v FROM few WHERE EXISTS (SELECT 1 FROM many WHERE few_id = few.id) ORDER BY v",
    );
    assert!(found.shown.contains("type=Semi"), "{}", found.shown);
    let expected: Vec<String> = (0..40).map(|v| v.to_string()).collect();
    assert_eq!(found.text(), expected.join("\n"));
}

/// The first branch is in any order, the second one in its own, which is a part of one that is asked for.
#[test]
fn a_union_of_a_constant_and_of_first_rows_is_sorted() {
    let mut lab = lab();
    let host_of = |id: i64| id * 7 % 50;
    let ids: Vec<i64> = (0..3_001).filter(|id| host_of(*id) < 25).collect();
    let last = ids[ids.len() - 20..].iter();
    let mut rows: Vec<(i64, i64)> = last.map(|id| (*id, host_of(*id))).collect();
    rows.push((5_000, 5_000));
    type Compare = fn(&(i64, i64), &(i64, i64)) -> std::cmp::Ordering;
    let orders: [(&str, Compare); 4] = [
        ("n DESC, h", |a, b| b.cmp(a)),
        ("n DESC", |a, b| b.cmp(a)),
        ("h DESC, n DESC", |a, b| (b.1, b.0).cmp(&(a.1, a.0))),
        ("h, n LIMIT 30", |a, b| (a.1, a.0).cmp(&(b.1, b.0))),
    ];
    for budget_us in [None, Some(0.0), Some(1e9)] {
        lab.settings.regret_budget_us = budget_us;
        for (order, compare) in orders {
            let sql = format!(
                "SELECT n, h FROM (SELECT CAST(5000 AS INT) AS n, CAST(5000 AS INT) AS h UNION ALL \
                 (SELECT id AS n, host AS h FROM many WHERE host < 25 ORDER BY id DESC LIMIT 20)) u \
                 ORDER BY {order}"
            );
            rows.sort_by(compare);
            let expected: Vec<String> = rows.iter().map(|(n, h)| format!("{n} {h}")).collect();
            assert_eq!(lab.rows(&sql), expected.join("\n"), "{budget_us:?}: {sql}");
        }
    }
}

/// Several rows that stream by have the same place in their order: below each of them those of the other side begin
/// anew.
#[test]
fn a_hash_join_has_the_order_of_the_side_that_streams() {
    let mut lab = lab();
    for partitions in [1, 2] {
        lab.settings.target_partitions = partitions;
        for (order, key) in [
            ("host, v", (0, 1)),
            ("few_id, v", (2, 1)),
            ("host, v LIMIT 70", (0, 1)),
        ] {
            // A join that no index serves.
            let sql = format!(
                "SELECT host, v, few_id FROM (SELECT host, few_id, id % 3 AS r FROM many) m \
                 JOIN (SELECT v, v % 3 AS r FROM few) f ON m.r = f.r ORDER BY {order}"
            );
            let rows = lab.rows(&sql);
            let rows: Vec<Vec<i64>> = rows
                .lines()
                .map(|line| {
                    line.split(' ')
                        .map(|value| value.parse().unwrap())
                        .collect()
                })
                .collect();
            let keys: Vec<_> = rows.iter().map(|row| (row[key.0], row[key.1])).collect();
            assert!(keys.is_sorted(), "{sql}");
        }
    }
}

/// The join is known to have the order of its rows by a column that is equal to the one that it delivers.
#[test]
fn a_sort_below_a_join_that_does_not_say_so_is_made_again() {
    let lab = lab();
    let sql = "SELECT n, v FROM (SELECT f.v, ROW_NUMBER() OVER (ORDER BY f.v + 0, f.id) AS n \
               FROM many m JOIN few f ON m.host + 0 = f.v + 0 WHERE m.id < 200) x ORDER BY n";
    let rows = lab.rows(sql);
    let values = rows.lines().map(|line| line.split(' ').nth(1).unwrap());
    let values: Vec<i64> = values.map(|value| value.parse().unwrap()).collect();
    assert!(values.len() > 100 && values.is_sorted(), "{rows}");
    let constant = "SELECT COUNT(*) OVER (ORDER BY x.c) AS n FROM few f RIGHT JOIN \
                    (SELECT 4 AS c, m.id FROM many m LEFT JOIN few g ON m.host = g.v WHERE m.id < 50) x ON f.id = x.c";
    assert_eq!(lab.rows(constant), ["50"; 50].join("\n"));
}

#[test]
fn groups_of_rollup_are_not_in_the_order_of_the_rows() {
    let mut lab = lab();
    for partitions in [1, 2] {
        lab.settings.target_partitions = partitions;
        for (sql, expected) in [
            (
                "SELECT id, v FROM few WHERE id < 3 GROUP BY id, v WITH ROLLUP ORDER BY id, v",
                "NULL NULL\n0 NULL\n0 0\n1 NULL\n1 7\n2 NULL\n2 14",
            ),
            (
                "SELECT id FROM few WHERE id < 3 GROUP BY id, v WITH ROLLUP ORDER BY id LIMIT 2",
                "NULL\n0",
            ),
        ] {
            assert_eq!(lab.rows(sql), expected, "{sql}");
        }
        lab.run("SELECT id FROM few GROUP BY id, v WITH ROLLUP");
    }
}

/// `by_few` has 50 rows for each of its 60 values.
#[test]
fn the_first_groups_of_an_order_are_read_in_that_order() {
    let mut lab = lab();
    for partitions in [1, 2] {
        lab.settings.target_partitions = partitions;
        for (order, first) in [("DESC", ["59", "58"]), ("", ["0", "1"])] {
            let sql = format!(
                "SELECT few_id, COUNT(*) FROM many GROUP BY few_id ORDER BY few_id {order} LIMIT 2"
            );
            let rows = lab.rows(&sql);
            let groups: Vec<&str> = rows
                .lines()
                .map(|row| row.split(' ').next().unwrap())
                .collect();
            assert_eq!(groups, first, "{sql}");
            let all = lab.rows("SELECT few_id, COUNT(*) FROM many GROUP BY few_id");
            assert!(
                rows.lines()
                    .all(|row| all.lines().any(|other| other == row)),
                "{sql}: {rows}"
            );
        }
        let filtered = "SELECT few_id, COUNT(*) FROM many GROUP BY few_id HAVING few_id > 57 ORDER BY few_id LIMIT 5";
        assert_eq!(lab.rows(filtered), "58 50\n59 50");
    }
}
