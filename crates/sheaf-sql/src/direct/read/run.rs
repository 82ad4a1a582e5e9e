//! How a plan runs: its table is opened, and its rows go to the client, to a sort or to the aggregates.

use std::ops::ControlFlow;
use std::sync::Arc;

use sheaf_access::SessionCounters;
use sheaf_storage::ReadView;
use sheaf_table::{BorrowedReadGuard, Table};
use sheaf_types::Value;

use super::send::{Output, Shape};
use super::{MAX_WALKED_ROWS, Read, Ready, Shown, Way};
use crate::direct::aggregate::Totals;
use crate::direct::order::Sorter;
use crate::direct::row::{RowReader, cells_of_old_rows};
use crate::direct::select_list::Spelled;
use crate::error::Result;
use crate::session::result::ResultSink;
use crate::session::searched::{DirectSearch, Searched};
use crate::session::{Session, SessionHandle};
use crate::variables::Variables;

/// A table opened to be read.
struct OpenTable<'t> {
    view: ReadView,
    _guard: BorrowedReadGuard<'t>,
}

impl Session {
    /// `None`: the table is not what the plan was made for, or the read takes locks.
    fn open_to_read<'t>(&mut self, table: &'t Table) -> Result<Option<OpenTable<'t>>> {
        if self.transactions.reads_lock() {
            return Ok(None);
        }
        self.keep_definition(table)?;
        let is_first = self.holds_no_table() && self.statement.view.is_none();
        let Some(guard) = self.borrow_for_read(table, is_first)? else {
            return Ok(None);
        };
        let view = self.read_view()?;
        table.check_view(&view)?;
        Ok(Some(OpenTable {
            view,
            _guard: guard,
        }))
    }

    /// A read whose operands are known, with what a client is told of its columns. `None`: the vectorised path has to
    /// do it.
    pub(in crate::direct) fn ready_to_read<'r>(
        &mut self,
        read: &'r Read,
        table: &Table,
        (parameters, spelled): (&[Value], Spelled<'_>),
    ) -> Result<Option<(Ready, Shape<'r>)>> {
        let most = self.variables.sql_select_limit();
        let Some(mut ready) = read.prepare(most, table, parameters)? else {
            return Ok(None);
        };
        let Some(shape) = self.shape_of(read, parameters, spelled) else {
            return Ok(None);
        };
        let filtered = self.add_filter(&read.access, &mut ready.bound, parameters);
        Ok(filtered.map(|()| (ready, shape)))
    }

    /// How the columns of a result are described, and what computes some of them. `None`: the vectorised path has to
    /// do it.
    fn shape_of<'r>(
        &mut self,
        read: &'r Read,
        parameters: &[Value],
        spelled: Spelled<'_>,
    ) -> Option<Shape<'r>> {
        let Some(computed) = &read.computed else {
            return Some(Shape::Plain(&read.columns, &read.schema));
        };
        let list = (computed, (read.columns.as_slice(), &read.schema));
        let (evaluator, shown) = self.evaluator_of_list(list, parameters, spelled)?;
        Some(Shape::Computed(evaluator, shown))
    }

    /// False: the vectorised path has to do it.
    pub(in crate::direct) fn run_direct_read(
        &mut self,
        read: &Read,
        table: &Arc<Table>,
        (parameters, spelled): (&[Value], Spelled<'_>),
        sink: &mut dyn ResultSink,
    ) -> Result<bool> {
        if !sink.takes_rows() || !read.is_allowed(&self.variables) {
            return Ok(false);
        }
        // First of all: without it the table's trees may be dropped while they are asked how many rows there are.
        let Some(open) = self.open_to_read(table)? else {
            return Ok(false);
        };
        let Some((ready, shape)) = self.ready_to_read(read, table, (parameters, spelled))? else {
            return Ok(false);
        };
        if ready.way != Way::Through {
            // What it has come to is not known before it ends.
            if self.statement.searched.is_some() {
                return Ok(false);
            }
            let (seen, counters) = ((table, &open.view), &self.handle.counters);
            let Some(mut rows) = walk_for_a_while(&self.handle, read, seen, &ready, counters)?
            else {
                return Ok(false);
            };
            let window = (ready.limit, ready.offset);
            return self.send_sorted((read, &shape), seen, &mut rows, window, sink);
        }
        let Ready {
            bound,
            limit,
            offset,
            ..
        } = ready;
        let wanted = match &read.shown {
            Shown::Aggregates { ends_at_first, .. } if *ends_at_first => 1,
            Shown::Columns(_) if !read.sorts() => limit.saturating_add(offset),
            _ => u64::MAX,
        };
        if wanted > 0
            && let Some(searched) = &mut self.statement.searched
        {
            searched.push(Searched {
                table: Arc::clone(table),
                search: DirectSearch {
                    index: read.access.index,
                    reads_rows: !read.access.entry.is_covering(),
                    is_filtered: bound.is_filtered() || !matches!(read.shown, Shown::Columns(_)),
                    limit: usize::try_from(wanted).ok().filter(|_| wanted < u64::MAX),
                    direction: read.direction,
                },
                ranges: bound.keys.ranges(),
                last: None,
            });
        }
        // The key of the row at which the read stops early, if somebody has to know.
        let mut last = self.statement.searched.is_some().then(Vec::new);
        let mut note_end = |key: &[u8], flow: ControlFlow<()>| {
            if let Some(last) = last.as_mut().filter(|_| flow.is_break()) {
                last.extend_from_slice(key);
            }
            flow
        };
        let reader = RowReader {
            table,
            view: &open.view,
            access: &read.access,
            handle: &self.handle,
            counters: &self.handle.counters,
            wanted,
        };
        let items = match &read.shown {
            Shown::Columns(items) => items,
            Shown::Aggregates {
                aggregates,
                counts_entries,
                ends_at_first,
            } => {
                let mut totals = Totals::new(aggregates);
                if *counts_entries {
                    totals.add_count(reader.count(&bound)?);
                } else {
                    // Rows that do not pass, and NULLs, may come before the first one.
                    let most = match ends_at_first {
                        true => MAX_WALKED_ROWS,
                        false => u64::MAX,
                    };
                    let is_complete =
                        reader.for_each_of(most, &bound, read.direction, |key, row| {
                            totals.add(&row)?;
                            let flow = match *ends_at_first && totals.has_value() {
                                true => ControlFlow::Break(()),
                                false => ControlFlow::Continue(()),
                            };
                            Ok(note_end(key, flow))
                        })?;
                    if !is_complete {
                        return Ok(false);
                    }
                    totals.check()?;
                }
                self.statement.searched_to(last);
                sink.row_columns(&read.columns, &read.schema)?;
                let sent = limit.min(1);
                if sent > 0 {
                    sink.row(&read.columns, &totals)?;
                }
                return self.end_direct_read(sent, sink);
            }
        };
        if read.sorts() && limit > 0 {
            let keys = read.sort_keys();
            let mut sorter = Sorter::default();
            let mut fits = true;
            reader.for_each(&bound, read.direction, |_, row| {
                fits = sorter.push(keys, (table, &open.view), &row)?;
                Ok(match fits {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            })?;
            if !fits {
                return Ok(false);
            }
            let from = (table, &open.view);
            return self.send_sorted((read, &shape), from, &mut sorter, (limit, offset), sink);
        }
        let mut output = Output {
            shape: &shape,
            items,
            old: cells_of_old_rows(table, items),
            table,
            view: &open.view,
            sink: &mut *sink,
            long: Vec::new(),
            computed: Vec::new(),
            skip: offset,
            left: limit,
            sent: 0,
        };
        output.begin()?;
        if output.left > 0 {
            reader.for_each(&bound, read.direction, |key, row| {
                Ok(note_end(key, output.row(row)?))
            })?;
        }
        let sent = output.sent;
        self.statement.searched_to(last);
        self.end_direct_read(sent, sink)
    }

    /// How a plan without parameters would run; `None`: it would not.
    pub(in crate::direct) fn would_read(
        &self,
        read: &Read,
        table: &Arc<Table>,
        parameters: &[Value],
    ) -> Result<Option<Way>> {
        let Some(_guard) = self.borrow_for_read(table, false)? else {
            return Ok(None);
        };
        if self.transactions.reads_lock() || !read.is_allowed(&self.variables) {
            return Ok(None);
        }
        let ready = read.prepare(self.variables.sql_select_limit(), table, parameters)?;
        let Some(ready) = ready else {
            return Ok(None);
        };
        if ready.way != Way::Through {
            // Whether it ends soon is told by trying, which counts as nothing.
            let view = self.transactions.current_view(self.engine.storage())?;
            table.check_view(&view)?;
            let counters = SessionCounters::default();
            let rows = walk_for_a_while(&self.handle, read, (table, &view), &ready, &counters)?;
            return Ok(rows.map(|_| ready.way));
        }
        Ok(Some(ready.way))
    }
}

/// The rows that a LIMIT wants, if they are found soon.
fn walk_for_a_while(
    handle: &SessionHandle,
    read: &Read,
    (table, view): (&Arc<Table>, &ReadView),
    ready: &Ready,
    counters: &SessionCounters,
) -> Result<Option<Sorter>> {
    let (access, direction) = read.access_of(ready.way);
    let mut left = ready.limit.saturating_add(ready.offset);
    let reader = RowReader {
        table,
        view,
        access,
        handle,
        counters,
        wanted: left,
    };
    let mut rows = Sorter::default();
    let mut fits = true;
    if left == 0 {
        return Ok(Some(rows));
    }
    // Without keys a condition is evaluated in vain for all of them where no row passes.
    let most = match access.is_whole() {
        true => MAX_WALKED_ROWS.min(read.access.most_rows()),
        false => MAX_WALKED_ROWS,
    };
    let is_complete = reader.for_each_of(most, &ready.bound, direction, |_, row| {
        fits = rows.push((None, None), (table, view), &row)?;
        left -= 1;
        Ok(match fits && left > 0 {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok((is_complete && fits).then_some(rows))
}

impl Read {
    /// Whether no variable limits how many rows it may look at, if it looks at all.
    pub(in crate::direct) fn is_allowed(&self, variables: &Variables) -> bool {
        !self.reads_whole || variables.max_join_size() == u64::MAX
    }
}
