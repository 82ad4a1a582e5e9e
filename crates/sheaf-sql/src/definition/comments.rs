//! Comments of tables, columns and indexes: how long they may be.

use sheaf_types::error::codes;

use crate::error::{Result, SqlError};
use crate::session::Session;

/// The most characters of a table's comment.
const MAX_TABLE_COMMENT: usize = 2_048;
/// The most characters of the comment of a column or an index.
const MAX_PART_COMMENT: usize = 1_024;

/// What a comment is about, by its name.
#[derive(Clone, Copy)]
pub(super) enum Commented<'a> {
    Table(&'a str),
    Column(&'a str),
    Index(&'a str),
}

impl Session {
    /// The comment as it is kept. One that is too long is an error (1628, 1629, 1688), or cut with a warning if the
    /// mode is not strict.
    pub(super) fn kept_comment(&mut self, comment: &str, of: Commented<'_>) -> Result<String> {
        let limit = match of {
            Commented::Table(_) => MAX_TABLE_COMMENT,
            Commented::Column(_) | Commented::Index(_) => MAX_PART_COMMENT,
        };
        let Some((end, _)) = comment.char_indices().nth(limit) else {
            return Ok(comment.to_string());
        };
        let (code, message) = match of {
            Commented::Table(name) => (
                codes::TOO_LONG_TABLE_COMMENT,
                format!("Comment for table '{name}' is too long (max = {limit})"),
            ),
            Commented::Column(name) => (
                codes::TOO_LONG_FIELD_COMMENT,
                format!(
                    "The maximum supported character limit for the field, '{name}', has been exceeded (max = {limit})"
                ),
            ),
            Commented::Index(name) => (
                codes::TOO_LONG_INDEX_COMMENT,
                format!("Comment for index '{name}' is too long (max = {limit})"),
            ),
        };
        if self.variables.sql_mode().is_strict() {
            return Err(SqlError::new(code, message));
        }
        self.warnings.warn(code, message);
        Ok(comment[..end].to_string())
    }
}
