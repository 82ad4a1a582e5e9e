//! Rows of a direct plan: how they are found under their keys, and their values for the client.
//!
//! [`RowReader`] walks the ranges of an access path. It tests entries of an index before their rows, looks rows up
//! together where many are wanted, and hands each row that passes to its caller. No page is latched meanwhile. Values
//! go from the bytes of a row to the client ([`ResultRow`]), without an array or a `Value` between.

use std::ops::ControlFlow;
use std::sync::Arc;

use arrow::array::ArrayRef;
use sheaf_access::{Counter, IndexRef, SessionCounters};
use sheaf_storage::{
    Direction, KeyRange, LOOK_AHEAD_KEYS, ReadAhead, ReadView, Tree, prefix_successor,
};
use sheaf_table::{LaterSegments, RowView, Table};
use sheaf_types::ColumnType;
use sheaf_types::column_type::Stored;
use sheaf_types::labels::text_of_number;

use crate::direct::access::entry::EntryReader;
use crate::direct::access::measured::{self, Search};
use crate::direct::access::{Access, BoundAccess, Keys, Test};
use crate::direct::expression::cell_of;
use crate::direct::rows::stored_value::{long_value, value_of};
use crate::direct::rows::waiting_rows::WaitingRows;
use crate::error::{Result, SqlError};
use crate::session::handle::SessionHandle;
use crate::session::result::{Cell, CellRow};

/// A direct plan's rows are few and nearly always in memory. Where they are not, they are read ahead like those of any
/// scan.
const READ_AHEAD: ReadAhead = ReadAhead::AfterMiss(64);

/// Pages that a walk waits for that is not to take long.
pub(in crate::direct) const MAX_WAITS: u64 = 32;

/// A column of the result.
#[derive(Clone, Debug)]
pub(in crate::direct) struct Item {
    pub(in crate::direct) column: usize,
    kind: Kind,
}

/// What a column's stored number means.
#[derive(Clone, Debug)]
enum Kind {
    Signed,
    Unsigned,
    Decimal(i8),
    WideDecimal(i8),
    Float,
    Double,
    Bytes,
    Date,
    DateTime,
    Time,
    /// An ENUM's labels.
    Labels(Arc<[String]>),
    /// The type of a SET.
    Set(ColumnType),
    Json,
    /// What an expression is computed to, by its number.
    Computed(usize),
}

impl Item {
    pub(in crate::direct) fn new(column: usize, ty: &ColumnType) -> Item {
        let kind = match ty.stored() {
            Stored::Decimal { scale, .. } if ty.is_wide_decimal() => Kind::WideDecimal(scale as i8),
            Stored::Decimal { scale, .. } => Kind::Decimal(scale as i8),
            Stored::Float => Kind::Float,
            Stored::Double => Kind::Double,
            Stored::String if ty.is_json() => Kind::Json,
            Stored::String => Kind::Bytes,
            Stored::Signed(_) if ty.is_moment() => Kind::DateTime,
            Stored::Signed(_) if ty.is_day() => Kind::Date,
            Stored::Signed(_) if ty.is_temporal() => Kind::Time,
            Stored::Signed(_) => Kind::Signed,
            Stored::Unsigned(_) | Stored::Small => match ty.enum_labels() {
                Some(labels) => Kind::Labels(Arc::clone(labels)),
                None if ty.has_labels() => Kind::Set(ty.clone()),
                None => Kind::Unsigned,
            },
        };
        Item { column, kind }
    }

    /// The result of an expression, which is no column of the table.
    pub(in crate::direct) fn computed(number: usize) -> Item {
        Item {
            column: usize::MAX,
            kind: Kind::Computed(number),
        }
    }

    /// Whether its values are texts that no row and no definition holds: those of a SET.
    pub(in crate::direct) fn is_made_of_bits(&self) -> bool {
        matches!(self.kind, Kind::Set(_))
    }

    /// The text of a SET; `None` of NULL and of other columns.
    fn text_of_bits(&self, row: &RowView<'_>) -> Option<Vec<u8>> {
        match &self.kind {
            Kind::Set(ty) if !row.is_null(self.column) => {
                let text = text_of_number(ty, row.get_u64(self.column));
                Some(text.into_owned().into_bytes())
            }
            _ => None,
        }
    }

    /// A value that is kept beside the row.
    pub(in crate::direct) fn cell_beside<'a>(&self, bytes: &'a [u8]) -> Cell<'a> {
        match self.kind {
            Kind::Json => Cell::Json(bytes),
            _ => Cell::Bytes(bytes),
        }
    }

    /// The column of the table; `None` if it is computed.
    pub(in crate::direct) fn stored(&self) -> Option<usize> {
        match self.kind {
            Kind::Computed(_) => None,
            _ => Some(self.column),
        }
    }

    pub(in crate::direct) fn cell<'a>(&'a self, row: &RowView<'a>) -> Cell<'a> {
        match self.kind {
            Kind::Computed(_) => Cell::Null,
            _ => self.cell_at(row.located(self.column)),
        }
    }

    /// The value in this column of a row.
    fn cell_at<'a>(&'a self, (row, column): (RowView<'a>, usize)) -> Cell<'a> {
        if row.is_null(column) {
            return Cell::Null;
        }
        match &self.kind {
            // Those of a SET are kept beside the row.
            Kind::Computed(_) | Kind::Set(_) => Cell::Null,
            Kind::Json => Cell::Json(row.get_bytes(column)),
            Kind::Signed => Cell::Signed(row.get_i64(column)),
            Kind::Unsigned => Cell::Unsigned(row.get_u64(column)),
            Kind::Decimal(scale) => Cell::Decimal {
                unscaled: row.get_i128(column),
                scale: *scale,
            },
            Kind::WideDecimal(scale) => Cell::WideDecimal {
                unscaled: row.get_wide(column),
                scale: *scale,
            },
            Kind::Float => Cell::Float(row.get_f32(column)),
            Kind::Double => Cell::Double(row.get_f64(column)),
            Kind::Bytes => Cell::Bytes(row.get_bytes(column)),
            Kind::Date => Cell::Date(row.get_i64(column) as i32),
            Kind::DateTime => Cell::DateTime(row.get_i64(column)),
            Kind::Time => Cell::Time(row.get_i64(column)),
            Kind::Labels(labels) => {
                let label = (row.get_i64(column) as usize).checked_sub(1);
                let label = label.and_then(|position| labels.get(position));
                Cell::Bytes(label.map_or("", String::as_str).as_bytes())
            }
        }
    }
}

/// For each item what rows have in it that were written before its column was added, if it was. Empty: no column was.
pub(in crate::direct) fn cells_of_old_rows<'a>(
    table: &'a Table,
    items: &'a [Item],
) -> Vec<Option<Cell<'a>>> {
    let layout = &table.row_layout;
    if !layout.has_later_segments() {
        return Vec::new();
    }
    let cell = |item: &'a Item| match item.is_made_of_bits() {
        true => None,
        false => Some(item.cell_at(layout.in_old_rows(item.stored()?)?)),
    };
    items.iter().map(cell).collect()
}

/// A row of the table as a row of the result.
pub(in crate::direct) struct ResultRow<'a> {
    row: RowView<'a>,
    items: &'a [Item],
    /// The values that are known of such a row, by item; empty: none are.
    known: &'a [Option<Cell<'a>>],
    /// Of another row of such a table: its later segments.
    later: LaterSegments<'a>,
    /// For each item its value, if the row only refers to it or has the bits of a SET. Empty: the row has all values.
    long: &'a [Option<Vec<u8>>],
    /// What expressions are computed to.
    computed: &'a [ArrayRef],
}

impl<'a> ResultRow<'a> {
    /// `old`: what [old rows have](cells_of_old_rows). `long` keeps what has to be read from elsewhere.
    pub(in crate::direct) fn new(
        (table, view): (&Table, &ReadView),
        row: RowView<'a>,
        (items, old): (&'a [Item], &'a [Option<Cell<'a>>]),
        long: &'a mut Vec<Option<Vec<u8>>>,
        computed: &'a [ArrayRef],
    ) -> Result<ResultRow<'a>> {
        long.clear();
        let (known, later): (&[Option<Cell<'a>>], _) = match row.is_of_first_segment() {
            true => (old, LaterSegments::new()),
            false => (&[], row.later_segments()),
        };
        // What is known is short.
        let is_known = |at: usize| known.get(at).is_some_and(Option::is_some);
        let is_beside = |(at, item): (usize, &Item)| match item.kind {
            Kind::Set(_) => true,
            // Nothing else is long.
            Kind::Bytes | Kind::Json if !is_known(at) => {
                let (row, column) = row.located_among(&later, item.column);
                row.is_overflow(column)
            }
            _ => false,
        };
        if items.iter().enumerate().any(is_beside) {
            for item in items {
                long.push(match item.stored() {
                    Some(_) if item.is_made_of_bits() => item.text_of_bits(&row),
                    Some(column) => long_value(table, view, &row, column)?,
                    None => None,
                });
            }
        }
        Ok(ResultRow {
            row,
            items,
            known,
            later,
            long,
            computed,
        })
    }
}

impl CellRow for ResultRow<'_> {
    fn cell(&self, column: usize) -> Cell<'_> {
        if let Some(Some(cell)) = self.known.get(column) {
            return *cell;
        }
        let item = &self.items[column];
        match self.long.get(column) {
            Some(Some(bytes)) => item.cell_beside(bytes),
            _ => match item.kind {
                Kind::Computed(number) => cell_of(&self.computed[number]),
                _ => item.cell_at(self.row.located_among(&self.later, item.column)),
            },
        }
    }
}

/// The rows of a table that a view sees under some keys.
pub(in crate::direct) struct RowReader<'a> {
    pub(in crate::direct) table: &'a Arc<Table>,
    pub(in crate::direct) view: &'a ReadView,
    pub(in crate::direct) access: &'a Access,
    pub(in crate::direct) handle: &'a SessionHandle,
    /// What is read is counted here.
    pub(in crate::direct) counters: &'a SessionCounters,
    /// Rows that are enough, if that is known: no more are looked up together at first.
    pub(in crate::direct) wanted: u64,
}

/// What was counted on the way.
#[derive(Default)]
struct Counts {
    positioned: u64,
    steps: u64,
    rows: u64,
    /// Entries tested before their rows were looked up, and those that passed.
    tested_entries: u64,
    passed_entries: u64,
    /// Entries that may still be looked at; `u64::MAX`: all.
    left: u64,
    /// What the thread had read before.
    reads_before: u64,
    is_given_up: bool,
}

/// What becomes of each row.
type TakeRow<'t> = dyn FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>> + 't;

impl RowReader<'_> {
    /// Gives each row that passes the tests to `take`, in the order of the index, until it has enough. `take` gets the
    /// encoded clustered key too. Nothing is latched while it runs.
    pub(in crate::direct) fn for_each(
        &self,
        access: &BoundAccess,
        direction: Direction,
        take: impl FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        self.for_each_of(u64::MAX, access, direction, take)
            .map(|_| ())
    }

    /// As [`Self::for_each`], but false if the walk has looked at `most` entries, or has waited for
    /// [`MAX_WAITS`] pages, and `take` has not had enough.
    pub(in crate::direct) fn for_each_of(
        &self,
        most: u64,
        access: &BoundAccess,
        direction: Direction,
        mut take: impl FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        if !measured::is_on() {
            return self.search(most, access, direction, &mut take);
        }
        let mut search = Search::begin(self.access.id, &self.table.clustered);
        let mut measured = |key: &[u8], row: RowView<'_>| {
            search.row();
            let flow = take(key, row);
            search.resume();
            flow
        };
        // All measured searches share one instance of the code.
        let mut measured: &mut TakeRow<'_> = &mut measured;
        let outcome = self.search(most, access, direction, &mut measured);
        search.end();
        outcome
    }

    fn search(
        &self,
        most: u64,
        access: &BoundAccess,
        direction: Direction,
        take: &mut impl FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let mut counts = Counts {
            left: most,
            reads_before: self.pages_read(),
            ..Counts::default()
        };
        let outcome = self.walk(access, direction, &mut counts, take);
        let counters = self.counters;
        let (steps, first): (&Counter, &Counter) = match direction {
            _ if self.access.is_scan => {
                // The end of the table is met, too.
                counts.steps += u64::from(counts.steps == counts.rows);
                (
                    &counters.handler_read_rnd_next,
                    &counters.handler_read_first,
                )
            }
            Direction::Forward => (&counters.handler_read_next, &counters.handler_read_first),
            Direction::Backward => (&counters.handler_read_prev, &counters.handler_read_last),
        };
        steps.add(counts.steps);
        match self.access.is_whole() {
            true => first.add(counts.positioned),
            false => counters.handler_read_key.add(counts.positioned),
        }
        self.note_read(counts.positioned, counts.rows);
        counters.handler_icp_attempts.add(counts.tested_entries);
        counters.handler_icp_match.add(counts.passed_entries);
        outcome?;
        Ok(!counts.is_given_up)
    }

    /// Gives `take` the first row of each group of entries that have so many leading parts in common, as
    /// [`Self::for_each_of`] does; false as there. The walk jumps from group to group. The access has no keys and no
    /// tests.
    pub(in crate::direct) fn for_each_first(
        &self,
        (parts, most): (usize, u64),
        direction: Direction,
        mut take: impl FnMut(RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<bool> {
        let (tree, layout) = match self.access.index {
            IndexRef::Clustered => (&self.table.clustered, &self.table.clustered_layout),
            IndexRef::Secondary(position) => (
                &self.table.secondary[position],
                &self.table.secondary_layouts[position],
            ),
        };
        let mut entries = match self.access.index {
            IndexRef::Clustered => None,
            IndexRef::Secondary(position) => {
                let uses = &self.access.entry;
                let reader = EntryReader::new(self.table, position, std::iter::empty(), uses);
                Some(reader)
            }
        };
        let mut search =
            measured::is_on().then(|| Search::begin(self.access.id, &self.table.clustered));
        let mut counts = Counts {
            left: most,
            reads_before: self.pages_read(),
            ..Counts::default()
        };
        let all = KeyRange::all();
        let mut cursor = tree.scan_at(self.view.clone(), all, direction, ReadAhead::Off);
        let mut entry = Vec::new();
        while let Some(leaf) = cursor.next_leaf()? {
            self.handle.cancel_flag().check()?;
            if !self.may_go_on(&mut counts) {
                break;
            }
            let at = match direction {
                Direction::Forward => 0,
                Direction::Backward => leaf.len() - 1,
            };
            leaf.key_into(at, &mut entry);
            counts.rows += 1;
            let row = match &mut entries {
                None => Some(leaf.value(at)),
                Some(entries) => {
                    entries.passes(&entry)?;
                    entries.row(self.table, &entry, leaf.value(at))?
                }
            };
            let row = row.ok_or_else(|| SqlError::unknown("an index that has not all columns"))?;
            search.iter_mut().for_each(Search::row);
            let is_enough = take(self.table.view(row)?)?.is_break();
            search.iter_mut().for_each(Search::resume);
            let group = layout.leading_parts(&entry, parts)?;
            let bound = match direction {
                Direction::Forward => prefix_successor(group),
                Direction::Backward => (!group.is_empty()).then(|| group.to_vec()),
            };
            match bound {
                Some(bound) if !is_enough => cursor.seek(&bound),
                _ => break,
            }
        }
        self.counters.handler_read_key.add(counts.rows);
        self.note_read(1, counts.rows);
        search.into_iter().for_each(Search::end);
        Ok(!counts.is_given_up)
    }

    fn pages_read(&self) -> u64 {
        self.table.clustered.thread_page_work().reads
    }

    /// Whether the walk may look at one more entry.
    fn may_go_on(&self, counts: &mut Counts) -> bool {
        if counts.left == u64::MAX {
            return true;
        }
        counts.is_given_up =
            counts.left == 0 || self.pages_read() - counts.reads_before > MAX_WAITS;
        counts.left = counts.left.saturating_sub(1);
        !counts.is_given_up
    }

    /// The encoded clustered keys of the rows that pass the tests, at most so many.
    pub(in crate::direct) fn keys(
        &self,
        access: &BoundAccess,
        direction: Direction,
        most: u64,
    ) -> Result<Vec<Vec<u8>>> {
        let mut keys = Vec::new();
        self.for_each(access, direction, |key, _| {
            keys.push(key.to_vec());
            Ok(match (keys.len() as u64) < most {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            })
        })?;
        Ok(keys)
    }

    /// The encoded clustered keys that alone decide which rows there are, if there are such; the rows may be missing.
    pub(in crate::direct) fn known_keys<'k>(
        &self,
        access: &'k BoundAccess,
    ) -> Option<&'k [Vec<u8>]> {
        match (&access.keys, self.access.index) {
            (Keys::Points(keys), IndexRef::Clustered) if !access.is_filtered() => Some(keys),
            _ => None,
        }
    }

    /// Whether there is a row under an encoded clustered key.
    pub(in crate::direct) fn has(&self, key: &[u8]) -> Result<bool> {
        let mut row = Vec::new();
        Ok(self.table.clustered.get_at(self.view, key, &mut row)?)
    }

    /// Counts lookups of keys that another than [`Self::for_each`] has done.
    pub(in crate::direct) fn note_points(&self, keys: u64, rows: u64) {
        self.counters.handler_read_key.add(keys);
        self.note_read(keys, rows);
    }

    /// Counts rows that the index has found, and lookups in it: those that find nothing use it, too.
    fn note_read(&self, lookups: u64, rows: u64) {
        let index = self.access.index.tree(self.table).id();
        measured::note_examined(self.access.id, rows);
        self.counters.rows_read.add(rows);
        let uses = &self.counters.index_uses;
        match self.access.is_scan {
            true => uses.add_scanned(index, rows),
            false => uses.add_fetched(index, rows.max(lookups)),
        }
    }

    /// The number of rows under the keys, from the entries of the index alone. The access has no tests.
    pub(in crate::direct) fn count(&self, access: &BoundAccess) -> Result<u64> {
        let tree = match self.access.index {
            IndexRef::Clustered => &self.table.clustered,
            IndexRef::Secondary(position) => &self.table.secondary[position],
        };
        let mut search =
            measured::is_on().then(|| Search::begin(self.access.id, &self.table.clustered));
        let ranges = access.keys.ranges();
        let positioned = ranges.len() as u64;
        let mut rows = 0;
        for range in ranges {
            let mut cursor = tree.scan_at(self.view.clone(), range, Direction::Forward, READ_AHEAD);
            while let Some(leaf) = cursor.next_leaf()? {
                self.handle.cancel_flag().check()?;
                rows += leaf.len() as u64;
            }
        }
        let counters = self.counters;
        match self.access.is_whole() {
            true => counters.handler_read_first.add(positioned),
            false => counters.handler_read_key.add(positioned),
        }
        match access.keys {
            _ if self.access.is_scan => counters.handler_read_rnd_next.add(rows + 1),
            Keys::Ranges(_) => counters.handler_read_next.add(rows),
            Keys::Points(_) => {}
        }
        self.note_read(positioned, rows);
        if let Some(mut search) = search.take() {
            search.rows(rows);
            search.end();
        }
        Ok(rows)
    }

    fn walk(
        &self,
        access: &BoundAccess,
        direction: Direction,
        counts: &mut Counts,
        take: &mut impl FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut waiting = None;
        let mut flow = self.walk_keys(access, direction, counts, &mut waiting, take)?;
        if (flow.is_continue() || counts.is_given_up)
            && let Some(waiting) = &mut waiting
        {
            flow = self.look_up(access, waiting, counts, take)?;
            // What was waiting may have been enough.
            counts.is_given_up &= flow.is_continue();
        }
        if let Keys::Ranges(_) = access.keys {
            // The first row is no step, but the end of the range is one.
            counts.steps = counts.rows - u64::from(flow.is_break() && counts.rows > 0);
        }
        Ok(())
    }

    /// Comes to all rows, or puts them to those that wait.
    fn walk_keys(
        &self,
        access: &BoundAccess,
        direction: Direction,
        counts: &mut Counts,
        waiting: &mut Option<WaitingRows>,
        take: &mut impl FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        match (&access.keys, self.access.index) {
            (Keys::Points(keys), IndexRef::Clustered) => {
                let tree = &self.table.clustered;
                let mut bytes = Vec::new();
                each_key(tree, keys, direction, |key| {
                    self.handle.cancel_flag().check()?;
                    counts.positioned += 1;
                    if !tree.get_at(self.view, key, &mut bytes)? {
                        return Ok(ControlFlow::Continue(()));
                    }
                    counts.rows += 1;
                    self.test((&access.tests, access), key, &bytes, take)
                })
            }
            (Keys::Points(keys), IndexRef::Secondary(position)) => {
                let tree = &self.table.secondary[position];
                each_key(tree, keys, direction, |key| {
                    counts.positioned += 1;
                    let range = (KeyRange::prefix(key), direction);
                    self.walk_entries(access, position, range, counts, waiting, take)
                })
            }
            (Keys::Ranges(ranges), index) => {
                for step in 0..ranges.len() {
                    counts.positioned += 1;
                    let range = match direction {
                        Direction::Forward => &ranges[step],
                        Direction::Backward => &ranges[ranges.len() - 1 - step],
                    };
                    let range = (range.clone(), direction);
                    let flow = match index {
                        IndexRef::Clustered => self.walk_rows(access, range, counts, take)?,
                        IndexRef::Secondary(position) => {
                            self.walk_entries(access, position, range, counts, waiting, take)?
                        }
                    };
                    if flow.is_break() {
                        return Ok(flow);
                    }
                }
                Ok(ControlFlow::Continue(()))
            }
        }
    }

    fn walk_rows(
        &self,
        access: &BoundAccess,
        (range, direction): (KeyRange, Direction),
        counts: &mut Counts,
        take: &mut impl FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let tree = &self.table.clustered;
        let mut cursor = tree.scan_at(self.view.clone(), range, direction, READ_AHEAD);
        let mut key = Vec::new();
        while let Some(leaf) = cursor.next_leaf()? {
            self.handle.cancel_flag().check()?;
            for step in 0..leaf.len() {
                let at = match direction {
                    Direction::Forward => step,
                    Direction::Backward => leaf.len() - 1 - step,
                };
                if !self.may_go_on(counts) {
                    return Ok(ControlFlow::Break(()));
                }
                counts.rows += 1;
                leaf.key_into(at, &mut key);
                if self
                    .test((&access.tests, access), &key, leaf.value(at), take)?
                    .is_break()
                {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn walk_entries(
        &self,
        access: &BoundAccess,
        position: usize,
        (range, direction): (KeyRange, Direction),
        counts: &mut Counts,
        waiting: &mut Option<WaitingRows>,
        take: &mut impl FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let tree = &self.table.secondary[position];
        let layout = &self.table.secondary_layouts[position];
        let mut cursor = tree.scan_at(self.view.clone(), range, direction, READ_AHEAD);
        let on_entry = access
            .tests
            .iter()
            .filter_map(|test| test.on_entry.as_ref());
        let mut entries = EntryReader::new(self.table, position, on_entry, &self.access.entry);
        let (mut entry, mut key) = (Vec::new(), Vec::new());
        while let Some(leaf) = cursor.next_leaf()? {
            self.handle.cancel_flag().check()?;
            for step in 0..leaf.len() {
                let at = match direction {
                    Direction::Forward => step,
                    Direction::Backward => leaf.len() - 1 - step,
                };
                if !self.may_go_on(counts) {
                    return Ok(ControlFlow::Break(()));
                }
                leaf.key_into(at, &mut entry);
                let passes = entries.passes(&entry)?;
                if entries.is_index_condition() {
                    counts.tested_entries += 1;
                    counts.passed_entries += u64::from(passes);
                }
                if !passes {
                    continue;
                }
                let flow = match entries.row(self.table, &entry, leaf.value(at))? {
                    Some(row) => {
                        key.clear();
                        layout.primary_key_into(&entry, &mut key)?;
                        counts.rows += 1;
                        self.test((access.tests_of_rows(), access), &key, row, take)?
                    }
                    None => {
                        let waiting = waiting.get_or_insert_with(|| {
                            WaitingRows::new(&self.table.clustered, self.view, self.wanted)
                        });
                        waiting.push(|keys| Ok(layout.primary_key_into(&entry, keys)?))?;
                        match waiting.is_group() {
                            true => self.look_up(access, waiting, counts, take)?,
                            false => ControlFlow::Continue(()),
                        }
                    }
                };
                if flow.is_break() {
                    return Ok(flow);
                }
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Gives the rows that wait on if they pass.
    fn look_up(
        &self,
        access: &BoundAccess,
        waiting: &mut WaitingRows,
        counts: &mut Counts,
        take: &mut impl FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        waiting.look_up(self.handle.cancel_flag(), |key, bytes| {
            counts.rows += 1;
            self.test((access.tests_of_rows(), access), key, bytes, take)
        })
    }

    /// Gives the row on if it passes the tests, and the rest of the condition.
    fn test<'b>(
        &self,
        (tests, access): (impl IntoIterator<Item = &'b Test>, &BoundAccess),
        key: &[u8],
        bytes: &[u8],
        take: &mut impl FnMut(&[u8], RowView<'_>) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        let row = self.table.view(bytes)?;
        for test in tests {
            if !self.passes(test, &row)? {
                return Ok(ControlFlow::Continue(()));
            }
        }
        if let Some(filter) = &access.filter {
            let from = (self.table.as_ref(), self.view);
            let batch = filter.row(|_, column| value_of(from, &row, column))?;
            if !filter.passes(&batch)? {
                return Ok(ControlFlow::Continue(()));
            }
        }
        take(key, row)
    }

    fn passes(&self, test: &Test, row: &RowView<'_>) -> Result<bool> {
        let long = long_value(self.table, self.view, row, test.column)?;
        Ok(test.passes(self.table, row, long.as_deref()))
    }
}

/// Gives each key of an index to `each`, in this direction, until it has enough. Lookups of several keys wait for
/// memory together.
fn each_key(
    tree: &Tree,
    keys: &[Vec<u8>],
    direction: Direction,
    mut each: impl FnMut(&[u8]) -> Result<ControlFlow<()>>,
) -> Result<ControlFlow<()>> {
    let key = |step: usize| match direction {
        Direction::Forward => keys[step].as_slice(),
        Direction::Backward => keys[keys.len() - 1 - step].as_slice(),
    };
    for step in 0..keys.len() {
        if step.is_multiple_of(LOOK_AHEAD_KEYS) && step + 1 < keys.len() {
            let end = (step + LOOK_AHEAD_KEYS).min(keys.len());
            tree.look_ahead((step..end).map(key));
        }
        if each(key(step))?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}
