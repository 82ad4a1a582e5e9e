//! What can go wrong in a benchmark, said so that the person at the terminal knows what to do.

use std::fmt::Display;
use std::path::Path;

/// ER_QUERY_TIMEOUT of MySQL, and ER_STATEMENT_TIMEOUT of MariaDB.
const TIMEOUTS: [u16; 2] = [3024, 1969];

/// An error of a benchmark run.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A file or folder could not be used.
    #[error("{path}: {source}")]
    File {
        /// What was being used.
        path: String,
        /// What the operating system said.
        source: std::io::Error,
    },
    /// A server did not do what it was asked to.
    #[error("{server}: {message}")]
    Server {
        /// The server's name as the tables print it.
        server: &'static str,
        /// What happened, with the way out where there is one.
        message: String,
    },
    /// A statement took longer than it was allowed to.
    #[error("{server}: the statement took too long")]
    TimedOut {
        /// The server's name as the tables print it.
        server: &'static str,
    },
    /// Anything else, already worded.
    #[error("{0}")]
    Other(String),
}

impl BenchError {
    /// Wraps an error of the file system with the path that it is about.
    pub fn file(path: &Path, source: std::io::Error) -> Self {
        BenchError::File {
            path: path.display().to_string(),
            source,
        }
    }

    /// Wraps an error of `server`.
    pub fn server(server: &'static str, error: impl Display) -> Self {
        BenchError::Server {
            server,
            message: error.to_string(),
        }
    }

    /// Wraps an error of a statement that a server of the MySQL protocol was asked to run.
    pub fn of_statement(server: &'static str, error: mysql::Error) -> Self {
        match error {
            mysql::Error::MySqlError(error) if TIMEOUTS.contains(&error.code) => {
                BenchError::TimedOut { server }
            }
            error => BenchError::server(server, error),
        }
    }

    /// Wraps any error that says enough by itself.
    pub fn from_display(error: impl Display) -> Self {
        BenchError::Other(error.to_string())
    }
}
