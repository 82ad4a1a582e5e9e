//! The sessions, as `threads` has them. Its number of a thread is that of its session.

use crate::catalog_views::virtual_table::{Columns, owned};
use crate::error::Result;
use crate::query::rows::{Cell, Cells, Rows};
use crate::session::Session;

const NUMBER: Cells = Cells::Unsigned;
const TEXT: Cells = Cells::Text(64);

pub(super) fn columns() -> Columns {
    owned(&[
        ("THREAD_ID", NUMBER),
        ("NAME", Cells::Text(128)),
        ("TYPE", Cells::Text(10)),
        ("PROCESSLIST_ID", NUMBER),
        ("PROCESSLIST_USER", Cells::Name),
        ("PROCESSLIST_HOST", Cells::Text(255)),
        ("PROCESSLIST_DB", Cells::Name),
        ("PROCESSLIST_COMMAND", Cells::Text(16)),
        ("PROCESSLIST_TIME", Cells::Signed),
        ("PROCESSLIST_STATE", TEXT),
        ("PROCESSLIST_INFO", Cells::Text(u32::MAX)),
        ("PARENT_THREAD_ID", NUMBER),
        ("ROLE", TEXT),
        ("INSTRUMENTED", Cells::Text(3)),
        ("HISTORY", Cells::Text(3)),
        ("CONNECTION_TYPE", Cells::Text(16)),
        ("THREAD_OS_ID", NUMBER),
        ("RESOURCE_GROUP", TEXT),
    ])
}

/// `threads`.
pub(super) fn threads(session: &Session, rows: &mut Rows) -> Result<()> {
    for other in session.engine.sessions() {
        let activity = other.activity();
        if !session.client.sees_sessions_of(&activity.user) {
            continue;
        }
        let seconds = i64::try_from(activity.since.elapsed().as_secs()).unwrap_or(i64::MAX);
        let group = other.group();
        let group = group.map_or("USR_default".to_string(), |group| {
            group.definition.name.clone()
        });
        rows.push(vec![
            other.id().into(),
            "thread/sql/one_connection".into(),
            "FOREGROUND".into(),
            other.id().into(),
            activity.user.into(),
            activity.host.into(),
            activity.database.into(),
            activity.command.into(),
            seconds.into(),
            activity.state.into(),
            activity.statement.into(),
            Cell::Null,
            Cell::Null,
            "YES".into(),
            "NO".into(),
            Cell::Null,
            Cell::Null,
            group.into(),
        ]);
    }
    Ok(())
}
