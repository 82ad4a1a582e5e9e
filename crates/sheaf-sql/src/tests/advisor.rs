//! ADVISE INDEXES.

use sheaf_table::AccountName;

use super::{Bench, run};
use crate::{Session, SessionInfo};

const TABLE: &str = "CREATE TABLE infamous_table (id INT PRIMARY KEY, member_id INT, email VARCHAR(255), \
                     msg_type VARCHAR(255), t2send INT, flag INT, sent INT, KEY t_msg (t2send, msg_type(5)))";

/// Beginnings of message types. Four characters tell `abc:` from its neighbours, and `prefi` needs five.
const TYPES: [&str; 16] = [
    "abc:", "abcd", "abce", "abcf", "prefix", "prefab", "prefer", "pretty", "new:", "old:", "spam",
    "ham:", "list", "digest", "alert", "reply",
];

/// 20,000 rows: each type has a sixteenth of them, and a tenth are to be sent late.
fn infamous() -> Bench {
    let mut bench = Bench::new();
    bench.ok(TABLE);
    for first in (0..20_000).step_by(2_000) {
        let rows = (first..first + 2_000).map(|id| {
            let (kind, late) = (TYPES[id % 16], (id / 16) % 10 == 0);
            let t2send = if late { 2_000 + id % 500 } else { id % 1_234 };
            let (email, type_of) = (format!("user{id}@example.com"), format!("{kind}{}", id % 7));
            format!(
                "({id}, {}, '{email}', '{type_of}', {t2send}, 0, 1)",
                id % 100
            )
        });
        let rows = rows.collect::<Vec<_>>().join(", ");
        bench.ok(&format!("INSERT INTO infamous_table VALUES {rows}"));
    }
    bench.ok("ANALYZE TABLE infamous_table");
    bench
}

/// What is proposed: the statement, and the entries that are expected to be read.
fn advice(bench: &mut Bench, sql: &str) -> Vec<(String, f64)> {
    let rows = bench.rows(sql);
    let cells = rows.iter().map(|row| {
        let mut cells = row.split('|');
        let statement = cells.nth(4).unwrap_or_default().to_string();
        let rows = cells.nth(1).and_then(|rows| rows.parse().ok());
        (statement, rows.unwrap_or(0.0))
    });
    cells.collect()
}

fn of_one(bench: &mut Bench, statement: &str) -> Vec<(String, f64)> {
    let literal = statement.replace('\'', "''");
    advice(bench, &format!("ADVISE INDEXES FOR '{literal}'"))
}

fn statements(advice: &[(String, f64)]) -> Vec<&str> {
    advice
        .iter()
        .map(|(statement, _)| statement.as_str())
        .collect()
}

/// The table of many a complaint: the range comes first in the index, and the prefix is longer than what is searched.
#[test]
fn a_prefix_is_as_long_as_the_search_and_the_selective_column_comes_first() {
    let mut bench = infamous();
    for (text, length) in [("abc:", 4), ("prefix", 5)] {
        let search = format!("t2send > 1234 AND msg_type LIKE '{text}%'");
        let advice = of_one(
            &mut bench,
            &format!("SELECT * FROM infamous_table WHERE {search}"),
        );
        let expected = format!(
            "CREATE INDEX `idx_msg_type_t2send` ON `test`.`infamous_table` (`msg_type`({length}), `t2send`)"
        );
        assert_eq!(statements(&advice), [expected.as_str()]);
        // What was promised is what the index gives.
        bench.ok(&advice[0].0);
        let plan = bench.rows(&format!(
            "EXPLAIN SELECT * FROM infamous_table FORCE INDEX (idx_msg_type_t2send) WHERE {search}"
        ));
        let rows: f64 = plan[0]
            .split('|')
            .nth(9)
            .unwrap_or_default()
            .parse()
            .unwrap();
        let ratio = advice[0].1 / rows;
        assert!((1.0 / 1.3..=1.3).contains(&ratio), "{} {rows}", advice[0].1);
        bench.ok("DROP INDEX idx_msg_type_t2send ON infamous_table");
    }
}

#[test]
fn nothing_is_made_and_nothing_is_proposed_that_is_there() {
    let mut bench = infamous();
    let before = bench.rows("SHOW CREATE TABLE infamous_table");
    let by_email = "SELECT id FROM infamous_table WHERE email = 'user7@example.com'";
    let advice = of_one(&mut bench, by_email);
    let index = "CREATE INDEX `idx_email` ON `test`.`infamous_table` (`email`)";
    assert_eq!(statements(&advice), [index]);
    assert_eq!(bench.rows("SHOW CREATE TABLE infamous_table"), before);
    bench.ok(index);
    assert_eq!(of_one(&mut bench, by_email), []);
    assert_eq!(
        of_one(&mut bench, "SELECT * FROM infamous_table WHERE id = 7"),
        []
    );
    assert_eq!(of_one(&mut bench, "SELECT 1"), []);
}

#[test]
fn orders_joins_and_changes_are_helped() {
    let mut bench = infamous();
    let order = "SELECT * FROM infamous_table ORDER BY member_id DESC, id DESC LIMIT 10";
    let by_member = "CREATE INDEX `idx_member_id` ON `test`.`infamous_table` (`member_id`)";
    assert_eq!(statements(&of_one(&mut bench, order)), [by_member]);
    bench.ok("CREATE TABLE member (id INT PRIMARY KEY, name VARCHAR(20))");
    bench.ok("INSERT INTO member VALUES (1, 'one'), (2, 'two'), (3, 'three')");
    // Perhaps with the column that is read behind.
    let join = "SELECT i.email FROM member m JOIN infamous_table i ON i.member_id = m.id WHERE m.name = 'two'";
    let advised = of_one(&mut bench, join);
    assert_eq!(advised.len(), 1, "{advised:?}");
    assert!(advised[0].0.contains("(`member_id`"), "{advised:?}");
    for change in [
        "UPDATE infamous_table SET flag = 1 WHERE member_id = 5",
        "DELETE FROM infamous_table WHERE member_id = 5",
    ] {
        assert_eq!(
            statements(&of_one(&mut bench, change)),
            [by_member],
            "{change}"
        );
    }
    assert_eq!(bench.rows("SELECT COUNT(*) FROM infamous_table"), ["20000"]);
    assert_eq!(
        of_one(&mut bench, "INSERT INTO member VALUES (4, 'four')"),
        []
    );
}

#[test]
fn branches_of_an_or_get_indexes_that_are_merged() {
    let mut bench = infamous();
    let either = "SELECT * FROM infamous_table WHERE member_id = 7 OR email = 'user9@example.com'";
    let advised = of_one(&mut bench, either);
    let mut made = statements(&advised);
    made.sort_unstable();
    let index = |column: &str| {
        format!("CREATE INDEX `idx_{column}` ON `test`.`infamous_table` (`{column}`)")
    };
    assert_eq!(made, [index("email"), index("member_id")]);
    // One of them is there.
    bench.ok(&index("email"));
    let advised = of_one(&mut bench, either);
    assert_eq!(statements(&advised), [index("member_id")]);
    bench.ok(&index("member_id"));
    assert_eq!(of_one(&mut bench, either), []);
}

#[test]
fn the_least_and_the_greatest_value_are_at_an_end() {
    let mut bench = infamous();
    let last = "SELECT MAX(t2send) FROM infamous_table WHERE member_id = 7";
    let index =
        "CREATE INDEX `idx_member_id_t2send` ON `test`.`infamous_table` (`member_id`, `t2send`)";
    assert_eq!(statements(&of_one(&mut bench, last)), [index]);
}

#[test]
fn the_beginning_of_a_byte_string_is_searched() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (id INT PRIMARY KEY, b VARBINARY(30), note VARCHAR(100))");
    for first in (0..20_000).step_by(2_000) {
        let rows = (first..first + 2_000)
            .map(|id| format!("({id}, 'key{}', REPEAT('x', 60))", id % 5_000));
        let rows = rows.collect::<Vec<_>>().join(", ");
        bench.ok(&format!("INSERT INTO t VALUES {rows}"));
    }
    bench.ok("ANALYZE TABLE t");
    let advised = of_one(&mut bench, "SELECT * FROM t WHERE b LIKE 'key77%'");
    assert_eq!(
        statements(&advised),
        ["CREATE INDEX `idx_b` ON `test`.`t` (`b`)"]
    );
}

/// What is predicted is measured, and nothing is left of it.
#[test]
fn an_index_is_verified_and_dropped() {
    let mut bench = infamous();
    let before = bench.rows("SHOW CREATE TABLE infamous_table");
    let search = "SELECT email FROM infamous_table WHERE member_id = 7";
    let advise = format!("ADVISE INDEXES FOR '{search}' VERIFY");
    let rows = bench.rows(&advise);
    assert_eq!(rows.len(), 1, "{rows:?}");
    let cells: Vec<&str> = rows[0].rsplit('|').collect();
    assert_eq!(cells[4], "1", "{rows:?}");
    for number in &cells[..4] {
        assert!(
            number.parse::<f64>().is_ok_and(|number| number > 0.0),
            "{rows:?}"
        );
    }
    assert_eq!(bench.rows("SHOW CREATE TABLE infamous_table"), before);
    // It runs no change.
    let change = "ADVISE INDEXES FOR 'DELETE FROM infamous_table WHERE member_id = 7' VERIFY";
    let rows = bench.rows(change);
    assert!(rows[0].ends_with("NULL|NULL|NULL|NULL|NULL"), "{rows:?}");
    assert_eq!(bench.rows("SELECT COUNT(*) FROM infamous_table"), ["20000"]);
    // It commits what is open.
    bench.ok("BEGIN; DELETE FROM infamous_table WHERE id = 1");
    bench.rows(&advise);
    bench.ok("ROLLBACK");
    assert_eq!(bench.rows("SELECT COUNT(*) FROM infamous_table"), ["19999"]);
}

#[test]
fn an_index_has_to_be_worth_its_upkeep() {
    let mut bench = infamous();
    let search = "SELECT email FROM infamous_table WHERE member_id = 7 AND sent = 1";
    bench.ok(search);
    // The rows were all written since the start.
    let made = |advice: Vec<(String, f64)>| {
        let made = advice.into_iter().map(|(statement, _)| statement);
        made.filter(|statement| statement.starts_with("CREATE"))
            .collect::<Vec<_>>()
    };
    let advised = advice(&mut bench, "ADVISE INDEXES FOR SCHEMA test");
    assert_eq!(made(advised), Vec::<String>::new());
    bench.ok("TRUNCATE TABLE performance_schema.events_statements_summary_by_digest");
    for _ in 0..20 {
        bench.ok(search);
    }
    let advised = made(advice(&mut bench, "ADVISE INDEXES"));
    assert_eq!(advised.len(), 1, "{advised:?}");
    assert!(advised[0].contains("(`member_id`"), "{advised:?}");
    // There is no room for it.
    let advised = made(advice(&mut bench, "ADVISE INDEXES LIMIT 1000"));
    assert_eq!(advised, Vec::<String>::new());
}

/// A given workload: what is there twice has run twice.
#[test]
fn several_statements_are_weighed_against_each_other() {
    let mut bench = infamous();
    let search = "SELECT COUNT(*) FROM infamous_table WHERE member_id = 7";
    let change = "UPDATE infamous_table SET member_id = member_id + 1";
    let advice = of_one(&mut bench, &format!("{search}; {search};{search}"));
    let by_member = "CREATE INDEX `idx_member_id` ON `test`.`infamous_table` (`member_id`)";
    assert_eq!(statements(&advice), [by_member]);
    let advice = of_one(&mut bench, &format!("{search}; {change}"));
    assert_eq!(
        statements(&advice),
        Vec::<&str>::new(),
        "20,000 entries move"
    );
}

#[test]
fn indexes_that_are_not_needed_are_proposed_to_be_dropped() {
    let mut bench = Bench::new();
    bench.ok(
        "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c INT, KEY a (a), KEY ab (a, b), KEY b (b), \
         KEY b_id (b, id), KEY c (c), UNIQUE KEY u (c, b))",
    );
    bench.ok("INSERT INTO t VALUES (1, 1, 1, 1)");
    bench.ok("SELECT id FROM t FORCE INDEX (ab) WHERE a = 1");
    bench.ok("SELECT a FROM t FORCE INDEX (b) WHERE b = 1");
    let advised = advice(&mut bench, "ADVISE INDEXES FOR SCHEMA test");
    let expected = ["a", "b_id", "c"].map(|index| format!("DROP INDEX `{index}` ON `test`.`t`"));
    assert_eq!(statements(&advised), expected);
}

/// What is proposed to be dropped in the database `test`, by name, with the reasons.
fn drops(bench: &mut Bench) -> Vec<(String, String)> {
    let rows = bench.rows("ADVISE INDEXES FOR SCHEMA test");
    let dropped = rows.iter().map(|row| {
        let cells: Vec<&str> = row.split('|').collect();
        assert_eq!(cells[0], "DROP", "{row}");
        (cells[3].to_string(), cells[5].to_string())
    });
    dropped.collect()
}

#[test]
fn an_index_that_serves_for_another_takes_over_its_uses() {
    let (serves, unused) = (
        |index: &str| format!("{index} serves the same statements"),
        || "no statement has read through it since the start".to_string(),
    );
    let cases = [
        (
            "KEY kxid (a, id), KEY kx (a)",
            "kxid",
            vec![("kxid", serves("kx"))],
        ),
        (
            "KEY k_a (a), KEY k_ab (a, b)",
            "k_a",
            vec![("k_a", serves("k_ab"))],
        ),
        // One that serves for both.
        (
            "KEY k_a (a), KEY k_ab (a, b), KEY k_abc (a, b, c)",
            "k_a",
            vec![("k_a", serves("k_abc")), ("k_ab", serves("k_abc"))],
        ),
        // (a, b) serves for (a), but not for (a, id).
        (
            "KEY kxid (a, id), KEY kx (a), KEY k_ab (a, b)",
            "kxid",
            vec![("kxid", serves("kx")), ("k_ab", unused())],
        ),
        (
            "KEY k_a (a), KEY k_ab (a, b)",
            "PRIMARY",
            vec![("k_a", unused()), ("k_ab", unused())],
        ),
    ];
    for (keys, read, expected) in cases {
        let mut bench = Bench::new();
        bench.ok(&format!(
            "CREATE TABLE t (id INT PRIMARY KEY, a INT, b INT, c INT, {keys})"
        ));
        bench.ok("INSERT INTO t VALUES (1, 1, 1, 1)");
        bench.ok(&format!(
            "SELECT id FROM t FORCE INDEX ({read}) WHERE a = 1"
        ));
        let dropped = drops(&mut bench);
        let dropped: Vec<(&str, String)> = dropped
            .iter()
            .map(|(index, reason)| (index.as_str(), reason.clone()))
            .collect();
        assert_eq!(dropped, expected, "{keys}");
    }
}

#[test]
fn an_index_that_a_foreign_key_needs_stays() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE par (id INT PRIMARY KEY, x INT, y INT, KEY kxid (x, id), KEY kx (x))");
    bench.ok(
        "CREATE TABLE child (id INT PRIMARY KEY, p INT, p2 INT, KEY of_par (p, p2), \
         FOREIGN KEY (p, p2) REFERENCES par (x, id))",
    );
    bench.ok("INSERT INTO par VALUES (1, 1, 1)");
    bench.ok("SELECT id FROM par FORCE INDEX (kx) WHERE x = 1");
    assert_eq!(drops(&mut bench), []);
    // Another one that begins with the columns of the key.
    bench.ok("CREATE INDEX kxidy ON par (x, id, y)");
    let dropped = drops(&mut bench);
    let names: Vec<&str> = dropped.iter().map(|(index, _)| index.as_str()).collect();
    assert_eq!(names, ["kxid", "kx"], "{dropped:?}");
    for index in names {
        bench.ok(&format!("DROP INDEX {index} ON par"));
    }
    assert_eq!(drops(&mut bench), []);
}

#[test]
fn no_two_proposals_have_one_name() {
    let mut bench = Bench::new();
    let (one, two) = ("c".repeat(55) + "_one", "c".repeat(55) + "_two");
    bench.ok(&format!(
        "CREATE TABLE t (id INT PRIMARY KEY, {one} INT, {two} INT, note VARCHAR(100))"
    ));
    for first in (0..20_000).step_by(2_000) {
        let rows = (first..first + 2_000)
            .map(|id| format!("({id}, {}, {}, REPEAT('x', 60))", id % 500, id % 501));
        let rows = rows.collect::<Vec<_>>().join(", ");
        bench.ok(&format!("INSERT INTO t VALUES {rows}"));
    }
    bench.ok("ANALYZE TABLE t");
    let search = |column: &str| format!("SELECT * FROM t WHERE {column} = 7");
    let advice = of_one(&mut bench, &format!("{}; {}", search(&one), search(&two)));
    assert_eq!(advice.len(), 2, "{advice:?}");
    for (statement, _) in &advice {
        bench.ok(statement);
    }
}

#[test]
fn rows_that_are_changed_are_fetched() {
    let mut bench = infamous();
    for (statement, fetches_none) in [
        (
            "SELECT COUNT(*) FROM infamous_table WHERE member_id = 5",
            true,
        ),
        ("DELETE FROM infamous_table WHERE member_id = 5", false),
        (
            "UPDATE infamous_table SET flag = 1 WHERE member_id = 5",
            false,
        ),
    ] {
        let rows = bench.rows(&format!("ADVISE INDEXES FOR '{statement}'"));
        let reason = rows[0].split('|').nth(5).unwrap_or_default();
        assert!(reason.contains("entries are read"), "{reason}");
        assert_eq!(
            reason.contains("no rows are fetched"),
            fetches_none,
            "{statement}"
        );
    }
}

#[test]
fn what_cannot_be_advised_is_refused() {
    let mut bench = Bench::new();
    assert_eq!(bench.error("ADVISE INDEXES FOR 'SET @a = 1'"), 1235);
    assert_eq!(
        bench.error("ADVISE INDEXES FOR 'SELECT * FROM nothing'"),
        1146
    );
    assert_eq!(bench.error("ADVISE INDEXES FOR 'SELEC 1'"), 1064);
    assert_eq!(bench.error("ADVISE INDEXES FOR ''"), 1065);
    assert_eq!(bench.error("ADVISE INDEXES FOR ' ; '"), 1065);
    // Of several, what cannot be planned is left out.
    let advised = bench.ok("ADVISE INDEXES FOR 'SELECT 1; SET @a = 1'");
    assert_eq!(advised.warnings, 1);
    assert_eq!(bench.error("ADVISE INDEXES FOR SCHEMA nowhere"), 1049);
    // There is nothing to verify.
    let advised = bench.ok("ADVISE INDEXES FOR 'SELECT 1' VERIFY");
    assert_eq!(advised.warnings, 1);
    assert_eq!(bench.error("ADVISE INDEXES LIMIT all"), 1064);
}

/// What an account may not run is not planned for it, and the digests are shown to accounts that may read them.
#[test]
fn accounts_are_told_only_of_what_they_may_run() {
    let mut bench = infamous();
    bench.ok("CREATE USER reader; GRANT SELECT (id, email) ON test.infamous_table TO reader");
    bench.ok("CREATE USER other");
    let session = |bench: &Bench, user: &str| {
        let info = SessionInfo {
            user: user.to_string(),
            account: Some(AccountName::new(user, "%")),
            ..SessionInfo::default()
        };
        bench.engine.session(info).expect("a session")
    };
    let advise = "ADVISE INDEXES FOR 'SELECT id FROM test.infamous_table WHERE email = ''a'''";
    let mut reader = session(&bench, "reader");
    assert_eq!(run(&mut reader, advise).expect("advice").rows.len(), 1);
    let of_flags = "ADVISE INDEXES FOR 'SELECT id FROM test.infamous_table WHERE flag = 1'";
    let denied = |session: &mut Session, sql: &str| run(session, sql).err().map(|error| error.code);
    assert_eq!(denied(&mut reader, of_flags), Some(1143));
    assert_eq!(denied(&mut reader, "ADVISE INDEXES"), Some(1142));
    let change = "ADVISE INDEXES FOR 'DELETE FROM test.infamous_table WHERE email = ''a'''";
    assert_eq!(denied(&mut reader, change), Some(1142));
    let mut other = session(&bench, "other");
    assert_eq!(denied(&mut other, advise), Some(1142));
}
