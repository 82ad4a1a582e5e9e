//! Operators that keep many rows: what does not fit goes to files.

use mysql::prelude::Queryable;

use crate::command_line::{connect, serve_with, terminate};
use crate::harness::error_of;
use crate::memory::{ROWS, answer_of, empty, filled, within_memory};

/// Windows over texts, each alone: what waits for the end of a partition is little, or goes to a file.
#[test]
fn windows_over_texts_stay_within_memory() {
    let server = filled();
    let port = server.port;
    let process = server.child.id();
    let mut connection = connect(port);
    let last = answer_of(&mut connection, "SELECT MAX(s) FROM d.a");
    within_memory(process, || {
        let sql = |over: &str| format!("SELECT MAX(x) FROM (SELECT {over} AS x FROM d.a) t");
        for over in [
            "MAX(s) OVER (PARTITION BY k)",
            "MAX(s) OVER ()",
            // Sorts of keys that are twice as wide as the rows.
            "FIRST_VALUE(s) OVER (PARTITION BY k ORDER BY s DESC)",
            "LEAD(s, 3) OVER (ORDER BY s)",
            "LAG(s, 0) OVER (ORDER BY s)",
            "LAST_VALUE(s) OVER (ORDER BY s ROWS BETWEEN 100 PRECEDING AND CURRENT ROW)",
            // And six times.
            "LEAD(s, 3) OVER (ORDER BY CONCAT(s, s, s))",
            // What follows a row.
            "MAX(s) OVER (ORDER BY s ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING)",
            "LAST_VALUE(s) OVER (ORDER BY id ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING)",
        ] {
            let sql = sql(over);
            let expected = match over.contains("ORDER BY id") {
                true => answer_of(
                    &mut connection,
                    "SELECT s FROM d.a ORDER BY id DESC LIMIT 1",
                ),
                false => last.clone(),
            };
            assert_eq!(answer_of(&mut connection, &sql), expected, "{sql}");
        }
        // More than the memory, so they are planned again for one worker.
        for function in ["COUNT(x)", "MAX(x)", "FIRST_VALUE(x)"] {
            let texts = "SELECT k, CONCAT(s, s, s, s, s, s) AS x FROM d.a";
            let values = format!("SELECT {function} OVER (PARTITION BY k) AS q FROM ({texts}) t");
            let sql = format!("SELECT COUNT(*) FROM ({values}) u WHERE q IS NOT NULL");
            let count = answer_of(&mut connection, &sql);
            assert_eq!(count, [ROWS.to_string()], "{sql}");
        }
        // Numbers of rows, with the rows behind them.
        for (over, expected) in [
            ("NTILE(7) OVER (ORDER BY s)", "7"),
            ("CUME_DIST() OVER (ORDER BY s)", "1"),
            ("PERCENT_RANK() OVER (ORDER BY s)", "1"),
            ("CUME_DIST() OVER (ORDER BY k)", "1"),
        ] {
            let sql = format!("SELECT MAX(x), MAX(s) FROM (SELECT {over} AS x, s FROM d.a) t");
            let expected = format!("{expected}\t{}", last[0]);
            assert_eq!(answer_of(&mut connection, &sql), [expected], "{sql}");
        }
    });
}

/// Where the parts of a union do not fit beside each other they run one after another.
#[test]
fn unions_of_many_parts_have_an_answer() {
    let server = filled();
    let port = server.port;
    let mut connection = connect(port);
    let parts = |part: &dyn Fn(usize) -> String, by: &str| {
        let parts: Vec<String> = (0..8).map(part).collect();
        parts.join(by)
    };
    let distinct = parts(
        &|part| format!("SELECT CONCAT(s, s, s) FROM d.a WHERE id % 8 = {part}"),
        " UNION ",
    );
    let groups = parts(
        &|part| format!("SELECT s, COUNT(*) FROM d.a WHERE id % 8 = {part} GROUP BY s"),
        " UNION ALL ",
    );
    for union in [distinct, groups] {
        let sql = format!("SELECT COUNT(*) FROM ({union}) t");
        assert_eq!(answer_of(&mut connection, &sql), [ROWS.to_string()]);
    }
}

/// The keys of the rows that a join finds go to files.
#[test]
fn updates_of_joined_tables_remember_their_rows_in_files() {
    let server = filled();
    let port = server.port;
    let mut connection = connect(port);
    connection
        .query_drop("CREATE TABLE d.twice (id INT PRIMARY KEY, a INT NOT NULL)")
        .expect("a table");
    let sql = format!(
        "INSERT INTO d.twice SELECT id, (id * 7919) % {} DIV 2 + 1 FROM d.a",
        ROWS / 2
    );
    connection.query_drop(sql).expect("rows");
    let before = answer_of(&mut connection, "SELECT SUM(k) FROM d.a");
    let before: i64 = before[0].parse().expect("a number");
    // Each row of the one table has four of the other, and is changed once.
    connection
        .query_drop("UPDATE d.a JOIN d.twice ON twice.a = a.id SET a.k = a.k + 1")
        .expect("there are files");
    assert_eq!(connection.affected_rows(), ROWS as u64 / 4);
    let after = answer_of(&mut connection, "SELECT SUM(k) FROM d.a");
    assert_eq!(after, [(before + ROWS as i64 / 4).to_string()]);
}

/// The rows that RETURNING and locking reads show wait in files until those of the table are gone, written or locked.
#[test]
fn rows_that_are_shown_at_the_end_wait_in_files() {
    let server = filled();
    let mut connection = connect(server.port);
    answer_of(&mut connection, "CREATE TABLE d.b SELECT id, s FROM d.a");
    connection.query_drop("BEGIN").expect("a transaction");
    // Each row is found twice.
    let sql = "DELETE d.a FROM d.a JOIN d.b ON b.id DIV 2 = a.id DIV 2 WHERE a.id < 60000";
    answer_of(&mut connection, sql);
    assert_eq!(connection.affected_rows(), 59_999);
    connection.query_drop("ROLLBACK").expect("the end of it");
    connection
        .query_drop("CREATE TABLE d.c (id INT PRIMARY KEY, s VARCHAR(100) NOT NULL)")
        .expect("a table");
    for sql in [
        "SELECT id, CONCAT(s, s) FROM d.a LIMIT 256000 FOR UPDATE",
        "SELECT id, CONCAT(s, s) FROM d.a ORDER BY s LIMIT 256000 FOR UPDATE",
        "INSERT INTO d.c SELECT id, s FROM d.a RETURNING id, CONCAT(s, s)",
        "REPLACE INTO d.c SELECT id, s FROM d.a RETURNING id, CONCAT(s, s)",
        "DELETE FROM d.a RETURNING id, CONCAT(s, s)",
    ] {
        let rows = || connection.query::<(usize, String), _>(sql);
        let rows = match within_memory(server.child.id(), rows) {
            // Deleted rows are versions besides, and a server that has too much may stop it.
            Err(mysql::Error::MySqlError(error))
                if error.code == 1041 && sql.starts_with("DELETE") =>
            {
                let count = answer_of(&mut connection, "SELECT COUNT(*) FROM d.a");
                assert_eq!(count, [ROWS.to_string()]);
                continue;
            }
            rows => rows.expect(sql),
        };
        assert_eq!(rows.len(), ROWS, "{sql}");
        let sum: usize = rows.iter().map(|(id, _)| id).sum();
        assert_eq!(sum, ROWS * (ROWS + 1) / 2, "{sql}");
        assert!(rows.iter().all(|(_, s)| s.len() == 144), "{sql}");
    }
    let left = "SELECT (SELECT COUNT(*) FROM d.a), (SELECT COUNT(*) FROM d.c)";
    assert_eq!(answer_of(&mut connection, left), [format!("0\t{ROWS}")]);
}

/// A change of the first rows of an order finds more of them than fit in memory.
#[test]
fn many_first_rows_are_changed() {
    const MANY: u64 = 150_000;
    let server = filled();
    let mut connection = connect(server.port);
    let changes = [
        format!("UPDATE d.a SET k = -1 ORDER BY s, id LIMIT {MANY}"),
        format!("DELETE FROM d.a ORDER BY s DESC, id LIMIT {MANY}"),
    ];
    for sql in &changes {
        within_memory(server.child.id(), || connection.query_drop(sql)).expect(sql);
        assert_eq!(connection.affected_rows(), MANY, "{sql}");
    }
    let left = ROWS as u64 - MANY;
    assert_eq!(
        answer_of(&mut connection, "SELECT COUNT(*) FROM d.a WHERE k = -1"),
        [left.min(MANY).to_string()]
    );
    let locked = within_memory(server.child.id(), || {
        let sql = format!("SELECT id FROM d.a ORDER BY s, id LIMIT {left} FOR UPDATE");
        answer_of(&mut connection, &sql).len()
    });
    assert_eq!(locked as u64, left);
}

/// The first rows of an order among rows of 2.5 KB, all of which are longer than all memory. Those that are wanted fit
/// in memory, or are sorted in files.
#[test]
fn first_rows_of_long_texts_have_an_answer() {
    const LONG: usize = 40_000;
    let (_directory, child, _, mut connection) = empty();
    for sql in [
        "CREATE TABLE d.long_rows (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(5000), n INT)",
        "CREATE TABLE d.found (id INT PRIMARY KEY AUTO_INCREMENT, s VARCHAR(5000), n INT)",
        "SET cte_max_recursion_depth = 100000",
        &format!(
            "INSERT INTO d.long_rows (s, n) WITH RECURSIVE r (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM r WHERE i < {LONG}) \
             SELECT CONCAT(MD5(i), REPEAT(MD5(i + 1), 30 + i % 100)), i FROM r"
        ),
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let first = answer_of(&mut connection, "SELECT MIN(s) FROM d.long_rows");
    for rows in [1, 100, 5_000, 20_000] {
        within_memory(child.id(), || {
            for key in ["s", "UPPER(s)", "CONCAT(s, s)", "n % 7, UPPER(s)"] {
                let query = format!("SELECT * FROM d.long_rows ORDER BY {key} LIMIT {rows}");
                let count = format!("SELECT COUNT(LENGTH(s)) FROM ({query}) t");
                assert_eq!(
                    answer_of(&mut connection, &count),
                    [rows.to_string()],
                    "{count}"
                );
                for change in [
                    format!("REPLACE INTO d.found {query}"),
                    format!("INSERT INTO d.found (s, n) SELECT s, n FROM ({query}) t"),
                    format!("UPDATE d.found SET n = n + 1 ORDER BY {key} LIMIT {rows}"),
                    format!("DELETE FROM d.found ORDER BY {key} LIMIT {rows}"),
                ] {
                    connection.query_drop(&change).expect(&change);
                }
                connection
                    .query_drop("TRUNCATE TABLE d.found")
                    .expect("a table");
            }
            let query = format!("SELECT s FROM d.long_rows ORDER BY UPPER(s) LIMIT {rows}");
            let found: Vec<String> = connection.query(&query).expect(&query);
            assert_eq!(
                (found.len(), &found[..1]),
                (rows, first.as_slice()),
                "{query}"
            );
        });
    }
    terminate(&child);
}

/// Texts of groups may together be longer than all memory. One group is in memory, as far as its texts are shown.
#[test]
fn long_texts_of_groups_have_an_answer_where_each_group_fits() {
    let server = filled();
    let mut connection = connect(server.port);
    connection
        .query_drop("SET group_concat_max_len = 4294967295")
        .expect("a variable");
    let packet = answer_of(&mut connection, "SELECT @@max_allowed_packet");
    let packet: usize = packet[0].parse().expect("a number");
    for (what, by, expected) in [
        ("REPEAT(s, 20)", "k % 1000", ROWS * 1441 - 1000),
        ("REPEAT(s, 20)", "k % 10", 10 * packet),
        ("REPEAT(s, 20) ORDER BY s DESC", "k % 10", 10 * packet),
        // What is distinct is sorted, which takes files.
        ("DISTINCT s, REPEAT(s, 4)", "k % 10", 10 * packet),
        ("DISTINCT s, s ORDER BY s DESC", "k % 10", 10 * packet),
    ] {
        let sql = format!(
            "SELECT SUM(LENGTH(g)) FROM \
             (SELECT {by} AS b, GROUP_CONCAT({what}) AS g FROM d.a GROUP BY b) t"
        );
        let rows = within_memory(server.child.id(), || connection.query::<usize, _>(&sql));
        assert_eq!(rows.expect(&sql), [expected], "{sql}");
    }
    // What fits has an answer.
    let sql = "SELECT SUM(LENGTH(g)) FROM \
        (SELECT GROUP_CONCAT(s) AS g FROM d.a WHERE id < 30000 GROUP BY id DIV 100) t";
    let expected = (73 * 29_999 - 300).to_string();
    assert_eq!(answer_of(&mut connection, sql), [expected], "{sql}");
}

/// Texts that are sorted in files come in their order, group by group.
#[test]
fn distinct_texts_of_groups_come_in_their_order() {
    let server = filled();
    let mut connection = connect(server.port);
    connection
        .query_drop("SET group_concat_max_len = 4294967295")
        .expect("a variable");
    for by in ["k % 7", "k % 100"] {
        let sql = format!(
            "SELECT GROUP_CONCAT(DISTINCT s ORDER BY s) FROM d.a WHERE id < 60000 GROUP BY {by}"
        );
        let groups: Vec<String> = connection.query(&sql).expect(&sql);
        for group in groups {
            assert!(group.split(',').is_sorted(), "{sql}");
        }
    }
}

/// Each of the keys, in each of the streams, took 2 MiB however few groups there were.
#[test]
fn distinct_values_of_several_texts_are_counted_in_groups() {
    let server = filled();
    let mut connection = connect(server.port);
    let sql = "SELECT id % 20, COUNT(DISTINCT s), COUNT(DISTINCT REVERSE(s)) FROM d.a \
        WHERE id <= 60000 GROUP BY 1";
    let groups = || connection.query::<(usize, usize, usize), _>(sql);
    let groups = within_memory(server.child.id(), groups).expect(sql);
    let counts: Vec<_> = groups.iter().map(|group| (group.1, group.2)).collect();
    assert_eq!(counts, [(3_000, 3_000); 20], "{sql}");
}

/// What sixty aggregates make of rows fits in memory, whatever they would make of an ordinary batch.
#[test]
fn many_texts_that_are_made_of_each_row_have_an_answer() {
    const TEXTS: usize = 60;
    let server = filled();
    let mut connection = connect(server.port);
    let list = |item: &dyn Fn(usize) -> String| {
        let items: Vec<String> = (0..TEXTS).map(item).collect();
        items.join(", ")
    };
    let sql = format!(
        "SELECT {} FROM (SELECT id % 500 g, {} FROM d.a WHERE id <= 50000 GROUP BY g) q",
        list(&|n| format!("SUM(LENGTH(m{n}))")),
        list(&|n| format!("MAX(CONCAT(s, s, s, s, {})) m{n}", 10 + n)),
    );
    let sums = within_memory(server.child.id(), || answer_of(&mut connection, &sql));
    let one = answer_of(
        &mut connection,
        "SELECT SUM(l) FROM (SELECT id % 500 g, LENGTH(MAX(s)) * 4 + 2 l FROM d.a WHERE id <= 50000 GROUP BY g) q",
    );
    assert_eq!(sums, [vec![one[0].as_str(); TEXTS].join("\t")]);
}

/// So does what they make of rows of 4 KB, where the texts of all groups together are more than the query memory. None
/// of these texts is much longer than what it is made of, and a batch has all of them.
#[test]
fn many_texts_that_are_made_of_long_rows_have_an_answer() {
    const TEXTS: usize = 60;
    let server = filled();
    let mut connection = connect(server.port);
    connection
        .query_drop("CREATE TABLE d.wide SELECT id, id % 100 g, RPAD(s, 4000, 'y') v FROM d.a WHERE id <= 2000")
        .expect("a table");
    let list = |item: &dyn Fn(usize) -> String| {
        let items: Vec<String> = (0..TEXTS).map(item).collect();
        items.join(", ")
    };
    let made: [(&dyn Fn(usize) -> String, usize); 4] = [
        (&|n| format!("CONCAT(v, {})", 10 + n), 4002),
        (&|n| format!("UPPER(LEFT(v, {}))", 4000 - n % 2), 4000),
        (
            &|n| format!("CASE WHEN id < {n} THEN v ELSE CONCAT(v, {}) END", 10 + n),
            4002,
        ),
        (
            &|n| format!("CAST(JSON_OBJECT('v', v, 'n', {}) AS CHAR)", 10 + n),
            4018,
        ),
    ];
    within_memory(server.child.id(), || {
        for (text, longest) in made {
            let sql = format!(
                "SELECT {} FROM (SELECT g, {} FROM d.wide GROUP BY g) q",
                list(&|n| format!("MAX(LENGTH(m{n})) >= {}", longest - 1)),
                list(&|n| format!("MAX({}) m{n}", text(n))),
            );
            let sums = answer_of(&mut connection, &sql);
            assert_eq!(sums, [vec!["1"; TEXTS].join("\t")], "{}", text(0));
            let rows = format!("SELECT {} FROM d.wide", list(text));
            let count = connection.query_iter(&rows).expect("rows").count();
            assert_eq!(count, 2000, "{rows}");
        }
    });
}

/// Texts of several orders and of sets of groups, and distinct values beside them, are sorted in files as well.
#[test]
fn texts_of_several_orders_and_sets_of_groups_have_an_answer() {
    let server = filled();
    let mut connection = connect(server.port);
    connection
        .query_drop("SET group_concat_max_len = 4294967295")
        .expect("a variable");
    let sql = "SELECT LENGTH(GROUP_CONCAT(DISTINCT LEFT(s, 12) ORDER BY s)), COUNT(DISTINCT s), COUNT(*) \
        FROM d.a WHERE id <= 150000 GROUP BY id % 5 WITH ROLLUP";
    let groups = || connection.query::<(usize, usize, usize), _>(sql);
    let groups = within_memory(server.child.id(), groups).expect(sql);
    let mut rows: Vec<usize> = groups.iter().map(|group| group.2).collect();
    rows.sort_unstable();
    assert_eq!(rows, [30_000, 30_000, 30_000, 30_000, 30_000, 150_000]);
    for (bytes, distinct, rows) in groups {
        assert_eq!((bytes, distinct), (13 * rows - 1, rows), "{sql}");
    }
    let sql = "SELECT GROUP_CONCAT(DISTINCT LEFT(s, 12) ORDER BY s), GROUP_CONCAT(id ORDER BY id DESC), \
        COUNT(DISTINCT s), SUM(DISTINCT id) FROM d.a WHERE id <= 100000";
    let all = || connection.query_first::<(String, String, usize, u64), _>(sql);
    let all = within_memory(server.child.id(), all)
        .expect(sql)
        .expect("a row");
    assert!(all.0.split(',').is_sorted(), "{sql}");
    let ids = all.1.split(',').map(str::parse::<u64>);
    let ids: Vec<u64> = ids.collect::<Result<_, _>>().expect(sql);
    assert!(ids.iter().copied().eq((1..=100_000).rev()), "{sql}");
    assert_eq!((all.2, all.3), (100_000, 100_000 * 100_001 / 2), "{sql}");
    // EXPLAIN ANALYZE tells of the plan that has run to its end.
    let explained = answer_of(&mut connection, &format!("EXPLAIN ANALYZE {sql}"));
    assert!(explained[0].contains("spill_count"), "{explained:?}");
}

/// The rows that a recursion has seen go to a file.
#[test]
fn recursions_remember_their_rows_in_files() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let mut connection = connect(port);
    connection
        .query_drop("SET cte_max_recursion_depth = 1000")
        .expect("a variable");
    // Each round finds the numbers of the round before and one thousand new ones.
    let sql = "WITH RECURSIVE thousand (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM thousand WHERE n < 1000), \
        r (n, s) AS (SELECT n, REPEAT('x', 20) FROM thousand \
        UNION SELECT n + d * 1000, s FROM r JOIN (SELECT 0 AS d UNION ALL SELECT 1) AS t WHERE n + d * 1000 <= 400000) \
        SELECT COUNT(*), COUNT(DISTINCT n), MAX(n) FROM r";
    assert_eq!(answer_of(&mut connection, sql), ["400000\t400000\t400000"]);
    terminate(&child);
}

/// Sorted in memory, short and long texts lie far from one another, and each batch that is merged holds on to those of
/// many. The rows that have been sent cannot be taken back.
#[test]
fn texts_of_all_lengths_are_sorted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let mut connection = connect(port);
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.n (i INT PRIMARY KEY)",
        "INSERT INTO d.n WITH RECURSIVE r (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM r WHERE i < 399) SELECT i FROM r",
        "CREATE TABLE d.w (id INT PRIMARY KEY, t VARCHAR(200))",
        "INSERT INTO d.w SELECT x.i * 400 + y.i, IF(y.i % 4 = 0, NULL, REPEAT('t', y.i % 200)) FROM d.n x, d.n y",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    for sql in [
        "SELECT id, t FROM d.w ORDER BY t, id",
        "SELECT id, t, ROW_NUMBER() OVER (ORDER BY t, id) FROM d.w",
        "SELECT x.id, y.t FROM d.w x JOIN d.w y ON y.id = x.id ORDER BY x.t, x.id",
    ] {
        let rows = connection.query_iter(sql).and_then(|found| {
            let mut rows = 0;
            for row in found {
                row?;
                rows += 1;
            }
            Ok(rows)
        });
        assert_eq!(rows.expect(sql), 160_000, "{sql}");
    }
    terminate(&child);
}

/// Both workers spill what they exchange. Such a statement waited for ever now and then, and KILL did not end it.
#[test]
fn exchanges_that_spill_come_to_an_end() {
    let server = filled();
    let port = server.port;
    let mut connection = connect(port);
    let sql = "SELECT s FROM d.a WHERE id BETWEEN 100000 AND 190000 \
        UNION SELECT REVERSE(s) FROM d.a WHERE id < 100000 ORDER BY 1 LIMIT 30000";
    for _ in 0..20 {
        assert_eq!(answer_of(&mut connection, sql).len(), 30_000);
    }
}

/// Groups of 20 MB of texts that are all different, and of 36 MB of which each is there ten times.
#[test]
fn groups_of_long_texts_are_sorted() {
    let (_directory, child, _, mut connection) = empty();
    for sql in [
        "CREATE TABLE d.l (id INT PRIMARY KEY, t LONGTEXT)",
        "INSERT INTO d.l WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100) \
         SELECT n, RPAD(n, 200000, 'x') FROM r",
        "CREATE TABLE d.m (id INT PRIMARY KEY, t LONGTEXT)",
        "INSERT INTO d.m SELECT id, RPAD(id % 4, 900000, 'x') FROM d.l WHERE id <= 40",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    within_memory(child.id(), || {
        for (table, groups) in [("l", 100), ("m", 4)] {
            for sql in [
                format!("SELECT MD5(t), COUNT(*) FROM d.{table} GROUP BY t"),
                format!("SELECT DISTINCT t FROM d.{table}"),
                format!("SELECT t FROM d.{table} UNION SELECT t FROM d.{table}"),
            ] {
                let rows = connection.query_iter(&sql).expect(&sql);
                let rows = rows.map(|row| row.map(drop).expect(&sql));
                assert_eq!(rows.count(), groups, "{sql}");
            }
        }
    });
    terminate(&child);
}

/// What HAVING lets through comes in batches as small as those of the groups. They were put together until they were
/// more than the first rows of an order may take.
#[test]
fn groups_that_having_lets_through_are_not_put_together() {
    let (_directory, child, _, mut connection) = empty();
    for sql in [
        "CREATE TABLE d.l (id INT PRIMARY KEY, t LONGTEXT)",
        "SET cte_max_recursion_depth = 3000",
        "INSERT INTO d.l WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 3000) \
         SELECT n, RPAD(CONCAT(n * 7919 % 3000, 'k'), 5000, 'q') FROM r",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    within_memory(child.id(), || {
        let sql = "SELECT LEFT(k, 5), c FROM (SELECT t AS k, COUNT(*) AS c FROM d.l GROUP BY k HAVING c > 0 \
            ORDER BY k LIMIT 2) AS g";
        assert_eq!(answer_of(&mut connection, sql), ["0kqqq\t1", "1000k\t1"]);
    });
    terminate(&child);
}

/// 30 MB of texts in all pairs with themselves: neither side fits in memory.
#[test]
fn joins_of_all_pairs_keep_their_rows_in_files() {
    let (_directory, child, _, mut connection) = empty();
    for sql in [
        "CREATE TABLE d.l (id INT PRIMARY KEY, t LONGTEXT)",
        "SET cte_max_recursion_depth = 2500",
        "INSERT INTO d.l WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 2500) \
         SELECT n, RPAD(n, 12288, 'x') FROM r",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    within_memory(child.id(), || {
        let sql = "SELECT a.id, b.t FROM d.l a, d.l b LIMIT 9000";
        let rows = connection.query_iter(sql).expect(sql);
        let lengths: Vec<usize> = rows
            .map(|row| row.expect(sql).get::<String, _>(1).expect("a text").len())
            .collect();
        assert_eq!(lengths, [12_288; 9000]);
        let sql =
            "SELECT COUNT(*), SUM(a.id < b.id), SUM(LENGTH(a.t) + LENGTH(b.t)) FROM d.l a, d.l b";
        let counts = answer_of(&mut connection, sql);
        assert_eq!(counts, ["6250000\t3123750\t153600000000"]);
        // A direct plan computes the keys of all rows at once, which is too much here.
        let sql = "SELECT id FROM d.l WHERE id < 4 OR id BETWEEN 500 AND 1500 ORDER BY REPEAT(t, 3) LIMIT 2";
        assert_eq!(answer_of(&mut connection, sql), ["1000", "1001"]);
    });
    terminate(&child);
}

/// The rows of a batch are as many as their width allows, whatever the operators are.
#[test]
fn joins_and_sorts_of_wide_rows_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    let columns: Vec<String> = (0..150).map(|column| format!("c{column} TEXT")).collect();
    let values: Vec<String> = (0..150)
        .map(|column| format!("REPEAT('x', {})", column * 10))
        .collect();
    for sql in [
        format!("CREATE TABLE d.w (id INT PRIMARY KEY, {})", columns.join(", ")),
        format!(
            "INSERT INTO d.w WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 100) \
             SELECT n, {} FROM r",
            values.join(", ")
        ),
        "CREATE TABLE d.l (id INT PRIMARY KEY, a TEXT, b TEXT)".to_string(),
        "INSERT INTO d.l SELECT id, REPEAT('a', 50000), CONCAT(REPEAT('b', 50000), id % 7) FROM d.w"
            .to_string(),
        "INSERT INTO d.l SELECT id + 100, a, b FROM d.l".to_string(),
    ] {
        connection.query_drop(&sql).expect(&sql);
    }
    within_memory(child.id(), || {
        // 300 columns; what is sorted or compared is more than there is memory.
        for sql in [
            "SELECT * FROM d.w a JOIN d.w b ON a.id <> b.id LIMIT 1000",
            "SELECT * FROM d.w a JOIN d.w b ON a.id < b.id ORDER BY a.c149 LIMIT 3",
            "SELECT DISTINCT * FROM d.w a JOIN d.w b ON a.id <> b.id",
        ] {
            let rows = connection.query_iter(sql);
            let ended: mysql::Result<Vec<()>> =
                rows.and_then(|rows| rows.map(|row| row.map(drop)).collect());
            if ended.is_err() {
                assert_eq!(error_of(ended).0, 1041, "{sql}");
            }
        }
        // 20 MB in 200 rows.
        for sql in [
            "SELECT id, RIGHT(b, 1), b FROM d.l ORDER BY a, b DESC, id",
            "SELECT id, RIGHT(b, 1), b, ROW_NUMBER() OVER (ORDER BY b DESC, id) FROM d.l ORDER BY b DESC, id",
        ] {
            let rows = connection.query_iter(sql).expect(sql);
            let keys: Vec<(u32, u32)> = rows
                .map(|row| {
                    let row = row.expect(sql);
                    let id: u32 = row.get("id").expect("a number");
                    let digit: u32 = row.get(1).expect("a digit");
                    (9 - digit, id)
                })
                .collect();
            assert_eq!(keys.len(), 200, "{sql}");
            assert!(keys.is_sorted(), "{sql}");
        }
    });
    terminate(&child);
}
