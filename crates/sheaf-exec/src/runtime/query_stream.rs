//! The rows of a running plan, for a blocking reader.
//!
//! The plan runs on worker threads, which send its batches through a channel. Or it runs on the reader's own thread,
//! whenever that asks for the next batch.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use datafusion_common::DataFusionError;
use datafusion_execution::{SendableRecordBatchStream, TaskContext};
use datafusion_physical_plan::{ExecutionPlan, execute_stream};
use futures::{FutureExt, StreamExt};
use sheaf_access::CancelFlag;
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use super::until_stopped::until_stopped;
use crate::error::ExecError;
use crate::operator::checked_rows::{self, CheckedRows};

/// The rows of a running plan. Dropping it aborts the plan.
pub struct QueryStream {
    schema: SchemaRef,
    source: Source,
    finished: bool,
}

enum Source {
    Workers {
        receiver: mpsc::Receiver<Result<RecordBatch, ExecError>>,
        task: tokio::task::JoinHandle<()>,
    },
    Here(Box<Here>),
}

/// A plan that runs on its reader's thread.
struct Here {
    /// What its operators may start tasks with.
    workers: Handle,
    cancel: CancelFlag,
    state: State,
    checked: Option<CheckedRows>,
}

enum State {
    Waits(Arc<dyn ExecutionPlan>, Arc<TaskContext>),
    Runs(SendableRecordBatchStream),
    Ended,
}

impl QueryStream {
    pub(super) fn of_workers(
        schema: SchemaRef,
        receiver: mpsc::Receiver<Result<RecordBatch, ExecError>>,
        task: tokio::task::JoinHandle<()>,
    ) -> QueryStream {
        QueryStream {
            schema,
            source: Source::Workers { receiver, task },
            finished: false,
        }
    }

    pub(super) fn here(
        workers: Handle,
        (plan, task): (Arc<dyn ExecutionPlan>, Arc<TaskContext>),
        cancel: CancelFlag,
    ) -> QueryStream {
        QueryStream {
            schema: plan.schema(),
            source: Source::Here(Box::new(Here {
                workers,
                cancel,
                checked: checked_rows::is_asked_for().then(|| CheckedRows::of(&plan)),
                state: State::Waits(plan, task),
            })),
            finished: false,
        }
    }

    pub fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }

    /// Waits until a plan that has failed is gone, with the memory that it held.
    pub fn settle(mut self) {
        match &mut self.source {
            Source::Workers { receiver, task } => {
                task.abort();
                sheaf_storage::sync::waiting(|| while receiver.blocking_recv().is_some() {});
            }
            Source::Here(here) => here.state = State::Ended,
        }
    }
}

impl Iterator for QueryStream {
    type Item = Result<RecordBatch, ExecError>;

    /// Waits for the next batch; batches are never empty. After an error the stream has ended.
    fn next(&mut self) -> Option<Self::Item> {
        if self.finished {
            return None;
        }
        let item = match &mut self.source {
            Source::Workers { receiver, .. } => {
                sheaf_storage::sync::waiting(|| receiver.blocking_recv())
            }
            Source::Here(here) => here.next().transpose(),
        };
        self.finished = !matches!(item, Some(Ok(_)));
        item
    }
}

impl Drop for QueryStream {
    fn drop(&mut self) {
        if let Source::Workers { task, .. } = &self.source {
            task.abort();
        }
    }
}

impl Here {
    fn next(&mut self) -> Result<Option<RecordBatch>, ExecError> {
        let Here {
            workers,
            cancel,
            state,
            checked,
        } = self;
        let batch = async {
            if let State::Waits(plan, task) = state {
                let (plan, task) = (Arc::clone(plan), Arc::clone(task));
                *state = State::Runs(execute_stream(plan, task)?);
            }
            let State::Runs(stream) = state else {
                return Ok(None);
            };
            while let Some(batch) = stream.next().await {
                let batch = batch.map_err(unwrap_panic)?;
                if let Some(checked) = checked {
                    checked.check(&batch)?;
                }
                if cancel.is_cancelled() {
                    return Err(ExecError::Cancelled);
                }
                if batch.num_rows() > 0 {
                    return Ok(Some(batch));
                }
            }
            Ok(None)
        };
        let batch = AssertUnwindSafe(until_stopped(batch, cancel)).catch_unwind();
        let outcome = workers.block_on(batch).unwrap_or_else(|panic| {
            Err(ExecError::Panic {
                message: panic_message(&*panic),
            })
        });
        if !matches!(outcome, Ok(Some(_))) {
            // What the plan holds is free from here on.
            self.state = State::Ended;
        }
        match outcome {
            Err(error) if self.cancel.is_cancelled() => {
                tracing::debug!(%error, "plan stopped by a kill");
                Err(ExecError::Cancelled)
            }
            outcome => outcome,
        }
    }
}

/// A panic in a task that an operator started arrives as a join error.
pub(super) fn unwrap_panic(error: DataFusionError) -> ExecError {
    match error.find_root() {
        DataFusionError::ExecutionJoin(join) if join.is_panic() => ExecError::Panic {
            message: join.to_string(),
        },
        _ => ExecError::DataFusion(error),
    }
}

/// The text of a panic, if it has one.
pub(super) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_string()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "(no message)".to_string()
    }
}
