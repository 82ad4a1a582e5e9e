//! Constants that columns are compared with: what becomes of texts that are no number or no date, and what finds rows.

use super::Bench;

fn filled() -> Bench {
    let mut bench = Bench::new();
    bench.ok(
        "CREATE TABLE t (id BIGINT PRIMARY KEY, c DECIMAL(30,10), d DATE, dt DATETIME, tm TIME, KEY (c), KEY (d))",
    );
    bench.ok(
        "INSERT INTO t VALUES (97716021308405774, 1, '2020-01-01', '2020-01-01 10:00:00', '10:00:00'), \
         (97716021308405775, 97716021308405775.5, '2020-01-02', '2020-01-02 10:00:00', '00:00:00'), \
         (3, 3, '2020-01-03', '2020-01-03 10:00:00', '-01:00:00')",
    );
    bench
}

fn warnings(bench: &mut Bench) -> Vec<String> {
    bench.rows("SHOW WARNINGS")
}

#[test]
fn texts_find_rows_of_numbers_by_an_index() {
    let mut bench = filled();
    for switch in ["direct=on", "direct=off"] {
        bench.ok(&format!("SET optimizer_switch = '{switch}'"));
        for (condition, access) in [
            ("id = '97716021308405775'", "const|PRIMARY"),
            ("id IN ('97716021308405775', '1e0')", "range|PRIMARY"),
            ("id > '97716021308405774.5'", "range|PRIMARY"),
            ("c = '97716021308405775.50'", "ref|c"),
            ("c BETWEEN '97716021308405775.25' AND '1e25'", "range|c"),
        ] {
            let ids = bench.rows(&format!("SELECT id FROM t WHERE {condition}"));
            assert_eq!(ids, ["97716021308405775"], "{condition} {switch}");
            let plan = bench.rows(&format!("EXPLAIN SELECT * FROM t WHERE {condition}"));
            let columns: Vec<&str> = plan[0].split('|').collect();
            let (kind, possible) = access.split_once('|').expect("two columns");
            assert_eq!(columns[5], possible, "{condition} {switch}");
            // Of so few rows, the optimizer may well read all.
            if switch == "direct=on" {
                assert_eq!(columns[4], kind, "{condition}");
            }
        }
    }
}

#[test]
fn no_row_is_changed_by_what_is_no_number() {
    let mut bench = filled();
    for sql in [
        "DELETE FROM t WHERE id = '3bad'",
        "DELETE FROM t WHERE c > 'bad' LIMIT 1",
        "UPDATE t SET c = 0 WHERE id IN ('1', '3bad')",
        "UPDATE t SET c = 0 WHERE id BETWEEN '3bad' AND '4'",
        "INSERT INTO t (id) SELECT id + 1 FROM t WHERE id = '3bad'",
    ] {
        assert_eq!(bench.error(sql), 1292, "{sql}");
    }
    bench.ok("SET @id = '3bad'; PREPARE s FROM 'DELETE FROM t WHERE id = ?'");
    assert_eq!(bench.error("EXECUTE s USING @id"), 1292);
    assert_eq!(bench.rows("SELECT COUNT(*) FROM t"), ["3"]);
    assert_eq!(
        bench.rows("SELECT c FROM t WHERE id = '3bad' OR id = '3bad'"),
        ["3.0000000000"]
    );
    assert_eq!(
        warnings(&mut bench),
        ["Warning|1292|Truncated incorrect DOUBLE value: '3bad'"]
    );
    bench.rows("SELECT COUNT(*) FROM t WHERE c = ' 3.0bad'");
    assert_eq!(
        warnings(&mut bench),
        ["Warning|1292|Truncated incorrect DECIMAL value: ' 3.0bad'"]
    );
    assert_eq!(
        bench.ok("DELETE IGNORE FROM t WHERE id = '3bad'").warnings,
        1
    );
    bench.ok("SET sql_mode = ''");
    bench.ok("DELETE FROM t WHERE id = '97716021308405774bad'");
    assert_eq!(bench.rows("SELECT id FROM t"), ["97716021308405775"]);
}

#[test]
fn comparisons_with_no_date_are_errors_and_lists_warn() {
    let mut bench = filled();
    for sql in [
        "SELECT * FROM t WHERE d = 'garbage'",
        "SELECT * FROM t WHERE 'garbage' <= dt",
        "SELECT d <=> '' FROM t",
        "SELECT NULLIF(d, '2020-02-30') FROM t",
    ] {
        assert_eq!(bench.error(sql), 1525, "{sql}");
    }
    let noted = ["Warning|1292|Incorrect date value: 'garbage' for column 'd' at row 1"];
    for (sql, rows) in [
        ("SELECT id FROM t WHERE d IN ('garbage', '2020-01-03')", "3"),
        (
            "SELECT id FROM t WHERE d BETWEEN 'garbage' AND '2020-01-01'",
            "97716021308405774",
        ),
        (
            "SELECT CASE d WHEN 'garbage' THEN 1 ELSE 2 END FROM t WHERE id = 3",
            "2",
        ),
    ] {
        assert_eq!(bench.rows(sql), [rows], "{sql}");
        assert_eq!(warnings(&mut bench), noted, "{sql}");
    }
    assert_eq!(
        bench.rows("SELECT id FROM t WHERE d > '2020-01-02x'"),
        ["3"]
    );
    assert_eq!(
        bench.rows("SELECT id FROM t WHERE tm = '10:00:00x'"),
        ["97716021308405774"]
    );
    assert_eq!(
        bench.ok("SELECT id FROM t WHERE tm = 'garbage'").warnings,
        1
    );
    // It is 00:00:00, as in MariaDB.
    assert_eq!(
        bench.rows("SELECT COUNT(*) FROM t WHERE tm <> 'garbage'"),
        ["2"]
    );
    for sql in [
        "UPDATE t SET c = 0 WHERE d = 'garbage'",
        "DELETE FROM t WHERE d IN ('garbage', '2020-01-03')",
        "UPDATE t SET c = 0 WHERE tm = 'garbage'",
    ] {
        assert_eq!(bench.error(sql), 1292, "{sql}");
    }
    assert_eq!(bench.rows("SELECT COUNT(*) FROM t WHERE c <> 0"), ["3"]);
}

#[test]
fn no_row_is_changed_by_a_text_of_a_row_that_is_no_number() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (id INT PRIMARY KEY, kind INT, v VARCHAR(20), n INT)");
    bench.ok("INSERT INTO t VALUES (1, 1, '1', 0), (2, 1, '2.0', 0), (3, 2, 'abc', 0)");
    for sql in [
        "UPDATE t SET n = 1 WHERE v = 2",
        "DELETE FROM t WHERE v > 1.5 LIMIT 5",
        "INSERT INTO t SELECT id + 10, 0, v, 0 FROM t WHERE 2 = v",
    ] {
        assert_eq!(bench.error(sql), 1292, "{sql}");
    }
    // Rows that another condition excludes are not looked at.
    bench.ok("UPDATE t SET n = 1 WHERE kind = 1 AND v = 2");
    bench.ok("UPDATE t SET n = n + 2 WHERE v = 1 AND id = 1");
    bench.ok("UPDATE t a JOIN t b ON a.id = b.v SET a.n = a.n + 4 WHERE b.kind = 1");
    bench.ok("DELETE FROM t WHERE IF(kind = 1, v = 7, 0)");
    assert_eq!(
        bench.rows("SELECT id, n FROM t ORDER BY id"),
        ["1|6", "2|5", "3|0"]
    );
    assert_eq!(bench.rows("SELECT id FROM t WHERE v = 2"), ["2"]);
    bench.ok("SET sql_mode = ''");
    bench.ok("DELETE FROM t WHERE v = 0");
    assert_eq!(bench.rows("SELECT id FROM t ORDER BY id"), ["1", "2"]);
}

/// With an index MySQL and MariaDB find these rows too. Without one they compare some of them as doubles, or an
/// unsigned number as a signed one.
#[test]
fn large_numbers_are_told_apart_with_an_index_and_without() {
    let mut bench = Bench::new();
    for (table, keys) in [("plain", ""), ("keyed", ", KEY (e), KEY (u)")] {
        bench.ok(&format!(
            "CREATE TABLE {table} (id INT PRIMARY KEY, e DECIMAL(25,4), u BIGINT UNSIGNED{keys})"
        ));
        bench.ok(&format!(
            "INSERT INTO {table} VALUES (1, 97716021308405775.0001, 18446744073709551615), \
             (2, 97716021308405775.0002, 18446744073709551614), (3, 0, 0), (4, 1, 1)"
        ));
    }
    for (condition, expected) in [
        ("e IN ('97716021308405775.0001', '3')", "1"),
        ("e IN ('97716021308405775.0001', NULL)", "1"),
        ("e NOT IN ('97716021308405775.0001', '3')", "2,3,4"),
        ("e BETWEEN '2' AND '97716021308405775.0001'", "1"),
        ("e NOT BETWEEN NULL AND 97716021308405775.0001", "2"),
        ("CASE e WHEN '97716021308405775.0002' THEN 1 END", "2"),
        ("u NOT BETWEEN '18446744073709551614' AND NULL", "3,4"),
        (
            "(u BETWEEN NULL AND '18446744073709551615') IS NULL",
            "1,2,3,4",
        ),
        ("u <= ALL (SELECT u FROM keyed)", "3"),
        ("u < ALL (SELECT DISTINCT u FROM plain)", ""),
        ("u >= ALL (SELECT u FROM keyed)", "1"),
        ("u > ALL (SELECT u FROM plain)", ""),
    ] {
        for table in ["plain", "keyed"] {
            let sql = format!("SELECT id FROM {table} WHERE {condition} ORDER BY id");
            assert_eq!(bench.rows(&sql).join(","), expected, "{sql}");
        }
    }
}

/// As MySQL has it. MariaDB compares some of them as numbers.
#[test]
fn bytes_are_compared_with_dates_and_times_as_texts() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (id INT PRIMARY KEY, i TIME, d DATETIME, KEY (i))");
    bench.ok(
        "INSERT INTO t VALUES (1, NULL, NULL), (2, '00:00:00', '2020-01-01'), (3, '10:00:00', NULL)",
    );
    for (condition, expected) in [
        ("i <=> X'0A'", ""),
        ("i <=> b'1010'", ""),
        ("i = X'31303A30303A3030'", "3"),
        ("i = _binary '10:00:00'", "3"),
        ("i < X'41'", "2,3"),
        ("i > X'41'", ""),
        ("i = 0x0186A0", ""),
        ("d = X'323032302d30312d3031'", "2"),
    ] {
        let sql = format!("SELECT id FROM t WHERE {condition} ORDER BY id");
        assert_eq!(bench.rows(&sql).join(","), expected, "{sql}");
    }
    assert_eq!(bench.error("SELECT id FROM t WHERE d <=> X'0A'"), 1525);
}

/// What a subquery compares with twice: a constant, and a column of the row around it.
#[test]
fn a_constant_and_an_equal_value_of_the_row_do_not_contradict() {
    let mut bench = Bench::new();
    bench.ok("CREATE TABLE t (k INT PRIMARY KEY, b INT NOT NULL, e DECIMAL(8,2))");
    bench.ok("INSERT INTO t VALUES (1, 1, 1), (2, 1, 2), (3, 2, 1), (4, 0, NULL)");
    for (condition, expected) in [
        (
            "(x.b, x.k) IN (SELECT y.b, x.k FROM t y WHERE y.b = 1)",
            "1,2",
        ),
        (
            "(x.b, x.k) NOT IN (SELECT y.b, x.k FROM t y WHERE y.b = 1)",
            "3,4",
        ),
        (
            "(x.e, x.k) IN (SELECT y.e, x.k FROM t y WHERE y.e = 1)",
            "1,3",
        ),
        (
            "(x.b, x.k) IN (SELECT y.b, x.k FROM t y WHERE y.b >= 1 AND y.b > x.b - 1)",
            "1,2,3",
        ),
        (
            "(SELECT COUNT(*) FROM t y WHERE y.b >= 1 AND x.b < y.b AND x.k + 0 = x.k) > 0",
            "1,2,4",
        ),
    ] {
        let sql = format!("SELECT k FROM t x WHERE {condition} ORDER BY k");
        assert_eq!(bench.rows(&sql).join(","), expected, "{sql}");
    }
}
