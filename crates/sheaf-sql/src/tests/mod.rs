//! Statements through an engine, as a client sees them.

mod advisor;
mod advisor_quality;
mod checked_entries;
mod compatibility;
mod constants;
mod definitions;
mod direct;
mod direct_explains;
mod explains;
mod inserts;
mod loads;
mod optimizer;
mod queries;
mod sessions;
mod source_numbers;
mod stale_columns;
mod texts;

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use arrow::array::RecordBatch;
use sheaf_memory::counting::{self, Counting};
use sheaf_types::Value;

use crate::error::Result;
use crate::query::rows::value_at;
use crate::{
    ColumnMeta, EndOfRows, Engine, EngineOptions, OkInfo, ResultSink, Session, SessionInfo,
    SqlError,
};

/// What statements take is measured, as in a server.
#[global_allocator]
static COUNTING: Counting = Counting;

/// Compares a document that the code writes with the one in docs/; `SHEAF_WRITE_DOCS=1` writes it.
pub(crate) fn check_document(name: &str, expected: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    if std::env::var_os("SHEAF_WRITE_DOCS").is_some() {
        std::fs::write(&path, expected).expect("the document");
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        found == expected,
        "docs/{name} is out of date: run this test with SHEAF_WRITE_DOCS=1 and look at the diff"
    );
}

/// An engine in a directory of its own, with one session in the database `test`.
pub(crate) struct Bench {
    pub(crate) session: Session,
    pub(crate) engine: Arc<Engine>,
    pub(crate) directory: tempfile::TempDir,
}

impl Bench {
    pub(crate) fn new() -> Bench {
        Self::with_options(EngineOptions::default())
    }

    pub(crate) fn with_options(options: EngineOptions) -> Bench {
        counting::count();
        let directory = tempfile::tempdir().expect("a directory");
        let options = EngineOptions {
            memory_bytes: 32 << 20,
            threads: Some(2),
            ..options
        };
        let engine = Engine::open(&directory.path().join("data"), options).expect("an engine");
        let info = SessionInfo {
            multi_statements: true,
            ..SessionInfo::default()
        };
        let mut session = engine.session(info).expect("a session");
        run(&mut session, "CREATE DATABASE test; USE test").expect("a database");
        Bench {
            session,
            engine,
            directory,
        }
    }

    pub(crate) fn run(&mut self, sql: &str) -> Result<Collected> {
        run(&mut self.session, sql)
    }

    /// Runs what must succeed.
    pub(crate) fn ok(&mut self, sql: &str) -> Collected {
        self.run(sql)
            .unwrap_or_else(|error| panic!("{sql}: {error}"))
    }

    /// The number of the error of what must fail.
    pub(crate) fn error(&mut self, sql: &str) -> u16 {
        match self.run(sql) {
            Ok(_) => panic!("{sql}: no error"),
            Err(error) => error.code,
        }
    }

    /// The rows of the last result as text, cells separated by `|`.
    pub(crate) fn rows(&mut self, sql: &str) -> Vec<String> {
        self.ok(sql).rows
    }

    /// The rows of a table straight from its tree, so that these tests depend on no query.
    pub(crate) fn table_rows(&self, table: &str) -> Vec<String> {
        let table = self
            .engine
            .catalog()
            .table("test", table)
            .expect("the table");
        let mut cursor = table.clustered.scan(
            sheaf_storage::KeyRange::all(),
            sheaf_storage::Direction::Forward,
            sheaf_storage::ReadAhead::Off,
        );
        let mut rows = Vec::new();
        let mut key = Vec::new();
        let mut keys = Vec::new();
        while let Some(leaf) = cursor.next_leaf().expect("a leaf") {
            for n in 0..leaf.len() {
                leaf.key_into(n, &mut key);
                keys.push(key.clone());
            }
        }
        for key in keys {
            let row = table
                .read_row(&key)
                .expect("readable")
                .expect("the row is there");
            rows.push(
                row.iter()
                    .map(Value::to_string)
                    .collect::<Vec<_>>()
                    .join("|"),
            );
        }
        rows
    }
}

/// What a request returned.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) columns: Vec<ColumnMeta>,
    pub(crate) rows: Vec<String>,
    pub(crate) ok: OkInfo,
    pub(crate) warnings: u16,
    pub(crate) files: Vec<(String, Vec<u8>)>,
}

impl ResultSink for Collected {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.columns = columns.to_vec();
        self.rows.clear();
        Ok(())
    }

    fn rows(&mut self, batch: &RecordBatch) -> Result<()> {
        for row in 0..batch.num_rows() {
            let cells: Result<Vec<String>> = batch
                .columns()
                .iter()
                .map(|column| Ok(value_at(column.as_ref(), row)?.to_string()))
                .collect();
            self.rows.push(cells?.join("|"));
        }
        Ok(())
    }

    fn end_of_rows(&mut self, end: EndOfRows) -> Result<()> {
        self.warnings = end.warnings;
        Ok(())
    }

    fn ok(&mut self, ok: OkInfo) -> Result<()> {
        self.warnings = ok.warnings;
        self.ok = ok;
        Ok(())
    }

    fn local_infile(&mut self, name: &str) -> Result<Box<dyn Read + '_>> {
        match self.files.iter().find(|(known, _)| known == name) {
            Some((_, bytes)) => Ok(Box::new(bytes.as_slice())),
            None => Err(SqlError::file_not_found(name, 2, "no such file")),
        }
    }
}

pub(crate) fn run(session: &mut Session, sql: &str) -> Result<Collected> {
    let mut sink = Collected::default();
    session.execute(sql, &mut sink)?;
    Ok(sink)
}
