//! The plan of a DELETE.

use std::sync::Arc;

use sheaf_table::Table;

use super::rows::Rows;
use crate::parser::statement;
use crate::session::Session;

/// `DELETE FROM table WHERE key = ...`
#[derive(Debug)]
pub(in crate::direct) struct Delete {
    pub(super) rows: Rows,
}

impl Delete {
    pub(in crate::direct) fn rows(&self) -> &Rows {
        &self.rows
    }

    /// The plan of a DELETE, and its table; `None` if it is not one by keys of an index.
    pub(in crate::direct) fn compile(
        session: &Session,
        delete: &statement::Delete,
    ) -> Option<(Delete, Arc<Table>)> {
        let statement::Delete {
            hints,
            ignore: false,
            targets,
            tables,
            selection,
            order_by,
            limit,
            returning: None,
        } = delete
        else {
            return None;
        };
        if !hints.is_empty() || !targets.is_empty() {
            return None;
        }
        let found = (tables.as_slice(), selection.as_ref());
        let (rows, table) = Rows::of(session, found, order_by, limit.as_ref())?;
        Some((Delete { rows }, table))
    }
}
