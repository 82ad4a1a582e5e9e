//! Connections that share threads are like those with threads of their own: they wait for each other only where their
//! statements do.

use std::sync::Barrier;

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_sql::EngineOptions;

use crate::harness::{TestServer, query_text, wait_until};
use crate::raw_client::{COM_QUERY, RawClient};

/// Many times as many as threads may run.
const CLIENTS: usize = 60;

/// A server whose connections share threads from the first one on.
fn server() -> TestServer {
    let options = EngineOptions {
        memory_bytes: 256 << 20,
        ..EngineOptions::default()
    };
    TestServer::start_with(options, |options, _| options.own_threads = 0)
}

fn run(connection: &mut Conn, statement: &str) {
    connection
        .query_drop(statement)
        .unwrap_or_else(|error| panic!("{statement}: {error}"));
}

#[test]
fn statements_of_many_connections_run_side_by_side() {
    let server = server();
    let mut root = server.connect_to_new("many");
    run(&mut root, "create table t (id int primary key, n int)");
    let rows: Vec<String> = (1..=CLIENTS).map(|id| format!("({id}, 0)")).collect();
    run(
        &mut root,
        &format!("insert into t values {}", rows.join(", ")),
    );
    let all_connected = Barrier::new(CLIENTS);
    std::thread::scope(|scope| {
        for id in 1..=CLIENTS {
            let (server, all_connected) = (&server, &all_connected);
            scope.spawn(move || {
                let options = server.options().db_name(Some("many"));
                let mut c = Conn::new(options).expect("there is room");
                all_connected.wait();
                for round in 0..20 {
                    let changed = c.exec_drop("update t set n = n + 1 where id = ?", (id,));
                    changed.expect("nobody else has the row");
                    let n: Option<i32> = c
                        .exec_first("select n from t where id = ?", (id,))
                        .expect("a row");
                    assert_eq!(n, Some(round + 1));
                }
                // By workers of vectorised plans.
                let sql = "select count(*) from t where n >= 0 group by n > 100";
                assert_eq!(query_text(&mut c, sql), [CLIENTS.to_string()]);
            });
        }
    });
    assert_eq!(
        query_text(&mut root, "select min(n), max(n) from t"),
        ["20\t20"]
    );
}

#[test]
fn connections_that_wait_for_a_lock_keep_nobody_from_giving_it_back() {
    let server = server();
    let mut root = server.connect_to_new("waiting");
    run(&mut root, "create table t (id int primary key, n int)");
    run(&mut root, "insert into t values (1, 0)");
    let mut holder = Conn::new(server.options().db_name(Some("waiting"))).expect("there is room");
    run(&mut holder, "begin");
    run(&mut holder, "update t set n = n + 1 where id = 1");
    std::thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                let options = server.options().db_name(Some("waiting"));
                let mut c = Conn::new(options).expect("there is room");
                run(&mut c, "update t set n = n + 1 where id = 1");
            });
        }
        let waiting =
            "select count(*) from information_schema.processlist where info like 'update%'";
        wait_until("all of them wait", || {
            query_text(&mut root, waiting) == [CLIENTS.to_string()]
        });
        run(&mut holder, "commit");
    });
    let sum = query_text(&mut root, "select n from t");
    assert_eq!(sum, [(CLIENTS + 1).to_string()]);
}

#[test]
fn long_statements_leave_room_for_others() {
    let server = server();
    let mut root = server.connect();
    let mut sleepers: Vec<(Conn, u32)> = (0..CLIENTS)
        .map(|_| {
            let c = server.connect();
            let id = c.connection_id();
            (c, id)
        })
        .collect();
    std::thread::scope(|scope| {
        let ids: Vec<u32> = sleepers.iter().map(|(_, id)| *id).collect();
        for (sleeper, _) in &mut sleepers {
            scope.spawn(|| {
                let interrupted = sleeper.query_drop("do sleep(10000)");
                assert!(interrupted.is_err(), "it was killed");
            });
        }
        let sleeping =
            "select count(*) from information_schema.processlist where info like 'do sleep%'";
        wait_until("all of them sleep", || {
            query_text(&mut root, sleeping) == [CLIENTS.to_string()]
        });
        for id in ids {
            run(&mut root, &format!("kill query {id}"));
        }
    });
    for (sleeper, _) in &mut sleepers {
        assert_eq!(query_text(sleeper, "select 1"), ["1"]);
    }
}

#[test]
fn silent_clients_are_let_go() {
    let server = server();
    let mut silent = server.connect();
    run(&mut silent, "set wait_timeout = 1");
    let mut killed = server.connect();
    let id = killed.connection_id();
    let mut root = server.connect();
    run(&mut root, &format!("kill {id}"));
    assert!(killed.query_drop("select 1").is_err());
    let connected = "select count(*) from information_schema.processlist";
    wait_until("only one is left", || {
        query_text(&mut root, connected) == ["1"]
    });
    assert!(silent.query_drop("select 1").is_err());
    // As many come and go as there is room for, and more.
    for _ in 0..3 {
        let some: Vec<Conn> = (0..20).map(|_| server.connect()).collect();
        drop(some);
    }
    wait_until("they are gone", || {
        query_text(&mut root, connected) == ["1"]
    });
}

#[test]
fn packets_come_in_pieces_and_several_at_once() {
    let server = server();
    let mut client = RawClient::connect(server.address(), 0);
    client.send_bytes_one_by_one();
    client.succeed(COM_QUERY, b"set @a = 1");
    let mut hasty = RawClient::connect(server.address(), 0);
    let command = |text: &[u8]| {
        let mut frame = ((text.len() + 1) as u32).to_le_bytes()[..3].to_vec();
        frame.extend_from_slice(&[0, COM_QUERY]);
        frame.extend_from_slice(text);
        frame
    };
    let three = [
        command(b"set @a = 1"),
        command(b"set @a = 2"),
        command(b"set @a = 3"),
    ]
    .concat();
    hasty.send_raw(&three).expect("the server listens");
    for _ in 0..3 {
        assert_eq!(hasty.receive_payload()[0], 0, "OK");
    }
}

/// Commands as a client sends them.
fn commands(texts: impl Iterator<Item = String>) -> Vec<u8> {
    texts
        .flat_map(|text| {
            let mut frame = ((text.len() + 1) as u32).to_le_bytes()[..3].to_vec();
            frame.extend_from_slice(&[0, COM_QUERY]);
            frame.extend_from_slice(text.as_bytes());
            frame
        })
        .collect()
}

#[test]
fn what_does_not_fit_into_one_read_is_not_forgotten() {
    let server = server();
    // The server reads 16 KiB at once: the bounds of reads and commands meet in different ways.
    for length in [90, 123, 1024 - 5, 4096 - 5, 16 * 1024 - 5] {
        let count = 256 * 1024 / (length + 5);
        let mut client = RawClient::connect(server.address(), 0);
        let statement = |n: usize| format!("{:length$}", format!("set @a = {n}"));
        let all = commands((0..count).map(statement));
        client.send_raw(&all).expect("the server listens");
        for _ in 0..count {
            assert_eq!(client.receive_payload()[0], 0, "OK");
        }
        client.succeed(COM_QUERY, b"set @a = 0");
    }
}

#[test]
fn a_client_that_hangs_up_behind_a_command_is_answered_and_let_go() {
    let server = server();
    let mut root = server.connect();
    let connected = "select count(*) from information_schema.processlist";
    for round in 0..50 {
        let mut client = RawClient::connect(server.address(), 0);
        // Both come at once, so there may be one report for both.
        let last = commands([format!("set @a = {round}")].into_iter());
        client.send_raw(&last).expect("the server listens");
        client.hang_up();
        assert_eq!(client.receive_payload()[0], 0, "OK");
        client.assert_closed();
    }
    wait_until("only one is left", || {
        query_text(&mut root, connected) == ["1"]
    });
}

#[test]
fn commands_that_come_while_one_runs_are_found() {
    let server = server();
    let mut root = server.connect_to_new("gate");
    run(&mut root, "create table t (id int primary key, n int)");
    run(&mut root, "insert into t values (1, 0)");
    let waiting =
        "select count(*) from information_schema.processlist where info like 'update gate.t%'";
    let mut client = RawClient::connect(server.address(), 0);
    for round in 1..=20 {
        run(&mut root, "begin");
        run(&mut root, "select n from t where id = 1 for update");
        let first = commands(["update gate.t set n = n + 1 where id = 1".to_string()].into_iter());
        client.send_raw(&first).expect("the server listens");
        wait_until("it waits", || query_text(&mut root, waiting) == ["1"]);
        // Reported while the connection is being served.
        let second =
            commands([format!("update gate.t set n = n + {round} where id = 1")].into_iter());
        client.send_raw(&second).expect("the server listens");
        run(&mut root, "commit");
        for _ in 0..2 {
            assert_eq!(client.receive_payload()[0], 0, "OK");
        }
    }
    assert_eq!(query_text(&mut root, "select n from t"), ["230"]);
}
