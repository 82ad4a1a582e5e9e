//! How a TPC-C client reaches its database: prepared statements, over the MySQL protocol or in the same process.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};

use mysql_common::value::Value;
use sheaf::Cell;

use super::DATABASE;
use super::schema::cents;
use crate::error::BenchError;
use crate::peers::wire_client::{PreparedStatement, Row, WireClient, WireError};

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

/// A value for a parameter.
#[derive(Clone, Copy)]
pub enum Parameter<'a> {
    Number(i64),
    Text(&'a str),
    /// An amount in hundredths: a text over the protocol, where clients have no other form for it, and a number in the
    /// library.
    Cents(u64),
}

impl From<i64> for Parameter<'_> {
    fn from(number: i64) -> Self {
        Parameter::Number(number)
    }
}

impl From<u64> for Parameter<'_> {
    fn from(number: u64) -> Self {
        Parameter::Number(number as i64)
    }
}

impl From<usize> for Parameter<'_> {
    fn from(number: usize) -> Self {
        Parameter::Number(number as i64)
    }
}

impl From<bool> for Parameter<'_> {
    fn from(yes: bool) -> Self {
        Parameter::Number(yes.into())
    }
}

impl<'a> From<&'a str> for Parameter<'a> {
    fn from(text: &'a str) -> Self {
        Parameter::Text(text)
    }
}

/// Values for the parameters of a statement.
macro_rules! parameters {
    ($($value:expr),* $(,)?) => { &[$($crate::tpcc::client::Parameter::from($value)),*] };
}
pub(super) use parameters;

impl Parameter<'_> {
    fn for_protocol(self) -> Value {
        match self {
            Parameter::Number(number) => Value::Int(number),
            Parameter::Text(text) => Value::Bytes(text.into()),
            Parameter::Cents(amount) => Value::Bytes(cents(amount).into()),
        }
    }

    fn for_library(self) -> sheaf::Value {
        match self {
            Parameter::Number(number) => sheaf::Value::Int(number),
            Parameter::Text(text) => sheaf::Value::Text(text.into()),
            Parameter::Cents(amount) => sheaf::Value::Decimal {
                unscaled: amount.into(),
                scale: 2,
            },
        }
    }
}

/// A row of a result, for as long as it is looked at.
#[derive(Clone, Copy)]
pub enum Found<'r> {
    Protocol(&'r Row),
    Library(&'r sheaf::Row<'r>),
}

impl<'r> Found<'r> {
    /// The value of a column as an integer: amounts in hundredths, shares in ten thousandths.
    pub fn integer(self, column: usize) -> i64 {
        match self {
            Found::Protocol(row) => match row.get(column) {
                Some(Value::Int(value)) => *value,
                Some(Value::UInt(value)) => i64::try_from(*value).unwrap_or(i64::MAX),
                Some(Value::Bytes(bytes)) => String::from_utf8_lossy(bytes)
                    .replace('.', "")
                    .parse()
                    .unwrap_or(0),
                _ => 0,
            },
            Found::Library(row) => match row.cell(column) {
                Cell::Signed(value) => value,
                Cell::Unsigned(value) => i64::try_from(value).unwrap_or(i64::MAX),
                Cell::Decimal { unscaled, .. } => i64::try_from(unscaled).unwrap_or(0),
                _ => 0,
            },
        }
    }

    /// The bytes of a text.
    pub fn bytes(self, column: usize) -> &'r [u8] {
        match self {
            Found::Protocol(row) => match row.get(column) {
                Some(Value::Bytes(bytes)) => bytes,
                _ => &[],
            },
            Found::Library(row) => match row.cell(column) {
                Cell::Bytes(bytes) => bytes,
                _ => &[],
            },
        }
    }

    /// The value of a column as text.
    pub fn text(self, column: usize) -> String {
        String::from_utf8_lossy(self.bytes(column)).into_owned()
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
    statements: BTreeMap<usize, sheaf::Statement>,
    /// The values of the running statement's parameters.
    values: Vec<sheaf::Value>,
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
        parameters: &[Parameter<'_>],
        mut take: impl FnMut(Found<'_>),
    ) -> Result<(), Failure> {
        let values: Vec<Value> = parameters
            .iter()
            .map(|parameter| parameter.for_protocol())
            .collect();
        let (server, connection) = (self.server, &mut self.connection);
        let mut exchange = || {
            let prepared = match self.statements.get(statement) {
                Some(&prepared) => prepared,
                None => {
                    let prepared = connection.prepare(statement)?;
                    self.statements.insert(statement, prepared);
                    prepared
                }
            };
            connection.send(prepared, &values)?;
            connection.receive(|row| take(Found::Protocol(&row)))
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
            statements: BTreeMap::new(),
            values: Vec::new(),
        })
    }

    fn run(
        &mut self,
        text: &'static str,
        parameters: &[Parameter<'_>],
        mut take: impl FnMut(Found<'_>),
    ) -> Result<(), Failure> {
        let failed =
            |error: sheaf::Error| Failure::new(LIBRARY, error.code, text, &error.to_string());
        let statement = match self.statements.entry(text.as_ptr() as usize) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(new) => new.insert(self.connection.prepare(text).map_err(failed)?),
        };
        self.values.clear();
        self.values
            .extend(parameters.iter().map(|parameter| parameter.for_library()));
        self.connection
            .run(statement, &self.values, |row| {
                take(Found::Library(row));
                Ok(())
            })
            .map_err(failed)?;
        Ok(())
    }
}

impl Client {
    /// Runs a statement and gives its rows to `take`.
    pub fn query(
        &mut self,
        statement: &'static str,
        parameters: &[Parameter<'_>],
        take: impl FnMut(Found<'_>),
    ) -> Result<(), Failure> {
        match self {
            Client::Protocol(client) => client.run(statement, parameters, take),
            Client::Library(client) => client.run(statement, parameters, take),
        }
    }

    /// What `take` makes of the first row of a query.
    pub fn first<T>(
        &mut self,
        statement: &'static str,
        parameters: &[Parameter<'_>],
        take: impl Fn(Found<'_>) -> T,
    ) -> Result<Option<T>, Failure> {
        let mut first = None;
        self.query(statement, parameters, |row| {
            first.get_or_insert_with(|| take(row));
        })?;
        Ok(first)
    }

    /// As [`Self::first`], of a query that must have a row.
    pub fn row<T>(
        &mut self,
        statement: &'static str,
        parameters: &[Parameter<'_>],
        take: impl Fn(Found<'_>) -> T,
    ) -> Result<T, Failure> {
        let first = self.first(statement, parameters, take)?;
        first.ok_or_else(|| Failure::new(self.name(), 0, statement, "no row"))
    }

    /// A statement without a result.
    pub fn execute(
        &mut self,
        statement: &'static str,
        parameters: &[Parameter<'_>],
    ) -> Result<(), Failure> {
        self.query(statement, parameters, |_| ())
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
            Client::Library(client) => client.run(statement, &[], |_| ()),
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Client::Protocol(client) => client.server,
            Client::Library(_) => LIBRARY,
        }
    }
}
