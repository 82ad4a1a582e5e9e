//! Errors of the floors below become MySQL's.
//!
//! On their way up errors are wrapped, by DataFusion and by Arrow. What counts is the one that started it.

use std::io::ErrorKind;

use arrow::error::ArrowError;
use datafusion_common::DataFusionError;
use sheaf_access::AccessError;
use sheaf_exec::ExecError;
use sheaf_exec::functions::EvaluationError;
use sheaf_exec::memory_consumers::{OTHERS_HAVE_IT, out_of_memory_in};
use sheaf_storage::StorageError;
use sheaf_table::TableError;
use sheaf_types::ColumnIssue;
use sheaf_types::error::codes;

use super::SqlError;

impl From<StorageError> for SqlError {
    fn from(error: StorageError) -> Self {
        SqlError::from(TableError::from(error))
    }
}

impl From<TableError> for SqlError {
    fn from(error: TableError) -> Self {
        of_table(&error)
    }
}

impl From<AccessError> for SqlError {
    fn from(error: AccessError) -> Self {
        of_source(&error).unwrap_or_else(|| SqlError::unknown(error.to_string()))
    }
}

impl From<ArrowError> for SqlError {
    fn from(error: ArrowError) -> Self {
        of_source(&error).unwrap_or_else(|| SqlError::unknown(error.to_string()))
    }
}

impl From<DataFusionError> for SqlError {
    fn from(error: DataFusionError) -> Self {
        of_source(&error).unwrap_or_else(|| SqlError::unknown(error.strip_backtrace()))
    }
}

impl From<ExecError> for SqlError {
    fn from(error: ExecError) -> Self {
        of_source(&error).unwrap_or_else(|| SqlError::unknown(error.to_string()))
    }
}

impl From<&EvaluationError> for SqlError {
    fn from(error: &EvaluationError) -> Self {
        SqlError {
            code: error.code,
            sqlstate: error.sqlstate,
            message: error.message.clone(),
        }
    }
}

impl From<ColumnIssue> for SqlError {
    fn from(issue: ColumnIssue) -> Self {
        SqlError::new(issue.problem.code(), issue.to_string())
    }
}

fn of_table(error: &TableError) -> SqlError {
    match error {
        TableError::Interrupted => SqlError::query_interrupted(),
        error => SqlError::new(error.code(), error.to_string()),
    }
}

/// Finds the error that started it. On their way up errors are wrapped: an access method's by DataFusion, as
/// External and with context around it, and again by Arrow where a kernel was in between.
fn of_source(error: &(dyn std::error::Error + 'static)) -> Option<SqlError> {
    if let Some(error) = error.downcast_ref::<SqlError>() {
        return Some(error.clone());
    }
    if let Some(error) = error.downcast_ref::<EvaluationError>() {
        return Some(SqlError::from(error));
    }
    if let Some(error) = error.downcast_ref::<TableError>() {
        return Some(of_table(error));
    }
    if let Some(error) = error.downcast_ref::<StorageError>() {
        return Some(of_table(&TableError::from(error.clone())));
    }
    if let Some(error) = error.downcast_ref::<AccessError>() {
        return match error {
            AccessError::Storage(error) => Some(of_table(&TableError::from(error.clone()))),
            AccessError::Table(error) => Some(of_table(error)),
            AccessError::Arrow(error) => of_source(error),
            AccessError::Cancelled => Some(SqlError::query_interrupted()),
            AccessError::Condition(error) => of_source(error.as_ref()),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<ExecError>() {
        return match error {
            ExecError::DataFusion(error) => of_source(error),
            ExecError::Cancelled => Some(SqlError::query_interrupted()),
            error => Some(SqlError::unknown(error.to_string())),
        };
    }
    if let Some(error) = error.downcast_ref::<ArrowError>() {
        return match error {
            ArrowError::ExternalError(error) => of_source(error.as_ref()),
            ArrowError::DivideByZero => Some(SqlError::division_by_zero()),
            ArrowError::ArithmeticOverflow(text) => {
                Some(SqlError::data_out_of_range("number", text))
            }
            // An operand that has to get the decimals of the other one, which there is no room for.
            ArrowError::CastError(text)
                if text.contains("to Decimal128") || text.contains("to Decimal256") =>
            {
                Some(SqlError::data_out_of_range("DECIMAL", text))
            }
            ArrowError::IoError(_, error) => of_io(error),
            _ => None,
        };
    }
    if let Some(error) = error.downcast_ref::<DataFusionError>() {
        return match error {
            DataFusionError::External(error) => of_source(error.as_ref()),
            DataFusionError::ArrowError(error, _) => of_source(error.as_ref()),
            DataFusionError::Context(_, error) | DataFusionError::Diagnostic(_, error) => {
                of_source(error.as_ref())
            }
            DataFusionError::Shared(error) => of_source(error.as_ref()),
            DataFusionError::Collection(errors) => errors.iter().find_map(|error| of_source(error)),
            DataFusionError::IoError(error) => of_io(error),
            DataFusionError::ResourcesExhausted(text) if text.contains(OTHERS_HAVE_IT) => {
                Some(SqlError::out_of_memory(
                    "other statements have all query memory; try again, raise --memory or query_memory_wait_timeout",
                ))
            }
            DataFusionError::ResourcesExhausted(text) => {
                Some(SqlError::query_out_of_memory(out_of_memory_in(text)))
            }
            // SubqueryValuesExec has no error of its own to recognise.
            DataFusionError::Execution(text) if text.contains("returned more than one row") => {
                Some(SqlError::new(
                    codes::SUBQUERY_NO_1_ROW,
                    "Subquery returns more than 1 row",
                ))
            }
            DataFusionError::NotImplemented(text) => Some(SqlError::not_supported_yet(text)),
            _ => None,
        };
    }
    error.source().and_then(of_source)
}

fn of_io(error: &std::io::Error) -> Option<SqlError> {
    let disk_full = |text: &str| {
        Some(SqlError::new(
            codes::DISK_FULL,
            format!("Disk full: {text}"),
        ))
    };
    match error.kind() {
        ErrorKind::StorageFull => disk_full("no space is left for temporary files"),
        ErrorKind::QuotaExceeded => disk_full(&error.to_string()),
        _ => error.get_ref().and_then(|inner| of_source(inner)),
    }
}
