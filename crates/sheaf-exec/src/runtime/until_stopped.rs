//! The end of a plan whose statement shall stop.
//!
//! Operators look at the statement's flag while they work. Where all tasks of a plan wait for each other, or for a
//! reader that has gone, nobody works. Then the flag wakes the root, which drops the plan and with it all of its tasks.

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use sheaf_access::CancelFlag;

use crate::error::ExecError;

/// Does `work` until its end, or until the flag is raised.
///
/// # Errors
/// Those of `work`, and [`ExecError::Cancelled`].
pub(super) async fn until_stopped<T>(
    work: impl Future<Output = Result<T, ExecError>>,
    cancel: &CancelFlag,
) -> Result<T, ExecError> {
    let mut work = pin!(work);
    let sleeper = cancel.sleeper();
    poll_fn(|context| {
        if let Poll::Ready(outcome) = work.as_mut().poll(context) {
            return Poll::Ready(outcome);
        }
        match sleeper.poll_raised(context) {
            true => Poll::Ready(Err(ExecError::Cancelled)),
            false => Poll::Pending,
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::thread;
    use std::time::{Duration, Instant};

    use super::*;

    #[test]
    fn what_sleeps_for_ever_ends_when_it_is_killed() {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.expect("a runtime");
        let cancel = CancelFlag::new();
        let began = Instant::now();
        let killer = thread::spawn({
            let cancel = cancel.clone();
            move || {
                thread::sleep(Duration::from_millis(20));
                cancel.cancel();
            }
        });
        let never = pending::<Result<(), ExecError>>();
        let outcome = runtime.block_on(until_stopped(never, &cancel));
        assert!(matches!(outcome, Err(ExecError::Cancelled)));
        assert!(began.elapsed() < Duration::from_secs(20));
        killer.join().expect("no panic");
        // What is complete is complete.
        let outcome = runtime.block_on(until_stopped(ready(Ok(7)), &cancel));
        assert!(matches!(outcome, Ok(7)));
        cancel.reset();
        let outcome = runtime.block_on(until_stopped(ready(Ok(8)), &cancel));
        assert!(matches!(outcome, Ok(8)));
    }
}
