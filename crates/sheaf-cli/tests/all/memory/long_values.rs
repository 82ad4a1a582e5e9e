//! Statements that make much of little: functions whose results are many times as long as their arguments, and long
//! lists of calls.

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::command_line::{connect, terminate};
use crate::harness::{error_of, wait_until};
use crate::memory::{answer_of, empty, resident_mib, within_memory};

/// Texts of 34 KB of short ones that are grouped, sorted, joined, put together and told apart: each statement makes
/// several times as much as there is memory.
pub(super) const LENGTHENING: [&str; 14] = [
    "SELECT COUNT(*) FROM (SELECT REPEAT(s, 1000) AS r, COUNT(*) FROM d.short GROUP BY r) t",
    "SELECT COUNT(*) FROM (SELECT REPEAT(s, 500) AS r, REPEAT(s, 400) AS q, COUNT(*) FROM d.short GROUP BY r, q) t",
    "SELECT s, MAX(RPAD(s, 20000, s)) FROM d.short GROUP BY s",
    "SELECT COUNT(DISTINCT REPEAT(s, 1000), REPEAT(s, 900)) FROM d.short",
    "SELECT REPEAT(s, 1000) AS r FROM d.short ORDER BY r LIMIT 10",
    "SELECT id, COUNT(*) OVER (PARTITION BY REPEAT(s, 1000)) FROM d.short",
    "SELECT FIRST_VALUE(REPEAT(s, 1000)) OVER (PARTITION BY k ORDER BY id) FROM d.short",
    "SELECT COUNT(*) FROM d.short x JOIN d.short y ON REPEAT(x.s, 1000) = REPEAT(y.s, 1000)",
    "SELECT COUNT(*) FROM d.short WHERE REPEAT(s, 1000) IN (SELECT REPEAT(s, 1000) FROM d.short WHERE k > 5)",
    "SELECT COUNT(*) FROM d.short WHERE REPEAT(s, 1000) NOT IN (SELECT REPEAT(s, 999) FROM d.short)",
    "SELECT REPEAT(s, 1000) FROM d.short UNION SELECT REPEAT(s, 999) FROM d.short",
    "SELECT k, LENGTH(JSON_ARRAYAGG(REPEAT(s, 1000))) FROM d.short GROUP BY k",
    "WITH c AS (SELECT id, REPEAT(s, 1000) AS r FROM d.short) \
     SELECT COUNT(*) FROM c x JOIN c y ON x.id = y.id WHERE x.r = y.r",
    "SELECT LENGTH(REPEAT(s, 1000)), HEX(LPAD(s, 20000, 'x')) FROM d.short",
];

/// Statements that make many values of a little less than a megabyte: none of them is long, all of them together are
/// more than there is memory.
pub(super) fn many_middling() -> Vec<String> {
    let list = |count: usize, value: &dyn Fn(usize) -> String| {
        let values: Vec<String> = (0..count).map(value).collect();
        values.join(", ")
    };
    let texts = |count| list(count, &|n| format!("REPEAT('abcdef', {})", 100_000 - n));
    vec![
        format!("SELECT {}", texts(200)),
        format!("SELECT LENGTH(CONCAT({}))", texts(100)),
        format!("SELECT LENGTH(JSON_ARRAY({}))", texts(100)),
        format!("SELECT GREATEST({}) IS NULL", texts(150)),
        format!("VALUES ROW({})", texts(100)),
        format!(
            "SELECT {}",
            list(100, &|n| format!(
                "(SELECT REPEAT('abcdef', {}))",
                100_000 - n
            ))
        ),
        format!(
            "SELECT COUNT(*) FROM (SELECT {}) x",
            list(100, &|n| format!("REPEAT('abcdef', 100000) AS c{n}"))
        ),
        "SET @v = REPEAT('x', 900000)".to_string(),
        format!("SELECT {}", list(200, &|_| "@v".to_string())),
        format!("SELECT {}", list(300, &|_| "LENGTH(@v)".to_string())),
        format!("SELECT {}", list(200, &|n| format!("CONCAT(@v, {n})"))),
        format!(
            "SELECT {}",
            list(150, &|n| format!("@v{n} := REPEAT('x', 900000)"))
        ),
        "SET @v = NULL".to_string(),
    ]
}

/// Fills a table with strings of 34 bytes.
pub(super) fn fill_short(connection: &mut Conn) {
    for sql in [
        "CREATE TABLE d.short (id INT PRIMARY KEY, k INT, s VARCHAR(40) NOT NULL)",
        "SET cte_max_recursion_depth = 10000",
        "INSERT INTO d.short WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 4000) \
         SELECT n, n * 7919 % 100, CONCAT(MD5(n), 'xx') FROM r",
    ] {
        connection.query_drop(sql).expect(sql);
    }
}

/// Each has its rows or is refused. The kernel of a small machine would have ended the server at the first of them.
#[test]
fn texts_that_functions_make_long_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    fill_short(&mut connection);
    within_memory(child.id(), || {
        for sql in LENGTHENING {
            if let Err(error) = connection.query_drop(sql) {
                assert_eq!(error_of::<()>(Err(error)).0, 1041, "{sql}");
            }
            assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
        }
    });
    wait_until("the memory is given back", || resident_mib(child.id()) < 64);
    terminate(&child);
}

#[test]
fn many_values_of_nearly_a_megabyte_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    within_memory(child.id(), || {
        for sql in many_middling() {
            if let Err(error) = connection.query_drop(&sql) {
                let error = error_of::<()>(Err(error));
                assert_eq!(error.0, 1041, "{}", &sql[..sql.len().min(100)]);
            }
            assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
        }
    });
    wait_until("the memory is given back", || resident_mib(child.id()) < 64);
    terminate(&child);
}

/// Values that are copied: to the other columns of a row, to a longer text, and with the calls that they stand in.
#[test]
fn copies_of_long_values_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    let list = |count: usize, item: &dyn Fn(usize) -> String| {
        let items: Vec<String> = (0..count).map(item).collect();
        items.join(", ")
    };
    let replaced = (0..6).fold("REPEAT('x', 100)".to_string(), |inner, _| {
        format!("REPLACE({inner}, 'x', 'xxxxxxxxxx')")
    });
    let statements = [
        format!(
            "CREATE TABLE d.wide (id INT PRIMARY KEY, {})",
            list(100, &|n| format!("c{n} LONGTEXT"))
        ),
        "INSERT INTO d.wide (id, c0) VALUES (1, REPEAT('abcdef', 100000))".to_string(),
        format!(
            "UPDATE d.wide SET {} WHERE id = 1",
            list(99, &|n| format!("c{} = c0", n + 1))
        ),
        "DROP TABLE d.wide".to_string(),
        format!("SELECT LENGTH({replaced})"),
        format!(
            "SELECT LENGTH(CHAR({} USING utf8mb4))",
            list(60_000, &|n| (256 + n).to_string())
        ),
        format!(
            "SELECT LENGTH(CONCAT({}))",
            list(4000, &|n| format!(
                "FORMAT({n}.5, 30), HEX({n}), BIN({n}), LPAD({n}, 1000, '0')"
            ))
        ),
    ];
    within_memory(child.id(), || {
        for sql in &statements {
            if let Err(error) = connection.query_drop(sql) {
                let error = error_of::<()>(Err(error));
                assert_eq!(error.0, 1041, "{}", &sql[..sql.len().min(100)]);
            }
            assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
        }
    });
    terminate(&child);
}

/// Few rows of VALUES are computed at a time where their values may be long: as many as a list of short ones has at
/// once would be more than all memory.
#[test]
fn long_values_are_computed_for_few_rows_at_a_time() {
    let (_directory, child, _, mut connection) = empty();
    for sql in [
        "CREATE TABLE d.v (n INT PRIMARY KEY, v LONGTEXT NOT NULL)",
        "SET @v = REPEAT('x', 900000)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let write = |verb: &str, (count, value): (usize, &str), last: &str| {
        let rows = (0..count).map(|n| format!("({n}, {value})"));
        let rows: Vec<String> = rows.chain([last.to_string()]).collect();
        format!("{verb} INTO d.v VALUES {}", rows.join(","))
    };
    let sum = "SELECT COUNT(*), SUM(LENGTH(v)) FROM d.v";
    within_memory(child.id(), || {
        let repeated = (200, "REPEAT('abcdef', 100000)");
        let null = write("INSERT", repeated, "(200, CONCAT('a', NULL))");
        assert_eq!(error_of(connection.query_drop(null)).0, 1048);
        assert_eq!(answer_of(&mut connection, sum), ["0\tNULL"]);
        for (verb, values, expected) in [
            ("INSERT", repeated, "201\t120000001"),
            ("REPLACE", (100, "CONCAT(@v, '')"), "201\t150000001"),
        ] {
            let sql = write(verb, values, "(200, 'a')");
            connection.query_drop(&sql).expect(verb);
            assert_eq!(answer_of(&mut connection, sum), [expected]);
        }
    });
    terminate(&child);
}

/// No name in a plan has the bytes of a literal in it: each rule would make it again, four characters a byte.
#[test]
fn long_literals_are_planned_without_texts_of_them() {
    let (_directory, child, port, mut connection) = empty();
    connection
        .query_drop("SET GLOBAL max_allowed_packet = 67108864")
        .expect("a variable");
    let mut connection = connect(port);
    for sql in [
        "CREATE TABLE d.l (id INT PRIMARY KEY, a LONGTEXT, n INT)",
        "INSERT INTO d.l VALUES (1, 'x1', 1), (2, 'x2', 2), (3, NULL, 1)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let long = "ab".repeat(1_000_000);
    within_memory(child.id(), || {
        for (sql, expected) in [
            (format!("SELECT SUM('{long}' = '{long}') FROM d.l"), "3"),
            (format!("SELECT SUM(a IN ('{long}', 'x1')) FROM d.l"), "1"),
            (format!("SELECT SUM(a < '{long}') FROM d.l"), "0"),
            (format!("SELECT LENGTH(MAX('{long}')) FROM d.l"), "2000000"),
            (
                format!("SELECT SUM(IF(n = 1, '{long}', a) = '{long}') FROM d.l"),
                "2",
            ),
            (
                format!("SELECT id FROM d.l WHERE a = '{long}' OR a = 'x2' ORDER BY id LIMIT 1"),
                "2",
            ),
        ] {
            let answer = answer_of(&mut connection, &sql);
            assert_eq!(answer, [expected], "{}", &sql[..30]);
        }
        // Keys that a long literal makes long are computed for few rows at a time.
        fill_short(&mut connection);
        // So are operands of functions that make numbers of them.
        let sql = format!(
            "SELECT SUM(LENGTH(CONCAT(s, '{long}', '{long}'))) FROM d.short WHERE id <= 300"
        );
        assert_eq!(answer_of(&mut connection, &sql), ["1200010200"]);
        // A literal of an eighth of all memory is not copied for each call around it.
        let eighth = "z".repeat(8_000_000);
        let sql = format!("SELECT LENGTH('{eighth}')");
        assert_eq!(answer_of(&mut connection, &sql), ["8000000"]);
        // Nor is what is made of it computed for many rows at a time, whatever finds them.
        for rows in [2, 300] {
            let sql = format!(
                "SELECT SUM(LENGTH(CONCAT(UPPER(s), '{eighth}'))) FROM d.short WHERE id <= {rows}"
            );
            let bytes = rows * 8_000_034_u64;
            assert_eq!(answer_of(&mut connection, &sql), [bytes.to_string()]);
        }
        let key = |table: &str| format!("CONCAT({table}.s, REPEAT('cd', 15000))");
        let sql = format!(
            "SELECT COUNT(*) FROM d.short x JOIN d.short y ON {} = {} WHERE x.id <= 1000 AND y.id <= 1000",
            key("x"),
            key("y")
        );
        assert_eq!(answer_of(&mut connection, &sql), ["1000"]);
        // So are operands, whatever function makes them.
        let sql =
            "SELECT SUM(LENGTH(JSON_ARRAY(s, REPEAT('cd', 50000)))) FROM d.short WHERE id <= 3000";
        assert_eq!(answer_of(&mut connection, sql), ["300126000"]);
    });
    terminate(&child);
}

/// A list of rows whose values are calls. Its syntax tree is a hundred times its text: more than all memory.
#[test]
fn many_rows_of_calls_are_inserted() {
    const COUNT: usize = 30_000;
    let (_directory, child, _, mut connection) = empty();
    connection
        .query_drop("CREATE TABLE d.v (n INT PRIMARY KEY, a VARCHAR(20), u CHAR(36), t DATETIME)")
        .expect("a table");
    let rows: Vec<String> = (0..COUNT)
        .map(|n| format!("({n}, CONCAT('a', {n}), UUID(), NOW())"))
        .collect();
    let sql = format!("INSERT INTO d.v VALUES {}", rows.join(","));
    within_memory(child.id(), || {
        connection.query_drop(&sql).expect("there is room for it");
    });
    assert_eq!(connection.affected_rows(), COUNT as u64);
    let sql =
        "SELECT COUNT(*), SUM(a = CONCAT('a', n)), COUNT(DISTINCT u), COUNT(DISTINCT t) FROM d.v";
    let expected = format!("{COUNT}\t{COUNT}\t{COUNT}\t1");
    assert_eq!(answer_of(&mut connection, sql), [expected]);
    terminate(&child);
}

/// Values that are longer than all memory together are computed as they are written. An error in one of the last takes
/// the first ones back.
#[test]
fn values_are_computed_as_they_are_written() {
    let (_directory, child, _, mut connection) = empty();
    connection
        .query_drop("CREATE TABLE d.v (n INT PRIMARY KEY, v LONGTEXT NOT NULL)")
        .expect("a table");
    let rows = |last: &str| {
        let rows = (0..3000).map(|n| format!("({n}, REPEAT('abc', 10000 + {n}))"));
        let rows: Vec<String> = rows.chain([last.to_string()]).collect();
        format!("INSERT INTO d.v VALUES {}", rows.join(","))
    };
    let sum = "SELECT COUNT(*), SUM(LENGTH(v)) FROM d.v";
    within_memory(child.id(), || {
        let wrong = connection.query_drop(rows("(3000, CONCAT('a', x))"));
        assert_eq!(error_of(wrong).0, 1054);
        assert_eq!(answer_of(&mut connection, sum), ["0\tNULL"]);
        let null = connection.query_drop(rows("(3000, CONCAT('a', NULL))"));
        assert_eq!(error_of(null).0, 1048);
        assert_eq!(answer_of(&mut connection, sum), ["0\tNULL"]);
        let sql = rows("(3000, CONCAT('a', n + 1))");
        connection.query_drop(&sql).expect("there is room for it");
        assert_eq!(answer_of(&mut connection, sum), ["3001\t103495505"]);
    });
    terminate(&child);
}
