//! Clients that stop in the middle: they hurt themselves and nobody else, whether connections have threads of their own
//! or share them.

use mysql::Conn;
use mysql::prelude::Queryable;
use sheaf_sql::EngineOptions;

use crate::harness::{TestServer, query_text, wait_until};
use crate::protocol::prepare_endless_query;
use crate::raw_client::{COM_QUERY, RawClient};

const COM_INIT_DB: u8 = 2;
const COM_PING: u8 = 14;
const MAX_FRAME_BYTES: usize = 0xFF_FFFF;
/// More than may run at the same time on a small machine.
const CULPRITS: usize = 8;

/// Runs a test with threads for all connections, and with shared ones. `root` is in a new database.
fn with_own_and_shared_threads(test: fn(&TestServer, Conn)) {
    for own_threads in [64, 0] {
        let options = EngineOptions {
            memory_bytes: 256 << 20,
            ..EngineOptions::default()
        };
        let server =
            TestServer::start_with(options, |options, _| options.own_threads = own_threads);
        let root = server.connect_to_new("others");
        test(&server, root);
    }
}

/// What others do meanwhile.
fn assert_others_work(root: &mut Conn) {
    let run = |root: &mut Conn, sql: &str| {
        root.query_drop(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    };
    run(root, "drop table if exists t");
    run(root, "create table t (id int primary key, n int)");
    run(root, "insert into t values (1, 0), (2, 0)");
    for _ in 0..20 {
        run(root, "update t set n = n + 1 where id = 1");
    }
    let sql = "select sum(n), count(*) from t group by n > 100";
    assert_eq!(query_text(root, sql), ["20\t2"]);
}

fn global_count(root: &mut Conn, name: &str) -> u64 {
    let row: Option<(String, u64)> = root
        .query_first(format!("show global status like '{name}'"))
        .expect("a status variable");
    row.expect("it is listed").1
}

#[test]
fn a_client_that_does_not_read_an_answer_is_let_go() {
    with_own_and_shared_threads(|server, mut root| {
        let sql = prepare_endless_query(&mut root);
        let culprits: Vec<RawClient> = (0..CULPRITS)
            .map(|_| {
                let mut client = RawClient::connect(server.address(), 0);
                client.succeed(COM_INIT_DB, b"others");
                client.succeed(COM_QUERY, b"set net_write_timeout = 1");
                client
                    .send_command(COM_QUERY, sql.as_bytes())
                    .expect("the server reads");
                client
            })
            .collect();
        assert_others_work(&mut root);
        server.wait_for_connections(1);
        assert_eq!(global_count(&mut root, "Aborted_clients"), CULPRITS as u64);
        drop(culprits);
        assert_others_work(&mut root);
    });
}

#[test]
fn a_client_that_stops_in_the_middle_of_a_request_is_let_go() {
    with_own_and_shared_threads(|server, mut root| {
        let mut culprits: Vec<RawClient> = (0..CULPRITS)
            .map(|number| {
                let mut client = RawClient::connect(server.address(), 0);
                client.succeed(COM_QUERY, b"set net_read_timeout = 1");
                // A header of 100 bytes, and some of them; or half a header.
                let begin = [&[100, 0, 0, 0, COM_QUERY][..], b"do 1"].concat();
                let bytes = if number % 2 == 0 {
                    &begin[..]
                } else {
                    &begin[..2]
                };
                client.send_raw(bytes).expect("the server reads");
                client
            })
            .collect();
        assert_others_work(&mut root);
        server.wait_for_connections(1);
        for culprit in &mut culprits {
            // It is told why, or just gone.
            let _ = culprit.receive();
            culprit.assert_closed();
        }
        assert_eq!(global_count(&mut root, "Aborted_clients"), CULPRITS as u64);
    });
}

/// A client that says goodbye is no aborted one; one that closes its half, or vanishes, is.
#[test]
fn a_client_that_leaves_without_a_word_is_counted() {
    with_own_and_shared_threads(|server, mut root| {
        let mut polite = server.connect();
        polite.query_drop("do 1").expect("it is let in");
        drop(polite);
        server.wait_for_connections(1);
        assert_eq!(global_count(&mut root, "Aborted_clients"), 0);
        let mut half = RawClient::connect(server.address(), 0);
        half.succeed(COM_PING, b"");
        half.hang_up();
        half.assert_closed();
        drop(RawClient::connect(server.address(), 0));
        server.wait_for_connections(1);
        assert_eq!(global_count(&mut root, "Aborted_clients"), 2);
        // Neither was one that was not let in.
        assert_eq!(global_count(&mut root, "Aborted_connects"), 0);
        drop(RawClient::dial(server.address()));
        wait_until("it is counted", || {
            global_count(&mut root, "Aborted_connects") == 1
        });
        assert_eq!(global_count(&mut root, "Aborted_clients"), 2);
    });
}

#[test]
fn frames_of_a_request_come_in_their_order() {
    with_own_and_shared_threads(|server, mut root| {
        let mut first = vec![b' '; MAX_FRAME_BYTES];
        first[0] = COM_QUERY;
        for wrong in [0, 2, 255] {
            let mut client = RawClient::connect(server.address(), 0);
            client.succeed(COM_PING, b"");
            client.send_frame(0, &first).expect("the server reads");
            client.send_frame(wrong, b"do 1").expect("the server reads");
            assert_eq!(client.receive_error().code, 1156, "{wrong}");
            client.assert_closed();
        }
        let mut client = RawClient::connect(server.address(), 0);
        client.send_frame(0, &first).expect("the server reads");
        client.send_frame(1, b"do 1").expect("the server reads");
        // In order it is only too long, and the connection goes on.
        assert_eq!(client.receive_error().code, 1153);
        client.succeed(COM_PING, b"");
        assert_others_work(&mut root);
    });
}

/// Answers of statements that commit come in the order of the requests, and tell of what is there.
#[test]
fn requests_that_come_at_once_are_answered_one_by_one() {
    with_own_and_shared_threads(|server, mut root| {
        assert_others_work(&mut root);
        let mut client = RawClient::connect(server.address(), 0);
        client.succeed(COM_INIT_DB, b"others");
        let mut requests = Vec::new();
        for n in 0..50 {
            for sql in [
                format!("update t set n = {n} where id = 2"),
                format!("insert into t values ({}, 0)", 10 + n),
                "insert into t values (1, 1)".to_string(),
                format!("do 1 / (select n = {n} from t where id = 2)"),
            ] {
                let frame = [
                    &(sql.len() as u32 + 1).to_le_bytes()[..3],
                    &[0, COM_QUERY],
                    sql.as_bytes(),
                ];
                requests.extend_from_slice(&frame.concat());
            }
        }
        client.send_raw(&requests).expect("the server reads");
        for n in 0..50 {
            for expected in [0, 0, 0xFF, 0] {
                assert_eq!(client.receive_payload()[0], expected, "{n}");
            }
        }
        assert_eq!(
            query_text(&mut root, "select count(*), max(n) from t"),
            ["52\t49"]
        );
    });
}
