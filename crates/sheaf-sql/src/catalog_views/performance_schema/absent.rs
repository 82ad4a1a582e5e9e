//! Tables about what Sheaf does not have, or does not measure. They are there, with MySQL's columns, and empty: tools
//! ask for them whatever they find.

use crate::catalog_views::virtual_table::{Columns, owned};
use crate::query::rows::Cells;

const NUMBER: Cells = Cells::Unsigned;
const SIGNED: Cells = Cells::Signed;
const TEXT: Cells = Cells::Text(64);
const LONG_TEXT: Cells = Cells::Text(1024);

/// `events_waits_summary_global_by_event_name`
pub(super) fn waits() -> Columns {
    owned(&[
        ("EVENT_NAME", Cells::Text(128)),
        ("COUNT_STAR", NUMBER),
        ("SUM_TIMER_WAIT", NUMBER),
        ("MIN_TIMER_WAIT", NUMBER),
        ("AVG_TIMER_WAIT", NUMBER),
        ("MAX_TIMER_WAIT", NUMBER),
    ])
}

/// `replication_group_members`
pub(super) fn group_members() -> Columns {
    owned(&[
        ("CHANNEL_NAME", TEXT),
        ("MEMBER_ID", TEXT),
        ("MEMBER_HOST", Cells::Text(255)),
        ("MEMBER_PORT", SIGNED),
        ("MEMBER_STATE", TEXT),
        ("MEMBER_ROLE", TEXT),
        ("MEMBER_VERSION", TEXT),
        ("MEMBER_COMMUNICATION_STACK", TEXT),
    ])
}

/// `replication_group_member_stats`
pub(super) fn group_member_statistics() -> Columns {
    owned(&[
        ("CHANNEL_NAME", TEXT),
        ("VIEW_ID", TEXT),
        ("MEMBER_ID", TEXT),
        ("COUNT_TRANSACTIONS_IN_QUEUE", NUMBER),
        ("COUNT_TRANSACTIONS_CHECKED", NUMBER),
        ("COUNT_CONFLICTS_DETECTED", NUMBER),
        ("COUNT_TRANSACTIONS_ROWS_VALIDATING", NUMBER),
        ("TRANSACTIONS_COMMITTED_ALL_MEMBERS", LONG_TEXT),
        ("LAST_CONFLICT_FREE_TRANSACTION", LONG_TEXT),
        ("COUNT_TRANSACTIONS_REMOTE_IN_APPLIER_QUEUE", NUMBER),
        ("COUNT_TRANSACTIONS_REMOTE_APPLIED", NUMBER),
        ("COUNT_TRANSACTIONS_LOCAL_PROPOSED", NUMBER),
        ("COUNT_TRANSACTIONS_LOCAL_ROLLBACK", NUMBER),
    ])
}

/// `table_lock_waits_summary_by_table`
pub(super) fn table_locks() -> Columns {
    const KINDS: [&str; 13] = [
        "STAR",
        "READ",
        "WRITE",
        "READ_NORMAL",
        "READ_WITH_SHARED_LOCKS",
        "READ_HIGH_PRIORITY",
        "READ_NO_INSERT",
        "READ_EXTERNAL",
        "WRITE_ALLOW_WRITE",
        "WRITE_CONCURRENT_INSERT",
        "WRITE_LOW_PRIORITY",
        "WRITE_NORMAL",
        "WRITE_EXTERNAL",
    ];
    let mut columns = owned(&[
        ("OBJECT_TYPE", TEXT),
        ("OBJECT_SCHEMA", Cells::Name),
        ("OBJECT_NAME", Cells::Name),
    ]);
    for kind in KINDS {
        let timer = if kind == "STAR" { "WAIT" } else { kind };
        columns.push((format!("COUNT_{kind}"), NUMBER));
        for what in ["SUM", "MIN", "AVG", "MAX"] {
            columns.push((format!("{what}_TIMER_{timer}"), NUMBER));
        }
    }
    columns
}
