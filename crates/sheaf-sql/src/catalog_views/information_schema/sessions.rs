//! What sessions do: PROCESSLIST and OPTIMIZER_TRACE.

use super::{LONG_TEXT, NUMBER, TEXT};
use crate::engine::Engine;
use crate::query::rows::Rows;
use crate::rights::Client;
use crate::session_parts::traces::OptimizerTraces;

pub(super) fn processlist(client: &Client, engine: &Engine) -> Rows {
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
    push_sessions(client, engine, usize::MAX, &mut rows);
    rows
}

/// The sessions that this one may see, with so many characters of their statements.
pub(crate) fn push_sessions(client: &Client, engine: &Engine, longest: usize, rows: &mut Rows) {
    for other in engine.sessions() {
        let activity = other.activity();
        if !client.sees_sessions_of(&activity.user) {
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

pub(super) fn optimizer_trace(traces: &OptimizerTraces) -> Rows {
    let mut rows = Rows::new([
        ("QUERY", LONG_TEXT),
        ("TRACE", LONG_TEXT),
        ("MISSING_BYTES_BEYOND_MAX_MEM_SIZE", NUMBER),
        ("INSUFFICIENT_PRIVILEGES", NUMBER),
    ]);
    for traced in traces.shown() {
        rows.push(vec![
            traced.query.clone().into(),
            traced.trace.clone().into(),
            traced.missing_bytes.into(),
            u64::from(traced.is_hidden).into(),
        ]);
    }
    rows
}
