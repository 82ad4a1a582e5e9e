//! System variables that SET PERSIST has kept for the next start.

use crate::catalog_views::virtual_table::{Columns, owned};
use crate::error::Result;
use crate::query::rows::{Cells, Rows};
use crate::session::Session;

pub(super) fn columns() -> Columns {
    owned(&[
        ("VARIABLE_NAME", Cells::Text(64)),
        ("VARIABLE_VALUE", Cells::Text(1024)),
    ])
}

/// `persisted_variables`.
pub(super) fn variables(session: &Session, rows: &mut Rows) -> Result<()> {
    for (name, persisted) in session.engine.persisted_variables() {
        rows.push(vec![name.into(), persisted.value.into()]);
    }
    Ok(())
}
