//! Statements that take much before they run: texts, syntax trees, plans, parameters.

use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

use mysql::Conn;
use mysql::Row;
use mysql::prelude::Queryable;

use crate::command_line::{connect, serve_with, terminate};
use crate::harness::{error_of, query_text, wait_until};
use crate::memory::{answer_of, empty, filled, resident_mib, within_memory};
use crate::raw_client::{COM_QUERY, RawClient};

const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;
const COM_STMT_SEND_LONG_DATA: u8 = 0x18;

/// Many subqueries in one statement.
#[test]
fn a_thousand_subqueries_have_an_answer() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let mut connection = connect(port);
    for sql in [
        "CREATE DATABASE d",
        "CREATE TABLE d.b (id INT PRIMARY KEY)",
        "INSERT INTO d.b VALUES (1), (500), (900)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let items = (0..1000).map(|n| format!("(SELECT MAX(id) FROM d.b WHERE id <= {n})"));
    let sql = format!("SELECT {}", items.collect::<Vec<_>>().join(", "));
    let answer = answer_of(&mut connection, &sql);
    let values: Vec<&str> = answer[0].split('\t').collect();
    assert_eq!((values.len(), values[499], values[999]), (1000, "1", "900"));
    terminate(&child);
}

/// Each query of a nest has those in it. What is kept of a statement for the next time is bounded by its memory, not by
/// its text.
#[test]
fn nests_of_queries_leave_nothing_behind() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let nest = (0..40).fold("SELECT 1".to_string(), |inner, _| {
        format!("SELECT ({inner})")
    });
    let mut connection = connect(port);
    let process = "SHOW GLOBAL STATUS LIKE 'Process_memory_bytes'";
    let held = |connection: &mut Conn| -> u64 {
        let answer = answer_of(connection, process);
        let (_, bytes) = answer[0].split_once('\t').expect("a name and a value");
        bytes.parse().expect("a number")
    };
    let before = held(&mut connection);
    for _ in 0..2 {
        let mut connection = connect(port);
        assert_eq!(answer_of(&mut connection, &nest), ["1"]);
    }
    // The allocator gives free memory back after a while.
    let limit = Instant::now() + Duration::from_secs(60);
    while held(&mut connection) > before + (8 << 20) {
        assert!(Instant::now() < limit, "{} bytes", held(&mut connection));
        std::thread::sleep(Duration::from_millis(100));
    }
    terminate(&child);
}

/// Parsing, binding and planning are stopped before they take too much; the pool is full of pages besides.
#[test]
fn too_many_subqueries_are_refused() {
    let server = filled();
    let mut connection = connect(server.port);
    answer_of(&mut connection, "SELECT MAX(s) FROM d.a");
    let of = |count: usize, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<String>>()
    };
    let value = |n: usize| format!("(SELECT MAX(id) FROM d.a WHERE id <= {n})");
    let exists = |n: usize| format!("EXISTS (SELECT 1 FROM d.a WHERE id = x.id + {n})");
    for sql in [
        format!("SELECT {}", of(4000, &value).join(", ")),
        format!("PREPARE s FROM 'SELECT {}'", of(4000, &value).join(", ")),
        format!(
            "SELECT id FROM d.a x WHERE {}",
            of(4000, &exists).join(" OR ")
        ),
    ] {
        let refused = || error_of(connection.query_drop(&sql)).0;
        let code = within_memory(server.child.id(), refused);
        assert_eq!(code, 1041, "{}", &sql[..100]);
    }
    assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
}

/// A request that is on its way takes all memory for long ones. Others are refused, but for those of a transaction,
/// whose locks may be waited for, and pieces of parameters, which have no answer that could say so.
#[test]
fn no_piece_of_a_parameter_is_lost_for_want_of_memory() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (child, port) = serve_with(directory.path(), &[]);
    let mut root = connect(port);
    root.query_drop("SET GLOBAL query_memory_wait_timeout = 0")
        .expect("a variable");
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    // The length of a request that is as long as it may be, and its first byte.
    let most: u32 = query_text(&mut root, "SELECT @@max_allowed_packet - 16")[0]
        .parse()
        .expect("a number");
    let header = [&most.to_le_bytes()[..3], &[0, COM_QUERY]].concat();
    let long = format!("SELECT '{}'", "x".repeat(20_000));
    let mut holders = Vec::new();
    wait_until("long requests are refused", || {
        // If the other request came first, this one is refused, and the next one is tried.
        let mut holder = RawClient::connect(address, 0);
        holder.send_raw(&header).expect("it is sent");
        holders.push(holder);
        match root.query_drop(&long) {
            Ok(()) => false,
            refused => error_of(refused).0 == 1041,
        }
    });
    root.query_drop("BEGIN").expect("a transaction");
    root.query_drop(&long).expect("it does not wait");
    root.query_drop("COMMIT").expect("a transaction");

    let mut client = RawClient::connect(address, 0);
    let sql = b"SELECT LENGTH(?) = 110000";
    client
        .send_command(COM_STMT_PREPARE, sql)
        .expect("it is sent");
    let prepared = client.receive_payload();
    assert_eq!(prepared[0], 0, "{prepared:02X?}");
    // The parameter, the column, and what ends each of them.
    for _ in 0..4 {
        client.receive_payload();
    }
    let id = &prepared[1..5];
    for bytes in [10_000, 100_000] {
        let piece = [id, &[0, 0], &vec![b'x'; bytes]].concat();
        client
            .send_command(COM_STMT_SEND_LONG_DATA, &piece)
            .expect("it is sent");
    }
    // No cursor, once, no NULL, and a type: BLOB.
    let execution = [id, &[0], &1_u32.to_le_bytes(), &[0, 1, 0xFC, 0]].concat();
    client
        .send_command(COM_STMT_EXECUTE, &execution)
        .expect("it is sent");
    let answer: Vec<Vec<u8>> = (0..5).map(|_| client.receive_payload()).collect();
    // Columns, a column, its end, and the row: a header, NULLs, the value.
    assert_eq!(
        (answer[0][0], answer[3][0], answer[3][2]),
        (1, 0, 1),
        "{answer:02X?}"
    );
    terminate(&child);
}

/// A list of expressions is bound and planned once.
#[test]
fn lists_of_many_expressions_stay_within_memory() {
    let (_directory, child, _, mut connection) = empty();
    connection
        .query_drop("CREATE TABLE d.o SELECT 1 AS id")
        .expect("a table");
    let items: Vec<String> = (0..10_000).map(|item| format!("{item}+id")).collect();
    let sql = format!("SELECT {} FROM d.o", items.join(","));
    within_memory(child.id(), || {
        let row: Option<Row> = connection.query_first(&sql).expect("a row");
        let last: Option<u32> = row.and_then(|row| row.get(9_999));
        assert_eq!(last, Some(10_000));
    });
    terminate(&child);
}

/// Statements that take much in one step, each twice. Those that do not fit are refused.
pub(super) fn take_much_at_once(connection: &mut Conn) {
    let list = |count: usize, by: &str, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<String>>().join(by)
    };
    let nest = (0..27).fold("id".to_string(), |inner, _| {
        format!("HEX(CONCAT({inner}, 1))")
    });
    let statements = [
        format!(
            "SELECT COUNT(*) FROM d.a WHERE {}",
            list(20_000, " OR ", &|n| format!("(k * {n} = {n})"))
        ),
        format!(
            "SELECT COUNT(*) FROM d.a WHERE k IN ({})",
            list(200_000, ",", &|n| n.to_string())
        ),
        format!(
            "SELECT {} FROM d.a LIMIT 1",
            list(20_000, ",", &|n| format!("{n} + id"))
        ),
        format!(
            "SELECT LENGTH(CONCAT({}))",
            list(16_000, ",", &|n| format!("HEX({n})"))
        ),
        format!(
            "SELECT LENGTH(CHAR({}))",
            list(60_000, ",", &|n| n.to_string())
        ),
        format!("SELECT SUM(LENGTH({nest})) FROM d.a WHERE id <= 1000"),
        format!(
            "SELECT {} FROM d.a o LIMIT 1",
            list(900, ",", &|n| format!(
                "(SELECT MAX(k + {n}) FROM d.a WHERE id <= o.id)"
            ))
        ),
    ];
    for sql in statements.iter().flat_map(|sql| [sql, sql]) {
        if let Err(error) = connection.query_drop(sql) {
            assert_eq!(error_of::<()>(Err(error)).0, 1041, "{}", &sql[..60]);
        }
    }
}

/// Statements whose plans are made in few and large steps. Those that do not fit are refused.
pub(super) fn plan_much_at_once(connection: &mut Conn) {
    let list = |count: usize, by: &str, item: &dyn Fn(usize) -> String| {
        (0..count).map(item).collect::<Vec<String>>().join(by)
    };
    let conditions = [
        list(2000, " OR ", &|n| {
            format!(
                "s BETWEEN CONCAT(CONCAT(REPEAT(id, 100), {n}), '') AND CONCAT(REPEAT(id, 100), 'y{n}')"
            )
        }),
        list(5000, " AND ", &|n| format!("s <> REPEAT('x', {})", n * 8)),
        list(5000, " OR ", &|n| {
            format!("(s, id) = (REPEAT('x', {}), {n})", n * 8)
        }),
        list(500, " OR ", &|n| {
            format!("EXISTS (SELECT 1 FROM d.a y WHERE y.id = x.id + {n} AND y.k = {n})")
        }),
    ];
    let documents = list(5000, ", ", &|n| {
        format!("JSON_OBJECT('a', {n}, 'b', JSON_ARRAY(1, 2, id))")
    });
    let conditions = conditions.iter();
    let conditions = conditions.map(|condition| format!("SELECT id FROM d.a x WHERE {condition}"));
    let documents = format!("SELECT JSON_LENGTH(JSON_ARRAY({documents})) FROM d.a");
    for sql in conditions.chain([documents]) {
        if let Err(error) = connection.query_drop(format!("EXPLAIN {sql}")) {
            assert_eq!(error_of::<()>(Err(error)).0, 1041, "{}", &sql[..60]);
        }
    }
}

#[test]
fn plans_that_are_made_in_large_steps_stay_within_memory() {
    let server = filled();
    let mut connection = connect(server.port);
    answer_of(&mut connection, "SELECT MAX(s) FROM d.a");
    within_memory(server.child.id(), || plan_much_at_once(&mut connection));
    assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
}

/// A statement that is about to take much asks for room before. The caches have given it back then.
#[test]
fn what_takes_much_at_once_stays_within_memory() {
    let server = filled();
    let mut connection = connect(server.port);
    answer_of(&mut connection, "SELECT MAX(s) FROM d.a");
    within_memory(server.child.id(), || take_much_at_once(&mut connection));
    assert_eq!(answer_of(&mut connection, "SELECT 1"), ["1"]);
}

/// Each waits for others before its text is read, and keeps nothing when it has been answered.
#[test]
fn long_statements_of_many_clients_have_an_answer() {
    const CLIENTS: usize = 30;
    const TEXT_BYTES: usize = 1_900_000;
    let (_directory, child, port, _connection) = empty();
    let process = child.id();
    let clients: Vec<Conn> = (0..CLIENTS).map(|_| connect(port)).collect();
    let clients: Vec<Conn> = within_memory(process, || {
        thread::scope(|scope| {
            let running: Vec<_> = clients
                .into_iter()
                .map(|mut client| {
                    scope.spawn(move || {
                        let sql = format!("SELECT LENGTH('{}')", "x".repeat(TEXT_BYTES));
                        let length: Option<usize> = client.query_first(sql).expect("an answer");
                        assert_eq!(length, Some(TEXT_BYTES));
                        client
                    })
                })
                .collect();
            let ended = running.into_iter().map(|client| client.join());
            ended.map(|client| client.expect("no panic")).collect()
        })
    });
    wait_until("the memory is given back", || resident_mib(process) < 40);
    drop(clients);
    terminate(&child);
}

/// Statements that take much before they run wait for one another, and small ones do not wait for them.
#[test]
fn many_clients_whose_statements_are_planned_stay_within_memory() {
    let (_directory, child, port, mut connection) = empty();
    let process = child.id();
    let mut nest = "SELECT 1 AS n".to_string();
    for level in 0..25 {
        nest = format!("SELECT t{level}.n + 1 AS n FROM ({nest}) t{level}");
    }
    let list = |count: usize, one: &dyn Fn(usize) -> String, between: &str| {
        let all: Vec<String> = (0..count).map(one).collect();
        all.join(between)
    };
    let of_items = format!("SELECT {}", list(4000, &|n| format!("{n}+1"), ", "));
    let of_unions = list(700, &|n| format!("SELECT {n} + 1"), " UNION ALL ");
    let of_terms = format!(
        "SELECT COUNT(*) FROM d.few WHERE {}",
        list(20_000, &|n| format!("k = {n}"), " OR ")
    );
    let of_members = format!(
        "SELECT COUNT(*) FROM d.few WHERE k IN ({})",
        list(100_000, &|n| n.to_string(), ",")
    );
    for sql in [
        // The machine may be busy with other tests.
        "SET GLOBAL query_memory_wait_timeout = 600",
        "CREATE TABLE d.few (id INT PRIMARY KEY, k INT)",
    ] {
        connection.query_drop(sql).expect(sql);
    }
    let waiting = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'Waiting for query memory'";
    let mut have_waited = false;
    for (sql, clients, least_answered) in [
        (of_items, 60, 31),
        (of_unions, 60, 31),
        (nest, 100, 51),
        (of_members, 60, 31),
        // One of them takes more than there is for all. It is refused, and so may be all.
        (of_terms, 60, 0),
    ] {
        let clients: Vec<Conn> = (0..clients).map(|_| connect(port)).collect();
        let answered = within_memory(process, || {
            thread::scope(|scope| {
                let sql = sql.as_str();
                let running: Vec<_> = clients
                    .into_iter()
                    .map(|mut client| {
                        scope.spawn(move || match client.query_drop(sql) {
                            Ok(()) => true,
                            Err(error) => {
                                assert_eq!(error_of::<()>(Err(error)).0, 1041);
                                false
                            }
                        })
                    })
                    .collect();
                while running.iter().any(|client| !client.is_finished()) {
                    have_waited |= answer_of(&mut connection, waiting) != ["0"];
                    thread::sleep(Duration::from_millis(10));
                }
                let ended = running.into_iter().map(|client| client.join());
                ended
                    .filter(|is_answered| *is_answered.as_ref().expect("no panic"))
                    .count()
            })
        });
        assert!(answered >= least_answered, "{answered}: {}", &sql[..80]);
    }
    assert!(have_waited, "they wait for one another");
    wait_until("the memory is given back", || resident_mib(process) < 40);
    terminate(&child);
}
