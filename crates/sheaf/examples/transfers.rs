//! Several threads, one connection each, in transactions that are tried again after a deadlock.
//!
//! `cargo run --release -p sheaf --example transfers`

use sheaf::{Connection, Database, Error, Options, params};

const ACCOUNTS: u64 = 10;
const THREADS: u64 = 4;
const TRANSFERS: u64 = 100;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let database = Database::open(
        folder.path(),
        Options::default().with_memory_bytes(64 << 20),
    )?;
    let mut connection = database.connect()?;
    connection.execute("CREATE DATABASE bank")?;
    connection.execute("CREATE TABLE bank.accounts (id INT PRIMARY KEY, cents INT NOT NULL)")?;
    for id in 0..ACCOUNTS {
        connection.execute_with("INSERT INTO bank.accounts VALUES (?, 1000)", params![id])?;
    }
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..THREADS)
            .map(|thread| {
                let database = &database;
                scope.spawn(move || work(database, thread))
            })
            .collect();
        let mut workers = workers.into_iter();
        workers.try_for_each(|worker| worker.join().expect("no panic"))
    })?;
    let sum = connection.rows("SELECT SUM(cents) AS cents FROM bank.accounts", params![])?;
    for row in sum {
        let cents: i64 = row.get("cents")?;
        println!("{cents} cents in {ACCOUNTS} accounts");
        assert_eq!(cents, 10_000, "nothing is lost");
    }
    Ok(())
}

fn work(database: &Database, thread: u64) -> Result<(), Error> {
    let mut connection = database.connect()?;
    for n in 0..TRANSFERS {
        let (from, to) = ((thread + n) % ACCOUNTS, (thread * 3 + n * 7 + 1) % ACCOUNTS);
        while let Err(error) = transfer(&mut connection, from, to) {
            connection.execute("ROLLBACK")?;
            // 1213: a deadlock; 1205: a lock was not given in time.
            if !matches!(error.code, 1213 | 1205) {
                return Err(error);
            }
        }
    }
    Ok(())
}

fn transfer(connection: &mut Connection, from: u64, to: u64) -> Result<(), Error> {
    connection.execute("BEGIN")?;
    let change = "UPDATE bank.accounts SET cents = cents + ? WHERE id = ?";
    connection.execute_with(change, params![-1, from])?;
    connection.execute_with(change, params![1, to])?;
    connection.execute("COMMIT")?;
    Ok(())
}
