//! Rows on their way to the client, with what is computed of them.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::ArrayRef;
use arrow::datatypes::SchemaRef;
use sheaf_storage::ReadView;
use sheaf_table::{RowView, Table};

use super::{Read, Shown};
use crate::direct::expression::Evaluator;
use crate::direct::rows::order::Sorter;
use crate::direct::rows::stored_value::value_of;
use crate::direct::shown::row::{Item, ResultRow, cells_of_old_rows};
use crate::direct::syntax::headers::ShownColumns;
use crate::error::Result;
use crate::events::thread_work::{self, Work};
use crate::session::Session;
use crate::session::result::{Cell, ColumnMeta, ResultSink};

/// Sends rows that have waited in memory, in the order that the read wants.
pub(in crate::direct) fn send_sorted(
    session: &mut Session,
    (read, shape): (&Read, &Shape<'_>),
    (table, view): (&Arc<Table>, &ReadView),
    rows: &mut Sorter,
    (limit, offset): (u64, u64),
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    let Shown::Columns(items) = &read.shown else {
        return Ok(false);
    };
    if read.sorts() {
        let most = match read.distinct {
            Some(_) => u64::MAX,
            None => limit.saturating_add(offset),
        };
        thread_work::note(Work::sort_of(rows.len()).of_first(most));
        rows.sort(read.distinct.is_some());
    }
    if read.distinct.is_some() {
        thread_work::note(Work::temporary_table());
    }
    let mut output = Output {
        shape,
        items,
        old: cells_of_old_rows(table, items),
        table,
        view,
        sink: &mut *sink,
        long: Vec::new(),
        computed: Vec::new(),
        skip: offset,
        left: limit,
        sent: 0,
    };
    output.begin()?;
    for row in rows.rows() {
        if output.left == 0 || output.row(table.view(row)?)?.is_break() {
            break;
        }
    }
    let sent = output.sent;
    end_direct_read(session, sent, sink)
}

pub(in crate::direct) fn end_direct_read(
    session: &mut Session,
    sent: u64,
    sink: &mut dyn ResultSink,
) -> Result<bool> {
    session.outcome.found_rows = sent;
    session.outcome.row_count = -1;
    session.findings.warn(&mut session.warnings);
    sink.end_of_rows(session.end_of_rows())?;
    Ok(true)
}

/// The columns of a result.
pub(in crate::direct) enum Shape<'r> {
    Plain(&'r [ColumnMeta], &'r SchemaRef),
    Computed(Evaluator, Arc<ShownColumns>),
}

impl Shape<'_> {
    fn columns(&self) -> &[ColumnMeta] {
        match self {
            Shape::Plain(columns, _) => columns,
            Shape::Computed(_, shown) => &shown.columns,
        }
    }

    fn schema(&self) -> &SchemaRef {
        match self {
            Shape::Plain(_, schema) => schema,
            Shape::Computed(_, shown) => &shown.schema,
        }
    }

    /// What is computed of a row.
    fn compute(
        &self,
        from: (&Table, &ReadView),
        row: &RowView<'_>,
        computed: &mut Vec<ArrayRef>,
    ) -> Result<()> {
        let Shape::Computed(evaluator, _) = self else {
            return Ok(());
        };
        computed.clear();
        let batch = evaluator.row(|_, column| value_of(from, row, column))?;
        for item in 0..evaluator.len() {
            computed.push(evaluator.array(item, &batch)?);
        }
        Ok(())
    }
}

/// Rows on their way to the sink.
pub(super) struct Output<'a> {
    pub(super) shape: &'a Shape<'a>,
    pub(super) items: &'a [Item],
    /// What [old rows have](cells_of_old_rows).
    pub(super) old: Vec<Option<Cell<'a>>>,
    pub(super) table: &'a Arc<Table>,
    pub(super) view: &'a ReadView,
    pub(super) sink: &'a mut dyn ResultSink,
    pub(super) long: Vec<Option<Vec<u8>>>,
    pub(super) computed: Vec<ArrayRef>,
    /// OFFSET: rows still to be passed over.
    pub(super) skip: u64,
    /// LIMIT: rows still to be sent.
    pub(super) left: u64,
    pub(super) sent: u64,
}

impl Output<'_> {
    pub(super) fn begin(&mut self) -> Result<()> {
        self.sink
            .row_columns(self.shape.columns(), self.shape.schema())
    }

    pub(super) fn row(&mut self, row: RowView<'_>) -> Result<ControlFlow<()>> {
        if self.skip > 0 {
            self.skip -= 1;
            return Ok(ControlFlow::Continue(()));
        }
        let from = (self.table.as_ref(), self.view);
        self.shape.compute(from, &row, &mut self.computed)?;
        let items = (self.items, self.old.as_slice());
        let row = ResultRow::new(from, row, items, &mut self.long, &self.computed)?;
        self.sink.row(self.shape.columns(), &row)?;
        self.sent += 1;
        self.left -= 1;
        Ok(match self.left {
            0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    }
}
