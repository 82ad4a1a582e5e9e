//! What sessions do: PROCESSLIST and OPTIMIZER_TRACE.

use super::{LONG_TEXT, NUMBER, TEXT};
use crate::query::rows::Rows;
use crate::session::Session;

pub(super) fn processlist(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("ID", NUMBER),
        ("USER", TEXT),
        ("HOST", TEXT),
        ("DB", TEXT),
        ("COMMAND", TEXT),
        ("TIME", NUMBER),
        ("STATE", TEXT),
        ("INFO", LONG_TEXT),
    ]);
    push_sessions(session, usize::MAX, &mut rows);
    rows
}

/// The sessions that this one may see, with so many characters of their statements.
pub(crate) fn push_sessions(session: &Session, longest: usize, rows: &mut Rows) {
    for other in session.engine.sessions() {
        let activity = other.activity();
        if !session.client.sees_sessions_of(&activity.user) {
            continue;
        }
        let statement = activity.statement;
        let statement = statement.map(|text| text.chars().take(longest).collect::<String>());
        rows.push(vec![
            other.id().into(),
            activity.user.into(),
            activity.host.into(),
            activity.database.into(),
            activity.command.into(),
            activity.since.elapsed().as_secs().into(),
            activity.state.into(),
            statement.into(),
        ]);
    }
}

pub(super) fn optimizer_trace(session: &Session) -> Rows {
    let mut rows = Rows::new([
        ("QUERY", LONG_TEXT),
        ("TRACE", LONG_TEXT),
        ("MISSING_BYTES_BEYOND_MAX_MEM_SIZE", NUMBER),
        ("INSUFFICIENT_PRIVILEGES", NUMBER),
    ]);
    for traced in session.traces.shown() {
        rows.push(vec![
            traced.query.clone().into(),
            traced.trace.clone().into(),
            traced.missing_bytes.into(),
            u64::from(traced.is_hidden).into(),
        ]);
    }
    rows
}
