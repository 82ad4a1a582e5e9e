//! Many clients at once, and big statements beside small ones.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::prelude::Queryable;

use crate::command_line::{connect, terminate};
use crate::harness::{error_of, query_text, wait_until};
use crate::memory::{EndsAll, MEMORY_MIB, ROWS, answer_of, empty, filled, within_memory};

/// How long a small change may take beside a huge one, on a machine that is busy with other tests.
const MOST_WAIT: Duration = Duration::from_secs(3);

/// A huge transaction keeps little of what it has changed in memory, and does not keep others from small changes.
#[test]
fn changes_of_all_rows_and_small_ones_go_on_side_by_side() {
    let server = filled();
    let mut connection = connect(server.port);
    let mut other = connect(server.port);
    for sql in [
        "ALTER TABLE d.a ADD KEY (k), ADD KEY (s)",
        "CREATE TABLE d.small (id INT PRIMARY KEY, n INT NOT NULL)",
        "INSERT INTO d.small SELECT id, 0 FROM d.a WHERE id <= 100",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let is_over = AtomicBool::new(false);
    let small_ones = || {
        let (mut changes, mut longest) = (0, Duration::ZERO);
        while !is_over.load(Ordering::Relaxed) {
            let began = Instant::now();
            let sql = format!(
                "UPDATE d.small SET n = n + 1 WHERE id = {}",
                changes % 100 + 1
            );
            other.query_drop(&sql).expect("a small change");
            longest = longest.max(began.elapsed());
            changes += 1;
            thread::sleep(Duration::from_millis(5));
        }
        (changes, longest)
    };
    let all_at_once = || {
        thread::scope(|scope| {
            let small_ones = scope.spawn(small_ones);
            {
                let _ends = EndsAll(&is_over);
                let sql = "UPDATE d.a SET k = k + 1, s = CONCAT('y', s) ORDER BY s";
                connection.query_drop(sql).expect(sql);
            }
            small_ones.join().expect("no panic")
        })
    };
    let (changes, longest) = within_memory(server.child.id(), all_at_once);
    assert_eq!(connection.affected_rows(), ROWS as u64);
    assert_eq!(
        answer_of(&mut connection, "SELECT SUM(n) FROM d.small"),
        [changes.to_string()]
    );
    assert!(longest < MOST_WAIT, "a small change took {longest:?}");
}

/// A statement that is big waits while the only place for one is taken, says so, and gives up when it was told to.
#[test]
fn big_statements_wait_for_one_another() {
    let server = filled();
    let port = server.port;
    let mut first = connect(port);
    // Until its only row comes, which takes for ever, it has the only place.
    let id = first.connection_id();
    let slow = "SELECT COUNT(*), SLEEP(100000) FROM (SELECT s, COUNT(*) FROM d.a GROUP BY s) t";
    let holds = thread::spawn(move || first.query_drop(slow));
    let running = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE INFO LIKE '%SLEEP(1%' AND COMMAND = 'Query'";
    let mut other = connect(port);
    wait_until("the first statement runs", || {
        query_text(&mut other, running)
            .first()
            .is_some_and(|count| count != "0")
    });
    let sql = "SELECT COUNT(*) FROM (SELECT s, COUNT(*) FROM d.a GROUP BY s) t";
    let waits = thread::spawn(move || query_text(&mut connect(port), sql));
    let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Waiting for query memory'";
    wait_until("the second statement waits", || {
        query_text(&mut other, waiting) == ["1"]
    });
    other
        .query_drop("SET GLOBAL query_memory_wait_timeout = 0")
        .expect("it is a global variable");
    assert_eq!(error_of(other.query_drop(sql)).0, 1041);
    other
        .query_drop(format!("KILL QUERY {id}"))
        .expect("it runs");
    assert_eq!(error_of(holds.join().expect("no panic")).0, 1317);
    let answer = waits.join().expect("no panic");
    assert_eq!(answer, [ROWS.to_string()]);
    // The place is free again. A statement that is big twice, as a query and as a load, does not wait for itself.
    let sql = "CREATE TABLE d.g SELECT s, COUNT(*) AS n FROM d.a GROUP BY s";
    other.query_drop(sql).expect(sql);
    assert_eq!(
        query_text(&mut other, "SELECT COUNT(*) FROM d.g"),
        [ROWS.to_string()]
    );
}

/// Clients that insert rows, and change the same few at the same time: none of their statements takes much.
pub(super) fn write_at_the_same_time(port: u16, clients: usize) {
    let mut connection = connect(port);
    for sql in [
        "SET GLOBAL max_connections = 2000",
        "CREATE TABLE d.written (id INT AUTO_INCREMENT PRIMARY KEY, k INT, s VARCHAR(100), KEY (k))",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let rows: Vec<String> = (0..50)
        .map(|k| format!("({k}, '{}')", "x".repeat(80)))
        .collect();
    let insert = format!("INSERT INTO d.written (k, s) VALUES {}", rows.join(","));
    let update = "UPDATE d.written SET k = k + 1 WHERE k < 20 LIMIT 5";
    let all: Vec<Conn> = (0..clients).map(|_| connect(port)).collect();
    thread::scope(|scope| {
        for mut client in all {
            let insert = insert.as_str();
            scope.spawn(move || {
                for _ in 0..5 {
                    client.query_drop(insert).expect("an insert");
                    // Deadlocks are part of it.
                    if let Err(error) = client.query_drop(update) {
                        assert_eq!(error_of::<()>(Err(error)).0, 1213);
                    }
                }
            });
        }
    });
    let count = answer_of(&mut connection, "SELECT COUNT(*) FROM d.written");
    assert_eq!(count, [(clients * 5 * 50).to_string()]);
}

/// What threads keep for their next work they give back while they wait, and the pool lends pages.
#[test]
fn many_clients_that_write_stay_within_memory() {
    let (_directory, child, port, _connection) = empty();
    within_memory(child.id(), || write_at_the_same_time(port, 200));
    terminate(&child);
}

/// A session and its thread take memory, whatever they do.
#[test]
fn as_many_clients_are_let_in_as_there_is_memory_for() {
    let (_directory, child, port, mut connection) = empty();
    let most = (MEMORY_MIB << 20) / 4 * 3 / (112 << 10);
    connection
        .query_drop("SET GLOBAL max_connections = 2000")
        .expect("it becomes what there is memory for");
    let warnings = answer_of(&mut connection, "SHOW WARNINGS");
    assert_eq!(
        warnings,
        ["Warning\t1292\tTruncated incorrect max_connections value: '2000'"]
    );
    let set = answer_of(&mut connection, "SELECT @@max_connections");
    assert_eq!(set, [most.to_string()]);
    within_memory(child.id(), || {
        let mut clients: Vec<Conn> = (1..most).map(|_| connect(port)).collect();
        for client in &mut clients {
            assert_eq!(answer_of(client, "SELECT 1"), ["1"]);
        }
    });
    terminate(&child);
}

/// Transactions lock rows beside each other, so that none of them can lock the table instead.
#[test]
fn rows_are_locked_as_far_as_there_is_memory() {
    const CHUNK: usize = 2_000;
    let (_directory, child, port, mut connection) = empty();
    for sql in [
        "CREATE TABLE d.locked (id INT PRIMARY KEY)",
        "SET cte_max_recursion_depth = 200000",
        "INSERT INTO d.locked WITH RECURSIVE r (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r WHERE n < 150000) \
         SELECT n FROM r",
        "CREATE TABLE d.small (id INT PRIMARY KEY, k INT, v INT, KEY (k))",
        "INSERT INTO d.small VALUES (1, 10, 0), (2, 20, 0), (3, 30, 0)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let limit: usize = connection
        .query_first("SELECT @@max_row_locks")
        .expect("a variable")
        .expect("a row");
    assert_eq!(limit, (MEMORY_MIB << 20) / 4 / 256);
    let mut owners = [connect(port), connect(port)];
    for owner in &mut owners {
        for sql in ["SET transaction_isolation = 'READ-COMMITTED'", "BEGIN"] {
            owner.query_drop(sql).expect(sql);
        }
    }
    within_memory(child.id(), || {
        let mut locked = 0;
        let error = loop {
            let owner = &mut owners[locked / CHUNK % 2];
            let sql = format!(
                "SELECT COUNT(*) FROM d.locked WHERE id BETWEEN {} AND {} FOR UPDATE",
                locked + 1,
                locked + CHUNK
            );
            match owner.query_drop(sql) {
                Ok(()) => locked += CHUNK,
                Err(error) => break error_of::<()>(Err(error)).0,
            }
        };
        assert_eq!((error, locked), (1206, limit / CHUNK * CHUNK));
        let sql = format!(
            "SELECT COUNT(*) FROM d.locked WHERE id BETWEEN {} AND {limit} FOR UPDATE",
            locked + 1
        );
        owners[0].query_drop(&sql).expect(&sql);
        let more = owners[1].query_drop("SELECT * FROM d.locked WHERE id = 140000 FOR UPDATE");
        assert_eq!(error_of(more).0, 1206);
        // Small changes of others find what they need.
        for sql in [
            "UPDATE d.small SET v = v + 1 WHERE id = 1",
            "UPDATE d.small SET v = v + 1 WHERE k = 20",
            "DELETE FROM d.small WHERE id BETWEEN 3 AND 5",
        ] {
            connection.query_drop(sql).expect(sql);
        }
    });
    for owner in &mut owners {
        owner.query_drop("ROLLBACK").expect("the locks go");
    }
    connection
        .query_drop("DELETE FROM d.locked")
        .expect("nobody has locks");
    terminate(&child);
}

/// Each of them is small when it begins, and each wants to be big. There is no room for all of them.
#[test]
fn many_groups_at_once_are_all_answered() {
    const CLIENTS: usize = 40;
    let filled = filled();
    let mut root = connect(filled.port);
    root.query_drop("SET GLOBAL query_memory_wait_timeout = 3600")
        .expect("a variable");
    let clients: Vec<Conn> = (0..CLIENTS).map(|_| connect(filled.port)).collect();
    let sql = "SELECT s, COUNT(*) FROM d.a WHERE id < 40000 GROUP BY s ORDER BY 2 DESC, 1 LIMIT 3";
    let expected = query_text(&mut root, sql);
    within_memory(filled.child.id(), || {
        thread::scope(|scope| {
            for mut client in clients {
                let expected = &expected;
                scope.spawn(move || assert_eq!(query_text(&mut client, sql), *expected));
            }
        });
    });
}

/// Variables, prepared statements and parameters of all sessions share one limit.
#[test]
fn what_sessions_keep_has_a_limit() {
    let (_directory, child, port, mut connection) = empty();
    let limit: Option<usize> = connection
        .query_first("SELECT @@session_memory")
        .expect("a variable");
    assert_eq!(limit, Some(MEMORY_MIB << 17));
    let mut clients = Vec::new();
    let refused = within_memory(child.id(), || {
        (0..20).find_map(|client| {
            let mut client_connection = connect(port);
            let sql = format!("SET @v{client} = REPEAT('x', 1000000)");
            let set = client_connection.query_drop(sql);
            clients.push(client_connection);
            set.err()
        })
    });
    let refused = refused.expect("more than there may be");
    assert!(refused.to_string().contains("session_memory"), "{refused}");
    assert_eq!((error_of::<()>(Err(refused)).0, clients.len()), (1041, 9));
    // What a client has kept is free when it is gone, or has set its variables to less.
    clients[0].query_drop("SET @v0 = 1").expect("less");
    let text = format!("SELECT '{}'", "x".repeat(800_000));
    let statement = connection.prep(&text).expect("there is room again");
    assert_eq!(error_of(connection.prep(text + " ")).0, 1041);
    connection.close(statement).expect("it is known");
    drop(clients);
    wait_until("the variables are gone", || {
        connection
            .query_drop("SET @v = REPEAT('x', 2000000)")
            .is_ok()
            && connection
                .query_drop("SET @w = REPEAT('x', 2000000)")
                .is_ok()
    });
    terminate(&child);
}
