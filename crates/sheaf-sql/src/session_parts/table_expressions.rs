//! Expressions of definitions that a session has planned: generated columns, CHECKs.
//!
//! To plan one takes some tens of times as long as to compute it for a row. So a session keeps what it has planned of
//! a table for the next statement that writes to it, as long as the [`Circumstances`] are the same. What planning noted
//! of constants is noted for each statement.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use sheaf_table::Table;

use crate::session_parts::circumstances::Circumstances;

/// Lists of expressions that a session keeps; the one that was used longest ago makes room.
const MAX_KEPT: usize = 16;
/// And what they take together, in bytes.
const MAX_KEPT_BYTES: usize = 256 << 10;
/// The same while the session rests: there may be many that do.
const MAX_RESTING_BYTES: usize = 32 << 10;

/// See the module's comment.
#[derive(Default)]
pub(crate) struct TableExpressions(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    circumstances: Option<Circumstances>,
    /// What was used last comes first.
    entries: Vec<Entry>,
}

struct Entry {
    /// The very version of its definition.
    table: Weak<Table>,
    is_strict: bool,
    /// What a caller plans of a table. Each kind has a type of its own.
    planned: Arc<dyn Any + Send + Sync>,
    /// What planning noted of constants.
    noted: Vec<(u16, String)>,
    bytes: usize,
}

/// What a caller has planned, and what planning noted of constants.
pub(crate) type Planned<T> = (Arc<T>, Vec<(u16, String)>);

impl TableExpressions {
    /// What is known of a table as a `T`, if `holds` says so of the circumstances.
    pub(crate) fn find<T: Any + Send + Sync>(
        &self,
        holds: impl Fn(&Circumstances) -> bool,
        (table, is_strict): (&Arc<Table>, bool),
    ) -> Option<Planned<T>> {
        let mut kept = self.kept();
        if !kept.circumstances.as_ref().is_some_and(holds) {
            *kept = Kept::default();
            return None;
        }
        let found = kept.entries.iter().position(|entry| {
            std::ptr::eq(entry.table.as_ptr(), Arc::as_ptr(table))
                && entry.is_strict == is_strict
                && entry.planned.is::<T>()
        })?;
        kept.entries[..=found].rotate_right(1);
        let entry = &kept.entries[0];
        let planned = Arc::clone(&entry.planned).downcast().ok()?;
        Some((planned, entry.noted.clone()))
    }

    /// Keeps what was planned of a table and takes so many bytes. It was not [found](Self::find) before.
    pub(crate) fn keep<T: Any + Send + Sync>(
        &self,
        circumstances: impl Fn() -> Circumstances,
        (table, is_strict): (&Arc<Table>, bool),
        (planned, noted): Planned<T>,
        bytes: usize,
    ) {
        let mut kept = self.kept();
        let entry = Entry {
            table: Arc::downgrade(table),
            is_strict,
            planned,
            noted,
            bytes,
        };
        kept.circumstances.get_or_insert_with(circumstances);
        kept.entries.insert(0, entry);
        kept.entries.truncate(MAX_KEPT);
        while kept.bytes() > MAX_KEPT_BYTES {
            kept.entries.pop();
        }
    }

    /// The session rests: what is much is not kept.
    pub(crate) fn let_go(&self) {
        let mut kept = self.kept();
        if kept.bytes() > MAX_RESTING_BYTES {
            *kept = Kept::default();
        }
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn bytes(&self) -> usize {
        self.entries.iter().map(|entry| entry.bytes).sum()
    }
}
