//! What can go wrong in a benchmark, said so that the person at the terminal knows what to do.

use std::fmt::Display;
use std::path::Path;

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

    /// Wraps any error that says enough by itself.
    pub fn from_display(error: impl Display) -> Self {
        BenchError::Other(error.to_string())
    }
}
