//! How a TPC-C client reaches its database: prepared statements, over the MySQL protocol or in the same process.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use mysql_common::params::Params;
use mysql_common::value::Value;
use sheaf::Cell;

use super::DATABASE;
use crate::error::BenchError;
pub use crate::peers::wire_client::Row;
use crate::peers::wire_client::{PreparedStatement, WireClient, WireError};

/// A lock was waited for too long; a deadlock.
const CONFLICTS: [u16; 2] = [1205, 1213];

/// What a session begins with.
const SETTINGS: [&str; 2] = [
    "set session transaction isolation level read committed",
    "set autocommit = 0",
];

/// The name of the library in messages.
pub const LIBRARY: &str = "sheaf, in-process";

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

impl Failure {
    fn new(server: &'static str, code: u16, statement: &str, message: &str) -> Failure {
        match CONFLICTS.contains(&code) {
            true => Failure::Conflict,
            false => Failure::Other(BenchError::server(
                server,
                format!("{statement}: {message}"),
            )),
        }
    }
}

/// One session with a database.
pub enum Client {
    Protocol(ProtocolClient),
    Library(Box<LibraryClient>),
}

/// A connection to a server.
pub struct ProtocolClient {
    server: &'static str,
    connection: WireClient,
    statements: HashMap<&'static str, PreparedStatement>,
}

/// A session in this process.
pub struct LibraryClient {
    connection: sheaf::Connection,
    /// By the address of their text: each place in the program has a statement of its own.
    statements: HashMap<usize, sheaf::Statement>,
}

impl ProtocolClient {
    pub fn connect(server: &'static str, port: u16) -> Result<ProtocolClient, BenchError> {
        let mut connection = WireClient::connect(server, port, DATABASE)?;
        for setting in SETTINGS {
            connection
                .run(setting)
                .map_err(|error| BenchError::server(server, error))?;
        }
        Ok(ProtocolClient {
            server,
            connection,
            statements: HashMap::new(),
        })
    }

    fn failure(server: &'static str, statement: &str, error: &WireError) -> Failure {
        let code = match error {
            WireError::Refused { code, .. } => *code,
            _ => 0,
        };
        Failure::new(server, code, statement, &error.to_string())
    }

    /// Runs a statement, which is prepared when it comes for the first time.
    fn run(
        &mut self,
        statement: &'static str,
        values: &[Value],
        take: impl FnMut(Row),
    ) -> Result<(), Failure> {
        let (server, connection) = (self.server, &mut self.connection);
        let exchange = || {
            let prepared = match self.statements.get(statement) {
                Some(&prepared) => prepared,
                None => {
                    let prepared = connection.prepare(statement)?;
                    self.statements.insert(statement, prepared);
                    prepared
                }
            };
            connection.send(prepared, values)?;
            connection.receive(take)
        };
        exchange().map_err(|error| Self::failure(server, statement, &error))?;
        Ok(())
    }
}

impl LibraryClient {
    pub fn new(database: &sheaf::Database) -> Result<LibraryClient, BenchError> {
        let mut connection = database.connect().map_err(BenchError::from_display)?;
        for setting in [SETTINGS[0], SETTINGS[1], "use tpcc"] {
            connection
                .execute(setting)
                .map_err(|error| BenchError::server(LIBRARY, error))?;
        }
        Ok(LibraryClient {
            connection,
            statements: HashMap::new(),
        })
    }

    fn run(
        &mut self,
        text: &'static str,
        values: Vec<Value>,
        mut take: impl FnMut(Row),
    ) -> Result<(), Failure> {
        let failed =
            |error: sheaf::Error| Failure::new(LIBRARY, error.code, text, &error.to_string());
        let statement = match self.statements.entry(text.as_ptr() as usize) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.connection.prepare(text).map_err(failed)?),
        };
        let values: Vec<_> = values.into_iter().map(library_value).collect();
        self.connection
            .run(statement, &values, |row| {
                let columns = 0..row.columns().len();
                take(
                    columns
                        .map(|column| protocol_value(row.cell(column)))
                        .collect(),
                );
                Ok(())
            })
            .map_err(failed)?;
        Ok(())
    }
}

/// A parameter as the library takes it.
fn library_value(value: Value) -> sheaf::Value {
    match value {
        Value::Int(value) => sheaf::Value::Int(value),
        Value::UInt(value) => sheaf::Value::UInt(value),
        Value::Bytes(bytes) => match String::from_utf8(bytes) {
            Ok(text) => sheaf::Value::Text(text),
            Err(bytes) => sheaf::Value::Bytes(bytes.into_bytes()),
        },
        // No other types are among the parameters.
        _ => sheaf::Value::Null,
    }
}

/// A value of the library's as [`integer`] and [`text`] read it: decimals as their digits, which over the protocol are text.
fn protocol_value(cell: Cell<'_>) -> Value {
    match cell {
        Cell::Signed(value) => Value::Int(value),
        Cell::Unsigned(value) => Value::UInt(value),
        Cell::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        // As `integer` reads their texts.
        Cell::Decimal { unscaled, .. } => i64::try_from(unscaled).map_or(Value::NULL, Value::Int),
        Cell::Date(value) => Value::Int(value.into()),
        Cell::DateTime(value) | Cell::Time(value) => Value::Int(value),
        Cell::Float(value) => Value::Float(value),
        Cell::Double(value) => Value::Double(value),
        Cell::Null => Value::NULL,
    }
}

impl Client {
    fn run(
        &mut self,
        statement: &'static str,
        values: impl Into<Params>,
        take: impl FnMut(Row),
    ) -> Result<(), Failure> {
        let values = match values.into() {
            Params::Positional(values) => values,
            _ => Vec::new(),
        };
        match self {
            Client::Protocol(client) => client.run(statement, &values, take),
            Client::Library(client) => client.run(statement, values, take),
        }
    }

    /// The rows of a query.
    pub fn query(
        &mut self,
        statement: &'static str,
        values: impl Into<Params>,
    ) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        self.run(statement, values, |row| rows.push(row))?;
        Ok(rows)
    }

    /// The first row of a query that must have one.
    pub fn row(
        &mut self,
        statement: &'static str,
        values: impl Into<Params>,
    ) -> Result<Row, Failure> {
        let mut first = None;
        self.run(statement, values, |row| {
            first.get_or_insert(row);
        })?;
        first.ok_or_else(|| Failure::new(self.name(), 0, statement, "no row"))
    }

    /// A statement without a result.
    pub fn execute(
        &mut self,
        statement: &'static str,
        values: impl Into<Params>,
    ) -> Result<(), Failure> {
        self.run(statement, values, drop)
    }

    pub fn commit(&mut self) -> Result<(), Failure> {
        self.end("commit")
    }

    pub fn rollback(&mut self) -> Result<(), Failure> {
        self.end("rollback")
    }

    fn end(&mut self, statement: &'static str) -> Result<(), Failure> {
        match self {
            Client::Protocol(client) => client
                .connection
                .run(statement)
                .map(drop)
                .map_err(|error| ProtocolClient::failure(client.server, statement, &error)),
            Client::Library(client) => match client.connection.execute(statement) {
                Ok(_) => Ok(()),
                Err(error) => Err(Failure::new(
                    LIBRARY,
                    error.code,
                    statement,
                    &error.to_string(),
                )),
            },
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Client::Protocol(client) => client.server,
            Client::Library(_) => LIBRARY,
        }
    }
}

/// The value of a column as an integer: amounts in hundredths, shares in ten thousandths.
pub fn integer(row: &Row, column: usize) -> i64 {
    match row.get(column) {
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
    match row.get(column) {
        Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes).into_owned(),
        _ => String::new(),
    }
}
