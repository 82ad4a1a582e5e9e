//! What a session is: its variables' surroundings, its warnings, its prepared names, the request and the statement that
//! run. Each part is plain data with methods of its own, and knows neither the engine nor the session that has it.
//!
//! `session/mod.rs` puts them together, and lists them. These are the lowest floor of a session, so that the engine and
//! the rights of a client may use them, too:
//!
//! ```text
//!   session_parts <- rights, engine <- session <- the steps of a statement
//! ```

pub(crate) mod circumstances;
pub(crate) mod findings;
pub(crate) mod handle;
pub(crate) mod hypothesis;
pub(crate) mod ignored_result;
pub(crate) mod info;
pub(crate) mod kept;
pub(crate) mod measured;
pub(crate) mod next_gtid;
pub(crate) mod outcome;
pub(crate) mod planning;
pub(crate) mod prepared;
pub(crate) mod progress;
pub(crate) mod remembered_locks;
pub(crate) mod request_memory;
pub mod result;
pub(crate) mod running;
pub(crate) mod searched;
pub(crate) mod slow_client;
pub(crate) mod statement_stack;
pub(crate) mod statement_timer;
pub(crate) mod status;
pub(crate) mod status_meanings;
#[cfg(test)]
pub(crate) mod status_reference;
pub(crate) mod table_expressions;
pub(crate) mod table_locks;
pub(crate) mod temporary_tables;
pub(crate) mod traces;
pub(crate) mod transactions;
pub(crate) mod unrelated_tables;
pub(crate) mod user_variables;
pub(crate) mod warnings;
pub(crate) mod workers;
