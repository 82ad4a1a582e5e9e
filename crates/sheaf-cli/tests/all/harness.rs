//! A server in this process, on a port of its own and in a directory of its own.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Row, Value};
use sheaf_server::{Server, ServerOptions};
use sheaf_sql::{Engine, EngineOptions};
use tempfile::TempDir;

/// Waiting for something that should be immediate gives up after this.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// How long a client waits for an answer: a test whose server hangs fails, and the others go on.
const LONGEST_ANSWER: Duration = Duration::from_secs(600);
const DEFAULT_MEMORY_BYTES: usize = 256 << 20;

/// A server that lives as long as the value does, and its data no longer.
pub struct TestServer {
    server: Option<Server>,
    /// `None` only while it is closed and opened again.
    engine: Option<Arc<Engine>>,
    engine_options: EngineOptions,
    address: SocketAddr,
    directory: TempDir,
}

/// A port of its own. `SHEAF_OWN_THREADS=0`: all connections share threads.
fn server_options() -> ServerOptions {
    let own_threads = std::env::var("SHEAF_OWN_THREADS").ok();
    let default = ServerOptions::default();
    ServerOptions {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        own_threads: own_threads
            .and_then(|number| number.parse().ok())
            .unwrap_or(default.own_threads),
        ..default
    }
}

impl TestServer {
    pub fn start() -> Self {
        Self::start_with(
            EngineOptions {
                memory_bytes: DEFAULT_MEMORY_BYTES,
                ..EngineOptions::default()
            },
            |_, _| {},
        )
    }

    /// With a buffer pool that is a fraction of the data.
    pub fn start_with_pool(memory_bytes: usize, pool_bytes: usize) -> Self {
        Self::start_with(
            EngineOptions {
                memory_bytes,
                pool_bytes: Some(pool_bytes),
                ..EngineOptions::default()
            },
            |_, _| {},
        )
    }

    /// `adjust` may change where and how the server listens; it also gets the server's directory.
    pub fn start_with(
        engine_options: EngineOptions,
        adjust: impl FnOnce(&mut ServerOptions, &TempDir),
    ) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let engine = Engine::open(&directory.path().join("data"), engine_options.clone())
            .expect("an empty database");
        let mut options = server_options();
        adjust(&mut options, &directory);
        let server = Server::start(Arc::clone(&engine), options).expect("a free port");
        let address = server
            .local_address()
            .expect("the server listens on the network");
        TestServer {
            server: Some(server),
            engine: Some(engine),
            engine_options,
            address,
            directory,
        }
    }

    /// Closes the database and opens it again, on another port: nothing of it is in memory. Connections are gone.
    pub fn restart(&mut self) {
        self.shut_down();
        let engine = Engine::open(
            &self.directory.path().join("data"),
            self.engine_options.clone(),
        );
        let engine = engine.expect("the database that was closed");
        let server = Server::start(Arc::clone(&engine), server_options()).expect("a free port");
        self.address = server
            .local_address()
            .expect("the server listens on the network");
        (self.server, self.engine) = (Some(server), Some(engine));
    }

    fn shut_down(&mut self) {
        let (server, engine) = (self.server.take(), self.engine.take());
        if let (Some(server), Some(engine)) = (server, engine) {
            let all_ended = server.shut_down(Duration::ZERO);
            let closed = engine.close();
            // A test that failed already must not panic again.
            if !std::thread::panicking() {
                assert!(all_ended, "a connection outlived its server");
                closed.expect("the engine closes");
            }
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn engine(&self) -> &Arc<Engine> {
        self.engine.as_ref().expect("the database is open")
    }

    pub fn directory(&self) -> &TempDir {
        &self.directory
    }

    pub fn options(&self) -> OptsBuilder {
        OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(self.port())
            .user(Some("root"))
            .prefer_socket(false)
            .read_timeout(Some(LONGEST_ANSWER))
    }

    pub fn connect(&self) -> Conn {
        Conn::new(self.options()).expect("root may connect from this machine")
    }

    /// A connection whose current database is new and empty.
    pub fn connect_to_new(&self, database: &str) -> Conn {
        let mut connection = self.connect();
        connection
            .query_drop(format!("CREATE DATABASE {database}"))
            .expect("the name is free");
        connection
            .query_drop(format!("USE {database}"))
            .expect("it was just created");
        connection
    }

    /// Waits until as many clients are connected as expected.
    pub fn wait_for_connections(&self, expected: usize) {
        let server = self
            .server
            .as_ref()
            .expect("the server runs until it is dropped");
        wait_until(&format!("{expected} connections"), || {
            server.connections() == expected
        });
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.shut_down();
    }
}

/// A folder of files that tests read. Asked for when the test runs: a build may be used by several checkouts.
pub fn tests_folder(name: &str) -> PathBuf {
    let package = std::env::var_os("CARGO_MANIFEST_DIR").expect("tests are run by cargo");
    PathBuf::from(package).join("tests").join(name)
}

/// Waits for something that another thread does.
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < deadline, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Rows as lines of tab-separated texts.
pub fn text_rows(rows: Vec<Row>) -> Vec<String> {
    rows.into_iter()
        .map(|row| {
            row.unwrap()
                .into_iter()
                .map(text)
                .collect::<Vec<_>>()
                .join("\t")
        })
        .collect()
}

/// Runs statements, which must succeed.
pub fn run(connection: &mut Conn, statements: &[&str]) {
    for statement in statements {
        connection
            .query_drop(statement)
            .unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
}

/// All rows of a query, as text.
pub fn query_text(connection: &mut Conn, sql: &str) -> Vec<String> {
    text_rows(
        connection
            .query(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}")),
    )
}

fn text(value: Value) -> String {
    match value {
        Value::NULL => "NULL".to_owned(),
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        other => other.as_sql(true),
    }
}

/// The code and the state of the error that a statement must give.
pub fn error_of<T>(result: mysql::Result<T>) -> (u16, String) {
    match result {
        Ok(_) => panic!("the statement succeeded"),
        Err(mysql::Error::MySqlError(error)) => (error.code, error.state),
        Err(other) => panic!("not an answer of the server: {other}"),
    }
}

/// The code of the error that a statement must give.
pub fn code(connection: &mut Conn, statement: &str) -> u16 {
    match connection.query_drop(statement) {
        Err(mysql::Error::MySqlError(error)) => error.code,
        other => panic!("{statement}: {other:?}"),
    }
}
