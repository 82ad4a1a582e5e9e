//! What a server answered, and when two answers are the same.
//!
//! Rows are compared as bags, besides the order that the statement itself asks for. Numbers are the same when their
//! values are: servers differ in the scale of computed decimals and in the digits of doubles. Where a statement picks
//! one of several strings that its collation takes for equal, these are the same.

use std::time::{Duration, Instant};

use mysql::consts::ColumnType;
use mysql::prelude::{Protocol, Queryable};
use mysql::{Column, Conn, OptsBuilder, Params, QueryResult, Value};

use crate::query::{ORDER_MARK, picks_among_equal};
use crate::{FuzzError, Party};

/// Longest time that a server may be silent.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest time that a judge may need to start again after a crash, and the time between two looks.
const RESTART: Duration = Duration::from_secs(120);
const RESTART_LOOK: Duration = Duration::from_secs(1);
/// Longest time that a statement under comparison may take.
const LIMIT_SECONDS: u32 = 10;

/// One server under comparison.
pub struct Server {
    pub party: Party,
    address: (String, u16),
    connection: Conn,
}

/// The outcome of a statement.
#[derive(Clone, Debug)]
pub enum Answer {
    Rows(Vec<Vec<String>>),
    /// Rows that were changed.
    Changed(u64),
    Error {
        code: u16,
        message: String,
    },
    /// The connection broke: the server has crashed or hangs.
    Lost(String),
}

/// Errors that say that a statement took too long, of MySQL and MariaDB.
const TIMEOUTS: [u16; 2] = [3024, 1969];
/// A statement was interrupted. MySQL and MariaDB say so of windows over many peers, though nobody has done it.
const INTERRUPTED: u16 = 1317;
/// "This version does not yet support": a refusal by name.
const NOT_SUPPORTED: u16 = 1235;
/// Errors of a server that does not know what the statement uses: its syntax, a function, WITH ROLLUP before ORDER BY
/// (MariaDB), ranks with a frame or without an order (MariaDB).
const UNKNOWN_SYNTAX: [u16; 5] = [1064, 1305, 1221, 4017, 4018];
/// An error without a number of its own. Sheaf gives it for a panic, a plan that contradicts itself, and what its
/// libraries take for their own faults.
const INTERNAL: u16 = 1105;

/// Values of `optimizer_switch` under which a judge plans otherwise: two of MySQL, one of MariaDB. Each refuses those
/// of the other.
const OTHER_PLANS: [&str; 3] = [
    "derived_merge=off,semijoin=off,materialization=off,derived_condition_pushdown=off,hash_set_operations=off",
    "hypergraph_optimizer=on",
    "derived_merge=off,derived_with_keys=off,semijoin=off,materialization=off,exists_to_in=off,table_elimination=off,condition_pushdown_for_derived=off,condition_pushdown_for_subquery=off,condition_pushdown_from_having=off,split_materialized=off",
];

/// What the sessions of all servers set.
const SETTINGS: [&str; 3] = [
    "set names utf8mb4 collate utf8mb4_general_ci",
    "set sql_mode = 'ONLY_FULL_GROUP_BY,STRICT_TRANS_TABLES,NO_ZERO_IN_DATE,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION'",
    "set timestamp = 1600000000",
];

impl Server {
    /// Connects to `address`, HOST:PORT, as root without a password.
    pub fn connect(party: Party, address: &str) -> Result<Server, FuzzError> {
        let malformed = || FuzzError::Address(address.to_owned());
        let (host, port) = address.rsplit_once(':').ok_or_else(malformed)?;
        let port = port.parse().map_err(|_| malformed())?;
        let address = (host.to_owned(), port);
        Ok(Server {
            party,
            connection: connection(&address)
                .map_err(|error| FuzzError::Connect { party, error })?,
            address,
        })
    }

    /// Connects again, after `sql` has broken the connection or had no end.
    pub fn reconnect(&mut self, database: &str, sql: &str) -> Result<(), FuzzError> {
        self.connect_again(sql)?;
        self.connection
            .query_drop(format!("use {database}"))
            .map_err(|error| self.gone(sql, error))
    }

    /// A judge may have crashed, and has a while to start again. Where Sheaf is gone, the run ends.
    fn connect_again(&mut self, sql: &str) -> Result<(), FuzzError> {
        let start = Instant::now();
        loop {
            match connection(&self.address) {
                Ok(connection) => {
                    self.connection = connection;
                    return Ok(());
                }
                Err(error) if self.party == Party::Sheaf || start.elapsed() > RESTART => {
                    return Err(self.gone(sql, error));
                }
                Err(_) => std::thread::sleep(RESTART_LOOK),
            }
        }
    }

    fn gone(&self, sql: &str, error: mysql::Error) -> FuzzError {
        FuzzError::Gone {
            party: self.party,
            sql: sql.to_owned(),
            error,
        }
    }

    /// True for a MariaDB.
    pub fn is_mariadb(&mut self) -> Result<bool, FuzzError> {
        let sql = "select version()";
        let version: Option<String> =
            self.connection
                .query_first(sql)
                .map_err(|error| FuzzError::Statement {
                    party: self.party,
                    sql: sql.to_owned(),
                    error,
                })?;
        Ok(version.is_some_and(|version| version.contains("MariaDB")))
    }

    /// Runs statements that have to succeed, however long they take. They begin with a new database, so a judge that
    /// was started again since runs them from the first on.
    pub fn run_all<'a>(
        &mut self,
        statements: impl IntoIterator<Item = &'a str, IntoIter: Clone>,
    ) -> Result<(), FuzzError> {
        let statements = statements.into_iter();
        match self.try_run_all(statements.clone()) {
            Err(FuzzError::Statement { sql, error, .. })
                if self.party != Party::Sheaf && !matches!(error, mysql::Error::MySqlError(_)) =>
            {
                self.connect_again(&sql)?;
                self.try_run_all(statements)
            }
            outcome => outcome,
        }
    }

    fn try_run_all<'a>(
        &mut self,
        statements: impl Iterator<Item = &'a str>,
    ) -> Result<(), FuzzError> {
        limit_statements(&mut self.connection, 0);
        for sql in statements {
            self.connection
                .query_drop(sql)
                .map_err(|error| FuzzError::Statement {
                    party: self.party,
                    sql: sql.to_owned(),
                    error,
                })?;
        }
        limit_statements(&mut self.connection, LIMIT_SECONDS);
        Ok(())
    }

    /// Runs one statement.
    pub fn ask(&mut self, sql: &str) -> Answer {
        answered(self.try_ask(sql))
    }

    /// What a judge answers under other plans. A judge whose answer depends on the plan says nothing.
    pub fn ask_by_other_plans(&mut self, sql: &str) -> Vec<Answer> {
        let mut answers = Vec::new();
        for plan in OTHER_PLANS {
            let setting = format!("set optimizer_switch = '{plan}'");
            if self.connection.query_drop(setting).is_ok() {
                answers.push(self.ask(sql));
                // A connection that is lost is made again, with the default.
                let _ = self.connection.query_drop("set optimizer_switch = default");
            }
        }
        answers
    }

    /// Prepares `sql` and runs it with `values`. A plan that it keeps must not remember what it has run with, so it
    /// runs with NULL in all places before.
    pub fn ask_prepared(&mut self, sql: &str, values: &[Value]) -> Answer {
        answered(self.try_ask_prepared(sql, values))
    }

    fn try_ask(&mut self, sql: &str) -> Result<Answer, mysql::Error> {
        let result = self.connection.query_iter(sql)?;
        read(result)
    }

    fn try_ask_prepared(&mut self, sql: &str, values: &[Value]) -> Result<Answer, mysql::Error> {
        let statement = self.connection.prep(sql)?;
        let nulls = vec![Value::NULL; values.len()];
        match self.connection.exec_drop(&statement, Params::from(nulls)) {
            // What is wrong with NULL is no matter.
            Ok(()) | Err(mysql::Error::MySqlError(_)) => {}
            Err(error) => return Err(error),
        }
        let result = self
            .connection
            .exec_iter(&statement, Params::from(values.to_vec()));
        let answer = result.and_then(read);
        self.connection.close(statement)?;
        answer
    }
}

fn answered(answer: Result<Answer, mysql::Error>) -> Answer {
    match answer {
        Ok(answer) => answer,
        Err(mysql::Error::MySqlError(error)) => Answer::Error {
            code: error.code,
            message: error.message,
        },
        Err(error) => Answer::Lost(error.to_string()),
    }
}

fn read<P: Protocol>(mut result: QueryResult<'_, '_, '_, P>) -> Result<Answer, mysql::Error> {
    let columns: Vec<Column> = result.columns().as_ref().to_vec();
    if columns.is_empty() {
        return Ok(Answer::Changed(result.affected_rows()));
    }
    let mut rows = Vec::new();
    for row in result.by_ref() {
        let cells = row?.unwrap().into_iter().zip(&columns);
        rows.push(
            cells
                .map(|(value, column)| cell(value, column.column_type(), column.decimals()))
                .collect(),
        );
    }
    Ok(Answer::Rows(rows))
}

fn connection((host, port): &(String, u16)) -> Result<Conn, mysql::Error> {
    let options = OptsBuilder::new()
        .read_timeout(Some(PATIENCE))
        .ip_or_hostname(Some(host.clone()))
        .tcp_port(*port)
        .user(Some("root"))
        .prefer_socket(false);
    let mut connection = Conn::new(options)?;
    for setting in SETTINGS {
        connection.query_drop(setting)?;
    }
    limit_statements(&mut connection, LIMIT_SECONDS);
    Ok(connection)
}

/// Statements end after so many seconds; 0: they may take any time.
fn limit_statements(connection: &mut Conn, seconds: u32) {
    // One of both variables exists.
    let _ = connection.query_drop(format!("set max_statement_time = {seconds}"));
    let _ = connection.query_drop(format!("set max_execution_time = {}", seconds * 1000));
}

/// Digits of a number behind the point are not limited.
const ANY_DIGITS: u8 = 31;

/// A value as text that is equal for equal values. A text of a FLOAT or DOUBLE has `digits` behind the point, and the
/// text of a FLOAT has six in all; the bytes of a prepared statement's answer have more.
fn cell(value: Value, of: ColumnType, digits: u8) -> String {
    let text = match value {
        Value::NULL => return "NULL".to_owned(),
        Value::Bytes(bytes) if of == ColumnType::MYSQL_TYPE_BIT => {
            return bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        }
        Value::Bytes(bytes) => match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return format!("{:02x?}", error.as_bytes()),
        },
        Value::Date(year, month, day, ..) if of == ColumnType::MYSQL_TYPE_DATE => {
            format!("{year:04}-{month:02}-{day:02}")
        }
        Value::Date(year, month, day, hour, minute, second, micros) => {
            format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{micros:06}")
        }
        Value::Time(is_negative, days, hours, minutes, seconds, micros) => {
            let sign = if is_negative { "-" } else { "" };
            let hours = days * 24 + u32::from(hours);
            format!("{sign}{hours:02}:{minutes:02}:{seconds:02}.{micros:06}")
        }
        other => other.as_sql(true),
    };
    match of {
        ColumnType::MYSQL_TYPE_DOUBLE | ColumnType::MYSQL_TYPE_FLOAT => match text.parse::<f64>() {
            Ok(number) => {
                let shown = match (digits < ANY_DIGITS, of) {
                    (true, _) => format!("{number:.0$}", usize::from(digits)),
                    (false, ColumnType::MYSQL_TYPE_FLOAT) => format!("{number:.5e}"),
                    (false, _) => text,
                };
                shown.parse().map_or(shown, short)
            }
            Err(_) => text,
        },
        // In MySQL it depends on the plan whether a number has the zeros of ZEROFILL in front.
        ColumnType::MYSQL_TYPE_DECIMAL | ColumnType::MYSQL_TYPE_NEWDECIMAL
            if text.contains('.') =>
        {
            match without_zeros(&text).trim_start_matches('0') {
                fraction if fraction.is_empty() || fraction.starts_with('.') => {
                    format!("0{fraction}")
                }
                number => number.to_owned(),
            }
        }
        // The year zero has four zeros as a text only.
        ColumnType::MYSQL_TYPE_YEAR if text == "0000" => "0".to_owned(),
        // Fraction digits that are all zero are a matter of type.
        ColumnType::MYSQL_TYPE_DATETIME
        | ColumnType::MYSQL_TYPE_TIMESTAMP
        | ColumnType::MYSQL_TYPE_TIME
            if text.contains('.') =>
        {
            without_zeros(&text)
        }
        _ => text,
    }
}

fn short(number: f64) -> String {
    if number == 0.0 {
        return "0".to_owned();
    }
    let text = format!("{number:.11e}");
    match text.split_once('e') {
        Some((digits, exponent)) => match exponent.parse::<i32>() {
            Ok(exponent) if (0..15).contains(&exponent) && number.fract() == 0.0 => {
                format!("{number:.0}")
            }
            _ => format!("{}e{exponent}", without_zeros(digits)),
        },
        None => text,
    }
}

fn without_zeros(text: &str) -> String {
    let text = text.trim_end_matches('0').trim_end_matches('.');
    match text {
        "-0" => "0".to_owned(),
        _ => text.to_owned(),
    }
}

impl Answer {
    /// True when the statement took too long.
    pub fn is_timeout(&self) -> bool {
        matches!(self, Answer::Error { code, .. } if TIMEOUTS.contains(code))
    }

    /// True when there is no answer: the statement took too long or was interrupted, or the server is gone.
    pub fn is_none(&self) -> bool {
        self.is_timeout()
            || self.error_code() == Some(INTERRUPTED)
            || matches!(self, Answer::Lost(_))
    }

    /// True when the server says that it does not know this yet.
    pub fn is_refusal(&self) -> bool {
        matches!(
            self,
            Answer::Error {
                code: NOT_SUPPORTED,
                ..
            }
        )
    }

    /// True when the server does not know what the statement uses, so that it says nothing about the answer.
    pub fn is_unknown_syntax(&self) -> bool {
        self.error_code()
            .is_some_and(|code| UNKNOWN_SYNTAX.contains(&code))
    }

    /// The number of an error.
    pub fn error_code(&self) -> Option<u16> {
        match self {
            Answer::Error { code, .. } => Some(*code),
            _ => None,
        }
    }

    /// True for an error that no statement should give.
    fn is_internal(&self) -> bool {
        matches!(self, Answer::Error { code: INTERNAL, .. })
    }

    /// What Sheaf must not answer to any statement, whatever a judge says.
    pub fn fault(&self) -> Option<Difference> {
        match self {
            Answer::Lost(_) => Some(Difference::Lost),
            _ if self.is_internal() => Some(Difference::Internal),
            _ => None,
        }
    }

    /// A line for a report.
    pub fn summary(&self) -> String {
        match self {
            Answer::Rows(rows) => {
                let shown: Vec<String> = rows.iter().take(6).map(|row| row.join(" | ")).collect();
                format!("{} rows: {}", rows.len(), shown.join(" ; "))
            }
            Answer::Changed(rows) => format!("{rows} rows changed"),
            Answer::Error { code, message } => format!("error {code}: {message}"),
            Answer::Lost(message) => format!("connection lost: {message}"),
        }
    }
}

/// In which way two answers differ; `None` when they are the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Difference {
    Rows,
    Order,
    /// Only the first failed.
    Error,
    /// Only the second failed.
    MissingError,
    /// The first has lost the connection.
    Lost,
    /// The first failed with an internal error.
    Internal,
}

impl Difference {
    /// True when no judge is needed to call it a fault.
    pub fn is_fault(self) -> bool {
        matches!(self, Difference::Lost | Difference::Internal)
    }
}

/// Compares the answers to `sql`: that of Sheaf, and that of its judge.
pub fn difference(sql: &str, one: &Answer, other: &Answer) -> Option<Difference> {
    if let Some(fault) = one.fault() {
        return Some(fault);
    }
    match (one, other) {
        (_, Answer::Lost(_)) => None,
        _ if one.is_timeout() || other.is_timeout() => None,
        (Answer::Error { .. }, Answer::Error { .. }) => None,
        (Answer::Error { .. }, _) => Some(Difference::Error),
        (_, Answer::Error { .. }) => Some(Difference::MissingError),
        (Answer::Changed(one), Answer::Changed(other)) => {
            (one != other).then_some(Difference::Rows)
        }
        (Answer::Rows(one), Answer::Rows(other)) => of_rows(sql, one, other),
        _ => Some(Difference::Rows),
    }
}

fn of_rows(sql: &str, one: &[Vec<String>], other: &[Vec<String>]) -> Option<Difference> {
    let folds = picks_among_equal(sql);
    let seen = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
        rows.iter()
            .map(|row| row.iter().map(|cell| as_compared(cell, folds)).collect())
            .collect()
    };
    let (mut one, mut other) = (seen(one), seen(other));
    // A part of a set operation picks one of equal strings, and the whole may order by a binary collation, in which
    // these have places of their own.
    let mixes = [" union ", "intersect", "except"]
        .iter()
        .any(|word| sql.contains(word));
    let positions = order_positions(sql);
    let in_order = |rows: &[Vec<String>]| -> Vec<Vec<String>> {
        rows.iter()
            .map(|row| {
                positions
                    .iter()
                    .filter_map(|position| row.get(*position - 1))
                    // Ties of a collation may come in any order.
                    .map(|cell| match mixes && cell.contains(char::is_alphabetic) {
                        true => String::new(),
                        false => as_compared(cell, true),
                    })
                    .collect()
            })
            .collect()
    };
    let is_ordered = in_order(&one) == in_order(&other);
    one.sort_unstable();
    other.sort_unstable();
    match (one == other, is_ordered) {
        (false, _) => Some(Difference::Rows),
        (true, false) => Some(Difference::Order),
        (true, true) => None,
    }
}

/// A cell as far as it counts. A collation that ignores case and trailing blanks takes its pick among equal strings.
fn as_compared(cell: &str, folds: bool) -> String {
    match folds && cell != "NULL" {
        true => cell.trim_end().to_lowercase(),
        false => cell.to_owned(),
    }
}

/// Positions of the select list by which the statement orders its rows, from 1.
fn order_positions(sql: &str) -> Vec<usize> {
    let Some((_, order)) = sql.rsplit_once(ORDER_MARK) else {
        return Vec::new();
    };
    let order = order.trim_start().trim_start_matches("order by");
    let order = order.split(" limit ").next().unwrap_or("");
    order
        .split(',')
        .filter_map(|item| item.trim().trim_end_matches(" desc").parse().ok())
        .filter(|position| *position > 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(rows: &[&[&str]]) -> Answer {
        Answer::Rows(
            rows.iter()
                .map(|row| row.iter().map(|cell| (*cell).to_owned()).collect())
                .collect(),
        )
    }

    #[test]
    fn rows_are_bags_but_for_the_order_that_was_asked_for() {
        let (one, other) = (
            rows(&[&["1", "x"], &["2", "y"]]),
            rows(&[&["2", "y"], &["1", "x"]]),
        );
        assert_eq!(difference("select a, b from t", &one, &other), None);
        let ordered = "select a, b from t /*order*/ order by 1 limit 2";
        assert_eq!(difference(ordered, &one, &other), Some(Difference::Order));
        let more = rows(&[&["1", "x"]]);
        assert_eq!(
            difference("select a, b from t", &one, &more),
            Some(Difference::Rows)
        );
    }

    #[test]
    fn one_of_equal_strings_may_have_another_place() {
        let sql = "select distinct t.s from t union all select t.r from t /*order*/ order by 1";
        let (one, other) = (
            rows(&[&["1"], &["A"], &["B"], &["a"]]),
            rows(&[&["1"], &["A"], &["a"], &["b"]]),
        );
        assert_eq!(difference(sql, &one, &other), None);
        let wrong = rows(&[&["A"], &["1"], &["B"], &["a"]]);
        assert_eq!(difference(sql, &one, &wrong), Some(Difference::Order));
    }

    #[test]
    fn an_error_of_one_server_is_a_difference() {
        let error = Answer::Error {
            code: 1064,
            message: String::new(),
        };
        let one = rows(&[]);
        assert_eq!(difference("", &error, &one), Some(Difference::Error));
        assert_eq!(difference("", &one, &error), Some(Difference::MissingError));
        assert_eq!(difference("", &error, &error), None);
    }

    #[test]
    fn an_internal_error_is_a_fault_whatever_the_judge_says() {
        let internal = Answer::Error {
            code: 1105,
            message: "internal error: the statement panicked".to_owned(),
        };
        let found = difference("", &internal, &internal);
        assert_eq!(found, Some(Difference::Internal));
        assert!(found.is_some_and(Difference::is_fault));
        assert_eq!(
            difference("", &rows(&[]), &internal),
            Some(Difference::MissingError)
        );
    }

    #[test]
    fn a_judge_that_does_not_know_the_statement_says_nothing() {
        let error = |code| Answer::Error {
            code,
            message: String::new(),
        };
        assert!(error(1064).is_unknown_syntax());
        assert!(!error(1267).is_unknown_syntax());
        assert!(error(1317).is_none());
        assert!(error(3024).is_none());
        assert!(!error(1064).is_none());
        assert!(!rows(&[]).is_none());
    }

    #[test]
    fn numbers_are_compared_by_value() {
        let double = ColumnType::MYSQL_TYPE_DOUBLE;
        let cell = |text: &str, of| super::cell(Value::Bytes(text.into()), of, ANY_DIGITS);
        assert_eq!(cell("1e2", double), cell("100", double));
        assert_eq!(cell("0.1", double), cell("0.10000000000000001", double));
        let decimal = ColumnType::MYSQL_TYPE_NEWDECIMAL;
        assert_eq!(cell("1.5000", decimal), "1.5");
        assert_eq!(cell("-0.00", decimal), "0");
    }
}
