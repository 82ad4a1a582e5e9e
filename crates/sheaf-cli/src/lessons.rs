//! The lessons of `sheaf demo --http`: tables that the console's view Learn reads, and the transactions that its last
//! lesson is about.
//!
//! A lesson is a row of `learn`.`lessons`, with a statement that is slow and one that is fast. The page runs them in
//! the session of its login. That session cannot hold two hundred transactions open: a thread of the demo does, as many
//! as `learn`.`transactions` says.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use sheaf_sql::{Engine, Session, SessionInfo, SqlError};

use crate::collected::{one_number, query};

const SQL: &str = include_str!("lessons.sql");

/// How often the thread looks at what is wanted.
const LOOKS_EVERY: Duration = Duration::from_millis(100);

/// As many rows has `learn`.`touched`, and each transaction changes one.
const MOST_TRANSACTIONS: u64 = 200;

/// Holds transactions open until it is dropped.
pub(crate) struct Transactions {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// The statements of the file. A semicolon in a text would end one: the file has none.
fn statements() -> impl Iterator<Item = &'static str> {
    let statements = SQL.split(";\n").map(str::trim);
    statements.filter(|statement| !statement.is_empty())
}

/// Makes the tables, and begins to hold what transactions are wanted.
pub(crate) fn start(engine: &Arc<Engine>) -> Result<Transactions, SqlError> {
    let mut session = engine.session(SessionInfo::default())?;
    for statement in statements() {
        query(&mut session, statement)?;
    }
    let groups = "select count(*) from information_schema.resource_groups where resource_group_name = 'one_core'";
    if one_number(&mut session, groups)? == 0 {
        query(
            &mut session,
            "create resource group one_core type = user vcpu = 0",
        )?;
    }
    let (stop, stopped) = mpsc::channel::<()>();
    let engine = Arc::clone(engine);
    let thread = thread::spawn(move || {
        let mut open = Vec::new();
        while stopped.recv_timeout(LOOKS_EVERY) == Err(RecvTimeoutError::Timeout) {
            if let Err(error) = hold(&engine, &mut session, &mut open) {
                // A server that ends refuses statements, and asks this thread to stop soon.
                tracing::debug!(%error, "transactions of the lessons");
            }
        }
    });
    Ok(Transactions {
        stop: Some(stop),
        thread: Some(thread),
    })
}

/// Opens or ends transactions, and says how many there are.
fn hold(
    engine: &Arc<Engine>,
    session: &mut Session,
    open: &mut Vec<Session>,
) -> Result<(), SqlError> {
    let wanted = one_number(session, "select wanted from learn.transactions")?;
    let wanted = wanted.min(MOST_TRANSACTIONS) as usize;
    if open.len() == wanted {
        return Ok(());
    }
    // Sessions roll back when they end.
    open.truncate(wanted);
    while open.len() < wanted {
        let mut other = engine.session(SessionInfo::default())?;
        query(&mut other, "begin")?;
        let row = open.len() + 1;
        let change = format!("update learn.touched set n = n + 1 where id = {row}");
        query(&mut other, &change)?;
        open.push(other);
    }
    let said = format!("update learn.transactions set open_now = {wanted}");
    query(session, &said).map(|_| ())
}

impl Drop for Transactions {
    fn drop(&mut self) {
        self.stop = None;
        if let Some(thread) = self.thread.take() {
            // Its panic has been reported; the demo ends anyway.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sheaf_sql::EngineOptions;

    #[test]
    fn lessons_are_made_twice_and_transactions_held() -> Result<(), Box<dyn std::error::Error>> {
        let folder = tempfile::tempdir()?;
        let options = EngineOptions {
            memory_bytes: 64 << 20,
            ..EngineOptions::default()
        };
        let engine = Engine::open(folder.path(), options)?;
        drop(start(&engine)?);
        let transactions = start(&engine)?;
        let mut session = engine.session(SessionInfo::default())?;
        let lessons = "select count(*) from learn.lessons where slow_sql like 'SELECT%'";
        assert_eq!(one_number(&mut session, lessons)?, 5);
        for wanted in [7, 2, 0] {
            let ask = format!("update learn.transactions set wanted = {wanted}");
            query(&mut session, &ask)?;
            while one_number(&mut session, "select open_now from learn.transactions")? != wanted {
                thread::sleep(LOOKS_EVERY);
            }
            let open =
                "select count(*) from information_schema.innodb_trx where trx_rows_modified > 0";
            assert_eq!(one_number(&mut session, open)?, wanted);
        }
        drop(transactions);
        engine.close()?;
        Ok(())
    }
}
