//! What the locking clauses of a query say about rows that others have locked.

use std::time::Duration;

use sqlparser::ast;

/// How a locking read treats rows that are locked.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locked {
    WaitFor,
    Fail,
    Skip,
}

/// What a query says about rows that are locked.
pub(crate) fn locked_rows(query: &ast::Query) -> Locked {
    let nonblock = |lock: &ast::LockClause| lock.nonblock;
    match query.locks.iter().find_map(nonblock) {
        None => Locked::WaitFor,
        Some(ast::NonBlock::Nowait) => Locked::Fail,
        Some(ast::NonBlock::SkipLocked) => Locked::Skip,
    }
}

/// How long a locking read waits, if it says so itself.
pub(crate) fn lock_wait(query: &ast::Query) -> Option<Duration> {
    (locked_rows(query) != Locked::WaitFor).then_some(Duration::ZERO)
}
