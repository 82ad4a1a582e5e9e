//! Connections whose answers wait for the log together, and a log that cannot be written. No client is told of a commit
//! that may be lost, and each is told something. What the database says afterwards is what it has on the disk.

use std::net::SocketAddr;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder};
use sheaf_server::{Server, ServerOptions};
use sheaf_sql::{Engine, EngineOptions};
use sheaf_storage::disk::simulated::{
    Fault, FaultKind, FaultyOperation, SimulatedDisk, SimulationOptions,
};
use sheaf_storage::{Storage, StorageOptions};
use tempfile::TempDir;

use crate::harness::query_text;

const CLIENTS: usize = 20;
/// Commits of each client before the log fails.
const COMMITS: usize = 10;

/// A server on a simulated disk. All its connections share threads, so their answers wait for the log without them.
struct FaultyServer {
    server: Server,
    engine: Arc<Engine>,
    disk: Arc<SimulatedDisk>,
    directory: TempDir,
}

fn open(disk: &Arc<SimulatedDisk>, directory: TempDir) -> FaultyServer {
    let options = EngineOptions {
        memory_bytes: 256 << 20,
        ..EngineOptions::default()
    };
    let storage_options = StorageOptions {
        pool_bytes: 32 << 20,
        ..StorageOptions::default()
    };
    let storage = Storage::open_on(disk.clone(), storage_options).expect("the disk works");
    let engine = Engine::open_storage(storage, directory.path(), options).expect("the disk works");
    let server_options = ServerOptions {
        listen: Some(SocketAddr::from(([127, 0, 0, 1], 0))),
        own_threads: 0,
        ..ServerOptions::default()
    };
    let server = Server::start(Arc::clone(&engine), server_options).expect("a free port");
    FaultyServer {
        server,
        engine,
        disk: disk.clone(),
        directory,
    }
}

impl FaultyServer {
    fn start() -> FaultyServer {
        let disk = SimulatedDisk::new(SimulationOptions::new(5));
        let server = open(&disk, tempfile::tempdir().expect("a temporary directory"));
        let mut root = server.connect(None);
        for sql in [
            "create database shop",
            "create table shop.t (client int, n int, primary key (client, n))",
        ] {
            root.query_drop(sql).expect("the name is free");
        }
        server
    }

    fn connect(&self, database: Option<&str>) -> Conn {
        let address = self.server.local_address().expect("it listens");
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(address.port())
            .user(Some("root"))
            .prefer_socket(false)
            .db_name(database);
        Conn::new(options).expect("there is room")
    }

    /// Each client commits some rows, the log fails, and each tries to commit one more.
    fn commit_until(&self, operation: FaultyOperation, kind: FaultKind) -> Vec<Result<(), u16>> {
        let all_there = Barrier::new(CLIENTS + 1);
        let commit = |client: usize, connection: &mut Conn, n: usize| {
            let sql = format!("insert into t values ({client}, {n})");
            match connection.query_drop(sql) {
                Ok(()) => Ok(()),
                Err(mysql::Error::MySqlError(error)) => Err(error.code),
                Err(error) => panic!("no answer: {error}"),
            }
        };
        thread::scope(|scope| {
            let clients: Vec<_> = (0..CLIENTS)
                .map(|client| {
                    let (all_there, commit) = (&all_there, &commit);
                    scope.spawn(move || {
                        let mut connection = self.connect(Some("shop"));
                        for n in 0..COMMITS {
                            commit(client, &mut connection, n).expect("the disk works");
                        }
                        all_there.wait();
                        all_there.wait();
                        let outcome = commit(client, &mut connection, COMMITS);
                        // The connection goes on.
                        assert_eq!(query_text(&mut connection, "select 1"), ["1"]);
                        outcome
                    })
                })
                .collect();
            all_there.wait();
            self.disk.inject(Fault {
                operation,
                kind,
                file: "sheaf.log".into(),
                bytes: 0..u64::MAX,
                times: u32::MAX,
            });
            all_there.wait();
            clients
                .into_iter()
                .map(|client| client.join().expect("it does not panic"))
                .collect()
        })
    }

    fn rows(&self) -> Vec<String> {
        query_text(&mut self.connect(Some("shop")), "select count(*) from t")
    }

    /// The power goes, comes back, and the disk works.
    fn lose_power(self) -> FaultyServer {
        let FaultyServer {
            server,
            engine,
            disk,
            directory,
        } = self;
        disk.crash();
        assert!(server.shut_down(Duration::ZERO), "nobody hangs");
        // It cannot be closed well.
        let _ = engine.close();
        drop(engine);
        open(&disk.power_loss(SimulationOptions::new(6)), directory)
    }
}

#[test]
fn nobody_hears_of_a_commit_that_the_log_has_lost() {
    for operation in [FaultyOperation::Write, FaultyOperation::Sync] {
        let server = FaultyServer::start();
        let outcomes = server.commit_until(operation, FaultKind::IoError);
        assert!(outcomes.iter().all(Result::is_err), "{outcomes:?}");
        let acknowledged = [(CLIENTS * COMMITS).to_string()];
        assert_eq!(server.rows(), acknowledged);
        // Nothing is changed any more, whether the device has recovered or not: what it has is not known.
        server.disk.heal();
        let refused = server
            .connect(Some("shop"))
            .query_drop("insert into t values (1000, 1)");
        assert!(refused.is_err(), "changes are refused");
        assert_eq!(server.rows(), acknowledged);
        let server = server.lose_power();
        // What was not promised may be there all the same.
        let count: usize = server.rows()[0].parse().expect("a number");
        assert!((CLIENTS * COMMITS..=CLIENTS * (COMMITS + 1)).contains(&count));
        let mut root = server.connect(Some("shop"));
        let complete = format!("select count(*) from t where n < {COMMITS}");
        assert_eq!(query_text(&mut root, &complete), acknowledged);
        root.query_drop("insert into t values (1000, 1)")
            .expect("the disk works");
    }
}

#[test]
fn a_full_disk_is_told_and_may_be_gone_again() {
    let server = FaultyServer::start();
    let outcomes = server.commit_until(FaultyOperation::Write, FaultKind::NoSpace);
    assert!(
        outcomes.iter().all(|outcome| *outcome == Err(1021)),
        "{outcomes:?}"
    );
    server.disk.heal();
    let mut root = server.connect(Some("shop"));
    root.query_drop(format!("insert into t values (1000, {COMMITS})"))
        .expect("there is room again");
    let complete = format!("select count(*) from t where n < {COMMITS}");
    let acknowledged = [(CLIENTS * COMMITS).to_string()];
    assert_eq!(query_text(&mut root, &complete), acknowledged);
    drop(root);
    assert!(server.server.shut_down(Duration::ZERO), "nobody hangs");
    server.engine.close().expect("the disk works");
}
