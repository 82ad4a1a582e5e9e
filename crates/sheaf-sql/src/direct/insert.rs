//! INSERT ... VALUES of constants and parameters.
//!
//! The vectorised path inserts such rows without a plan too; what is saved is parsing them again. Names of the table and
//! its columns are looked up at each execution.

use sheaf_table::Value;
use sqlparser::ast;

use super::operand::Operand;
use crate::error::Result;
use crate::insert::{Destination, Source};
use crate::result::ResultSink;
use crate::session::Session;
use crate::update::is_default;
use crate::values::literal;

/// See the module's comment.
pub(super) struct Insert {
    destination: Destination,
    rows: Vec<Vec<Place>>,
}

/// One place in VALUES.
enum Place {
    /// The keyword DEFAULT.
    Default,
    Operand(Operand),
}

impl Place {
    fn of(expr: &ast::Expr) -> Option<Place> {
        if is_default(expr) {
            return Some(Place::Default);
        }
        let operand = Operand::of(expr).or_else(|| literal(expr).map(Operand::Constant));
        operand.map(Place::Operand)
    }
}

impl Insert {
    /// Database and table.
    pub(super) fn table(&self) -> (&str, &str) {
        (&self.destination.database, &self.destination.table)
    }

    /// The plan of an INSERT; `None` if it is not one of plain values.
    pub(super) fn compile(session: &Session, insert: &ast::Insert) -> Option<Insert> {
        let source = insert.source.as_deref()?;
        let is_plain = insert.optimizer_hints.is_empty()
            && !insert.ignore
            && !insert.replace_into
            && insert.on.is_none()
            && insert.returning.is_none()
            && insert.insert_alias.is_none()
            && insert.assignments.is_empty()
            && source.with.is_none()
            && source.order_by.is_none();
        let ast::SetExpr::Values(values) = source.body.as_ref() else {
            return None;
        };
        if !is_plain {
            return None;
        }
        let row = |row: &ast::Parens<Vec<ast::Expr>>| row.content.iter().map(Place::of).collect();
        Some(Insert {
            rows: values.rows.iter().map(row).collect::<Option<_>>()?,
            destination: session.plain_destination(insert)?,
        })
    }
}

impl Session {
    /// False: the vectorised path has to do it.
    pub(super) fn run_direct_insert(
        &mut self,
        insert: &Insert,
        parameters: &[Value],
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        let source = |place: &Place| match place {
            Place::Default => Source::Default,
            Place::Operand(operand) => Source::Value(operand.value(parameters).clone()),
        };
        let rows = insert.rows.iter();
        let rows = rows.map(|row| row.iter().map(source).collect()).collect();
        self.insert_sources(&insert.destination, rows, sink)?;
        Ok(true)
    }
}
