//! SQL behaviour: every `tests/sqllogic/*.slt` file, through a server and a real client library.
//!
//! The expected answers in these files are those of MariaDB. With `SHEAF_SQLLOGIC_PORT` set to the port of any
//! server that speaks the MySQL protocol, that server is tested instead: this is how the files themselves are
//! checked.

use std::fs;

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Value};
use sqllogictest::{DB, DBOutput, DefaultColumnType, Runner};

use crate::harness::{TestServer, tests_folder};

/// A connection that reports errors by their number, which is what the files expect.
struct Client(Conn);

#[derive(Debug)]
struct ClientError(mysql::Error);

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.0 {
            mysql::Error::MySqlError(error) => write!(f, "ERROR {} {}", error.code, error.message),
            other => write!(f, "{other}"),
        }
    }
}

impl std::error::Error for ClientError {}

fn text(value: Value) -> String {
    match value {
        Value::NULL => "NULL".to_owned(),
        Value::Bytes(bytes) if bytes.is_empty() => "(empty)".to_owned(),
        // A row is a line.
        Value::Bytes(bytes) => String::from_utf8_lossy(&bytes).replace('\n', " "),
        other => other.as_sql(true),
    }
}

impl DB for Client {
    type Error = ClientError;
    type ColumnType = DefaultColumnType;

    fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, ClientError> {
        let mut result = self.0.query_iter(sql).map_err(ClientError)?;
        let columns = result.columns().as_ref().len();
        if columns == 0 {
            return Ok(DBOutput::StatementComplete(result.affected_rows()));
        }
        let mut rows = Vec::new();
        for row in result.by_ref() {
            rows.push(
                row.map_err(ClientError)?
                    .unwrap()
                    .into_iter()
                    .map(text)
                    .collect(),
            );
        }
        Ok(DBOutput::Rows {
            types: vec![DefaultColumnType::Any; columns],
            rows,
        })
    }
}

#[test]
fn sqllogic_files_pass() {
    let server;
    let port = match std::env::var("SHEAF_SQLLOGIC_PORT") {
        Ok(port) => port.parse().expect("SHEAF_SQLLOGIC_PORT is a port"),
        Err(_) => {
            server = TestServer::start();
            server.port()
        }
    };
    let folder = tests_folder("sqllogic");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .expect("tests/sqllogic can be listed")
        .map(|entry| entry.expect("a folder entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "slt"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no .slt files in {}", folder.display());
    let mut failures = Vec::new();
    for file in files {
        let database = format!(
            "slt_{}",
            file.file_stem().unwrap_or_default().to_string_lossy()
        );
        let mut runner = Runner::new(|| async {
            let options = OptsBuilder::new()
                .ip_or_hostname(Some("127.0.0.1"))
                .tcp_port(port)
                .user(Some("root"))
                .prefer_socket(false);
            let mut connection = Conn::new(options).map_err(ClientError)?;
            for statement in [
                format!("drop database if exists {database}"),
                format!("create database {database}"),
                format!("use {database}"),
            ] {
                connection.query_drop(statement).map_err(ClientError)?;
            }
            Ok(Client(connection))
        });
        // Every record runs even after a failure, so that one report shows all of them.
        let records =
            sqllogictest::parse_file::<DefaultColumnType>(&file).expect("the file parses");
        for record in records {
            if let Err(error) = runner.run(record) {
                failures.push(error.display(false).to_string());
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n\n")
    );
}
