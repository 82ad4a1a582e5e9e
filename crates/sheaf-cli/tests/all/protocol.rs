//! The protocol as the server must hold it whatever a client does.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn, OptsBuilder};
use sheaf_sql::EngineOptions;

use crate::harness::{TestServer, error_of, query_text, wait_until};
use crate::raw_client::{CLIENT_CONNECT_WITH_DB, CLIENT_DEPRECATE_EOF, COM_QUERY, RawClient};

const COM_INIT_DB: u8 = 2;
const COM_FIELD_LIST: u8 = 4;
const COM_STATISTICS: u8 = 9;
const COM_PROCESS_KILL: u8 = 12;
const COM_PING: u8 = 14;
const COM_BINLOG_DUMP: u8 = 18;
const COM_STMT_EXECUTE: u8 = 23;
const COM_STMT_CLOSE: u8 = 25;
const COM_STMT_RESET: u8 = 26;
const COM_SET_OPTION: u8 = 27;
const COM_RESET_CONNECTION: u8 = 31;

#[test]
fn a_client_can_ping_reset_and_leave() {
    let server = TestServer::start();
    let mut connection = server.connect();
    connection.ping().expect("the connection is alive");
    connection
        .reset()
        .expect("COM_RESET_CONNECTION is supported");
    connection
        .change_user(ChangeUserOpts::new())
        .expect("root may become root");
    connection.ping().expect("the connection is alive");
    server.wait_for_connections(1);
    drop(connection);
    server.wait_for_connections(0);
}

#[test]
fn the_greeting_says_what_the_server_is() {
    let server = TestServer::start();
    let connection = server.connect();
    assert_eq!(connection.server_version().0, 8);
    assert!(connection.connection_id() > 0);
}

#[test]
fn only_root_without_password_is_let_in() {
    let server = TestServer::start();
    let as_user = |user: &str, password: Option<&str>| {
        error_of(Conn::new(server.options().user(Some(user)).pass(password)))
    };
    assert_eq!(as_user("alice", None), (1045, "28000".into()));
    assert_eq!(as_user("root", Some("guess")), (1045, "28000".into()));
    assert_eq!(
        error_of(Conn::new(server.options().db_name(Some("missing")))),
        (1049, "42000".into())
    );
}

#[test]
fn other_machines_are_refused_before_the_greeting() {
    // A connection to an address of this machine that is not loopback comes from that address.
    let Some(outside) = address_of_this_machine() else {
        println!("SKIPPED: this machine has no address but loopback");
        return;
    };
    let server = TestServer::start_with(EngineOptions::default(), |options, _| {
        options.listen = Some(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)));
    });
    let mut client = RawClient::dial((outside, server.port()).into());
    let error = client.receive_error();
    assert_eq!((error.code, error.state.as_str()), (1130, ""));
    assert!(
        error.message.contains(&outside.to_string()),
        "{}",
        error.message
    );
    client.assert_closed();
}

/// Connecting a datagram socket sends nothing; it only picks the address that packets would leave from.
fn address_of_this_machine() -> Option<Ipv4Addr> {
    let socket = std::net::UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
    socket.connect((Ipv4Addr::new(192, 0, 2, 1), 9)).ok()?;
    match socket.local_addr().ok()? {
        SocketAddr::V4(address)
            if !address.ip().is_loopback() && !address.ip().is_unspecified() =>
        {
            Some(*address.ip())
        }
        _ => None,
    }
}

#[test]
fn one_client_too_many_is_told_so() {
    let options = EngineOptions {
        max_connections: 2,
        ..EngineOptions::default()
    };
    let server = TestServer::start_with(options, |_, _| {});
    let first = RawClient::connect(server.address(), 0);
    let mut second = RawClient::connect(server.address(), 0);
    second.succeed(COM_QUERY, b"create user guest");
    let refused = |user: &str| {
        let mut client = RawClient::dial(server.address());
        client.receive_payload();
        client.send_response(user, 0);
        let error = client.receive_error();
        client.assert_closed();
        (error.code, error.state, error.message)
    };
    let too_many = (
        1040,
        "08004".to_string(),
        "Too many connections".to_string(),
    );
    assert_eq!(refused("guest"), too_many);
    // There is one more for a user that may end the connections of others.
    let mut third = RawClient::connect(server.address(), 0);
    third.succeed(COM_PING, b"");
    assert_eq!(refused("root"), too_many);
    drop(first);
    drop(third);
    server.wait_for_connections(1);
    let mut third = RawClient::connect(server.address(), 0);
    third.succeed(COM_PING, b"");
    // The limit may be raised while the server runs.
    second.succeed(COM_QUERY, b"set global max_connections = 3");
    RawClient::connect(server.address(), 0).succeed(COM_PING, b"");
}

/// Connections that say nothing do not take the place of a client that logs in: the oldest of them has to go.
#[test]
fn silent_connections_keep_nobody_out() {
    let options = EngineOptions {
        max_connections: 1,
        ..EngineOptions::default()
    };
    let server = TestServer::start_with(options, |_, _| {});
    let mut first = RawClient::connect(server.address(), 0);
    let mut silent: Vec<RawClient> = Vec::new();
    for _ in 0..40 {
        let mut client = RawClient::dial(server.address());
        client.receive_payload();
        silent.push(client);
    }
    // The place of the administrator.
    let mut second = RawClient::connect(server.address(), 0);
    second.succeed(COM_PING, b"");
    silent[0].assert_closed();
    first.succeed(COM_PING, b"");
    // Those that came last may still log in.
    let mut last = silent.pop().expect("there are some");
    last.send_response("root", 0);
    assert_eq!(last.receive_error().code, 1040);
    server.wait_for_connections(2 + 14);
}

/// What a client has sent before it left is run, as long as it is not the last command that takes long.
#[test]
fn commands_that_a_client_leaves_behind_are_run() {
    let server = TestServer::start();
    let mut root = server.connect();
    root.query_drop("CREATE DATABASE left_behind").unwrap();
    root.query_drop("CREATE TABLE left_behind.t (a INT)")
        .unwrap();
    for says_goodbye in [true, false] {
        let mut client = RawClient::connect(server.address(), 0);
        let mut sent = Vec::new();
        for sql in ["SELECT SLEEP(1)", "INSERT left_behind.t VALUES (1)"] {
            sent.extend((sql.len() as u32 + 1).to_le_bytes());
            sent.push(COM_QUERY);
            sent.extend(sql.as_bytes());
        }
        if says_goodbye {
            sent.extend([1, 0, 0, 0, 1]);
        }
        client.send_raw(&sent).expect("the server listens");
        drop(client);
    }
    wait_until("both rows are there", || {
        query_text(&mut root, "SELECT COUNT(*) FROM left_behind.t") == ["2"]
    });
}

/// Each of its bytes comes in time; all of them would take minutes.
#[test]
fn a_client_that_trickles_is_turned_away() {
    let server = TestServer::start();
    let mut root = server.connect();
    root.query_drop("SET GLOBAL connect_timeout = 2")
        .expect("it may be set");
    let mut stranger = RawClient::dial(server.address());
    stranger.receive_payload();
    stranger
        .send_raw(&[200, 0, 0, 1])
        .expect("the server listens");
    let mut bytes = 0;
    while stranger.send_raw(&[0]).is_ok() {
        bytes += 1;
        assert!(bytes < 150, "the server still listens");
        std::thread::sleep(Duration::from_millis(100));
    }
    stranger.assert_closed();
    server.wait_for_connections(1);
    root.ping().expect("a client that was let in stays");
}

#[test]
fn garbage_instead_of_a_handshake_ends_that_connection_only() {
    let server = TestServer::start();
    let mut client = RawClient::connect(server.address(), 0);
    for garbage in [
        &b"GET / HTTP/1.1\r\nHost: database\r\n\r\n"[..],
        b"\x00\x00\x00\x01",
        b"\x05\x00\x00\x01\xFF\xFF\xFF\xFF\xFF",
        b"\x20\x00\x00\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\
          \xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        &[0xFF; 200],
    ] {
        let mut stranger = RawClient::dial(server.address());
        stranger.receive().expect("the server greets");
        stranger.send_raw(garbage).expect("the server reads");
        assert_eq!(stranger.receive_error().code, 1043, "{garbage:02X?}");
        stranger.assert_closed();
    }
    // Half a header and a goodbye.
    RawClient::dial(server.address())
        .send_raw(&[1])
        .expect("the server reads");
    client.succeed(COM_PING, b"");
    server.wait_for_connections(1);
}

#[test]
fn a_frame_out_of_order_ends_the_connection() {
    let server = TestServer::start();
    let mut client = RawClient::connect(server.address(), 0);
    client.send_frame(5, &[COM_PING]).expect("the server reads");
    let error = client.receive_error();
    assert_eq!((error.code, error.state.as_str()), (1156, "08S01"));
    client.assert_closed();
}

#[test]
fn malformed_commands_are_errors_and_the_connection_goes_on() {
    let server = TestServer::start();
    let mut client = RawClient::connect(server.address(), 0);
    for (command, body, code) in [
        (COM_BINLOG_DUMP, &b"\0\0\0\0"[..], 1835),
        (200, b"", 1047),
        (COM_SET_OPTION, b"\x07\x00", 1047),
        (COM_STMT_EXECUTE, b"\x01", 1835),
        (COM_STMT_EXECUTE, b"\x63\0\0\0\0\x01\0\0\0", 1243),
        (COM_STMT_RESET, b"\x63\0\0\0", 1243),
        (COM_PROCESS_KILL, b"\x01", 1835),
        (COM_PROCESS_KILL, b"\xFF\xFF\xFF\x7F", 1094),
        (COM_QUERY, b"SELECT `\xC3`", 1300),
        (COM_INIT_DB, b"missing", 1049),
        (COM_FIELD_LIST, b"missing\0", 1046),
    ] {
        let error = client.fail(command, body);
        assert_eq!(
            error.code, code,
            "command {command} {body:02X?}: {}",
            error.message
        );
    }
    // An empty packet is no command, and closing an unknown statement has no answer.
    client.send_frame(0, b"").expect("the server reads");
    assert_eq!(client.receive_error().code, 1047);
    client
        .send_command(COM_STMT_CLOSE, b"\x63\0\0\0")
        .expect("the server reads");
    client.succeed(COM_PING, b"");
    client.succeed(COM_RESET_CONNECTION, b"");
}

/// However the network cuts what a client sends, the answers are the same.
#[test]
fn packets_may_come_byte_by_byte() {
    let server = TestServer::start();
    let mut client = RawClient::dial(server.address());
    client.send_bytes_one_by_one();
    client.receive().expect("the greeting");
    client.send_response("root", 0);
    assert_eq!(client.receive_payload()[0], 0, "root is let in");
    client.succeed(COM_PING, b"");
    client.succeed(COM_QUERY, b"SET @a = 'a statement of some length'");
    assert_eq!(client.fail(COM_QUERY, b"nonsense").code, 1064);
    client.succeed(COM_RESET_CONNECTION, b"");
}

#[test]
fn statistics_are_a_line_of_text() {
    let server = TestServer::start();
    let mut connection = server.connect();
    for sql in ["SET long_query_time = 0", "DO 1"] {
        connection.query_drop(sql).expect("it is right");
    }
    let mut client = RawClient::connect(server.address(), 0);
    client
        .send_command(COM_STATISTICS, b"")
        .expect("the server reads");
    let line = String::from_utf8(client.receive_payload()).expect("the line is UTF-8");
    assert!(line.starts_with("Uptime: "), "{line}");
    let slow = line.split("Slow queries: ").nth(1);
    let slow = slow.and_then(|rest| rest.split(' ').next()?.parse::<u64>().ok());
    assert!(slow.is_some_and(|slow| slow > 0), "{line}");
}

#[test]
fn a_result_ends_as_the_client_understands_it() {
    let server = TestServer::start();
    // Column count, definition, EOF, row, EOF.
    let mut client = RawClient::connect(server.address(), 0);
    client
        .send_command(COM_QUERY, b"SELECT 'a'")
        .expect("the server reads");
    let packets: Vec<Vec<u8>> = (0..5).map(|_| client.receive_payload()).collect();
    assert_eq!(packets[0], [1]);
    assert!(packets[1].starts_with(b"\x03def"));
    assert_eq!(packets[2], [0xFE, 0, 0, 2, 0]);
    assert_eq!(packets[3], b"\x01a");
    assert_eq!(packets[4], [0xFE, 0, 0, 2, 0]);

    // Column count, definition, row, OK with the header of an EOF.
    let mut client = RawClient::connect(server.address(), CLIENT_DEPRECATE_EOF);
    client
        .send_command(COM_QUERY, b"SELECT 'a'")
        .expect("the server reads");
    let packets: Vec<Vec<u8>> = (0..4).map(|_| client.receive_payload()).collect();
    assert_eq!(packets[0], [1]);
    assert_eq!(packets[2], b"\x01a");
    assert_eq!(packets[3], [0xFE, 0, 0, 2, 0, 0, 0]);
}

#[test]
fn a_handshake_that_promises_a_database_must_name_it() {
    let server = TestServer::start();
    let mut client = RawClient::dial(server.address());
    client.receive().expect("the server greets");
    client.send_response("root", CLIENT_CONNECT_WITH_DB);
    let answer = client.receive_payload();
    // The name is missing: it is empty or the packet is malformed, but never something else.
    assert!(answer[0] == 0 || answer[0] == 0xFF, "{answer:02X?}");
    server.wait_for_connections(usize::from(answer[0] == 0));
}

/// A server that takes packets longer than a frame: the limit follows the memory.
fn server_with_long_packets() -> TestServer {
    let options = EngineOptions {
        memory_bytes: 1 << 30,
        ..EngineOptions::default()
    };
    TestServer::start_with(options, |_, _| {})
}

#[test]
fn a_request_may_be_longer_than_a_frame() {
    let server = server_with_long_packets();
    let mut connection = server.connect();
    let length = 20 << 20;
    let sql = format!("SELECT LENGTH('{}')", "x".repeat(length));
    let answer: Option<u64> = connection.query_first(sql).expect("20 MiB are allowed");
    assert_eq!(answer, Some(length as u64));
}

#[test]
fn an_answer_may_be_longer_than_a_frame() {
    let server = server_with_long_packets();
    let mut connection = server.connect();
    let length = 17 << 20;
    let text: String = connection
        .query_first(format!("SELECT REPEAT('x', {length})"))
        .expect("17 MiB are allowed")
        .expect("there is a row");
    assert_eq!(text.len(), length);
    assert!(text.bytes().all(|byte| byte == b'x'));
}

#[test]
fn a_request_beyond_the_limit_is_an_error_and_the_connection_goes_on() {
    let server = TestServer::start();
    let mut client = RawClient::connect(server.address(), 0);
    let sql = format!("SELECT LENGTH('{}')", "x".repeat(64 << 20));
    client
        .send_command(COM_QUERY, sql.as_bytes())
        .expect("the server reads all of it");
    let error = client.receive_error();
    assert_eq!((error.code, error.state.as_str()), (1153, "08S01"));
    client.succeed(COM_PING, b"");
}

#[test]
fn several_statements_in_one_request_give_several_answers() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("several");
    let mut results = connection
        .query_iter(
            "CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2); SELECT a FROM t; SELECT 'end'",
        )
        .expect("the client said that it understands this");
    let mut seen = Vec::new();
    while let Some(result) = results.iter() {
        let affected = result.affected_rows();
        let rows: Vec<String> = result
            .map(|row| mysql::from_row(row.expect("a row")))
            .collect();
        seen.push((affected, rows));
    }
    assert_eq!(
        seen,
        [
            (0, vec![]),
            (2, vec![]),
            (0, vec!["1".to_string(), "2".to_string()]),
            (0, vec!["end".to_string()])
        ]
    );
}

#[test]
fn an_error_ends_the_request_and_the_answers_before_it_count() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("several");
    let mut client = RawClient::connect(server.address(), 0);
    client.succeed(COM_INIT_DB, b"several");
    client
        .send_command(COM_SET_OPTION, b"\0\0")
        .expect("the server reads");
    assert_eq!(client.receive_payload()[0], 0xFE);
    let sql = b"CREATE TABLE t (a INT); SELECT * FROM missing; DROP TABLE t";
    client
        .send_command(COM_QUERY, sql)
        .expect("the server reads");
    assert_eq!(client.receive_payload(), [0, 0, 0, 2 | 8, 0, 0, 0]);
    assert_eq!(client.receive_error().code, 1146);
    client.succeed(COM_PING, b"");
    assert_eq!(query_text(&mut connection, "SHOW TABLES"), ["t"]);
}

#[test]
fn one_statement_is_all_a_client_gets_that_did_not_ask_for_more() {
    let server = TestServer::start();
    let mut client = RawClient::connect(server.address(), 0);
    assert_eq!(client.fail(COM_QUERY, b"SELECT 1; SELECT 2").code, 1064);
    client
        .send_command(COM_SET_OPTION, b"\0\0")
        .expect("the server reads");
    assert_eq!(client.receive_payload()[0], 0xFE);
    client
        .send_command(COM_QUERY, b"DO 1; DO 2")
        .expect("the server reads");
    assert_eq!(client.receive_payload(), [0, 0, 0, 2 | 8, 0, 0, 0]);
    assert_eq!(client.receive_payload(), [0, 0, 0, 2, 0, 0, 0]);
}

/// Ten thousand rows joined with themselves: more than any socket buffer holds, and more than anyone waits for.
pub fn prepare_endless_query(connection: &mut Conn) -> &'static str {
    connection
        .query_drop("CREATE TABLE digits (d INT PRIMARY KEY)")
        .expect("the database is empty");
    connection
        .query_drop("INSERT INTO digits VALUES (0),(1),(2),(3),(4),(5),(6),(7),(8),(9)")
        .expect("the table is empty");
    "SELECT a.d, b.d, c.d, REPEAT('padding', 20) FROM digits a, digits b, digits c, digits d, digits e, \
     digits f, digits g, digits h, digits i, digits j, digits k"
}

/// The same work with one number as its answer.
fn counting(endless_query: &str) -> String {
    endless_query.replacen("a.d, b.d, c.d, REPEAT('padding', 20)", "COUNT(*)", 1)
}

#[test]
fn a_client_that_disappears_in_mid_result_leaves_nothing_behind() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("endless");
    let sql = prepare_endless_query(&mut connection);
    let mut client = RawClient::connect(server.address(), 0);
    client.succeed(COM_INIT_DB, b"endless");
    client
        .send_command(COM_QUERY, sql.as_bytes())
        .expect("the server reads");
    for _ in 0..100 {
        client.receive().expect("rows come");
    }
    server.wait_for_connections(2);
    drop(client);
    server.wait_for_connections(1);
    assert_eq!(
        query_text(&mut connection, "SELECT COUNT(*) FROM digits"),
        ["10"]
    );
    connection
        .query_drop("DROP TABLE digits")
        .expect("nobody holds the table");
}

#[test]
fn a_client_that_disappears_while_its_statement_computes_does_not_leave_it_running() {
    let server = TestServer::start();
    let mut connection = server.connect_to_new("endless");
    let rows = prepare_endless_query(&mut connection);
    let mut client = RawClient::connect(server.address(), 0);
    client.succeed(COM_INIT_DB, b"endless");
    let counting = counting(rows);
    client
        .send_command(COM_QUERY, counting.as_bytes())
        .expect("the server reads");
    wait_until("the statement to run", || {
        query_text(&mut connection, "SHOW PROCESSLIST")
            .iter()
            .any(|line| line.contains("SELECT COUNT"))
    });
    drop(client);
    server.wait_for_connections(1);
}

#[test]
fn a_running_statement_can_be_killed_and_its_connection_goes_on() {
    let server = TestServer::start();
    let mut killer = server.connect_to_new("endless");
    let rows = prepare_endless_query(&mut killer);
    let counting = counting(rows);
    let mut victim = server.connect();
    victim
        .query_drop("USE endless")
        .expect("the database exists");
    let id = victim.connection_id();
    let running = std::thread::spawn(move || {
        let outcome = error_of(victim.query_drop(counting));
        (outcome, query_text(&mut victim, "SELECT 'still here'"))
    });
    wait_until("the statement to run", || {
        query_text(&mut killer, "SHOW PROCESSLIST")
            .iter()
            .any(|line| line.starts_with(&format!("{id}\t")) && line.contains("COUNT(*)"))
    });
    killer
        .query_drop(format!("KILL QUERY {id}"))
        .expect("the session exists");
    let (outcome, afterwards) = running.join().expect("the victim does not panic");
    assert_eq!(outcome, (1317, "70100".into()));
    assert_eq!(afterwards, ["still here"]);
}

#[test]
fn an_idle_connection_can_be_killed() {
    let server = TestServer::start();
    let mut killer = server.connect();
    let mut victim = RawClient::connect(server.address(), 0);
    server.wait_for_connections(2);
    let id = query_text(&mut killer, "SHOW PROCESSLIST")
        .iter()
        .filter_map(|line| line.split('\t').next()?.parse::<u32>().ok())
        .find(|&id| id != killer.connection_id())
        .expect("the victim is listed");
    killer
        .query_drop(format!("KILL {id}"))
        .expect("the session exists");
    victim.assert_closed();
    server.wait_for_connections(1);
    assert_eq!(
        error_of(killer.query_drop(format!("KILL {id}"))),
        (1094, "HY000".into())
    );
}

#[test]
fn a_unix_socket_is_another_door() {
    let server = TestServer::start_with(EngineOptions::default(), |options, directory| {
        let path = directory.path().join("sheaf.sock");
        // A file that a server left behind does not keep the next one out.
        drop(std::os::unix::net::UnixListener::bind(&path).expect("the path is free"));
        options.socket = Some(path);
    });
    let path = server.directory().path().join("sheaf.sock");
    let options = OptsBuilder::new().socket(path.to_str()).user(Some("root"));
    let mut connection = Conn::new(options).expect("root may connect");
    assert_eq!(query_text(&mut connection, "SELECT 1 + 1"), ["2"]);
    drop(connection);
    drop(server);
    assert!(!path.exists(), "the socket's file is gone with the server");
}

#[test]
fn a_session_counts_what_it_received_and_sent() {
    let server = TestServer::start();
    let mut c = server.connect();
    let count = |c: &mut Conn, name: &str| -> u64 {
        let row: Option<(String, u64)> = c
            .query_first(format!("show session status like '{name}'"))
            .expect("a status variable");
        row.expect("it is listed").1
    };
    let long = "x".repeat(10_000);
    let (received, sent) = (count(&mut c, "Bytes_received"), count(&mut c, "Bytes_sent"));
    c.query_drop(format!("do length('{long}')"))
        .expect("a function");
    let (received_more, sent_little) = (
        count(&mut c, "Bytes_received") - received,
        count(&mut c, "Bytes_sent") - sent,
    );
    assert!((10_000..11_000).contains(&received_more), "{received_more}");
    assert!(sent_little < 1_000, "{sent_little}");
    let sent = count(&mut c, "Bytes_sent");
    c.query_drop("select repeat('x', 10000)").expect("a row");
    let sent_more = count(&mut c, "Bytes_sent") - sent;
    assert!((10_000..11_000).contains(&sent_more), "{sent_more}");

    // A statement is slow that takes as long as the session says.
    assert_eq!(count(&mut c, "Slow_queries"), 0);
    c.query_drop("set long_query_time = 0").expect("a variable");
    c.query_drop("do 1").expect("an expression");
    c.query_drop("set long_query_time = 1000")
        .expect("a variable");
    assert_eq!(count(&mut c, "Slow_queries"), 2);
}
