//! What a table's lock shows of those that hold it or wait for it.
//!
//! Sessions that write, define or lock the table are known to its [lock](super). Of those that only read it, as many
//! are known as have room beside the counts of [shared holders](super::shards::Shard); others are shown without their
//! session.

use std::collections::BTreeMap;

use sheaf_storage::sync::atomic::Ordering;

use super::{NO_SESSION, State, TableLock, WriterLock};

/// What a session holds a table for, or waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TableLockMode {
    /// Its definition stays.
    Read,
    /// Rows are changed.
    Write,
    /// It is loaded, or another definition is prepared.
    Define,
    /// Another definition is entered.
    Exclusive,
    /// LOCK TABLES ... READ.
    SessionRead,
    /// LOCK TABLES ... WRITE.
    SessionWrite,
}

/// A session that holds a table's lock, or waits for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShownTableLock {
    pub is_granted: bool,
    pub mode: TableLockMode,
    /// `None`: it is not known.
    pub session: Option<u64>,
}

impl State {
    pub(super) fn show_waiting(&mut self, waiting: (u64, TableLockMode)) {
        self.waiting.push(waiting);
    }

    pub(super) fn hide_waiting(&mut self, waiting: (u64, TableLockMode)) {
        let known = self.waiting.iter().position(|known| *known == waiting);
        known.map(|known| self.waiting.swap_remove(known));
    }
}

/// A writer is shown to wait to be exclusive while this lives, also between its attempts.
#[derive(Debug)]
pub(crate) struct ShownWait<'a>(&'a WriterLock);

impl WriterLock {
    fn as_waiting(&self) -> (u64, TableLockMode) {
        (self.session, TableLockMode::Exclusive)
    }

    pub(crate) fn show_wait(&self) -> ShownWait<'_> {
        self.lock.state.lock().show_waiting(self.as_waiting());
        ShownWait(self)
    }
}

impl Drop for ShownWait<'_> {
    fn drop(&mut self) {
        let ShownWait(writer) = self;
        writer.lock.state.lock().hide_waiting(writer.as_waiting());
    }
}

impl TableLock {
    /// Those that hold it, and those that wait, each once for each mode.
    pub(crate) fn shown(&self) -> Vec<ShownTableLock> {
        let state = self.state.lock();
        // What else a session does with the table keeps its definition, too.
        let mut of_others: BTreeMap<u64, usize> = BTreeMap::new();
        let mut granted: Vec<(u64, TableLockMode)> = Vec::new();
        for session in &state.row_writer_sessions {
            *of_others.entry(*session).or_default() += 1;
            granted.push((*session, TableLockMode::Write));
        }
        if state.writer {
            *of_others.entry(state.writer_session).or_default() += 1;
            granted.push((state.writer_session, TableLockMode::Define));
        }
        if state.exclusive {
            granted.push((state.writer_session, TableLockMode::Exclusive));
        }
        let readers = state.readers.iter();
        granted.extend(readers.map(|session| (*session, TableLockMode::SessionRead)));
        let owner = state.owner.iter();
        granted.extend(owner.map(|(session, _)| (*session, TableLockMode::SessionWrite)));
        let mut unknown = 0;
        for shard in &self.shared {
            let mut holders = shard.holders.load(Ordering::Relaxed);
            let noted = shard.sessions.iter();
            let noted = noted.map(|session| session.load(Ordering::Relaxed));
            for session in noted.filter(|session| *session != NO_SESSION) {
                holders = holders.saturating_sub(1);
                match of_others.get_mut(&session).filter(|left| **left > 0) {
                    Some(left) => *left -= 1,
                    None => granted.push((session, TableLockMode::Read)),
                }
            }
            unknown += holders;
        }
        // Those that have no place there may be any.
        if unknown > of_others.values().sum() {
            granted.push((NO_SESSION, TableLockMode::Read));
        }
        let mut waiting = state.waiting.clone();
        let definers = state.definers.iter();
        waiting.extend(definers.map(|definer| match definer.is_writer {
            true => (definer.session, TableLockMode::Exclusive),
            false => (definer.session, TableLockMode::Define),
        }));
        drop(state);
        let shown = |is_granted| {
            move |(session, mode)| ShownTableLock {
                is_granted,
                mode,
                session: (session != NO_SESSION).then_some(session),
            }
        };
        let granted = granted.into_iter().map(shown(true));
        let mut all: Vec<ShownTableLock> = granted
            .chain(waiting.into_iter().map(shown(false)))
            .collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::lock::table_lock::{LockRequest, SessionLockMode};

    fn of_session(session: u64) -> LockRequest<'static> {
        LockRequest {
            session,
            ..LockRequest::from(Duration::ZERO)
        }
    }

    fn granted(lock: &TableLock) -> Vec<(Option<u64>, TableLockMode)> {
        let shown = lock.shown().into_iter();
        let granted = shown.filter(|shown| shown.is_granted);
        granted.map(|shown| (shown.session, shown.mode)).collect()
    }

    #[test]
    fn each_holder_is_shown_once_for_what_it_does() {
        let lock = Arc::new(TableLock::default());
        assert!(lock.shown().is_empty());
        let read = [lock.shared(of_session(5)), lock.shared(of_session(5))];
        assert_eq!(granted(&lock), [(Some(5), TableLockMode::Read)]);
        // A session that changes rows keeps the definition for that.
        let rows = lock.row_writer(of_session(6)).unwrap();
        let shared = lock.shared(of_session(6)).unwrap();
        let both = [
            (Some(5), TableLockMode::Read),
            (Some(6), TableLockMode::Write),
        ];
        assert_eq!(granted(&lock), both);
        let more = lock.shared(of_session(6)).unwrap();
        assert_eq!(granted(&lock).len(), 3);
        drop((more, shared, rows, read));
        let writer = lock.writer(of_session(7)).unwrap();
        let exclusive = writer.exclusive(of_session(7)).unwrap();
        let both = [
            (Some(7), TableLockMode::Define),
            (Some(7), TableLockMode::Exclusive),
        ];
        assert_eq!(granted(&lock), both);
        drop(exclusive);
        drop(writer);
        let locked = lock.for_session(SessionLockMode::Write, 8, Duration::ZERO);
        assert_eq!(granted(&lock), [(Some(8), TableLockMode::SessionWrite)]);
        drop(locked);
        assert!(lock.shown().is_empty());
    }

    #[test]
    fn holders_beyond_those_that_have_a_place_are_shown_without_their_session() {
        let lock = Arc::new(TableLock::default());
        let holders: Vec<_> = (1..=20)
            .map(|session| lock.shared(of_session(session)))
            .collect();
        let shown = granted(&lock);
        assert_eq!(
            shown
                .iter()
                .filter(|(session, _)| session.is_none())
                .count(),
            1
        );
        assert!(shown.len() > 2);
        drop(holders);
        assert!(lock.shown().is_empty());
    }

    #[test]
    fn those_that_wait_are_shown_while_they_wait() {
        let lock = Arc::new(TableLock::default());
        let read = lock.shared(of_session(1)).unwrap();
        let writer = lock.writer(of_session(2)).unwrap();
        let waits = std::sync::atomic::AtomicBool::new(false);
        let interrupt = || {
            let shown = lock.shown();
            let is_shown = |shown: &ShownTableLock| {
                let wanted = (Some(2), TableLockMode::Exclusive);
                !shown.is_granted && (shown.session, shown.mode) == wanted
            };
            waits.store(shown.iter().any(is_shown), Ordering::Relaxed);
            true
        };
        let request = LockRequest {
            session: 2,
            interrupt: Some(&interrupt),
            ..LockRequest::from(Duration::from_secs(60))
        };
        assert!(writer.exclusive(request).is_err());
        assert!(waits.load(Ordering::Relaxed));
        let nobody_waits = || lock.shown().iter().all(|shown| shown.is_granted);
        assert!(nobody_waits());
        let shown = writer.show_wait();
        assert!(!nobody_waits());
        drop(shown);
        assert!(nobody_waits());
        drop((read, writer));
    }
}
