//! Errors on their way to Python: MySQL's number, SQLSTATE and text. The package makes the classes of PEP 249 of them.

use pyo3::create_exception;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use sheaf::Error;
use sheaf_types::error::codes;

create_exception!(
    _sheaf,
    EngineError,
    PyException,
    "(errno, sqlstate, message) of an error of the engine."
);

/// For Python.
pub(crate) fn raised(error: Error) -> PyErr {
    EngineError::new_err((error.code, error.sqlstate, error.message))
}

/// 1210: arguments of a call that make no sense.
pub(crate) fn wrong_arguments(message: impl Into<String>) -> PyErr {
    raised(Error::new(codes::WRONG_ARGUMENTS, message))
}

/// 1053: the connection was closed.
pub(crate) fn closed() -> PyErr {
    raised(Error::new(
        codes::SERVER_SHUTDOWN,
        "The connection is closed",
    ))
}

/// 1053: threads of the engine do not live in a process that fork() has made.
pub(crate) fn forked() -> PyErr {
    raised(Error::new(
        codes::SERVER_SHUTDOWN,
        "The database was opened by the parent of this process, and cannot be used here. \
         Connect after the fork, or start processes by spawn",
    ))
}
