//! INSERT ... VALUES of constants and parameters.
//!
//! The vectorised path inserts such rows without a plan too; what is saved is parsing them again, and finding the table and
//! its columns by their names. Whatever is wrong with the names or the number of values is left to it to tell.

use std::sync::Arc;

use sheaf_table::{Table, Value};
use sqlparser::ast;

use super::operand::Operand;
use crate::error::Result;
use crate::insert::Destination;
use crate::result::ResultSink;
use crate::session::Session;
use crate::table_writer::{RowShape, TableWriter};
use crate::update::is_default;
use crate::values::{hybrid_number, literal};

/// See the module's comment.
pub(super) struct Insert {
    destination: Destination,
    table: Arc<Table>,
    /// Positions of the columns that are given.
    targets: Vec<usize>,
    /// For each of them its value, row by row.
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
    pub(super) fn table(&self) -> &Arc<Table> {
        &self.table
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
        let rows: Vec<Vec<Place>> = values.rows.iter().map(row).collect::<Option<_>>()?;
        let destination = session.plain_destination(insert)?;
        let (database, table) = (&destination.database, &destination.table);
        let table = session.engine.catalog().table(database, table).ok()?;
        // `INSERT INTO t () VALUES ()` gives no column a value.
        let all_default = destination.columns.is_empty() && rows.iter().all(Vec::is_empty);
        let targets = match all_default {
            true => Vec::new(),
            false => Session::target_columns(&table, &destination.columns).ok()?,
        };
        let rows_given = values.rows.iter();
        let mut given = rows_given.flat_map(|row| row.content.iter().zip(&targets));
        let is_hybrid = |(expr, target): (&ast::Expr, &usize)| {
            hybrid_number(expr, &table.definition.columns[*target].ty).is_some()
        };
        if given.any(is_hybrid) {
            return None;
        }
        let fits = |row: &Vec<Place>| row.len() == targets.len();
        rows.iter().all(fits).then_some(Insert {
            destination,
            table,
            targets,
            rows,
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
        let options = insert.destination.options;
        let next = self.next_transaction;
        let opened = self.begin_for_reads_that_lock();
        let inserted = match self.open_known_writer(&insert.table, options) {
            Ok(Some(mut writer)) => {
                let done = self.write_places(insert, parameters, &mut writer);
                self.close_inserted(writer, done)
            }
            Ok(None) => {
                if opened {
                    self.roll_back_open()?;
                    // What SET TRANSACTION said is for the other way.
                    self.next_transaction = next;
                }
                return Ok(false);
            }
            Err(error) => Err(error),
        };
        let inserted = self.end_implicit(opened, inserted)?;
        let info = match insert.rows.len() {
            1 => String::new(),
            _ => inserted.info(self.warnings.count()),
        };
        self.insert_done(&insert.destination, inserted, info, "", sink)?;
        Ok(true)
    }

    fn write_places(
        &mut self,
        insert: &Insert,
        parameters: &[Value],
        writer: &mut TableWriter,
    ) -> Result<()> {
        let (now, options) = (self.local_now_micros(), insert.destination.options);
        let warnings = &mut self.warnings;
        let mut shape = RowShape::new(&insert.table, &insert.targets, options, now, warnings)?;
        for (n, places) in insert.rows.iter().enumerate() {
            let mut row = match n + 1 == insert.rows.len() {
                true => shape.take_last_row(),
                false => shape.new_row(),
            };
            for (place, position) in places.iter().zip(&insert.targets) {
                match place {
                    Place::Default => shape.put_default(&mut row, *position, now, warnings)?,
                    Place::Operand(operand) => {
                        let (value, number) = (operand.value(parameters), n as u64 + 1);
                        shape.put(&mut row, *position, value, number, warnings)?;
                    }
                }
            }
            writer.write(&row, warnings)?;
        }
        Ok(())
    }
}
