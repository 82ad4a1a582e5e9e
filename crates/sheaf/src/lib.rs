//! Sheaf inside your program: a relational database without a server.
//!
//! A [`Database`] is a directory. Each thread that wants to use it takes a [`Connection`], which is a session of
//! its own, with its own variables and its own current database. Queries give [Arrow](arrow) batches.
//!
//! ```
//! use sheaf::{Database, Options};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path();
//! let database = Database::open(path, Options::default().with_memory_bytes(64 << 20))?;
//! let mut connection = database.connect()?;
//! connection.execute("CREATE DATABASE shop")?;
//! connection.execute("USE shop")?;
//! connection.execute("CREATE TABLE orders (id INT PRIMARY KEY, price DECIMAL(8,2), KEY (price))")?;
//! let inserted = connection.execute("INSERT INTO orders VALUES (1, 9.50), (2, 120), (3, 75.25)")?;
//! assert_eq!(inserted, 3);
//!
//! let batches = connection.query("SELECT id FROM orders WHERE price > 50 ORDER BY price")?;
//! let ids: Vec<i32> = batches
//!     .iter()
//!     .flat_map(|batch| batch.column(0).as_primitive::<Int32Type>().values().to_vec())
//!     .collect();
//! assert_eq!(ids, [3, 2]);
//! database.close()?;
//! # Ok(())
//! # }
//! # use arrow::{array::AsArray, datatypes::Int32Type};
//! ```

mod answer;
mod statement;
mod typed;

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Arc, Mutex};

use arrow::datatypes::SchemaRef;
use arrow::record_batch::RecordBatch;
use sheaf_sql::{
    BatchBuilder, CellRow, EndOfRows, Engine, EngineOptions, OkInfo, ResultSink, Session,
};

pub use answer::Answer;
pub use arrow;
pub use sheaf_archive::{existing_archive, open_archive};
/// An error with MySQL's number, SQLSTATE and text.
pub use sheaf_sql::SqlError as Error;
pub use sheaf_sql::{
    Cell, CellReader, ColumnMeta, MysqlColumnType, SessionHandle, SessionInfo, cell_readers,
    column_flags, status_flags,
};
pub use sheaf_storage::{LogArchive, StorageOptions, SyncLog};
pub use sheaf_types::Value;
pub use statement::{Row, Statement};
pub use typed::{ColumnIndex, FromValue, OwnedRow, Rows, ToValue};

/// What an operation gives back.
pub type Result<T> = std::result::Result<T, Error>;

/// How a database is opened. Begin with the default, and change what shall be otherwise.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// What the database may use: buffer pool, query memory and the rest. Results that you keep are yours.
    pub memory_bytes: usize,
    /// The buffer pool's share; `None` lets the engine decide.
    pub pool_bytes: Option<usize>,
    /// Threads for large queries; `None` takes the number of cores.
    pub threads: Option<usize>,
    /// Durability, log, archive and limits of the storage. Its pool and its memory for versions follow from the above.
    pub storage: StorageOptions,
}

impl Default for Options {
    fn default() -> Self {
        let engine = EngineOptions::default();
        Options {
            memory_bytes: engine.memory_bytes,
            pool_bytes: engine.pool_bytes,
            threads: engine.threads,
            storage: engine.storage,
        }
    }
}

impl Options {
    /// What the database may use of memory.
    pub fn with_memory_bytes(self, memory_bytes: usize) -> Self {
        Options {
            memory_bytes,
            ..self
        }
    }

    /// The buffer pool's share of it.
    pub fn with_pool_bytes(self, pool_bytes: usize) -> Self {
        let pool_bytes = Some(pool_bytes);
        Options { pool_bytes, ..self }
    }

    /// Threads for large queries.
    pub fn with_threads(self, threads: usize) -> Self {
        let threads = Some(threads);
        Options { threads, ..self }
    }

    /// Durability, log, archive and limits of the storage.
    pub fn with_storage(self, storage: StorageOptions) -> Self {
        Options { storage, ..self }
    }
}

/// An open database. Dropping it closes it; [`Database::close`] also says whether that went well.
pub struct Database {
    engine: Arc<Engine>,
    closed: bool,
}

impl Database {
    /// Opens the database in a directory, creating it when it is absent. One process at a time may do so.
    pub fn open(path: impl AsRef<Path>, options: Options) -> Result<Database> {
        let engine = Engine::open(
            path.as_ref(),
            EngineOptions {
                memory_bytes: options.memory_bytes,
                pool_bytes: options.pool_bytes,
                threads: options.threads,
                storage: options.storage,
                ..EngineOptions::default()
            },
        )?;
        Ok(Database {
            engine,
            closed: false,
        })
    }

    /// Starts a session. Any number of threads may each have one.
    pub fn connect(&self) -> Result<Connection> {
        self.connect_as(SessionInfo::default())
    }

    /// Starts a session of an account, in a database, or with another count of changed rows.
    pub fn connect_as(&self, info: SessionInfo) -> Result<Connection> {
        Ok(Connection {
            session: self.engine.session(info)?,
            dropped: Arc::default(),
        })
    }

    /// The engine itself, for a program that serves it: see `sheaf_server::Server`.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Writes everything to disk and closes. Connections that are still open fail from now on (error 1053).
    pub fn close(mut self) -> Result<()> {
        self.closed = true;
        self.engine.close()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if !self.closed
            && let Err(error) = self.engine.close()
        {
            tracing::error!(%error, "the database did not close cleanly");
        }
    }
}

/// A session with a [`Database`].
pub struct Connection {
    session: Session,
    /// Prepared statements that were dropped: they are closed when the next one is prepared or run.
    dropped: Arc<Mutex<Vec<u32>>>,
}

impl Connection {
    /// Runs a statement and gives all its rows; none for a statement without a result. The rows are in your
    /// memory, not in the database's: see [`Connection::query_each`] for results that may be large.
    pub fn query(&mut self, sql: &str) -> Result<Vec<RecordBatch>> {
        let mut batches = Vec::new();
        self.query_each(sql, |batch| {
            batches.push(batch.clone());
            Ok(())
        })?;
        Ok(batches)
    }

    /// Runs a statement and gives its rows to `take`, batch by batch as they are found. An error of `take` ends
    /// the statement with that error.
    pub fn query_each(
        &mut self,
        sql: &str,
        take: impl FnMut(&RecordBatch) -> Result<()>,
    ) -> Result<()> {
        let mut sink = Batches {
            take,
            rows: None,
            affected_rows: 0,
        };
        self.session.execute(sql, &mut sink)
    }

    /// Runs a statement and gives the number of rows that it changed. Rows that it finds are dropped.
    pub fn execute(&mut self, sql: &str) -> Result<u64> {
        let mut sink = Batches {
            take: |_: &RecordBatch| Ok(()),
            rows: None,
            affected_rows: 0,
        };
        self.session.execute(sql, &mut sink)?;
        Ok(sink.affected_rows)
    }

    /// The session itself, for warnings and cancelling.
    pub fn session(&mut self) -> &mut Session {
        &mut self.session
    }
}

/// A file of this process, for LOAD DATA LOCAL INFILE.
fn own_file(name: &str) -> Result<Box<dyn Read>> {
    match File::open(name) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => Err(Error::file_not_found(
            name,
            error.raw_os_error().unwrap_or_default(),
            &error.to_string(),
        )),
    }
}

/// Rows of a batch that is made of single rows.
const BATCH_ROWS: usize = 1024;

/// Hands on the batches of a result and keeps the count of a statement without one.
struct Batches<F> {
    take: F,
    /// Rows that came one by one.
    rows: Option<BatchBuilder>,
    affected_rows: u64,
}

impl<F: FnMut(&RecordBatch) -> Result<()>> Batches<F> {
    /// Hands on the rows that came one by one once there are so many.
    fn hand_on(&mut self, from: usize) -> Result<()> {
        match &mut self.rows {
            Some(rows) if rows.rows() >= from => (self.take)(&rows.finish()?),
            _ => Ok(()),
        }
    }
}

impl<F: FnMut(&RecordBatch) -> Result<()>> ResultSink for Batches<F> {
    fn columns(&mut self, _columns: &[ColumnMeta]) -> Result<()> {
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        (self.take)(batch)
    }

    fn takes_rows(&self) -> bool {
        true
    }

    fn row_columns(&mut self, _columns: &[ColumnMeta], schema: &SchemaRef) -> Result<()> {
        self.rows = Some(BatchBuilder::new(schema)?);
        Ok(())
    }

    fn row(&mut self, _columns: &[ColumnMeta], row: &dyn CellRow) -> Result<()> {
        if let Some(rows) = &mut self.rows {
            rows.append(row)?;
        }
        self.hand_on(BATCH_ROWS)
    }

    fn end_of_rows(&mut self, _end: EndOfRows) -> Result<()> {
        self.hand_on(1)?;
        self.rows = None;
        Ok(())
    }

    fn ok(&mut self, ok: OkInfo) -> Result<()> {
        self.affected_rows = ok.affected_rows;
        Ok(())
    }

    /// The client is this process, so its files are here.
    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>> {
        own_file(name).map(|file| file as Box<dyn Read + '_>)
    }
}

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
