//! SET STATEMENT: variables of the session for one statement, as MariaDB has it.
//!
//! Each variable has its value of before when the statement is over, however it ended. What the statement itself sets
//! stays, unless it is one of these variables. That is why they are kept by name, and not all variables at once as for
//! hints.

use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::parser::Parsed;
use crate::parser::statement::Assignment;
use crate::session::Session;

/// Variables that MariaDB does not set for one statement: error 1971.
const NOT_FOR_ONE_STATEMENT: &[&str] = &[
    "autocommit",
    "character_set_client",
    "character_set_connection",
    "character_set_filesystem",
    "collation_connection",
    "interactive_timeout",
    "profiling",
    "profiling_history_size",
    "skip_replication",
    "sql_log_off",
    "transaction_isolation",
    "tx_isolation",
    "wait_timeout",
];

/// These are kept elsewhere than the other variables.
const KEPT_ELSEWHERE: &[&str] = &["identity", "insert_id", "last_insert_id"];

/// A variable that is set together with another one, by the name of that one.
const SET_TOGETHER: &[(&str, &str)] = &[
    ("character_set_database", "collation_database"),
    ("character_set_server", "collation_server"),
    ("collation_database", "character_set_database"),
    ("collation_server", "character_set_server"),
    ("max_join_size", "sql_big_selects"),
];

/// Assigns what SET STATEMENT says, until the statement is over.
pub(crate) fn set_for_statement(
    session: &mut Session,
    assignments: Parsed<'_, Vec<Assignment>>,
) -> Result<()> {
    let mut kept = Vec::new();
    for assignment in &assignments.ast {
        let Assignment::System { name, .. } = assignment else {
            continue;
        };
        let name = name.as_str();
        if NOT_FOR_ONE_STATEMENT.contains(&name) {
            return Err(SqlError::new(
                codes::SET_STATEMENT_NOT_SUPPORTED,
                format!("The system variable {name} cannot be set in SET STATEMENT."),
            ));
        }
        if KEPT_ELSEWHERE.contains(&name) {
            return Err(SqlError::not_supported_yet(format!(
                "SET STATEMENT {name} = ..."
            )));
        }
        kept.push((name.to_string(), session.variables.get(name)?.clone()));
        for (_, other) in SET_TOGETHER.iter().filter(|(first, _)| *first == name) {
            kept.push(((*other).to_string(), session.variables.get(other)?.clone()));
        }
    }
    session.assign_all(assignments)?;
    session.statement.before_set_statement.extend(kept);
    Ok(())
}

/// Gives the session back what SET STATEMENT has assigned.
pub(crate) fn forget_set_statement(session: &mut Session) {
    let kept = std::mem::take(&mut session.statement.before_set_statement);
    if kept.is_empty() {
        return;
    }
    for (name, value) in kept.into_iter().rev() {
        session.variables.set_internally(&name, value);
    }
    session.handle.tell_variables(&session.variables);
    session.workers.forget_task();
}
