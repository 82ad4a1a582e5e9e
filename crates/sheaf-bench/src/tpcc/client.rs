//! How a TPC-C client reaches its database: prepared statements over the MySQL protocol.

use mysql::prelude::Queryable;
use mysql::{Conn, OptsBuilder, Params, Row, Value};

use super::DATABASE;
use crate::error::BenchError;

/// Statements of the five transactions, with room.
const STATEMENTS: usize = 64;

/// Why a statement failed.
pub enum Failure {
    /// Others were in the way (1205, 1213): the transaction is rolled back and done again.
    Conflict,
    Other(BenchError),
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Failure {
        Failure::Other(error)
    }
}

/// One connection.
pub struct Client {
    server: &'static str,
    connection: Conn,
}

impl Client {
    pub fn connect(server: &'static str, port: u16) -> Result<Client, BenchError> {
        let options = OptsBuilder::new()
            .ip_or_hostname(Some("127.0.0.1"))
            .tcp_port(port)
            .user(Some("root"))
            .db_name(Some(DATABASE))
            .prefer_socket(false)
            .stmt_cache_size(STATEMENTS);
        let mut connection =
            Conn::new(options).map_err(|error| BenchError::server(server, error))?;
        for setting in [
            "set session transaction isolation level read committed",
            "set autocommit = 0",
        ] {
            connection
                .query_drop(setting)
                .map_err(|error| BenchError::server(server, error))?;
        }
        Ok(Client { server, connection })
    }

    fn failure(&self, statement: &str, error: mysql::Error) -> Failure {
        match error {
            mysql::Error::MySqlError(error) if matches!(error.code, 1205 | 1213) => {
                Failure::Conflict
            }
            error => Failure::Other(BenchError::server(
                self.server,
                format!("{statement}: {error}"),
            )),
        }
    }

    /// The rows of a query.
    pub fn query(
        &mut self,
        statement: &'static str,
        parameters: impl Into<Params>,
    ) -> Result<Vec<Row>, Failure> {
        self.connection
            .exec(statement, parameters)
            .map_err(|error| self.failure(statement, error))
    }

    /// The first row of a query that must have one.
    pub fn row(
        &mut self,
        statement: &'static str,
        parameters: impl Into<Params>,
    ) -> Result<Row, Failure> {
        let mut rows = self.query(statement, parameters)?;
        if rows.is_empty() {
            return Err(Failure::Other(BenchError::server(
                self.server,
                format!("{statement}: no row"),
            )));
        }
        Ok(rows.swap_remove(0))
    }

    /// A statement without a result; returns the rows that it changed.
    pub fn execute(
        &mut self,
        statement: &'static str,
        parameters: impl Into<Params>,
    ) -> Result<u64, Failure> {
        self.connection
            .exec_drop(statement, parameters)
            .map_err(|error| self.failure(statement, error))?;
        Ok(self.connection.affected_rows())
    }

    pub fn commit(&mut self) -> Result<(), Failure> {
        self.connection
            .query_drop("commit")
            .map_err(|error| self.failure("commit", error))
    }

    pub fn rollback(&mut self) -> Result<(), Failure> {
        self.connection
            .query_drop("rollback")
            .map_err(|error| self.failure("rollback", error))
    }
}

/// The value of a column as an integer: amounts in hundredths, shares in ten thousandths.
pub fn integer(row: &Row, column: usize) -> i64 {
    match row.as_ref(column) {
        Some(Value::Int(value)) => *value,
        Some(Value::UInt(value)) => i64::try_from(*value).unwrap_or(i64::MAX),
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes)
            .replace('.', "")
            .parse()
            .unwrap_or(0),
        _ => 0,
    }
}

/// The value of a column as text.
pub fn text(row: &Row, column: usize) -> String {
    match row.as_ref(column) {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}
