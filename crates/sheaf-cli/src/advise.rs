//! `sheaf advise`: asks a server which indexes the statements of a slow query log want.
//!
//! The log may be of any server that writes MySQL's format. Its statements are summed up by their shapes, and those
//! that took most time go to the server with `ADVISE INDEXES FOR '...'`, database by database. A statement that ran
//! more often is there more often. What comes out is a script: the statements to run, with the reasons as comments.

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use mysql::prelude::Queryable;
use mysql::{Conn, Row};
use sheaf_cli::size::{format_size, parse_size};

use crate::server_connection::{connect, password, quoted};
use crate::slow_log::{Shape, SlowLog};

/// Shapes of a database that are looked at.
const MAX_SHAPES: usize = 200;

/// Statements that the server is given, those that are there several times included.
const MAX_STATEMENTS: f64 = 2_000.0;

/// Bytes of a statement that is given more than once.
const MAX_REPEATED_BYTES: usize = 2 << 10;

#[derive(Debug, Args)]
pub struct AdviseArguments {
    /// Slow query logs, of Sheaf, MySQL, MariaDB or Percona Server.
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The server that has the tables, such as 127.0.0.1:3306.
    #[arg(long, value_name = "HOST:PORT")]
    server: String,
    /// The user to connect as.
    #[arg(long, default_value = "root")]
    user: String,
    /// The user's password. Everybody on this machine can read it in the list of processes; --password-file and the
    /// environment variable MYSQL_PWD are for passwords that matter.
    #[arg(long, conflicts_with = "password_file")]
    password: Option<String>,
    /// A file whose first line is the user's password.
    #[arg(long, value_name = "FILE")]
    password_file: Option<PathBuf>,
    /// The database of statements for which the logs name none.
    #[arg(long, default_value = "")]
    database: String,
    /// The most that the indexes of a database may take, such as 512M.
    #[arg(long, value_parser = parse_size)]
    limit: Option<usize>,
}

pub fn run(arguments: &AdviseArguments) -> Result<ExitCode, Box<dyn Error>> {
    let mut log = SlowLog::new(&arguments.database);
    for path in &arguments.logs {
        let failed = |error| format!("{}: {error}", path.display());
        let file = File::open(path).map_err(failed)?;
        log.read(BufReader::new(file)).map_err(failed)?;
    }
    let left_out = log.left_out;
    let password = password(
        arguments.password.as_deref(),
        arguments.password_file.as_deref(),
    )?;
    let mut connection = connect(&arguments.server, &arguments.user, password.as_deref())?;
    for (database, shapes) in log.by_database() {
        if let Err(error) = advise(&mut connection, (&database, &shapes), arguments.limit) {
            let (database, error) = (one_line(&database), one_line(&message_of(&*error)));
            println!("-- {database}: {error}");
        }
    }
    if left_out > 0 {
        println!(
            "-- {left_out} statements of the logs were left out: too long, or of too many kinds"
        );
    }
    Ok(ExitCode::SUCCESS)
}

fn advise(
    connection: &mut Conn,
    (database, shapes): (&str, &[Shape]),
    limit: Option<usize>,
) -> Result<(), Box<dyn Error>> {
    let count: u64 = shapes.iter().map(|shape| shape.count).sum();
    println!(
        "-- {}: {count} statements of {} kinds",
        one_line(database),
        shapes.len()
    );
    if !database.is_empty() {
        connection.query_drop(format!("USE `{}`", database.replace('`', "``")))?;
    }
    let limit = limit.map_or(String::new(), |limit| format!(" LIMIT {limit}"));
    let text = quoted(&workload(&shapes[..shapes.len().min(MAX_SHAPES)]));
    let rows: Vec<Row> = connection.query(format!("ADVISE INDEXES FOR {text}{limit}"))?;
    let warnings: Vec<(String, u32, String)> = connection.query("SHOW WARNINGS")?;
    for row in &rows {
        let text = |name: &str| row.get::<String, _>(name).unwrap_or_default();
        let number = |name: &str| row.get::<u64, _>(name).unwrap_or_default();
        println!(
            "{};  -- {}; {}; {} us -> {} us",
            text("statement"),
            one_line(&text("reason")),
            format_size(usize::try_from(number("size_bytes")).unwrap_or(usize::MAX)),
            number("cost_before_us"),
            number("cost_after_us")
        );
    }
    for (.., message) in warnings {
        println!("-- {}", one_line(&message));
    }
    Ok(())
}

/// The statements of a workload as one text. What ran more often is there more often, in proportion.
fn workload(shapes: &[Shape]) -> String {
    let count: u64 = shapes.iter().map(|shape| shape.count).sum();
    let share = (MAX_STATEMENTS / count.max(1) as f64).min(1.0);
    let mut text = String::new();
    for shape in shapes {
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "at most MAX_STATEMENTS"
        )]
        let times = match shape.sample.len() <= MAX_REPEATED_BYTES {
            true => (shape.count as f64 * share).round().max(1.0) as usize,
            false => 1,
        };
        for _ in 0..times {
            text.push_str(&shape.sample);
            text.push_str(";\n");
        }
    }
    text
}

/// A text that is a comment to its end.
fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// What went wrong, in the server's words if they are its.
fn message_of(error: &(dyn Error + 'static)) -> String {
    match error.downcast_ref() {
        Some(mysql::Error::MySqlError(error)) => error.to_string(),
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_comments_in_the_words_of_the_server() {
        let error = mysql::MySqlError {
            state: "42000".to_string(),
            message: "near 'a\r\nb'".to_string(),
            code: 1064,
        };
        let error: Box<dyn Error> = Box::new(mysql::Error::MySqlError(error));
        let message = one_line(&message_of(&*error));
        assert_eq!(message, "ERROR 1064 (42000): near 'a  b'");
        assert_eq!(message_of(&*Box::<dyn Error>::from("other")), "other");
    }

    #[test]
    fn statements_are_repeated_in_proportion() {
        let shape = |sample: &str, count| Shape {
            sample: sample.to_string(),
            count,
            ..Shape::default()
        };
        let few = workload(&[shape("SELECT 1", 2), shape("SELECT a", 1)]);
        assert_eq!(few, "SELECT 1;\nSELECT 1;\nSELECT a;\n");
        let many = workload(&[
            shape("SELECT 1", 30_000),
            shape("SELECT a", 10_000),
            shape("b", 1),
        ]);
        let times = |statement: &str| many.lines().filter(|line| *line == statement).count();
        assert_eq!(
            (times("SELECT 1;"), times("SELECT a;"), times("b;")),
            (1_500, 500, 1)
        );
    }
}
