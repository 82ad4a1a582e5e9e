//! `performance_schema`: what statements did and what they cost, by tables that monitoring tools read.
//!
//! Columns are those of MySQL 8. What is not measured is 0, which docs/compatibility.md lists.
//!
//! | file | tables |
//! |---|---|
//! | [`statements`] | statements by digest |
//!
//! Status counters and variables have their tables here, too, as MySQL 8 has. Reading them takes no privilege. For all
//! others that is SELECT.

mod statements;

use crate::error::{Result, SqlError};
use crate::parser::statement::TableName;
use crate::query::rows::{Cells, Rows};
use crate::session::Session;
use crate::session::result::ResultSink;
pub(crate) use crate::virtual_database::PERFORMANCE_SCHEMA as NAME;
use crate::virtual_database::{FOR_EVERYBODY, is_for_everybody};

const DIGESTS: &str = "events_statements_summary_by_digest";

/// The names of all tables, sorted.
pub(crate) fn table_names() -> impl Iterator<Item = &'static str> {
    [DIGESTS].into_iter().chain(FOR_EVERYBODY)
}

/// The rows of a table as of now.
///
/// # Errors
/// 1146 for an unknown table.
pub(crate) fn rows_of(table: &str, session: &Session) -> Result<Rows> {
    let globals = || session.engine.globals().all(true);
    Ok(match table.to_ascii_lowercase().as_str() {
        DIGESTS => statements::by_digest(session),
        "global_status" => name_values(session.status_entries(true)),
        "global_variables" => name_values(globals()),
        "session_status" => name_values(session.status_entries(false)),
        "session_variables" => name_values(session.variables.all(false)),
        _ => return Err(SqlError::no_such_table(NAME, table)),
    })
}

fn name_values(entries: Vec<(&'static str, String)>) -> Rows {
    let mut rows = Rows::new([
        ("VARIABLE_NAME", Cells::Text(64)),
        ("VARIABLE_VALUE", Cells::Text(1024)),
    ]);
    for (name, value) in entries {
        rows.push(vec![name.into(), value.into()]);
    }
    rows
}

impl Session {
    /// TRUNCATE TABLE of a table here: what was counted is forgotten. False: it is a table of another database.
    ///
    /// # Errors
    /// 1142 for a table that is not truncated, and 1146.
    pub(crate) fn truncate_counted(
        &mut self,
        name: &TableName,
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let (database, table) = self.resolve(name)?;
        if !database.eq_ignore_ascii_case(NAME) {
            return Ok(false);
        }
        if table.eq_ignore_ascii_case(DIGESTS) {
            self.engine.clear_digests();
            return self.ok(sink, 0, String::new()).map(|()| true);
        }
        match is_for_everybody(&database, &table) {
            true => Err(self.client.denied_table(&table, "DROP")),
            false => Err(SqlError::no_such_table(NAME, &table)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_sorted() {
        let names: Vec<&str> = table_names().collect();
        assert!(names.is_sorted());
    }
}
