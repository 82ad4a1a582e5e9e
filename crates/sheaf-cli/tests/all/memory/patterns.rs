//! Patterns and constants that take many times their text: they are refused before they take it.

use mysql::Error;
use mysql::prelude::Queryable;

use crate::command_line::{connect, terminate};
use crate::harness::error_of;
use crate::memory::{answer_of, empty, within_memory};

/// Each has an answer, is too much, or is a pattern that is too large.
#[test]
fn long_patterns_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    let statements = [
        "SELECT 'a' REGEXP CONCAT('(', REPEAT('a|', 200000), 'b)')",
        "SELECT 'a' REGEXP REPEAT('[ab]', 300000)",
        "SELECT 'a' REGEXP REPEAT('.', 100000)",
        "SELECT 'a' REGEXP REPEAT('(a)', 100000)",
        "SELECT 'a' REGEXP REPEAT('a*', 300000)",
        "SELECT 'a' REGEXP CONCAT('[', REPEAT('a', 1900000), ']')",
        "SELECT 'a' REGEXP CONCAT('[', REPEAT('a-bc-d', 300000), ']')",
        "SELECT 'a' REGEXP CONCAT('(?x)', REPEAT('a #b\\n', 300000))",
        "SELECT 'abc' LIKE REPEAT('%a', 1000000)",
        "SELECT JSON_SEARCH('[\"abc\"]', 'one', REPEAT('%a', 900000))",
    ];
    within_memory(child.id(), || {
        for sql in statements {
            if let Err(error) = connection.query_drop(sql) {
                let code = error_of::<()>(Err(error)).0;
                assert!(matches!(code, 1041 | 3700), "{code}: {sql}");
            }
            assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
        }
    });
    terminate(&child);
}

/// A list of values that are made while it is planned.
#[test]
fn constants_of_a_list_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    for sql in [
        "CREATE TABLE d.y (s VARCHAR(100))",
        "INSERT INTO d.y VALUES ('a')",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let list = |step: usize, count: usize| {
        let members = (0..count).map(|n| format!("REPEAT('x', {})", n * step));
        let members = members.collect::<Vec<_>>().join(", ");
        format!("SELECT COUNT(*) FROM d.y WHERE s IN ({members})")
    };
    within_memory(child.id(), || {
        for sql in [list(4, 8000), list(1, 5000)] {
            if let Err(error) = connection.query_drop(&sql) {
                assert_eq!(error_of::<()>(Err(error)).0, 1041);
            }
            assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
        }
        assert_eq!(answer_of(&mut connection, &list(1, 100)), ["0"]);
    });
    terminate(&child);
}

/// Each term of a chain got copies of those before it, where a text that is no number is an error.
#[test]
fn long_chains_of_a_strict_change_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    for sql in [
        "CREATE TABLE d.y (id INT PRIMARY KEY, a INT, s VARCHAR(20))",
        "INSERT INTO d.y VALUES (1, 0, '1'), (2, 0, '2')",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let chain = |length: usize, term: &str, word: &str| {
        let terms = (0..length).map(|n| format!("{term}{}", 1000 + n));
        terms.collect::<Vec<_>>().join(word)
    };
    let ors = |length| {
        format!(
            "UPDATE d.y SET a = 1 WHERE {}",
            chain(length, "s + 0 = ", " OR ")
        )
    };
    let ands = format!(
        "DELETE FROM d.y WHERE {} AND id < 0",
        chain(3000, "s <> ", " AND ")
    );
    within_memory(child.id(), || {
        for sql in [ors(500), ands] {
            connection.query_drop(&sql).expect("it has an answer");
            assert_eq!(connection.affected_rows(), 0);
        }
        // There is an answer in more memory than this.
        match connection.query_drop(ors(3000)) {
            Ok(()) => assert_eq!(connection.affected_rows(), 0),
            Err(Error::MySqlError(error)) => assert_eq!(error.code, 1041, "{error}"),
            Err(error) => panic!("{error}"),
        }
    });
    terminate(&child);
}

/// `max_allowed_packet` may be larger than the memory allows.
#[test]
fn requests_longer_than_the_memory_allows_are_refused() {
    let (_directory, child, port, mut connection) = empty();
    for sql in [
        "SET GLOBAL max_allowed_packet = 1073741824",
        "CREATE TABLE d.l (a LONGBLOB)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let mut connection = connect(port);
    let long = "ab".repeat(8 << 20);
    within_memory(child.id(), || {
        for sql in [
            format!("INSERT INTO d.l VALUES ('{long}')"),
            format!("INSERT INTO d.l VALUES (x'{long}')"),
            format!("SELECT LENGTH('{long}{long}')"),
        ] {
            assert_eq!(error_of(connection.query_drop(&sql)).0, 1041);
            assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
        }
    });
    terminate(&child);
}
