//! Memory by measurement: what a statement holds, and what the process does.
//!
//! Operators say how much memory they take before they take it. That is a good estimate of hash tables and of rows that
//! wait to be sorted. It leaves out what is between the operators, what libraries need for the moment, and what the
//! allocator keeps. So there are two measurements beside it:
//!
//! ```text
//!   a statement   allocated - freed, by each thread while it works for the statement       [`StatementMemory`]
//!   the process   anonymous resident memory, as the system counts it                       [`process`]
//! ```
//!
//! A thread says for which statement it works ([`StatementMemory::during`]). Its allocator counts for each thread, so
//! an allocation costs nothing more; the difference is added to the statement's account at *safe points*. These are the
//! moments when a statement can be stopped: each time that a task is polled or an operator asks for memory, and
//! wherever the statement looks whether it was killed.
//!
//! As long as the process is within its limit, nobody is disturbed by a measurement. Beyond it, four things happen:
//!
//! 1. The allocator gives back what it keeps.
//! 2. Caches give back what they can do without ([`process::Lender`]).
//! 3. Operators that can spill get no more than they have ([`process::is_pressed`]).
//! 4. If the process comes near to the end of the tolerance, the statement that holds most is stopped at its next
//!    safe point.
//!
//! Code that is about to take much at once asks before ([`has_room_for`], [`has_room_for_value`]). Libraries do not.
//! For them the program's allocator says what it is about to hand out ([`will_allocate`]), but for code that holds a
//! lock which many wait for ([`making_room`](making_room())). Threads that wait give back what they keep for their next
//! work ([`release_if_pressed`]).
//!
//! The counts come from the program's allocator ([`Allocator`]). In a program that brings none, the estimates alone
//! bound the memory.

mod budget;
pub mod counting;
pub mod crowd;
mod filling;
mod folded;
mod group;
mod making_room;
pub mod planning;
pub mod process;
mod shared_value;
mod statement;
mod stop_flag;
mod thread_memory;
mod watch;

pub use budget::{Budget, Share};
pub use filling::Filling;
pub use group::most_unwritten;
pub use making_room::making_room;
pub use shared_value::SharedValue;
pub use statement::{
    LONG_VALUE_BYTES, StatementMemory, current, has_room_for, has_room_for_tree,
    has_room_for_value, may_fold, may_go_on, of_this_statement, safe_point, shall_stop,
    waits_for_lock, will_allocate,
};
pub use stop_flag::{Sleeper, StopFlag};
pub use thread_memory::{release_if_pressed, release_thread_memory};
pub use watch::keep_within;

use std::sync::OnceLock;

/// What the program's allocator can tell and do.
#[derive(Clone, Copy, Debug)]
pub struct Allocator {
    /// Bytes that the calling thread has allocated less those that it has freed. It may be negative.
    pub held_by_thread: fn() -> i64,
    /// Gives memory that is free back to the system.
    pub give_back: fn(),
    /// Has the calling thread keep no free memory for its next allocations.
    pub empty_thread_cache: fn(),
}

static ALLOCATOR: OnceLock<Allocator> = OnceLock::new();

/// Says which allocator the program uses. The first call counts.
pub fn set_allocator(allocator: Allocator) {
    // A second one could only be the same: a program has one allocator.
    let _ = ALLOCATOR.set(allocator);
}

/// What the calling thread holds by its allocator's count, in bytes; 0 without one. The difference of two calls is what
/// the work between them has kept.
#[inline]
pub fn held_by_thread() -> i64 {
    ALLOCATOR
        .get()
        .map_or(0, |allocator| (allocator.held_by_thread)())
}

/// Does `work`, and tells how many bytes the calling thread has allocated meanwhile and not freed; 0 where the program
/// counts nothing.
pub fn kept_by<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = held_by_thread();
    let done = work();
    let kept = (held_by_thread() - before).max(0);
    (done, kept as usize)
}
