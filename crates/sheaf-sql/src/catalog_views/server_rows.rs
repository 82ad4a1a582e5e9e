//! What SHOW tells of the server, and tables of information_schema and performance_schema as well.

use crate::query::rows::{Cells, Rows};
use crate::session::{Session, status};

const TEXT: Cells = Cells::Text(64);

/// Status variables of the session, or of all sessions.
pub(crate) fn status_entries(session: &Session, global: bool) -> Vec<(&'static str, String)> {
    let pool = session.engine.storage().pool_counters();
    let gauges = session.engine.gauges();
    if global {
        let (handler, commands) = session.engine.global_counters();
        status::entries(&handler, &commands, &pool, &gauges, 0.0)
    } else {
        let mut entries = status::entries(
            &session.handle.counters,
            &session.handle.commands,
            &pool,
            &gauges,
            session.outcome.last_query_cost,
        );
        for (name, value) in &mut entries {
            let encryption = session.client.info.encryption.as_ref();
            match (*name, encryption) {
                ("Compression", _) if session.client.info.compressed => *value = "ON".to_string(),
                ("Ssl_cipher", Some(agreed)) => value.clone_from(&agreed.cipher),
                ("Ssl_version", Some(agreed)) => *value = agreed.version.to_string(),
                _ => {}
            }
        }
        entries
    }
}

/// SHOW ENGINES. Clients and dumps ask for InnoDB, so the one engine is shown by this name.
pub(crate) fn engine_rows() -> Rows {
    let mut rows = Rows::new([
        ("Engine", TEXT),
        ("Support", TEXT),
        ("Comment", Cells::Text(80)),
        ("Transactions", TEXT),
        ("XA", TEXT),
        ("Savepoints", TEXT),
    ]);
    let comment = "Sheaf's clustered B+trees, under the name that clients expect";
    rows.push(vec![
        "InnoDB".into(),
        "DEFAULT".into(),
        comment.into(),
        "YES".into(),
        "NO".into(),
        "YES".into(),
    ]);
    rows
}
