//! Functions whose value is the session's or the clock's: NOW(), DATABASE(), CONNECTION_ID().
//!
//! The binder makes literals of them (`bind/session.rs`). Their values are none of their operands, so no constraint and
//! no generated column may call one (`varying.rs`).

/// One of these functions; several names may mean one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionFunction {
    Now,
    /// The time at which it is computed, whatever the statement takes for its own.
    SysDate,
    UtcTimestamp,
    CurrentDate,
    UtcDate,
    CurrentTime,
    UtcTime,
    Database,
    User,
    CurrentUser,
    CurrentRole,
    Version,
    ConnectionId,
    LastInsertId,
    RowCount,
    FoundRows,
}

impl SessionFunction {
    /// The function of this (lower-case) name.
    pub fn named(name: &str) -> Option<SessionFunction> {
        Some(match name {
            "now" | "current_timestamp" | "localtime" | "localtimestamp" => SessionFunction::Now,
            "sysdate" => SessionFunction::SysDate,
            "utc_timestamp" => SessionFunction::UtcTimestamp,
            "curdate" | "current_date" => SessionFunction::CurrentDate,
            "utc_date" => SessionFunction::UtcDate,
            "curtime" | "current_time" => SessionFunction::CurrentTime,
            "utc_time" => SessionFunction::UtcTime,
            "database" | "schema" => SessionFunction::Database,
            "user" | "session_user" | "system_user" => SessionFunction::User,
            "current_user" => SessionFunction::CurrentUser,
            "current_role" => SessionFunction::CurrentRole,
            "version" => SessionFunction::Version,
            // Threads are numbered as the connections that they serve (see SET RESOURCE GROUP ... FOR).
            "connection_id" | "ps_current_thread_id" => SessionFunction::ConnectionId,
            "last_insert_id" => SessionFunction::LastInsertId,
            "row_count" => SessionFunction::RowCount,
            "found_rows" => SessionFunction::FoundRows,
            _ => return None,
        })
    }
}
