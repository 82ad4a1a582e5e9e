//! Joins with derived tables of few rows begin with these.

use sheaf_types::Value;

use super::harness::Lab;

/// 20,000 rows.
fn lab() -> Lab {
    let mut lab = Lab::new();
    let rows = (0..20_000i64).map(|id| {
        vec![
            Value::Int(id),
            Value::Int(id * 7919 % 20_000),
            Value::Int(id % 40),
            Value::Text("some text that makes the row wide ".repeat(3)),
        ]
    });
    lab.table(
        "n",
        &[
            ("id", "int", false),
            ("created", "int", false),
            ("x", "int", false),
            ("pad", "varchar(200)", true),
        ],
        &["PRIMARY(id)", "by_created(created)", "by_x(x)"],
        rows.collect(),
    );
    lab
}

const STATEMENTS: [&str; 12] = [
    "SELECT n.* FROM (SELECT id FROM n ORDER BY created LIMIT 20) k JOIN n ON n.id = k.id",
    "SELECT n.* FROM n JOIN (SELECT id FROM n ORDER BY pad, created LIMIT 20) k ON n.id = k.id",
    "SELECT n.* FROM (SELECT id FROM n ORDER BY created LIMIT 20 OFFSET 15000) k JOIN n ON n.id = k.id",
    "SELECT n.*, k.created FROM (SELECT id, created FROM n ORDER BY created DESC LIMIT 20) k JOIN n ON n.id = k.id",
    "SELECT n.* FROM (SELECT DISTINCT x FROM n) k JOIN n ON n.id = k.x",
    "SELECT n.* FROM (SELECT x, COUNT(*) AS c FROM n GROUP BY x) k JOIN n ON n.id = k.x",
    "SELECT n.* FROM (SELECT x, MAX(id) AS m FROM n GROUP BY x) k JOIN n ON n.id = k.m",
    "SELECT n.* FROM (SELECT id FROM n WHERE id < 10 UNION SELECT id FROM n WHERE id BETWEEN 5 AND 20) k JOIN n ON n.id = k.id",
    "SELECT n.* FROM (SELECT id FROM n WHERE id < 10 UNION ALL SELECT id FROM n WHERE id BETWEEN 5 AND 20) k JOIN n ON n.id = k.id",
    "SELECT n.* FROM n WHERE id IN (SELECT MAX(id) FROM n GROUP BY x)",
    "SELECT n.* FROM n WHERE id IN (SELECT id FROM (SELECT id FROM n ORDER BY created LIMIT 20) k)",
    "SELECT n.* FROM n WHERE id IN (SELECT x FROM n WHERE id < 50 UNION ALL SELECT x FROM n WHERE id < 70)",
];

#[test]
fn the_other_table_is_looked_up() {
    let mut lab = lab();
    for sql in STATEMENTS {
        lab.no_hints();
        let rows = lab.run(sql);
        assert!(
            rows.shown.contains("KeyedJoinExec"),
            "{sql}\n{}",
            rows.shown
        );
        lab.ignore_all("n");
        let hashed = lab.run(sql);
        assert!(!hashed.shown.contains("KeyedJoinExec"), "{}", hashed.shown);
        assert_eq!(rows.sorted(), hashed.sorted(), "{sql}");
        lab.settings.target_partitions = 2;
        assert_eq!(lab.run(sql).sorted(), hashed.sorted(), "{sql}");
        lab.settings.target_partitions = 1;
    }
}

#[test]
fn rows_that_an_offset_passes_by_do_not_come() {
    let lab = lab();
    let rows =
        |limit: &str| lab.estimated_rows(&format!("SELECT id FROM n ORDER BY created {limit}"));
    assert_eq!(rows("LIMIT 20"), 20.0);
    assert_eq!(rows("LIMIT 20 OFFSET 10000"), 20.0);
    assert_eq!(rows("LIMIT 20 OFFSET 19990"), 10.0);
    assert_eq!(rows("LIMIT 20 OFFSET 30000"), 1.0);
}

/// Duplicates of the values, and values that nothing has, leave a row as often as a semijoin does.
#[test]
fn a_semijoin_with_few_values_keeps_a_row_once() {
    let lab = lab();
    let sql = "SELECT id FROM n WHERE id IN (SELECT x + 19990 FROM n WHERE id < 200 UNION ALL SELECT NULLIF(x, 3) FROM n WHERE id < 85) ORDER BY id";
    let expected: Vec<String> = (0..40)
        .filter(|id| *id != 3)
        .chain(19_990..20_000)
        .map(|id: i64| id.to_string())
        .collect();
    assert_eq!(lab.rows(sql), expected.join("\n"));
    let twice = "SELECT COUNT(*) FROM n WHERE id IN (SELECT MAX(id) FROM n GROUP BY x) AND created IN (SELECT MIN(created) FROM n WHERE x = 3 UNION ALL SELECT 41)";
    assert_eq!(lab.rows(twice), "0");
}

/// A table that is small beside the groups says which of them are made, whatever is compared with them.
#[test]
fn few_groups_are_made_for_few_rows() {
    let mut lab = lab();
    let rows = (0..30i64).map(|id| {
        let a = match id % 10 {
            3 => Value::Null,
            _ => Value::Int(id / 2 * 100 - 300),
        };
        vec![Value::Int(id), a]
    });
    lab.table(
        "o",
        &[("id", "int", false), ("a", "int", true)],
        &["PRIMARY(id)"],
        rows.collect(),
    );
    let statements = [
        "SELECT o.id, (SELECT MAX(pad) FROM n WHERE n.id = o.a + 1) FROM o",
        "SELECT o.id, (SELECT MAX(pad) FROM n WHERE n.id = o.a) FROM o",
        "SELECT o.id, (SELECT COUNT(*) FROM n WHERE n.created = o.a * 2 AND x < 30) FROM o",
        "SELECT o.id, (SELECT SUM(x) FROM n WHERE o.a - 1 = n.created) FROM o WHERE o.id < 25",
        "SELECT o.id FROM o JOIN o p ON o.id = p.id WHERE (SELECT COUNT(*) FROM n WHERE n.id = p.a + o.id - p.id AND n.created = o.a * 3) = 0",
        "SELECT o.id FROM o WHERE o.id > (SELECT MIN(x) FROM n WHERE n.id = o.a + 1)",
    ];
    for sql in statements {
        lab.no_hints();
        let few = lab.run(sql);
        let lookup = "KeyedJoinExec: type=Inner, table=n";
        assert!(few.shown.contains(lookup), "{sql}\n{}", few.shown);
        lab.ignore_all("n");
        let all = lab.run(sql);
        assert!(!all.shown.contains(lookup), "{sql}\n{}", all.shown);
        assert_eq!(few.sorted(), all.sorted(), "{sql}");
    }
}

/// The same for texts, which are equal by their collation.
#[test]
fn few_groups_of_texts_are_made_for_few_rows() {
    let mut lab = lab();
    let text = |text: String| Value::Text(text);
    let rows = (0..20_000i64).map(|id| {
        let name = match id % 11 {
            5 => Value::Null,
            _ => text(format!("Name {}", id / 2)),
        };
        vec![Value::Int(id), name, Value::Int(id % 13)]
    });
    lab.table(
        "names",
        &[
            ("id", "int", false),
            ("name", "varchar(20)", true),
            ("v", "int", false),
        ],
        &["PRIMARY(id)", "by_name(name)"],
        rows.collect(),
    );
    let rows = (0..30i64).map(|id| {
        let name = match id % 10 {
            3 => Value::Null,
            4 => text(format!("NAME {}", id * 20 - 20)),
            _ => text(format!("name {}", id * 20)),
        };
        vec![Value::Int(id), name]
    });
    lab.table(
        "few",
        &[("id", "int", false), ("name", "varchar(30)", true)],
        &["PRIMARY(id)"],
        rows.collect(),
    );
    for sql in [
        "SELECT few.id, (SELECT SUM(v) FROM names WHERE names.name = few.name) FROM few",
        "SELECT few.id, (SELECT COUNT(*) FROM names WHERE CONCAT(few.name, '1') = names.name AND v > 2) FROM few",
        "SELECT few.id FROM few WHERE (SELECT COUNT(*) FROM names WHERE names.name = few.name) > 1",
    ] {
        lab.no_hints();
        let rows = lab.run(sql);
        let lookup = "KeyedJoinExec: type=Inner, table=names";
        assert!(rows.shown.contains(lookup), "{sql}\n{}", rows.shown);
        lab.ignore_all("names");
        let all = lab.run(sql);
        assert!(!all.shown.contains(lookup), "{sql}\n{}", all.shown);
        assert_eq!(rows.sorted(), all.sorted(), "{sql}");
    }
}
