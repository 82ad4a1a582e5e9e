//! What is known of a statement that is measured (`request/statement_events.rs`).

use std::sync::Arc;

use sheaf_types::Value;

use crate::events::StatementEvent;
use crate::variables::SqlMode;

/// What the digest of a text depends on besides the text.
#[derive(PartialEq)]
pub(crate) struct DigestCircumstances {
    pub(crate) database: Option<String>,
    pub(crate) sql_mode: SqlMode,
}

/// Which text a statement is known by when it comes again.
#[derive(Clone, Copy)]
pub(crate) enum KnownBy<'t> {
    /// That which its literals were taken out of.
    TakenOut,
    /// This one, which has the same digest.
    Text(&'t str),
    /// This one, of what is done to a statement by its name.
    Named(&'static str, &'t str),
    /// It may not come again.
    Nothing,
}

/// A statement as its client has sent it.
#[derive(Clone, Copy)]
pub(crate) struct Sent<'t> {
    pub(crate) text: &'t str,
    /// What takes the places of its `?`.
    pub(crate) parameters: &'t [Value],
    pub(crate) known_by: KnownBy<'t>,
}

impl<'t> Sent<'t> {
    pub(crate) fn text(text: &'t str, known_by: KnownBy<'t>) -> Sent<'t> {
        Sent {
            text,
            parameters: &[],
            known_by,
        }
    }
}

/// What PREPARE and EXECUTE of SQL are about. They are counted as what they do to it, whatever its name.
pub(crate) struct NamedStatement {
    pub(crate) verb: &'static str,
    pub(crate) text: Arc<str>,
    pub(crate) parameters: Vec<Value>,
}

/// A statement whose commit has not come to its end.
pub(crate) struct Unfinished {
    pub(crate) slot: Option<usize>,
    pub(crate) event: StatementEvent,
}
