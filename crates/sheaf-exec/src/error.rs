//! Errors of running a plan.

use std::io;

use datafusion_common::DataFusionError;
use sheaf_storage::TempFileError;
use thiserror::Error;

use crate::functions::EvaluationError;

/// What can go wrong while a plan runs.
#[derive(Debug, Error)]
pub enum ExecError {
    /// An operator failed. Errors of the floors below are inside as [`DataFusionError::External`].
    #[error("{0}")]
    DataFusion(#[from] DataFusionError),
    /// The statement was killed, by KILL QUERY or because its connection went away.
    #[error("query execution was interrupted")]
    Cancelled,
    /// An operator panicked. The statement fails; the server goes on.
    #[error("internal error: an operator panicked: {message}")]
    Panic { message: String },
    /// The runtime could not start its worker threads or its spill directory.
    #[error("cannot start the query runtime: {0}")]
    Start(#[source] std::io::Error),
}

impl ExecError {
    /// Whether an operator has found too little memory for what it has to hold.
    pub fn is_out_of_memory(&self) -> bool {
        match self {
            ExecError::DataFusion(error) => {
                matches!(error.find_root(), DataFusionError::ResourcesExhausted(_))
                    || EvaluationError::find(error).is_some_and(EvaluationError::is_batch_too_large)
            }
            _ => false,
        }
    }
}

/// A temporary file that failed, as DataFusion's operators report it.
pub(crate) fn temp_file_error(error: TempFileError) -> DataFusionError {
    DataFusionError::IoError(temp_file_io_error(error))
}

pub(crate) fn temp_file_io_error(error: TempFileError) -> io::Error {
    io::Error::new(error.source.kind(), error)
}
