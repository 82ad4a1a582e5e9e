//! Where the ids of new tables come from.

use std::sync::Arc;

use sheaf_storage::sync::atomic::AtomicU64;

use crate::definition::schema::FIRST_TEMPORARY_ID;

/// Where the ids of new tables come from.
pub(super) enum TableIds {
    /// The catalog tree. Beside them, the ids of all sessions' temporary tables are counted here.
    Written { temporary: Arc<AtomicU64> },
    /// This is a catalog of temporary tables.
    Temporary(Arc<AtomicU64>),
}

impl TableIds {
    pub(super) fn of_all_sessions() -> TableIds {
        TableIds::Written {
            temporary: Arc::new(AtomicU64::new(FIRST_TEMPORARY_ID)),
        }
    }
}
