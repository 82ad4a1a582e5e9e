//! The tables of the database `mysql` that tools read: those of accounts, and those of what Sheaf does not have.
//!
//! Their rows are made when a query names them, as those of `information_schema`, and no statement changes them. Those
//! of functions, help, logs and time zones are there with MySQL's columns, and empty. `server_cost` and `engine_cost`
//! are tables like any other.

use crate::accounts;
use crate::query::rows::{Cells, Rows};
use crate::session::Session;

const NAME: Cells = Cells::Name;
const LONG_TEXT: Cells = Cells::Text(u32::MAX);
const SIGNED: Cells = Cells::Signed;
const UNSIGNED: Cells = Cells::Unsigned;
const TIME: Cells = Cells::Text(26);

/// Tables that are always empty: their name and columns.
const EMPTY: [(&str, &[(&str, Cells)]); 18] = [
    (
        "component",
        &[
            ("component_id", UNSIGNED),
            ("component_group_id", UNSIGNED),
            ("component_urn", LONG_TEXT),
        ],
    ),
    (
        "func",
        &[
            ("name", Cells::Text(64)),
            ("ret", SIGNED),
            ("dl", Cells::Text(128)),
            ("type", Cells::Text(9)),
        ],
    ),
    (
        "general_log",
        &[
            ("event_time", TIME),
            ("user_host", LONG_TEXT),
            ("thread_id", UNSIGNED),
            ("server_id", UNSIGNED),
            ("command_type", Cells::Text(64)),
            ("argument", LONG_TEXT),
        ],
    ),
    (
        "help_category",
        &[
            ("help_category_id", UNSIGNED),
            ("name", Cells::Text(64)),
            ("parent_category_id", UNSIGNED),
            ("url", LONG_TEXT),
        ],
    ),
    (
        "help_keyword",
        &[("help_keyword_id", UNSIGNED), ("name", Cells::Text(64))],
    ),
    (
        "help_relation",
        &[("help_topic_id", UNSIGNED), ("help_keyword_id", UNSIGNED)],
    ),
    (
        "help_topic",
        &[
            ("help_topic_id", UNSIGNED),
            ("name", Cells::Text(64)),
            ("help_category_id", UNSIGNED),
            ("description", LONG_TEXT),
            ("example", LONG_TEXT),
            ("url", LONG_TEXT),
        ],
    ),
    (
        "password_history",
        &[
            ("Host", Cells::Text(255)),
            ("User", NAME),
            ("Password_timestamp", TIME),
            ("Password", LONG_TEXT),
        ],
    ),
    (
        "plugin",
        &[("name", Cells::Text(64)), ("dl", Cells::Text(128))],
    ),
    (
        "procs_priv",
        &[
            ("Host", Cells::Text(255)),
            ("Db", NAME),
            ("User", NAME),
            ("Routine_name", Cells::Text(64)),
            ("Routine_type", Cells::Text(9)),
            ("Grantor", Cells::Text(288)),
            ("Proc_priv", Cells::Text(255)),
            ("Timestamp", TIME),
        ],
    ),
    (
        "proxies_priv",
        &[
            ("Host", Cells::Text(255)),
            ("User", NAME),
            ("Proxied_host", Cells::Text(255)),
            ("Proxied_user", NAME),
            ("With_grant", SIGNED),
            ("Grantor", Cells::Text(288)),
            ("Timestamp", TIME),
        ],
    ),
    (
        "servers",
        &[
            ("Server_name", Cells::Text(64)),
            ("Host", Cells::Text(255)),
            ("Db", NAME),
            ("Username", Cells::Text(64)),
            ("Password", Cells::Text(64)),
            ("Port", SIGNED),
            ("Socket", Cells::Text(64)),
            ("Wrapper", Cells::Text(64)),
            ("Owner", Cells::Text(64)),
        ],
    ),
    (
        "slow_log",
        &[
            ("start_time", TIME),
            ("user_host", LONG_TEXT),
            ("query_time", TIME),
            ("lock_time", TIME),
            ("rows_sent", SIGNED),
            ("rows_examined", SIGNED),
            ("db", Cells::Text(512)),
            ("last_insert_id", SIGNED),
            ("insert_id", SIGNED),
            ("server_id", UNSIGNED),
            ("sql_text", LONG_TEXT),
            ("thread_id", UNSIGNED),
        ],
    ),
    (
        "time_zone",
        &[
            ("Time_zone_id", UNSIGNED),
            ("Use_leap_seconds", Cells::Text(1)),
        ],
    ),
    (
        "time_zone_leap_second",
        &[("Transition_time", SIGNED), ("Correction", SIGNED)],
    ),
    (
        "time_zone_name",
        &[("Name", Cells::Text(64)), ("Time_zone_id", UNSIGNED)],
    ),
    (
        "time_zone_transition",
        &[
            ("Time_zone_id", UNSIGNED),
            ("Transition_time", SIGNED),
            ("Transition_type_id", UNSIGNED),
        ],
    ),
    (
        "time_zone_transition_type",
        &[
            ("Time_zone_id", UNSIGNED),
            ("Transition_type_id", UNSIGNED),
            ("Offset", SIGNED),
            ("Is_DST", UNSIGNED),
            ("Abbreviation", Cells::Text(8)),
        ],
    ),
];

/// The rows of such a table as of now; `None` if there is none of this name.
pub(crate) fn system_table(table: &str, session: &Session) -> Option<Rows> {
    let empty = EMPTY.iter().find(|(name, _)| *name == table);
    match empty {
        Some((_, columns)) => Some(Rows::new(columns.iter().copied())),
        None => accounts::grant_table(table, session),
    }
}

#[cfg(test)]
mod tests {
    use super::EMPTY;
    use crate::virtual_database::is_system_table;

    #[test]
    fn each_name_is_known() {
        for (name, _) in EMPTY {
            assert!(is_system_table("mysql", name), "{name}");
        }
    }
}
