//! `=` and `<=>` in one join: NULL equals NULL in some pairs of keys and not in others.

use sheaf_types::Value;

use super::harness::Lab;

fn lab() -> Lab {
    let mut lab = Lab::new();
    let number = |value: i64| match value {
        0 => Value::Null,
        value => Value::Int(value),
    };
    // Each combination of NULL, 1 and 2, and then some without partner.
    for (table, ids) in [("x", 0..12), ("y", 3..14)] {
        let rows = ids.clone().map(|id| {
            let (a, b) = (id % 3, id / 3 % 3);
            vec![Value::Int(id), number(a), number(b), Value::Int(id % 2)]
        });
        let keys = match table {
            "x" => vec!["PRIMARY(id)"],
            _ => vec!["PRIMARY(id)", "by_a(a,b)", "by_b(b)", "by_c(c)"],
        };
        let columns = [
            ("id", "int", false),
            ("a", "int", true),
            ("b", "int", true),
            ("c", "int", false),
        ];
        lab.table(table, &columns, &keys, rows.collect());
    }
    lab
}

/// What each pair of rows says of the condition, one by one.
fn spelled_out(condition: &str) -> String {
    format!("CASE WHEN {condition} THEN 1 ELSE 0 END = 1")
}

const CONDITIONS: [&str; 7] = [
    "(x.a <=> y.a) AND x.b = y.b",
    "x.a = y.a AND (x.b <=> y.b)",
    "(x.a <=> y.a) AND (x.b <=> y.b)",
    "(x.a <=> y.a) AND x.id < y.id",
    "x.b = y.b AND (x.a <=> y.a) AND (x.c <=> y.c)",
    "(x.a <=> y.c)",
    "(x.c <=> y.a) AND x.a = y.b",
];

/// Runs statements by hash joins, merge joins and lookups.
fn check(lab: &mut Lab, sql: &str, expected_of: &str) {
    lab.ignore_all("y");
    lab.settings.target_partitions = 1;
    let expected = lab.run(expected_of).sorted();
    for switch in ["default", "hash_join=off"] {
        lab.settings.switch.apply(switch).unwrap();
        for partitions in [1, 3] {
            lab.settings.target_partitions = partitions;
            let rows = lab.run(sql);
            assert_eq!(rows.sorted(), expected, "{sql}\n{}", rows.shown);
        }
    }
    lab.settings.switch.apply("default").unwrap();
    for index in ["by_a", "by_b", "by_c"] {
        lab.no_hints();
        lab.force_index("y", index);
        let rows = lab.run(sql);
        assert_eq!(rows.sorted(), expected, "{index}: {sql}\n{}", rows.shown);
    }
    lab.no_hints();
}

#[test]
fn inner_joins() {
    let mut lab = lab();
    for condition in CONDITIONS {
        let spelled = format!(
            "SELECT x.id, y.id FROM x CROSS JOIN y WHERE {}",
            spelled_out(condition)
        );
        let (first, rest) = condition
            .split_once(" AND ")
            .unwrap_or((condition, "1 = 1"));
        for sql in [
            format!("SELECT x.id, y.id FROM x JOIN y ON {condition}"),
            format!("SELECT x.id, y.id FROM x JOIN y ON {first} WHERE {rest}"),
            format!("SELECT x.id, y.id FROM x JOIN y ON {rest} WHERE {first}"),
            format!("SELECT x.id, y.id FROM x, y WHERE {condition}"),
        ] {
            check(&mut lab, &sql, &spelled);
        }
    }
}

#[test]
fn outer_joins() {
    let mut lab = lab();
    for condition in CONDITIONS {
        let spelled = spelled_out(condition);
        for join in ["LEFT", "RIGHT"] {
            let sql = |on: &str| format!("SELECT x.id, y.id FROM x {join} JOIN y ON {on}");
            check(&mut lab, &sql(condition), &sql(&spelled));
        }
        // A condition on the padded side makes the join an inner one, whose keys are those of both.
        let (first, rest) = condition
            .split_once(" AND ")
            .unwrap_or((condition, "x.id = y.id"));
        let sql = format!("SELECT x.id, y.id FROM x LEFT JOIN y ON {first} WHERE {rest}");
        let (first, rest) = (spelled_out(first), spelled_out(rest));
        let spelled = format!("SELECT x.id, y.id FROM x LEFT JOIN y ON {first} WHERE {rest}");
        check(&mut lab, &sql, &spelled);
    }
}

#[test]
fn semijoins_antijoins_and_marks() {
    let mut lab = lab();
    for condition in CONDITIONS {
        for statement in [
            "SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE {})",
            "SELECT id FROM x WHERE NOT EXISTS (SELECT 1 FROM y WHERE {})",
            "SELECT id FROM x WHERE EXISTS (SELECT 1 FROM y WHERE {}) OR id = 5",
        ] {
            let sql = statement.replace("{}", condition);
            let expected: Vec<String> = {
                let matching = format!(
                    "SELECT DISTINCT x.id FROM x CROSS JOIN y WHERE {}",
                    spelled_out(condition)
                );
                let found = lab.run(&matching).sorted();
                let found: Vec<&str> = found.lines().collect();
                let is_kept = |id: &String| {
                    let exists = found.contains(&id.as_str());
                    match statement {
                        s if s.contains("NOT EXISTS") => !exists,
                        s if s.contains("OR id = 5") => exists || id == "5",
                        _ => exists,
                    }
                };
                (0..12).map(|id| id.to_string()).filter(is_kept).collect()
            };
            let values: Vec<String> = expected.iter().map(|id| format!("({id})")).collect();
            let expected = match values.is_empty() {
                true => "SELECT id FROM x WHERE id < 0".to_string(),
                false => format!("SELECT i FROM (VALUES {}) v (i)", values.join(", ")),
            };
            check(&mut lab, &sql, &expected);
        }
    }
}

#[test]
fn pairs_in_which_null_equals_null_are_keys_of_a_hash_join() {
    let mut lab = lab();
    lab.ignore_all("y");
    let alone = lab.run("SELECT x.id, y.id FROM x JOIN y ON (x.a <=> y.a)");
    assert!(alone.shown.contains("HashJoinExec"), "{}", alone.shown);
    assert!(alone.shown.contains("NullsEqual: true"), "{}", alone.shown);
    let mixed = lab.run("SELECT x.id, y.id FROM x JOIN y ON (x.a <=> y.a) AND x.b = y.b");
    assert!(mixed.shown.contains("HashJoinExec"), "{}", mixed.shown);
    assert!(!mixed.shown.contains("NullsEqual: true"), "{}", mixed.shown);
}

/// Keys that are NULL are not looked up, so only what cannot be NULL is a part of a key.
#[test]
fn pairs_in_which_null_equals_null_beside_lookups() {
    let mut lab = lab();
    let rows = (0..20_000i64).map(|id| {
        let value = |value: i64, is_null: bool| match is_null {
            true => Value::Null,
            false => Value::Int(value),
        };
        vec![
            Value::Int(id),
            value(id % 3, id % 7 == 0),
            value(id / 40, id % 11 == 0),
            Value::Text("some text that makes the row wide ".repeat(3)),
        ]
    });
    let columns = [
        ("id", "int", false),
        ("a", "int", true),
        ("b", "int", true),
        ("pad", "varchar(200)", true),
    ];
    let keys = ["PRIMARY(id)", "by_b(b,a)"];
    lab.table("big", &columns, &keys, rows.collect());
    for (condition, is_looked_up) in [
        ("(x.a <=> big.id)", true),
        ("x.b = big.b AND (x.a <=> big.a)", true),
        ("(x.b <=> big.b) AND x.a = big.a", false),
    ] {
        for join in ["", "LEFT"] {
            let sql = format!("SELECT x.id, big.* FROM x {join} JOIN big ON {condition}");
            let rows = lab.run(&sql);
            let looks_up = rows.shown.contains("KeyedJoinExec");
            assert_eq!(looks_up, is_looked_up, "{sql}\n{}", rows.shown);
            lab.ignore_all("big");
            let scanned = lab.run(&sql);
            assert!(
                !scanned.shown.contains("KeyedJoinExec"),
                "{}",
                scanned.shown
            );
            assert_eq!(rows.sorted(), scanned.sorted(), "{sql}");
            lab.no_hints();
        }
    }
}
