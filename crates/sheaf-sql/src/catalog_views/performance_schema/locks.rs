//! Locks of rows, and which transaction waits for which.
//!
//! Only locks that transactions have asked for are there: a row that was changed is locked by its new version, and is
//! shown once somebody waits for it. Locks of tables are in [`metadata_locks`](super::metadata_locks).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use sheaf_access::IndexRef;
use sheaf_storage::{
    LockMode, RangeLock, ShownLock, ShownLocks, ShownTarget, TransactionId, TreeId,
};
use sheaf_table::Table;
use sheaf_types::Value;
use sheaf_types::text::quoting::quoted_string;

use crate::catalog_views::virtual_table::{Columns, owned};
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;

/// More are not shown.
const MAX_LOCKS: usize = 10_000;
/// As `information_schema.innodb_trx` and `SHOW ENGINE` call it.
const ENGINE: &str = "INNODB";
const NUMBER: Cells = Cells::Unsigned;
const NAME: Cells = Cells::Name;
const ID: Cells = Cells::Text(128);

pub(super) fn lock_columns() -> Columns {
    owned(&[
        ("ENGINE", Cells::Text(32)),
        ("ENGINE_LOCK_ID", ID),
        ("ENGINE_TRANSACTION_ID", NUMBER),
        ("THREAD_ID", NUMBER),
        ("EVENT_ID", NUMBER),
        ("OBJECT_SCHEMA", NAME),
        ("OBJECT_NAME", NAME),
        ("PARTITION_NAME", NAME),
        ("SUBPARTITION_NAME", NAME),
        ("INDEX_NAME", NAME),
        ("OBJECT_INSTANCE_BEGIN", NUMBER),
        ("LOCK_TYPE", Cells::Text(32)),
        ("LOCK_MODE", Cells::Text(32)),
        ("LOCK_STATUS", Cells::Text(32)),
        ("LOCK_DATA", Cells::Text(u32::MAX)),
    ])
}

pub(super) fn wait_columns() -> Columns {
    owned(&[
        ("ENGINE", Cells::Text(32)),
        ("REQUESTING_ENGINE_LOCK_ID", ID),
        ("REQUESTING_ENGINE_TRANSACTION_ID", NUMBER),
        ("REQUESTING_THREAD_ID", NUMBER),
        ("REQUESTING_EVENT_ID", NUMBER),
        ("REQUESTING_OBJECT_INSTANCE_BEGIN", NUMBER),
        ("BLOCKING_ENGINE_LOCK_ID", ID),
        ("BLOCKING_ENGINE_TRANSACTION_ID", NUMBER),
        ("BLOCKING_THREAD_ID", NUMBER),
        ("BLOCKING_EVENT_ID", NUMBER),
        ("BLOCKING_OBJECT_INSTANCE_BEGIN", NUMBER),
    ])
}

/// Rows that a transaction has locked, about. A row that it has changed is locked by its new version, and has a lock
/// besides if the transaction had locked it before, or if another one waits for it.
pub(in crate::catalog_views) fn rows_locked(locks: u64, modified: u64) -> u64 {
    locks.max(modified)
}

/// The locks, and what is known of those that have them.
pub(in crate::catalog_views) struct LockView {
    pub(in crate::catalog_views) shown: ShownLocks,
    /// When they were looked at, microseconds since 1970 UTC.
    pub(in crate::catalog_views) seen_micros: i64,
    /// The sessions of transactions.
    sessions: BTreeMap<TransactionId, u64>,
    indexes: BTreeMap<TreeId, (Arc<Table>, IndexRef)>,
}

impl LockView {
    pub(in crate::catalog_views) fn of(session: &Session) -> LockView {
        let engine = &session.engine;
        let shown = engine.storage().shown_locks(MAX_LOCKS);
        let open = engine.sessions().into_iter().filter_map(|other| {
            let (transaction, _) = other.open_transaction()?;
            Some((transaction, other.id()))
        });
        let mut indexes = BTreeMap::new();
        if !shown.locks.is_empty() {
            let databases = session.statement.definitions.databases(engine.catalog());
            for table in databases.iter().flat_map(|database| &database.tables) {
                let clustered = (Arc::clone(table), IndexRef::Clustered);
                indexes.insert(table.clustered.id(), clustered);
                for (position, tree) in table.secondary.iter().enumerate() {
                    let secondary = (Arc::clone(table), IndexRef::Secondary(position));
                    indexes.insert(tree.id(), secondary);
                }
            }
        }
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH);
        let seen_micros = since_epoch.map_or(0, |since| since.as_micros() as i64);
        LockView {
            shown,
            seen_micros,
            sessions: open.collect(),
            indexes,
        }
    }

    /// The session that has the lock, or waits for it.
    pub(in crate::catalog_views) fn session_of(&self, lock: &ShownLock) -> Option<u64> {
        self.sessions.get(&lock.transaction).copied()
    }

    /// Database, table and index.
    pub(in crate::catalog_views) fn names_of(&self, lock: &ShownLock) -> [Option<String>; 3] {
        let Some((table, index)) = self.indexes.get(&lock.tree) else {
            return [const { None }; 3];
        };
        let definition = &table.definition;
        let index = match index {
            IndexRef::Clustered if definition.has_hidden_row_id() => "GEN_CLUST_INDEX",
            index => index.definition(table).name.as_str(),
        };
        [&definition.database, &definition.name, index].map(|name: &str| Some(name.to_string()))
    }

    /// The key, as its values would be written.
    fn data_of(&self, lock: &ShownLock) -> Option<String> {
        let key = match &lock.target {
            ShownTarget::Key(key) | ShownTarget::NewKey(key) => key,
            ShownTarget::Prefix(key) | ShownTarget::Reference(key) => key,
            ShownTarget::Range { upper, .. } => match upper {
                Some(upper) => upper,
                None => return Some("supremum pseudo-record".into()),
            },
        };
        let (table, index) = self.indexes.get(&lock.tree)?;
        let layout = match index {
            IndexRef::Clustered => &table.clustered_layout,
            IndexRef::Secondary(position) => &table.secondary_layouts[*position],
        };
        let mut text = String::new();
        let mut rest = key.as_slice();
        for part in 0..layout.parts.len() {
            // A bound may end within a key.
            let Some(length) = layout
                .part_length(part, rest)
                .ok()
                .filter(|length| *length > 0)
            else {
                break;
            };
            let Some((bytes, behind)) = rest.split_at_checked(length) else {
                break;
            };
            let value = layout.decode_value(&table.definition, part, bytes, &[]);
            let separator = if text.is_empty() { "" } else { ", " };
            // A text takes whatever is written to it.
            let _ = match value {
                Ok(Value::Null) => write!(text, "{separator}NULL"),
                Ok(Value::Text(value)) => write!(text, "{separator}{}", quoted_string(&value)),
                Ok(value) => write!(text, "{separator}{value}"),
                // Its collation keeps no more of it than its place in the order.
                Err(_) => write!(text, "{separator}?"),
            };
            rest = behind;
        }
        Some(text)
    }
}

/// Names a lock by what it is: the next query gives it the same name.
pub(in crate::catalog_views) fn id_of(lock: &ShownLock) -> String {
    let (kind, keys): (&str, [&[u8]; 2]) = match &lock.target {
        ShownTarget::Key(key) => ("row", [key, &[]]),
        ShownTarget::NewKey(key) => ("new", [key, &[]]),
        ShownTarget::Prefix(key) => ("prefix", [key, &[]]),
        ShownTarget::Reference(key) => ("reference", [key, &[]]),
        ShownTarget::Range { lower, upper, .. } => (
            "range",
            [
                lower.as_deref().unwrap_or_default(),
                upper.as_deref().unwrap_or_default(),
            ],
        ),
    };
    // FNV-1a, as one of many names within one transaction.
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in keys[0].iter().chain(&[0]).chain(keys[1]) {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let status = if lock.is_granted { "held" } else { "wanted" };
    format!(
        "{}:{}:{kind}:{hash:016x}:{status}",
        lock.transaction.0, lock.tree.0
    )
}

/// A lock's mode in InnoDB's words.
pub(in crate::catalog_views) fn mode_of(lock: &ShownLock) -> &'static str {
    match (&lock.target, lock.mode) {
        (ShownTarget::NewKey(_), _) => "X,GAP,INSERT_INTENTION",
        (ShownTarget::Range { kind, .. }, _) => match kind {
            RangeLock::NoInserts => "X,GAP",
            RangeLock::NoChanges => "S",
            RangeLock::NoLocks => "X",
        },
        (_, LockMode::Shared) => "S,REC_NOT_GAP",
        (_, LockMode::Exclusive) => "X,REC_NOT_GAP",
    }
}

/// `data_locks`.
pub(super) fn locks(session: &Session, rows: &mut Rows) -> Result<()> {
    let view = LockView::of(session);
    let mut known = BTreeSet::new();
    for lock in &view.shown.locks {
        session.handle.cancel_flag().check()?;
        // What one has written is shown for each that waits for it.
        if !known.insert(lock) {
            continue;
        }
        let [database, table, index] = view.names_of(lock);
        rows.push(vec![
            ENGINE.into(),
            id_of(lock).into(),
            lock.transaction.0.into(),
            view.session_of(lock).into(),
            Cell::Null,
            database.into(),
            table.into(),
            Cell::Null,
            Cell::Null,
            index.into(),
            Cell::Unsigned(0),
            "RECORD".into(),
            mode_of(lock).into(),
            if lock.is_granted {
                "GRANTED"
            } else {
                "WAITING"
            }
            .into(),
            view.data_of(lock).into(),
        ]);
    }
    Ok(())
}

/// `data_lock_waits`.
pub(super) fn waits(session: &Session, rows: &mut Rows) -> Result<()> {
    let view = LockView::of(session);
    for (requested, blocking) in &view.shown.waits {
        let mut row = vec![ENGINE.into()];
        for lock in [&view.shown.locks[*requested], &view.shown.locks[*blocking]] {
            row.extend([
                id_of(lock).into(),
                lock.transaction.0.into(),
                view.session_of(lock).into(),
                Cell::Null,
                Cell::Unsigned(0),
            ]);
        }
        rows.push(row);
    }
    Ok(())
}
