//! A table whose rows are made when a query names it.

use crate::error::Result;
use crate::query::rows::{Cells, Rows};
use crate::session::Session;

/// See the module's comment.
pub(crate) struct VirtualTable {
    pub(crate) name: &'static str,
    pub(crate) columns: fn() -> Columns,
    pub(crate) fill: fn(&Session, &mut Rows) -> Result<()>,
}

/// Names and types of columns.
pub(crate) type Columns = Vec<(String, Cells)>;

/// A list of columns as a table has it.
pub(crate) fn owned(columns: &[(&str, Cells)]) -> Columns {
    let columns = columns.iter();
    columns
        .map(|(name, cells)| (name.to_string(), *cells))
        .collect()
}

impl VirtualTable {
    /// The table of this name, in any case.
    pub(crate) fn named<'t>(tables: &'t [VirtualTable], name: &str) -> Option<&'t VirtualTable> {
        tables
            .iter()
            .find(|table| table.name.eq_ignore_ascii_case(name))
    }

    /// Without rows.
    pub(crate) fn shape(&self) -> Rows {
        Rows::new((self.columns)())
    }

    /// As of now.
    pub(crate) fn rows(&self, session: &Session) -> Result<Rows> {
        let mut rows = self.shape();
        (self.fill)(session, &mut rows)?;
        Ok(rows)
    }
}

/// What fills a table that is always empty.
pub(crate) fn nothing(_: &Session, _: &mut Rows) -> Result<()> {
    Ok(())
}
