//! Long lists of calls that make long constants: a text of 40 KB is 16 MB of constants. Each is computed while the
//! statement is planned, or when it runs, and nothing has many copies of all of them.

use mysql::prelude::Queryable;
use mysql::{Conn, Row};

use crate::command_line::terminate;
use crate::harness::{error_of, text_rows};
use crate::memory::{answer_of, empty, within_memory};

const TERMS: usize = 2000;
/// Rows with as many letters as every other term.
const ROWS: usize = 50;

fn call(n: usize) -> String {
    format!("REPEAT('x', {})", 8 * n)
}

fn list(item: impl Fn(usize) -> String, between: &str) -> String {
    let items: Vec<String> = (0..TERMS).map(item).collect();
    items.join(between)
}

fn fill(connection: &mut Conn) {
    let rows = (1..=ROWS).map(|n| format!("({n}, {}, {n})", call(2 * n)));
    let rows: Vec<String> = rows.collect();
    for sql in [
        "CREATE TABLE d.c (id INT PRIMARY KEY, s LONGTEXT NOT NULL, n INT)".to_string(),
        format!("INSERT INTO d.c VALUES {}", rows.join(", ")),
    ] {
        connection.query_drop(sql).expect("a table");
    }
}

/// Queries, and what they answer.
fn queries() -> Vec<(String, String)> {
    let any = list(|n| format!("s = {}", call(n)), " OR ");
    let calls = list(call, ", ");
    let branches = list(|n| format!("WHEN s = {} THEN {n}", call(n)), " ");
    let values = list(|n| format!("WHEN {} THEN {n}", call(n)), " ");
    let chosen = list(|n| format!("WHEN {n} THEN {}", call(n)), " ");
    // 8 * (0 + 1 + ... + 1999).
    let bytes = 8 * TERMS * (TERMS - 1) / 2;
    // 2 * (1 + 2 + ... + 50).
    let numbers = ROWS * (ROWS + 1);
    let of = |sql: String, answer: usize| (sql, answer.to_string());
    vec![
        of(format!("SELECT COUNT(*) FROM d.c WHERE {any}"), ROWS),
        of(
            format!("SELECT COUNT(*) FROM d.c WHERE s IN ({calls})"),
            ROWS,
        ),
        of(
            format!("SELECT COUNT(*) FROM d.c WHERE s NOT IN ({calls})"),
            0,
        ),
        of(
            format!(
                "SELECT COUNT(*) FROM d.c WHERE (s, id) IN ({})",
                list(|n| format!("({}, {})", call(2 * n), n), ", ")
            ),
            ROWS,
        ),
        of(format!("SELECT SUM(CASE {branches} END) FROM d.c"), numbers),
        of(format!("SELECT SUM(CASE s {values} END) FROM d.c"), numbers),
        of(
            format!("SELECT SUM(LENGTH(CASE id {chosen} END)) FROM d.c"),
            8 * numbers / 2,
        ),
        // max_allowed_packet is 2 MiB with so little memory.
        of(
            format!("SELECT LENGTH(CONCAT({}))", list(|n| call(n % 250), ", ")),
            8 * 8 * 250 * 249 / 2,
        ),
        of(
            format!(
                "SELECT SUM(LENGTH(column_0)) FROM (VALUES {}) v",
                list(|n| format!("ROW({})", call(n)), ", ")
            ),
            bytes,
        ),
        of(
            format!(
                "SELECT COUNT(*) FROM d.c WHERE {}",
                list(
                    |n| format!("s = CONCAT(LPAD(HEX('x'), {n}, 'ab'), SPACE({n}))"),
                    " OR "
                )
            ),
            0,
        ),
        of(
            format!(
                "SELECT id FROM d.c ORDER BY CASE {} END, id LIMIT 1",
                list(|n| format!("WHEN s = {} THEN -{n}", call(n)), " ")
            ),
            ROWS,
        ),
        of(
            format!(
                "SELECT COUNT(*) FROM d.c x LEFT JOIN d.c y ON x.id = y.id AND ({})",
                list(|n| format!("y.s = {}", call(n)), " OR ")
            ),
            ROWS,
        ),
    ]
}

#[test]
fn long_constants_are_planned_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    fill(&mut connection);
    within_memory(child.id(), || {
        for (sql, expected) in queries() {
            let answer = answer_of(&mut connection, &sql);
            assert_eq!(answer, [expected], "{}", &sql[..80]);
        }
    });
    terminate(&child);
}

/// What has all constants at the same time has an answer or is refused.
#[test]
fn constants_that_are_too_many_are_refused() {
    const MANY: usize = 4 * TERMS;
    let (_directory, child, _, mut connection) = empty();
    fill(&mut connection);
    let calls = list(call, ", ");
    let many: Vec<String> = (0..MANY).map(call).collect();
    // Each member that is not folded is a comparison of its own.
    let list_of_many = format!("SELECT COUNT(*) FROM d.c WHERE s IN ({})", many.join(", "));
    let numbers = ROWS * (ROWS + 1) + ROWS;
    let held = [
        (format!("SELECT SUM(FIELD(s, {calls})) FROM d.c"), numbers),
        (
            format!("SELECT MAX(LENGTH(GREATEST(s, {calls}))) FROM d.c"),
            8 * (TERMS - 1),
        ),
        (
            format!("SELECT JSON_LENGTH(JSON_ARRAY(s, {calls})) FROM d.c WHERE id = 1"),
            TERMS + 1,
        ),
    ];
    within_memory(child.id(), || {
        let error = error_of::<()>(connection.query_drop(&list_of_many));
        assert_eq!(error.0, 1041, "{error:?}");
        for (sql, expected) in held {
            match connection.query::<Row, _>(&sql) {
                Ok(rows) => assert_eq!(text_rows(rows), [expected.to_string()]),
                Err(error) => assert_eq!(error_of::<()>(Err(error)).0, 1041, "{}", &sql[..40]),
            }
        }
        assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
    });
    terminate(&child);
}

/// The same in what keeps a query or an expression, and in changes.
#[test]
fn long_constants_are_kept_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    fill(&mut connection);
    let any = list(|n| format!("s = {}", call(n)), " OR ");
    let branches = list(|n| format!("WHEN s = {} THEN {n}", call(n)), " ");
    let count = format!("SELECT COUNT(*) FROM d.c WHERE {any}");
    let [rows, numbers] = [ROWS, ROWS * (ROWS + 1)].map(|number| number.to_string());
    let (rows, numbers) = (rows.as_str(), numbers.as_str());
    let held = format!("SELECT COUNT(*) FROM d.g WHERE s = {}", call(7));
    within_memory(child.id(), || {
        for (sql, answer) in [
            (format!("CREATE VIEW d.v AS {count}"), None),
            ("SELECT * FROM d.v".to_string(), Some(rows)),
            (format!("PREPARE p FROM \"{count}\""), None),
            ("EXECUTE p".to_string(), Some(rows)),
            ("EXECUTE p".to_string(), Some(rows)),
            (format!("SET @v = ({count})"), None),
            ("SELECT @v".to_string(), Some(rows)),
            (
                format!("SET {}", list(|n| format!("@v = {}", call(n)), ", ")),
                None,
            ),
            ("SELECT LENGTH(@v)".to_string(), Some("15992")),
            (format!("EXPLAIN {count}"), None),
            (format!("UPDATE d.c SET n = CASE {branches} END"), None),
            ("SELECT SUM(n) FROM d.c".to_string(), Some(numbers)),
            (
                format!("CREATE TABLE d.g (s LONGTEXT, CHECK ({any}))"),
                None,
            ),
            (format!("INSERT INTO d.g (s) VALUES ({})", call(7)), None),
            (held, Some("1")),
            (format!("DELETE FROM d.c WHERE {any}"), None),
            ("SELECT COUNT(*) FROM d.c".to_string(), Some("0")),
            (
                format!(
                    "INSERT INTO d.c (id, s) VALUES {}",
                    list(|n| format!("({}, {})", 100 + n, call(n)), ", ")
                ),
                None,
            ),
            (
                "SELECT SUM(LENGTH(s)) FROM d.c".to_string(),
                Some("15992000"),
            ),
        ] {
            let answered = answer_of(&mut connection, &sql);
            if let Some(answer) = answer {
                assert_eq!(answered, [answer], "{}", &sql[..sql.len().min(80)]);
            }
        }
    });
    terminate(&child);
}
