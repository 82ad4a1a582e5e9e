//! How a statement is told to stop.
//!
//! A [`CancelFlag`] belongs to a session. Operators have it as a field. What happens before there are operators, that
//! is parsing, lowering and planning, consists of many small functions of several crates, and all of it runs on the
//! session's thread. There the flag is found by the thread:
//!
//! ```text
//!   flag.during(|| parse, lower, optimize, ...)
//!                      '--- loops call check_statement() ---> AccessError::Cancelled
//! ```
//!
//! A look at the flag costs a few nanoseconds, so a loop looks in each turn that does more than a little. Each look is
//! also a [safe point](sheaf_memory::safe_point): the statement can be stopped there because it has too much memory. It
//! is where a statement that is planned [asks for more](planning::has_share_for), and may wait for others. So no loop
//! looks while it has a latch.
//!
//! What sleeps looks at nothing. A plan whose tasks all wait for each other [is woken](CancelFlag::sleeper).

use std::cell::RefCell;
use std::sync::Arc;

use sheaf_memory::{LONG_VALUE_BYTES, Sleeper, StatementMemory, StopFlag, planning};

use crate::error::{AccessError, Result};

/// A flag that one thread raises (KILL, a closed socket, a time limit) and the access methods of one
/// session look at once per leaf. Cloning shares the flag.
#[derive(Clone, Debug, Default)]
pub struct CancelFlag(Arc<StopFlag>);

thread_local! {
    /// The flag of the statement that this thread parses or plans.
    static OF_THREAD: RefCell<Option<CancelFlag>> = const { RefCell::new(None) };
}

/// Puts back the flag that the thread had before.
struct Restore(Option<CancelFlag>);

impl Drop for Restore {
    fn drop(&mut self) {
        OF_THREAD.replace(self.0.take());
    }
}

impl CancelFlag {
    /// A flag that is not raised.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks everything that checks this flag to stop.
    pub fn cancel(&self) {
        self.0.raise();
    }

    /// Lowers the flag: the next statement of the session starts afresh.
    pub fn reset(&self) {
        self.0.lower();
    }

    /// Whether the flag is raised.
    pub fn is_cancelled(&self) -> bool {
        sheaf_memory::safe_point();
        self.0.is_raised()
    }

    /// Tells a task when the flag is raised.
    pub fn sleeper(&self) -> Sleeper {
        Sleeper::new(Arc::clone(&self.0))
    }

    /// The account of this flag's statements: one that has too much memory is stopped by raising the flag.
    pub fn statement_memory(&self) -> Arc<StatementMemory> {
        StatementMemory::new(Arc::clone(&self.0))
    }

    /// [`AccessError::Cancelled`] if the flag is raised.
    pub fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            Err(AccessError::Cancelled)
        } else {
            Ok(())
        }
    }

    /// Does `work` for this flag's statement: [`check_statement`] looks at it meanwhile.
    pub fn during<T>(self, work: impl FnOnce() -> T) -> T {
        // A panic inside of `work` must not leave the flag to the thread's next statement.
        let _restore = Restore(OF_THREAD.replace(Some(self)));
        work()
    }
}

/// Whether the statement that this thread parses or plans shall stop. False outside of [`CancelFlag::during`].
pub fn is_statement_cancelled() -> bool {
    // What comes of it is in the flag.
    let _ = planning::has_share_for(0);
    OF_THREAD.with_borrow(|flag| flag.as_ref().is_some_and(CancelFlag::is_cancelled))
}

/// [`AccessError::Cancelled`] if the statement that this thread parses or plans shall stop.
pub fn check_statement() -> Result<()> {
    match is_statement_cancelled() {
        true => Err(AccessError::Cancelled),
        false => Ok(()),
    }
}

/// Makes room for so many bytes, which the statement that this thread parses or plans is about to take at once.
/// [`AccessError::Cancelled`] if there is none, or the statement shall stop for another reason.
pub fn check_room_for(bytes: usize) -> Result<()> {
    match planning::has_share_for(bytes) && sheaf_memory::has_room_for(bytes) {
        true => check_statement(),
        false => Err(AccessError::Cancelled),
    }
}

/// As [`check_room_for`], for another syntax tree like that of the statement.
pub fn check_room_for_tree() -> Result<()> {
    match sheaf_memory::has_room_for_tree() {
        true => check_statement(),
        false => Err(AccessError::Cancelled),
    }
}

/// As [`check_room_for`], for a value that may be long. It costs nothing where it is not.
pub fn check_room_for_value(bytes: usize) -> Result<()> {
    match bytes < LONG_VALUE_BYTES {
        true => Ok(()),
        false => check_room_for(bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_knows_the_flag_of_the_statement_that_it_works_for() {
        let (outer, inner) = (CancelFlag::new(), CancelFlag::new());
        assert!(!is_statement_cancelled());
        outer.clone().during(|| {
            inner.cancel();
            assert!(check_statement().is_ok());
            inner.clone().during(|| assert!(is_statement_cancelled()));
            assert!(!is_statement_cancelled());
            outer.cancel();
            assert!(check_statement().is_err());
        });
        assert!(!is_statement_cancelled());
    }

    #[test]
    fn a_panic_does_not_leave_the_flag_behind() {
        let flag = CancelFlag::new();
        flag.cancel();
        let panicked =
            std::panic::catch_unwind(|| flag.during(|| assert!(!is_statement_cancelled())));
        assert!(panicked.is_err() && !is_statement_cancelled());
    }
}
