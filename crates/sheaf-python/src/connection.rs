//! A session for Python. One statement of it runs at a time; other threads wait for it without Python's lock.

use std::collections::HashMap;
use std::mem;
use std::panic::resume_unwind;
use std::path::PathBuf;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::PyTuple;
use sheaf::{Options, SessionHandle, SessionInfo, Statement, Value, status_flags};

use crate::answer::Answer;
use crate::error::{closed, forked, raised, wrong_arguments};
use crate::open_databases::{self, SharedDatabase};
use crate::value::to_value;

/// So many prepared statements are kept by their text.
const MAX_KEPT_STATEMENTS: usize = 64;
/// How often Ctrl-C is looked for.
const LOOKS_FOR_SIGNALS_EVERY: Duration = Duration::from_millis(50);
/// The database of a directory that was new.
const FIRST_DATABASE: &str = "main";

/// What a connection has while it is open. The session ends before its use of the database.
struct Open {
    session: sheaf::Connection,
    /// By their text. What a text means depends on the current database and on variables: SET and USE empty it.
    statements: HashMap<String, Statement>,
    database: SharedDatabase,
}

/// A connection. `None` when it is closed.
#[pyclass(module = "sheaf._sheaf", frozen)]
pub(crate) struct Connection {
    open: Mutex<Option<Open>>,
    /// To cancel a statement that runs.
    handle: Arc<SessionHandle>,
    /// Ctrl-C ends a statement. Each one begins a thread for that, some 20 µs.
    is_interruptible: bool,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let open = self.open.get_mut().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = open.take() {
            end(open);
        }
    }
}

/// Ends a session. In a process that fork() has made, it is forgotten: ending it would write to the parent's files.
fn end(open: Open) {
    match open.database.is_ours() {
        true => drop(open),
        false => mem::forget(open),
    }
}

impl Open {
    /// Runs a statement once. Without values it goes as a text, which may be any statement.
    fn run(&mut self, sql: &str, values: &[Value]) -> PyResult<Vec<sheaf::Answer>> {
        if values.is_empty() {
            let word = sql.trim_start().get(..3).unwrap_or_default();
            if word.eq_ignore_ascii_case("set") || word.eq_ignore_ascii_case("use") {
                self.statements.clear();
            }
            return self.session.answers(sql).map_err(raised);
        }
        let (session, statement) = self.prepared(sql)?;
        expect_values(statement, values.len())?;
        session.answers_of(statement, values).map_err(raised)
    }

    /// Runs a statement for each row of values. Returns how many rows it changed, and the first value that the last
    /// run's AUTO_INCREMENT gave.
    fn run_many(&mut self, sql: &str, rows: &[Vec<Value>]) -> PyResult<(u64, u64)> {
        let (mut changed, mut last_insert_id) = (0, 0);
        for values in rows {
            for answer in self.run(sql, values)? {
                changed += answer.affected_rows;
                last_insert_id = answer.last_insert_id;
            }
        }
        Ok((changed, last_insert_id))
    }

    fn prepared(&mut self, sql: &str) -> PyResult<(&mut sheaf::Connection, &Statement)> {
        if !self.statements.contains_key(sql) {
            if self.statements.len() >= MAX_KEPT_STATEMENTS {
                self.statements.clear();
            }
            let statement = self.session.prepare(sql).map_err(raised)?;
            self.statements.insert(sql.to_string(), statement);
        }
        match self.statements.get(sql) {
            Some(statement) => Ok((&mut self.session, statement)),
            None => Err(closed()),
        }
    }
}

fn expect_values(statement: &Statement, given: usize) -> PyResult<()> {
    let wanted = statement.parameters();
    match wanted == given {
        true => Ok(()),
        false => Err(wrong_arguments(format!(
            "The statement has {wanted} parameters (?), and was given {given}"
        ))),
    }
}

fn values_of(parameters: &Bound<'_, PyAny>) -> PyResult<Vec<Value>> {
    parameters
        .try_iter()?
        .map(|value| to_value(&value?))
        .collect()
}

impl Connection {
    /// Does something with the open session, without Python's lock.
    fn with<T: Send>(
        &self,
        python: Python<'_>,
        act: impl FnOnce(&mut Open) -> PyResult<T> + Send,
    ) -> PyResult<T> {
        let run = || {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            let open = open.as_mut().ok_or_else(closed)?;
            if !open.database.is_ours() {
                return Err(forked());
            }
            act(open)
        };
        match self.is_interruptible {
            true => python.detach(|| self.run_interruptibly(run)),
            false => python.detach(run),
        }
    }

    /// Runs something on a thread of its own, while this one looks whether the user has pressed Ctrl-C: Python tells
    /// that to its main thread alone.
    fn run_interruptibly<T: Send>(&self, run: impl FnOnce() -> PyResult<T> + Send) -> PyResult<T> {
        thread::scope(|scope| {
            // Nothing is sent: the channel ends with the thread.
            let (ends, ended) = mpsc::channel::<()>();
            let running = scope.spawn(move || {
                let _ends = ends;
                run()
            });
            let mut interrupt = None;
            while ended.recv_timeout(LOOKS_FOR_SIGNALS_EVERY) == Err(RecvTimeoutError::Timeout) {
                if let Err(signal) = Python::attach(|python| python.check_signals()) {
                    self.handle.cancel();
                    interrupt = Some(signal);
                }
            }
            match (running.join(), interrupt) {
                (Err(panic), _) => resume_unwind(panic),
                (Ok(_), Some(interrupt)) => Err(interrupt),
                (Ok(outcome), None) => outcome,
            }
        })
    }
}

#[pymethods]
impl Connection {
    /// Opens a directory, and starts a session.
    #[new]
    #[pyo3(signature = (path, database, create, memory_bytes, threads, interruptible))]
    fn new(
        python: Python<'_>,
        path: PathBuf,
        database: Option<String>,
        create: bool,
        memory_bytes: Option<usize>,
        threads: Option<usize>,
        interruptible: bool,
    ) -> PyResult<Connection> {
        let options = (memory_bytes.is_some() || threads.is_some()).then(|| {
            let mut options = Options::default();
            options.memory_bytes = memory_bytes.unwrap_or(options.memory_bytes);
            options.threads = threads.or(options.threads);
            options
        });
        python.detach(|| {
            let opened = open_databases::open(&path, create, options).map_err(raised)?;
            let shared = opened.database;
            let engine = shared.get().ok_or_else(closed)?;
            // Clients count the rows that an UPDATE has found: so SQLAlchemy knows whether a row is still there.
            let info = SessionInfo {
                found_rows: true,
                ..SessionInfo::default()
            };
            let mut session = engine.connect_as(info).map_err(raised)?;
            match &database {
                Some(name) => session.session().set_database(name).map_err(raised)?,
                None => {
                    if opened.is_new {
                        let sql = format!("CREATE DATABASE IF NOT EXISTS `{FIRST_DATABASE}`");
                        session.execute(&sql).map_err(raised)?;
                    }
                    // A directory of a server has databases of other names: the program says USE.
                    let _has_none = session.session().set_database(FIRST_DATABASE);
                }
            }
            Ok(Connection {
                handle: session.session().handle(),
                is_interruptible: interruptible,
                open: Mutex::new(Some(Open {
                    session,
                    statements: HashMap::new(),
                    database: shared,
                })),
            })
        })
    }

    /// Runs a statement. With parameters, each `?` is one of them.
    fn execute(
        &self,
        python: Python<'_>,
        sql: &str,
        parameters: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Answer>> {
        let values = match parameters {
            Some(parameters) => values_of(parameters)?,
            None => Vec::new(),
        };
        let answers = self.with(python, |open| open.run(sql, &values))?;
        Ok(answers.into_iter().map(Answer::new).collect())
    }

    /// Runs a statement for each row of parameters: changed rows, and the last value of AUTO_INCREMENT.
    fn execute_many(
        &self,
        python: Python<'_>,
        sql: &str,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<(u64, u64)> {
        let rows = rows.try_iter()?.map(|row| values_of(&row?));
        let rows = rows.collect::<PyResult<Vec<_>>>()?;
        self.with(python, |open| open.run_many(sql, &rows))
    }

    /// Ends the statement that runs, with error 1317. Any thread may call it.
    fn cancel(&self) {
        self.handle.cancel();
    }

    /// Rolls back what is open, and ends the session. The last connection closes the database.
    fn close(&self, python: Python<'_>) {
        python.detach(|| {
            let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            if let Some(open) = open.take() {
                end(open);
            }
        });
    }

    /// Whether it was closed.
    #[getter]
    fn closed(&self, python: Python<'_>) -> bool {
        python.detach(|| {
            let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
            open.is_none()
        })
    }

    /// (in a transaction, autocommit), or an error if the connection is closed.
    fn status<'py>(&self, python: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        let flags = self.with(python, |open| Ok(open.session.session().status_flags()))?;
        let is_set = |flag| flags & flag != 0;
        PyTuple::new(
            python,
            [
                is_set(status_flags::IN_TRANSACTION),
                is_set(status_flags::AUTOCOMMIT),
            ],
        )
    }
}
