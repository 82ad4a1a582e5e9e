//! FOR UPDATE and FOR SHARE of a query of one table, as they are written.

use std::time::Duration;

use sheaf_storage::LockMode;
use sqlparser::ast;

/// What a query locks, and how.
#[derive(Clone, Copy, Debug)]
pub(in crate::direct) struct Locking {
    mode: LockMode,
    /// What the statement says itself about waiting.
    pub(in crate::direct) wait: Option<Duration>,
    /// SKIP LOCKED.
    skips: bool,
}

impl Locking {
    pub(in crate::direct) fn mode(&self) -> LockMode {
        self.mode
    }

    /// Whether rows that are locked are left out.
    pub(in crate::direct) fn skips(&self) -> bool {
        self.skips
    }
}

/// The locks of a query on the table of this alias: none, or one kind for all its rows. The outer `None`: something
/// else.
pub(in crate::direct) fn locking(
    locks: &[ast::LockClause],
    alias: &str,
) -> Option<Option<Locking>> {
    let [lock] = locks else {
        return locks.is_empty().then_some(None);
    };
    let names_it = match &lock.of {
        None => true,
        Some(name) => match name.0.as_slice() {
            [part] => part.as_ident().is_some_and(|name| name.value == alias),
            _ => false,
        },
    };
    let wait = lock.nonblock.map(|_| Duration::ZERO);
    let skips = lock.nonblock == Some(ast::NonBlock::SkipLocked);
    let mode = match lock.lock_type {
        ast::LockType::Update => LockMode::Exclusive,
        ast::LockType::Share => LockMode::Shared,
    };
    names_it.then_some(Some(Locking { mode, wait, skips }))
}
