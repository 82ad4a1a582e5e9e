//! Variables that are kept and shown, but not obeyed, although a user may count on them.
//!
//! Values other than the default are refused where data would be written otherwise than was asked for, or where access
//! would not be denied that the variable denies. SET warns where a client sets the variable by habit, or where a log or
//! a limit is merely absent. Variables that only tune are in neither list.

use super::{DEFINITIONS, Definition, VariableValue, Variables, position};
use crate::error::{Result, SqlError};

/// Values other than the default are error 1235.
pub(super) const REFUSED: &[&str] = &[
    "binlog_checksum",
    "binlog_format",
    "binlog_row_metadata",
    "completion_type",
    "default_collation_for_utf8mb4",
    "default_week_format",
    "explicit_defaults_for_timestamp",
    "init_connect",
    "log_output",
    "mandatory_roles",
    "offline_mode",
    "resultset_metadata",
    "session_track_gtids",
    "sql_quote_show_create",
];

/// Values other than the default are warning 1235.
pub(super) const WARNED_OF: &[&str] = &["event_scheduler", "general_log", "sql_auto_is_null"];

/// Error 1235 for a value that must not be taken for obeyed.
pub(super) fn check(definition: &Definition, value: &VariableValue) -> Result<()> {
    let is_default = *value == definition.default_value();
    match REFUSED.contains(&definition.name) && !is_default {
        true => Err(SqlError::not_supported_yet(format!(
            "{} = {value}",
            definition.name
        ))),
        false => Ok(()),
    }
}

/// What to warn of after an assignment to a variable.
pub(crate) fn without_effect(variables: &Variables, name: &str) -> Option<String> {
    let position = position(name).ok()?;
    let definition = &DEFINITIONS[position];
    let value = variables.values.at(position);
    let is_silent = !WARNED_OF.contains(&definition.name) || *value == definition.default_value();
    (!is_silent).then(|| format!("{} = {value} is kept and has no effect", definition.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_a_variable_and_in_one_list() {
        for name in REFUSED.iter().chain(WARNED_OF) {
            assert!(position(name).is_ok(), "{name}");
            assert!(
                !(REFUSED.contains(name) && WARNED_OF.contains(name)),
                "{name}"
            );
        }
    }
}
