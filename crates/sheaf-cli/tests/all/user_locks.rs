//! GET_LOCK: sessions that wait for each other, and what ends a wait or releases a lock.

use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{ChangeUserOpts, Conn};

use crate::harness::{TestServer, query_text, wait_until};
use crate::raw_client::{COM_QUERY, RawClient};
use crate::transactions::{error_of, run};

/// No wait of these tests takes as long, in seconds.
const FOR_EVER: u32 = 600;

fn waiting_sessions(watcher: &mut Conn) -> Vec<String> {
    query_text(
        watcher,
        "select id from information_schema.processlist where state = 'User lock'",
    )
}

fn holder(watcher: &mut Conn) -> String {
    query_text(watcher, "select is_used_lock('a')").remove(0)
}

fn take(connection: &mut Conn, name: &str) -> Vec<String> {
    query_text(
        connection,
        &format!("select get_lock('{name}', {FOR_EVER})"),
    )
}

fn holding_a(server: &TestServer) -> Conn {
    let mut connection = server.connect();
    assert_eq!(take(&mut connection, "a"), ["1"]);
    connection
}

/// Does what has to wait for a lock of another session until `end` has run, which is told the session that waits.
fn waits<T: Send>(
    server: &TestServer,
    work: impl FnOnce(&mut Conn) -> T + Send,
    end: impl FnOnce(u32),
) -> T {
    let mut watcher = server.connect();
    let mut waiting = server.connect();
    let id = waiting.connection_id();
    std::thread::scope(|scope| {
        let statement = scope.spawn(move || work(&mut waiting));
        wait_until("the session to wait", || {
            waiting_sessions(&mut watcher) == [id.to_string()]
        });
        assert!(!statement.is_finished());
        end(id);
        statement.join().expect("the statement")
    })
}

#[test]
fn a_lock_is_kept_from_other_sessions_until_it_is_released() {
    let server = TestServer::start();
    let mut one = holding_a(&server);
    let mut two = server.connect();
    let id = one.connection_id().to_string();
    let seen = "select get_lock('A', 0), is_free_lock('a'), is_used_lock('a'), release_lock('a')";
    assert_eq!(query_text(&mut two, seen), [format!("0\t0\t{id}\t0")]);
    let began = Instant::now();
    assert_eq!(query_text(&mut two, "select get_lock('a', 1)"), ["0"]);
    assert!(began.elapsed() >= Duration::from_secs(1));
    let taken = waits(
        &server,
        |waiting| query_text(waiting, "select get_lock('a', -1), release_lock('a')"),
        |_| run(&mut one, "do release_lock('a')"),
    );
    assert_eq!(taken, ["1\t1"]);
    assert_eq!(query_text(&mut two, "select get_lock('a', 0)"), ["1"]);
}

#[test]
fn locks_go_when_their_session_ends_or_starts_over() {
    let server = TestServer::start();
    let mut watcher = server.connect();
    let ends: [fn(&mut Conn); 3] = [
        |connection| connection.reset().expect("a reset"),
        |connection| {
            connection
                .change_user(ChangeUserOpts::new())
                .expect("the same user");
        },
        |connection| {
            let id = connection.connection_id();
            assert!(connection.query_drop(format!("kill {id}")).is_err());
        },
    ];
    for end in ends {
        let mut one = holding_a(&server);
        assert_eq!(holder(&mut watcher), one.connection_id().to_string());
        end(&mut one);
        wait_until("the lock to be free", || holder(&mut watcher) == "NULL");
    }
    let one = holding_a(&server);
    let taken = waits(&server, |waiting| take(waiting, "a"), |_| drop(one));
    assert_eq!(taken, ["1"]);
}

#[test]
fn a_wait_ends_when_its_statement_or_session_is_killed_or_its_time_is_over() {
    let server = TestServer::start();
    let mut one = holding_a(&server);
    let sql = format!("select get_lock('a', {FOR_EVER})");
    let code = waits(
        &server,
        |waiting| error_of(waiting, &sql),
        |id| run(&mut server.connect(), &format!("kill query {id}")),
    );
    assert_eq!(code, 1317);
    let is_lost = waits(
        &server,
        |waiting| waiting.query_drop(&sql).is_err(),
        |id| run(&mut server.connect(), &format!("kill {id}")),
    );
    assert!(is_lost);
    let mut two = server.connect();
    let limited = format!("select /*+ max_execution_time(200) */ get_lock('a', {FOR_EVER})");
    assert_eq!(error_of(&mut two, &limited), 3024);
    // A session that waits no longer does not get it.
    run(&mut one, "do release_lock('a')");
    assert_eq!(holder(&mut one), "NULL");
}

#[test]
fn a_client_that_hangs_up_does_not_wait() {
    let server = TestServer::start();
    let mut one = holding_a(&server);
    let mut client = RawClient::connect(server.address(), 0);
    client
        .send_command(COM_QUERY, b"select get_lock('a', 600)")
        .expect("the server reads");
    wait_until("the session to wait", || {
        waiting_sessions(&mut one).len() == 1
    });
    client.hang_up();
    wait_until("the session to end", || {
        waiting_sessions(&mut one).is_empty()
    });
    run(&mut one, "do release_lock('a')");
    assert_eq!(holder(&mut one), "NULL");
}

#[test]
fn two_sessions_that_wait_for_each_other_are_a_deadlock() {
    let server = TestServer::start();
    let mut one = server.connect();
    assert_eq!(take(&mut one, "b"), ["1"]);
    let mut code = 0;
    let taken = waits(
        &server,
        |waiting| {
            assert_eq!(take(waiting, "a"), ["1"]);
            take(waiting, "b")
        },
        |_| {
            code = error_of(&mut one, "select get_lock('a', 600)");
            run(&mut one, "do release_all_locks()");
        },
    );
    assert_eq!((taken, code), (vec!["1".to_string()], 3058));
}

#[test]
fn many_sessions_count_under_a_lock() {
    const SESSIONS: usize = 6;
    const TURNS: usize = 20;
    let server = TestServer::start();
    let mut watcher = server.connect_to_new("d");
    run(&mut watcher, "create table t (n int)");
    run(&mut watcher, "insert into t values (0)");
    std::thread::scope(|scope| {
        for _ in 0..SESSIONS {
            scope.spawn(|| {
                let mut connection = server.connect();
                for _ in 0..TURNS {
                    assert_eq!(take(&mut connection, "count"), ["1"]);
                    let n = query_text(&mut connection, "select n from d.t").remove(0);
                    let n: usize = n.parse().expect("a number");
                    run(&mut connection, &format!("update d.t set n = {}", n + 1));
                    run(&mut connection, "do release_lock('count')");
                }
            });
        }
    });
    let n = query_text(&mut watcher, "select n from t");
    assert_eq!(n, [(SESSIONS * TURNS).to_string()]);
}

#[test]
fn benchmark_ends_when_it_is_killed() {
    let server = TestServer::start();
    let mut one = server.connect();
    let sql = "select /*+ max_execution_time(200) */ benchmark(1000000000000, sha2('a', 256))";
    assert_eq!(error_of(&mut one, sql), 3024);
}
