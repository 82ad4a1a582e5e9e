//! INSERT: counts, defaults, and that a statement happens wholly or not at all.

use super::Bench;

#[test]
fn values_defaults_and_auto_increment() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY, a INT DEFAULT 7, b VARCHAR(5) NOT NULL DEFAULT 'd')");
    let ok = bench
        .ok("INSERT INTO t (a) VALUES (1), (DEFAULT), (NULL)")
        .ok;
    assert_eq!((ok.affected_rows, ok.last_insert_id), (3, 1));
    assert_eq!(ok.info, "Records: 3  Duplicates: 0  Warnings: 0");
    let ok = bench.ok("INSERT INTO t () VALUES ()").ok;
    assert_eq!(
        (ok.affected_rows, ok.last_insert_id, ok.info.as_str()),
        (1, 4, "")
    );
    bench.ok("INSERT INTO t VALUES (10, -5, 'x')");
    assert_eq!(
        bench
            .ok("INSERT INTO t SET b = 'set', a = 2*3")
            .ok
            .last_insert_id,
        11
    );
    assert_eq!(
        bench.table_rows("t"),
        ["1|1|d", "2|7|d", "3|NULL|d", "4|7|d", "10|-5|x", "11|6|set"]
    );
}

#[test]
fn a_failing_row_takes_the_statement_back() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(3) NOT NULL, UNIQUE KEY u (b))");
    bench.ok("INSERT INTO t VALUES (1,'one')");
    for (sql, code) in [
        ("INSERT INTO t VALUES (2,'two'),(1,'x')", 1062),
        ("INSERT INTO t VALUES (2,'two'),(3,'one')", 1062),
        ("INSERT INTO t VALUES (2,'two'),(3,'long')", 1406),
        ("INSERT INTO t VALUES (2,'two'),(3,NULL)", 1048),
        ("INSERT INTO t VALUES (2,'two'),('x','y')", 1366),
        ("INSERT INTO t VALUES (2,'two'),(99999999999,'y')", 1264),
        ("INSERT INTO t VALUES (2,'two'),(3)", 1136),
        ("INSERT INTO t VALUES (2,'two'),(1/(3-3),'y')", 1365),
        ("INSERT INTO t (a) VALUES (2)", 1364),
        ("INSERT INTO t (a, c) VALUES (2, 3)", 1054),
        ("INSERT INTO t (a, A) VALUES (2, 3)", 1110),
        ("INSERT INTO missing VALUES (2)", 1146),
    ] {
        assert_eq!(bench.error(sql), code, "{sql}");
        assert_eq!(bench.table_rows("t"), ["1|one"], "{sql}");
    }
    bench.ok("INSERT INTO t VALUES (2,'two')");
}

#[test]
fn ignore_and_lenient_modes_warn() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a TINYINT PRIMARY KEY, b VARCHAR(3))");
    let ok = bench.ok("INSERT IGNORE INTO t VALUES (1,'x'),(1,'y'),(300,'long')");
    assert_eq!(ok.ok.info, "Records: 3  Duplicates: 1  Warnings: 3");
    assert_eq!(bench.table_rows("t"), ["1|x", "127|lon"]);
    let codes: Vec<String> = bench
        .rows("SHOW WARNINGS")
        .iter()
        .map(|row| row.split('|').nth(1).unwrap_or_default().to_string())
        .collect();
    assert_eq!(codes, ["1062", "1264", "1265"]);
    bench.ok("SET sql_mode = ''");
    assert_eq!(bench.ok("INSERT INTO t VALUES ('2x','y')").warnings, 1);
}

/// Their trees are made in portions, and errors are those of one tree.
#[test]
fn many_rows_of_calls_are_inserted_wholly_or_not_at_all() {
    const COUNT: usize = 3_000;
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (a INT PRIMARY KEY, b VARCHAR(9) NOT NULL, c INT)");
    let statement = |verb: &str, last: &str, tail: &str| {
        let row = |n: usize| format!("({n}, CONCAT('b', {n}), a + {n})");
        let rows: Vec<String> = (0..COUNT).map(row).collect();
        format!("{verb} INTO t VALUES {}{last}{tail}", rows.join(", "))
    };
    for (last, code) in [
        (", (1, CONCAT('x', 1), 1)", 1062),
        (", (-1, CONCAT('x', NULL), 1)", 1048),
        (", (-1, CONCAT('much too', 'long'), 1)", 1406),
        (", (-1, CONCAT('x', 1))", 1136),
        (", (-1, NO_SUCH('x'), 1)", 1305),
        (", (-1, CONCAT('x', d), 1)", 1054),
        (", (-1, 'x', (SELECT 1 FROM missing))", 1146),
        (", (-1, 'x', )", 1064),
        (",", 1064),
    ] {
        assert_eq!(bench.error(&statement("INSERT", last, "")), code, "{last}");
        assert_eq!(bench.rows("SELECT COUNT(*) FROM t"), ["0"], "{last}");
    }
    let tail = " ON DUPLICATE KEY UPDATE c = VALUES(c) + 1";
    for (verb, last, tail, expected) in [
        ("INSERT", ", (-1, 'x', (SELECT 7))", "", "3001|8997007|x"),
        ("INSERT", "", tail, "3001|9000007|x"),
        (
            "REPLACE",
            ", (-2, UPPER('y'), DEFAULT)",
            "",
            "3002|8997007|Y",
        ),
        ("INSERT IGNORE", "", "", "3002|8997007|Y"),
    ] {
        bench.ok(&statement(verb, last, tail));
        let sql = "SELECT COUNT(*), SUM(c), MAX(b) FROM t";
        assert_eq!(bench.rows(sql), [expected], "{verb} {last}{tail}");
    }
}
