//! Joins by a range of the new table for each row of the others.

use sheaf_storage::Random;
use sheaf_types::Value;

use super::harness::Lab;

fn lab() -> Lab {
    let mut lab = Lab::new();
    let mut random = Random::new(29);
    let rows = (0..20_000i64).map(|id| {
        let day = match random.below(20) {
            0 => Value::Null,
            _ => Value::Date(random.below(2_000) as i32 - 100),
        };
        vec![
            Value::Int(id),
            Value::Int(id % 200),
            Value::Int(random.below(5_000) as i64 - 2_500),
            day,
            Value::Text("some text that makes the row wide ".repeat(3)),
        ]
    });
    lab.table(
        "n",
        &[
            ("id", "int", false),
            ("x", "int", false),
            ("v", "int", true),
            ("day", "date", true),
            ("pad", "varchar(200)", true),
        ],
        &["PRIMARY(id)", "by_xv(x,v)", "by_day(day)"],
        rows.collect(),
    );
    let rows = (0..30i64).map(|id| {
        let or_null = |value: Value, id: i64| match id % 7 {
            3 => Value::Null,
            _ => value,
        };
        vec![
            Value::Int(id),
            or_null(Value::Int(id * 690 - 300), id),
            or_null(Value::Int(id % 5 * 40), id + 2),
            or_null(Value::Date(id as i32 * 60 - 200), id + 4),
        ]
    });
    lab.table(
        "o",
        &[
            ("id", "int", false),
            ("a", "bigint", true),
            ("x", "int", true),
            ("day", "date", true),
        ],
        &["PRIMARY(id)"],
        rows.collect(),
    );
    lab
}

/// What is joined, and how many entries a range is taken to have at most.
const CONDITIONS: [(&str, u64); 6] = [
    ("n.id BETWEEN o.a AND o.a + 2", 3),
    ("n.id > o.a AND n.id < o.a + 3", 2),
    (
        "o.a + 5 >= n.id AND n.id >= o.a + 1 AND n.pad LIKE 'some%'",
        5,
    ),
    ("n.x = o.x AND n.v BETWEEN o.a - 10 AND o.a + 10", 2),
    ("n.x = 7 AND n.v >= o.a AND n.v <= o.a + 2", 1),
    ("n.day >= o.day AND n.day < o.day + INTERVAL 3 DAY", 60),
];

#[test]
fn ranges_are_looked_up_by_joins_of_every_kind() {
    let mut lab = lab();
    for (condition, most_rows) in CONDITIONS {
        let statements = [
            format!("SELECT o.id, n.id FROM o JOIN n ON {condition}"),
            format!("SELECT o.id, n.id, n.pad FROM o LEFT JOIN n ON {condition}"),
            format!("SELECT o.id FROM o WHERE EXISTS (SELECT 1 FROM n WHERE {condition})"),
            format!("SELECT o.id FROM o WHERE NOT EXISTS (SELECT 1 FROM n WHERE {condition})"),
            format!("SELECT o.id, EXISTS (SELECT 1 FROM n WHERE {condition}) FROM o"),
            format!("SELECT o.id, (SELECT COUNT(*) FROM n WHERE {condition}) FROM o"),
        ];
        for sql in statements {
            lab.no_hints();
            let ranged = lab.run(&sql);
            assert!(ranged.shown.contains("bounds=["), "{sql}\n{}", ranged.shown);
            let mut rows = ranged.explain.iter();
            let lookup = rows.find(|row| row.type_.as_deref() == Some("range"));
            let lookup = lookup.unwrap();
            assert!(lookup.rows.unwrap() <= most_rows, "{sql}");
            assert!(lookup.ref_.as_deref().unwrap().ends_with("func"), "{sql}");
            lab.ignore_all("n");
            let all = lab.run(&sql);
            assert!(!all.shown.contains("bounds=["), "{sql}\n{}", all.shown);
            assert_eq!(ranged.sorted(), all.sorted(), "{sql}");
            lab.no_hints();
            lab.settings.target_partitions = 2;
            assert_eq!(lab.run(&sql).sorted(), all.sorted(), "{sql}");
            lab.settings.target_partitions = 1;
        }
    }
}

/// Bounds that the column cannot hold, and NULLs.
#[test]
fn bounds_may_lie_outside_of_the_column() {
    let mut lab = lab();
    for bounds in [
        "n.id >= o.a * 1000000000 AND n.id <= o.a * 1000000000 + 3",
        "n.id >= o.a - 100000000000 AND n.id <= o.a + 1",
        "n.id > o.a - 1 AND n.id <= o.a + 100000000000",
        "n.id >= o.a + 2 AND n.id <= o.a + 1",
        "n.v <= o.a - 2000 AND n.v >= o.x - 2500 AND n.x = o.x",
    ] {
        let sql = format!(
            "SELECT /*+ JOIN_ORDER(o, n) */ COUNT(*), SUM(n.id), SUM(o.id) FROM o JOIN n ON {bounds}"
        );
        lab.no_hints();
        let rows = lab.run(&sql);
        lab.ignore_all("n");
        assert_eq!(rows.text(), lab.run(&sql).text(), "{sql}");
    }
}

/// A table that only a range joins comes after what bounds it, not before.
#[test]
fn a_range_connects_tables() {
    let lab = lab();
    let sql = "SELECT COUNT(*) FROM n JOIN o ON n.id BETWEEN o.a AND o.a + 2 JOIN o p ON p.id = o.id AND p.x < 1000";
    let rows = lab.run(sql);
    assert!(rows.shown.contains("bounds=["), "{}", rows.shown);
    assert!(!rows.shown.contains("NestedLoop"), "{}", rows.shown);
    assert!(!rows.shown.contains("CrossJoin"), "{}", rows.shown);
}
