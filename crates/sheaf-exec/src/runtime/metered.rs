//! Tasks that know which statement they work for.
//!
//! What a statement runs is several tasks: the root of its plan, and those that operators start. Any worker thread may
//! poll any of them. Each poll [counts](sheaf_memory) for the statement, and is a safe point.

use std::any::Any;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use datafusion_common_runtime::{JoinSetTracer, set_join_set_tracer};
use futures::FutureExt;
use futures::future::BoxFuture;
use sheaf_memory::{StatementMemory, current, of_this_statement, safe_point};

/// A future whose allocations are those of a statement.
pub(super) struct Metered<F> {
    /// Dropped last: what the future lets go is the statement's.
    future: Option<F>,
    memory: Option<Arc<StatementMemory>>,
}

impl<F> Metered<F> {
    /// A future of the statement that the calling thread works for.
    pub(super) fn new(future: F) -> Metered<F> {
        Metered {
            future: Some(future),
            memory: current(),
        }
    }
}

impl<F: Future + Unpin> Future for Metered<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        let this = &mut *self;
        let future = this.future.as_mut().expect("only drop takes it");
        during(&this.memory, || {
            let outcome = future.poll_unpin(context);
            safe_point();
            outcome
        })
    }
}

impl<F> Drop for Metered<F> {
    fn drop(&mut self) {
        let future = self.future.take();
        during(&self.memory, || drop(future));
    }
}

fn during<T>(memory: &Option<Arc<StatementMemory>>, work: impl FnOnce() -> T) -> T {
    match memory {
        Some(memory) => memory.during(work),
        None => work(),
    }
}

/// Meters the tasks that operators of DataFusion start.
struct Tracer;

impl JoinSetTracer for Tracer {
    fn trace_future(
        &self,
        future: BoxFuture<'static, Box<dyn Any + Send>>,
    ) -> BoxFuture<'static, Box<dyn Any + Send>> {
        Metered::new(future).boxed()
    }

    fn trace_block(
        &self,
        block: Box<dyn FnOnce() -> Box<dyn Any + Send> + Send>,
    ) -> Box<dyn FnOnce() -> Box<dyn Any + Send> + Send> {
        Box::new(of_this_statement(block))
    }
}

/// From now on tasks that operators start are metered.
pub(super) fn meter_tasks() {
    // It is the same for all runtimes. A program that embeds Sheaf and traces DataFusion's tasks itself keeps its own
    // tracer: then their memory is the process's alone.
    if set_join_set_tracer(&Tracer).is_err() {
        tracing::debug!("the tasks of operators are traced already");
    }
}
