//! From a transaction as the log has it to the events of MySQL's binary log.
//!
//! ```text
//!   log      chunks of long values | rows before and after, by tree and key | statement
//!   events   BEGIN | TABLE_MAP | WRITE_ROWS | TABLE_MAP | UPDATE_ROWS ... | XID          or one QUERY
//! ```
//!
//! CREATE TABLE ... SELECT is a statement and rows. Followers are told that the rows come in the transaction of the
//! table, as MySQL does it since 8.0.21. The words are in a comment of MySQL's, since MariaDB does not know them:
//!
//! ```text
//!   BEGIN | CREATE TABLE ... /*!80021 START TRANSACTION */ | TABLE_MAP | WRITE_ROWS ... | XID
//! ```
//!
//! What the bytes of rows mean the log has said before ([`FollowedTable`]). Rows of one table that were changed in the
//! same way, one behind the other, share an event; each such run is a statement of its own to followers.
//!
//! **Foreign keys.** The log has all changes, those that foreign keys made among them. All rows events say so, and that
//! followers check nothing: the changes were checked here, and may come in another order than followers would make
//! them in.
//!
//! **Long values** stand beside their rows, and one that stays as it is, is not in the log. The image of a row leaves
//! out its column then, as binlog_row_image=NOBLOB does. Where followers find the row by it, the log has it
//! (`sheaf-table/src/table/followers.rs`). Chunks of values that go come behind their row, so where they stand is found
//! out first. One row's values are in memory at a time.
//!
//! **Moves.** A row that is deleted and inserted under another key, or in whose place REPLACE puts another one, is
//! updated: the log [says so](MOVED_ROW).

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::fmt::{self, Write as _};
use std::fs::File;
use std::hash::{DefaultHasher, Hasher};
use std::io;
use std::ops::ControlFlow;

use sheaf_binlog::event::rows::{RowsEvent, TableMap};
use sheaf_binlog::event::{Event, EventHeader, GtidLog, Query, QueryContext, Xid};
use sheaf_binlog::file::{BinlogFile, EventSink, EventsLength, Transaction};
use sheaf_binlog::row::columns::{ColumnSet, RowImage};
use sheaf_binlog::table::{KeyColumn, LoggedColumn, LoggedTable};
use sheaf_storage::{ChangePlace, FollowedChange, FollowedTransaction, Lsn, TreeId};
use sheaf_table::{FollowedTable, MOVED_ROW, TableDefinition, TableError, long_value_of_chunk};
use sheaf_types::Value;

use super::files::failed;
use super::origin::Origin;
use super::own_character_sets::in_own_character_sets;
use super::statement::{LoggedStatement, StatementKind, WITH_ROWS};
use crate::error::{Result, SqlError};

/// Bytes of a run of rows, about, after which another one begins: followers have one in memory, and mysqlbinlog makes a
/// statement of it that has to fit into a packet.
const MAX_RUN_BYTES: usize = 1 << 20;

/// A table whose rows were changed.
struct KnownTable {
    followed: FollowedTable,
    logged: LoggedTable,
    /// The columns that followers see, by their positions in the row.
    columns: Vec<usize>,
    remark: Vec<u8>,
    /// Its tree was seen to be gone when the log went so far: nothing behind is about it.
    gone_at: Option<Lsn>,
}

/// What the log has said of tables so far.
#[derive(Default)]
pub(super) struct Projection {
    /// By the trees of their rows.
    tables: BTreeMap<TreeId, KnownTable>,
    /// The trees of rows by the trees of their long values.
    of_long_values: BTreeMap<TreeId, TreeId>,
}

/// Long values, by the trees that they are in and their numbers.
type LongValues = HashMap<(TreeId, u64), Vec<u8>>;

/// Where the chunks of long values that go begin in a transaction.
type OldLongValues = HashMap<(TreeId, u64), ChangePlace>;

/// The values of a row; `None` for those that are not known.
type RowValues = Vec<Option<Value>>;

/// What a transaction is about.
#[derive(Default)]
struct Found {
    /// Tables whose rows it has changed.
    tables: BTreeSet<TreeId>,
    /// It is a statement, and no rows, unless it [makes a table](StatementKind::TableWithRows) for them.
    statement: Option<LoggedStatement>,
}

impl KnownTable {
    /// The values of a row that followers see; `None`: a long one that is not known.
    fn values(
        &self,
        row: &[u8],
        long: impl FnMut(u64) -> Result<Option<Vec<u8>>, TableError>,
    ) -> Result<RowValues> {
        let mut values = self.followed.values(row, long)?;
        let shown = self.columns.iter();
        Ok(shown.map(|column| values[*column].take()).collect())
    }
}

/// How transactions are projected.
#[derive(Clone, Copy)]
pub(super) struct ProjectionOptions {
    pub(super) server_id: u32,
    /// The time of events, in seconds since 1970; `None`: that of the commit.
    pub(super) time: Option<u32>,
    pub(super) image: RowImage,
}

impl Projection {
    /// The log describes a table.
    ///
    /// # Errors
    /// The description cannot be read.
    pub(super) fn learn(&mut self, remark: Vec<u8>) -> Result<()> {
        let followed = FollowedTable::read(&remark)?;
        let definition = &followed.definition;
        let columns = definition.columns.iter().enumerate();
        let columns = columns.filter(|(_, column)| !column.hidden);
        let columns: Vec<usize> = columns.map(|(position, _)| position).collect();
        let logged = logged_table(definition, &columns)?;
        let tree = definition.primary.tree;
        if let Some(long) = definition.overflow {
            self.of_long_values.insert(long, tree);
        }
        let known = KnownTable {
            logged,
            columns,
            followed,
            remark,
            gone_at: None,
        };
        self.tables.insert(tree, known);
        Ok(())
    }

    /// What the log has said, to be [learnt](Self::learn) again.
    pub(super) fn remarks(&self) -> impl Iterator<Item = &[u8]> {
        self.tables.values().map(|table| table.remark.as_slice())
    }

    /// Forgets tables that are gone and that nothing from `needed` on in the log is about. The log may not be read to
    /// its end, so a table is kept until what was logged before it was seen to be gone is read. `is_there` knows trees
    /// that are there, and what has committed later than `newest` was logged after it was asked.
    pub(super) fn forget(&mut self, needed: Lsn, newest: Lsn, is_there: impl Fn(TreeId) -> bool) {
        self.tables.retain(|tree, table| {
            if is_there(*tree) {
                table.gone_at = None;
                return true;
            }
            *table.gone_at.get_or_insert(newest) >= needed
        });
        let tables = &self.tables;
        self.of_long_values
            .retain(|_, tree| tables.contains_key(tree));
    }

    /// Writes a transaction to a file: `gtid`, and its events.
    ///
    /// The first event says how long all are. The events of a large transaction are made twice: to be measured, and to
    /// be written. So they are never in memory together.
    ///
    /// # Errors
    /// The log does not say what a row is, or a value does not fit its column; those of the file.
    pub(super) fn write(
        &mut self,
        transaction: &FollowedTransaction,
        options: ProjectionOptions,
        gtid: GtidLog,
        file: &mut BinlogFile<File>,
    ) -> Result<()> {
        let header = header_of(transaction, options);
        let xid = Xid(transaction.number);
        let (mut rows, mut length) = (Transaction::new(), EventsLength::default());
        let is_large = transaction.is_large();
        let found = match is_large {
            true => self.put_rows(transaction, options, &mut length)?,
            false => self.put_rows(transaction, options, &mut rows)?,
        };
        let tables = found.tables.iter().filter_map(|tree| self.tables.get(tree));
        let begin = begin_of(tables.map(|table| &table.followed.definition));
        let mut first: Vec<(EventHeader, Query)> = vec![(header, begin)];
        let mut gtid = gtid;
        if let Some(statement) = &found.statement {
            let began = EventHeader::new(seconds(statement.time_us), options.server_id);
            let query = query_of(statement, transaction);
            gtid = gtid.with_statements();
            if statement.kind != StatementKind::TableWithRows {
                let mut events = Transaction::new();
                events.push(&began, &query);
                return file.append(&began, gtid, events).map_err(unwritten);
            }
            first.push((began, query));
        }
        if !is_large {
            let mut events = Transaction::new();
            for (header, event) in &first {
                events.push(header, event);
            }
            events.append(rows);
            events.push(&header, &xid);
            return file.append(&header, gtid, events).map_err(unwritten);
        }
        for (header, event) in &first {
            length.push(header, event).map_err(unwritten)?;
        }
        length.push(&header, &xid).map_err(unwritten)?;
        let begun = file.begin(&header, gtid, length.bytes());
        begun.map_err(unwritten)?;
        for (header, event) in &first {
            file.write(header, event).map_err(unwritten)?;
        }
        self.put_rows(transaction, options, file)?;
        file.write(&header, &xid).map_err(unwritten)
    }

    /// Puts the events of a transaction's rows into `sink`.
    fn put_rows(
        &self,
        transaction: &FollowedTransaction,
        options: ProjectionOptions,
        sink: &mut dyn EventSink,
    ) -> Result<Found> {
        let old = self.old_long_values(transaction)?;
        let mut new = LongValues::new();
        let mut rows = Rows::new((header_of(transaction, options), options.image), sink);
        let mut found = Found::default();
        transaction.for_each(|change| {
            let (tree, before, after) = match change {
                FollowedChange::Annotation(MOVED_ROW) => return rows.expect_move(),
                FollowedChange::Annotation(bytes) if Origin::is_one(bytes) => return Ok(()),
                FollowedChange::Annotation(bytes) => {
                    let read = LoggedStatement::read(bytes);
                    found.statement = Some(read.ok_or_else(unreadable)?);
                    return Ok(());
                }
                FollowedChange::Insert { tree, key, value } => {
                    if let Some(number) = self.long_value(tree, key) {
                        new.entry((tree, number)).or_default().extend(value);
                        return Ok(());
                    }
                    (tree, None, Some(value))
                }
                FollowedChange::Update {
                    tree,
                    before,
                    after,
                    ..
                } => (tree, Some(before), Some(after)),
                FollowedChange::Delete { tree, key, before } => {
                    if self.long_value(tree, key).is_some() {
                        return Ok(());
                    }
                    (tree, Some(before), None)
                }
            };
            let table = self.tables.get(&tree).ok_or_else(unreadable)?;
            let long_tree = table.followed.definition.overflow.unwrap_or(tree);
            let old_value = |number: u64| {
                let place = old.get(&(long_tree, number));
                let value =
                    place.map(|place| self.old_long_value(transaction, *place, long_tree, number));
                value.transpose()
            };
            let before = before.map(|row| table.values(row, old_value)).transpose()?;
            // One row has it, and comes behind it.
            let after = after
                .map(|row| table.values(row, |number| Ok(new.remove(&(long_tree, number)))))
                .transpose()?;
            found.tables.insert(tree);
            rows.add((tree, &table.logged), before, after)
        })?;
        rows.end_run()?;
        Ok(found)
    }

    /// The number of the long value of which an entry of a tree is a part, if it is one.
    fn long_value(&self, tree: TreeId, key: &[u8]) -> Option<u64> {
        let is_long = self.of_long_values.contains_key(&tree);
        is_long.then(|| long_value_of_chunk(key)).flatten()
    }

    /// The long values that the transaction takes away.
    fn old_long_values(&self, transaction: &FollowedTransaction) -> Result<OldLongValues> {
        let mut old = OldLongValues::new();
        if self.of_long_values.is_empty() {
            return Ok(old);
        }
        transaction.for_each_from(ChangePlace::FIRST, |place, change| {
            if let FollowedChange::Delete { tree, key, .. } = change
                && let Some(number) = self.long_value(tree, key)
            {
                old.entry((tree, number)).or_insert(place);
            }
            Ok::<_, SqlError>(ControlFlow::Continue(()))
        })?;
        Ok(old)
    }

    /// One of them, whose chunks begin at a place.
    fn old_long_value(
        &self,
        transaction: &FollowedTransaction,
        place: ChangePlace,
        long_tree: TreeId,
        wanted: u64,
    ) -> Result<Vec<u8>, TableError> {
        let mut value = Vec::new();
        transaction.for_each_from(place, |_, change| match change {
            FollowedChange::Delete { tree, key, before }
                if tree == long_tree && self.long_value(tree, key) == Some(wanted) =>
            {
                value.extend_from_slice(before);
                Ok::<_, TableError>(ControlFlow::Continue(()))
            }
            _ => Ok(ControlFlow::Break(())),
        })?;
        Ok(value)
    }
}

/// Rows on their way into events.
struct Rows<'t, 's> {
    header: EventHeader,
    sink: &'s mut dyn EventSink,
    image: RowImage,
    /// Rows of one table that were changed in the same way.
    run: Option<Run<'t>>,
    moved: Move<'t>,
}

/// What is known of a row that moves.
enum Move<'t> {
    None,
    /// The row that is deleted next does.
    Expected,
    /// It was deleted, and the row that is inserted next is in its place.
    Begun((TreeId, &'t LoggedTable), RowValues),
}

struct Run<'t> {
    shape: RunShape,
    /// Bytes of its events that are full.
    bytes: usize,
    event: RowsEvent<'t>,
    /// What rows without a key have become, as hashes.
    made: HashSet<u64>,
}

/// What the rows of an event have in common.
#[derive(PartialEq, Eq)]
struct RunShape {
    tree: TreeId,
    before: Option<ColumnSet>,
    after: Option<ColumnSet>,
}

impl<'t, 's> Rows<'t, 's> {
    fn new((header, image): (EventHeader, RowImage), sink: &'s mut dyn EventSink) -> Rows<'t, 's> {
        Rows {
            header,
            sink,
            image,
            run: None,
            moved: Move::None,
        }
    }

    /// The log says that the next row that is deleted moves.
    fn expect_move(&mut self) -> Result<()> {
        self.end_move()?;
        self.moved = Move::Expected;
        Ok(())
    }

    /// A row that was deleted was not inserted again.
    fn end_move(&mut self) -> Result<()> {
        match std::mem::replace(&mut self.moved, Move::None) {
            Move::Begun(table, before) => self.push(table, Some(before), None),
            Move::None | Move::Expected => Ok(()),
        }
    }

    /// A row as the log has it.
    fn add(
        &mut self,
        table: (TreeId, &'t LoggedTable),
        before: Option<RowValues>,
        after: Option<RowValues>,
    ) -> Result<()> {
        match (
            std::mem::replace(&mut self.moved, Move::None),
            before,
            after,
        ) {
            (Move::Expected, Some(before), None) => {
                self.moved = Move::Begun(table, before);
                Ok(())
            }
            (Move::Begun(of, moved), None, after) if of.0 == table.0 => {
                self.push(table, Some(moved), after)
            }
            (Move::Begun(of, moved), before, after) => {
                self.push(of, Some(moved), None)?;
                self.push(table, before, after)
            }
            (_, before, after) => self.push(table, before, after),
        }
    }

    fn put(&mut self, event: &dyn Event) -> Result<()> {
        self.sink.push(&self.header, event).map_err(unwritten)
    }

    /// A row, whose values are `None` where they are not known.
    fn push(
        &mut self,
        (tree, table): (TreeId, &'t LoggedTable),
        before: Option<RowValues>,
        after: Option<RowValues>,
    ) -> Result<()> {
        let image = self.image;
        let assigned = assigned_columns(table.width(), before.as_deref(), after.as_deref());
        // REPLACE by the same row, or a change of what followers do not see.
        if before.is_some() && after.is_some() && assigned.iter().next().is_none() {
            return Ok(());
        }
        let set_before = before
            .as_deref()
            .map(|row| known_of(&table.columns_before(image), row));
        let set_after = after
            .as_deref()
            .map(|row| known_of(&table.columns_after(image, &assigned), row));
        let shape = RunShape {
            tree,
            before: set_before,
            after: set_after,
        };
        // Followers find rows without a key by all of their values, and those of an event before they change one. So
        // a row that changes again begins an event.
        let of_keyless = |row: &Option<RowValues>| match table.has_key() {
            true => None,
            false => row.as_ref().map(hash_of),
        };
        let changes_again =
            |run: &Run<'_>| of_keyless(&before).is_some_and(|before| run.made.contains(&before));
        let run = self.run.as_ref();
        if run.is_none_or(|run| run.shape != shape || changes_again(run)) {
            self.write_run()?;
            self.put(&TableMap::new(tree.0, table))?;
            let event = match (shape.before.clone(), shape.after.clone()) {
                (Some(before), Some(after)) => RowsEvent::update(tree.0, table, before, after),
                (None, Some(after)) => RowsEvent::insert(tree.0, table, after),
                (before, None) => {
                    let before = before.unwrap_or_else(|| table.all_columns());
                    RowsEvent::delete(tree.0, table, before)
                }
            };
            let event = event
                .without_foreign_key_checks()
                .with_foreign_keys_logged();
            self.run = Some(Run {
                shape,
                bytes: 0,
                event,
                made: HashSet::new(),
            });
        }
        let Some(run) = &mut self.run else {
            return Ok(());
        };
        if before.is_some() {
            run.made.extend(of_keyless(&after));
        }
        let full = match (row_of(before), row_of(after)) {
            (Some(before), Some(after)) => run.event.push_update(&before, &after),
            (None, Some(after)) => run.event.push_insert(&after),
            (before, None) => run.event.push_delete(&before.unwrap_or_default()),
        };
        let full = full.map_err(|error| SqlError::new(error.code(), error.to_string()))?;
        let Some(full) = full else {
            return Ok(());
        };
        run.bytes += full.body_bytes();
        let is_long = run.bytes >= MAX_RUN_BYTES;
        self.put(&full)?;
        match is_long {
            true => self.write_run(),
            false => Ok(()),
        }
    }

    fn end_run(&mut self) -> Result<()> {
        self.end_move()?;
        self.write_run()
    }

    fn write_run(&mut self) -> Result<()> {
        match self.run.take() {
            Some(run) => self.put(&run.event.ending_statement()),
            None => Ok(()),
        }
    }
}

fn hash_of(row: &RowValues) -> u64 {
    struct Hashed(DefaultHasher);
    impl fmt::Write for Hashed {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            self.0.write(text.as_bytes());
            Ok(())
        }
    }
    let mut hashed = Hashed(DefaultHasher::new());
    // Nothing that it writes to fails.
    let _ = write!(hashed, "{row:?}");
    hashed.0.finish()
}

/// The values of a row; NULL for those that are not known, which no image has.
fn row_of(row: Option<RowValues>) -> Option<Vec<Value>> {
    let known = |value: Option<Value>| value.unwrap_or(Value::Null);
    row.map(|row| row.into_iter().map(known).collect())
}

/// The columns of a set whose values are known.
fn known_of(set: &ColumnSet, row: &[Option<Value>]) -> ColumnSet {
    if row.iter().all(Option::is_some) {
        return set.clone();
    }
    let known = set.iter().filter(|column| row[*column].is_some());
    known.fold(ColumnSet::none(set.width()), ColumnSet::with)
}

/// The columns that an update has changed, or all columns.
fn assigned_columns(
    width: usize,
    before: Option<&[Option<Value>]>,
    after: Option<&[Option<Value>]>,
) -> ColumnSet {
    match (before, after) {
        (Some(before), Some(after)) => {
            let changed = (0..width).filter(|column| before[*column] != after[*column]);
            changed.fold(ColumnSet::none(width), ColumnSet::with)
        }
        _ => ColumnSet::all(width),
    }
}

fn header_of(transaction: &FollowedTransaction, options: ProjectionOptions) -> EventHeader {
    let committed = || seconds(transaction.time_us);
    EventHeader::new(options.time.unwrap_or_else(committed), options.server_id)
}

pub(super) fn seconds(time_us: u64) -> u32 {
    u32::try_from(time_us / 1_000_000).unwrap_or(u32::MAX)
}

fn query_of(statement: &LoggedStatement, transaction: &FollowedTransaction) -> Query {
    let context = statement.context(transaction.number);
    let text = match statement.kind {
        StatementKind::Other => Cow::Borrowed(statement.text.as_str()),
        StatementKind::Database | StatementKind::Table => in_own_character_sets(&statement.text),
        StatementKind::TableWithRows => {
            let definition = in_own_character_sets(&statement.text);
            Cow::Owned(format!("{definition}{WITH_ROWS}"))
        }
    };
    let query = Query::new(&statement.database, &text, context);
    match statement.kind {
        StatementKind::Database => query.without_use(),
        StatementKind::Table | StatementKind::Other | StatementKind::TableWithRows => query,
    }
}

/// BEGIN names the databases of the tables, unless foreign keys bind them to others.
fn begin_of<'d>(tables: impl Iterator<Item = &'d TableDefinition>) -> Query {
    let (mut databases, mut is_bound) = (Vec::new(), false);
    let mut first = String::new();
    for table in tables {
        is_bound |= !table.foreign_keys.is_empty();
        if first.is_empty() {
            first.clone_from(&table.database);
        }
        if !databases.contains(&table.database) {
            databases.push(table.database.clone());
        }
    }
    Query::begin(&first).with_context(QueryContext {
        updated_databases: (!is_bound).then_some(databases),
        ..QueryContext::default()
    })
}

/// A table as followers see it.
fn logged_table(definition: &TableDefinition, columns: &[usize]) -> Result<LoggedTable> {
    let logged = |position: &usize| {
        let column = &definition.columns[*position];
        let logged = LoggedColumn::new(&column.name, column.ty.clone(), column.nullable);
        match column.invisible {
            true => logged.invisible(),
            false => logged,
        }
    };
    let place = |column: usize| columns.iter().position(|shown| *shown == column);
    let parts = match definition.has_hidden_row_id() {
        true => &[],
        false => definition.primary.parts.as_slice(),
    };
    let key = parts.iter().filter_map(|part| {
        let column = place(part.column)?;
        Some(match part.prefix_length {
            Some(length) => KeyColumn::prefix(column, length),
            None => KeyColumn::whole(column),
        })
    });
    let key: Vec<KeyColumn> = key.collect();
    let columns = columns.iter().map(logged).collect();
    LoggedTable::new(&definition.database, &definition.name, columns, &key)
        .map_err(|error| SqlError::new(error.code(), error.to_string()))
}

fn unwritten(error: io::Error) -> SqlError {
    failed("events", &error)
}

fn unreadable() -> SqlError {
    SqlError::unknown("the log does not say what a change is about")
}
