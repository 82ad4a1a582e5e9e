//! The workload on tables: connections with a transaction each, whose statements change rows and with them several
//! trees; tables, indexes and columns that come and go; bulk loads.
//!
//! The connections take turns. A statement that meets a row which another connection has changed does not wait. It
//! fails and is rolled back to the savepoint before it, as one that fails for any other reason. DDL does not wait for
//! transactions that hold the table either.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use sheaf_storage::Random;
use sheaf_storage::{
    Direction, KeyRange, LockMode, LockWait, ReadAhead, Storage, StorageError, Transaction,
};
use sheaf_table::{
    AlterOptions, Alteration, BulkLoad, BulkLoadOptions, Catalog, Column, ColumnPlace, CreateTable,
    DefaultValue, IndexPartSpec, IndexSpec, InitialValues, NoProgress, RowWriteGuard, Table,
    TableError,
};
use sheaf_types::{ColumnType, Value, temporal::TimeZone};

use crate::machine::{Machine, Stop, Workload};
use crate::table_rows::{IDS, Row, any_row, changed_row, column};

type Rows = BTreeMap<Vec<u8>, Row>;
pub(crate) type Model = BTreeMap<String, TableModel>;

const DATABASE: &str = "torture";

/// Most tables at a time.
const MAX_TABLES: usize = 3;

/// Connections that take turns.
const CONNECTIONS: usize = 3;

/// Memory of an index build, a load and a check: so little that sorts of some thousand rows spill.
const SORT_BYTES: usize = 256 << 10;

const NO_WAIT: Duration = Duration::ZERO;

/// Most columns of a table that come and go.
const MAX_LATER_COLUMNS: usize = 4;

/// What rows have in a later number that were there before it.
const LATER_NUMBER: i64 = 7;

/// The unique one of [`INDEXES`], on `number`.
const UNIQUE: &str = "by_number";

/// A column of an index, and the length of its prefix.
type Part = (&'static str, Option<u32>);

/// Indexes that a table may have: name, parts, unique.
const INDEXES: [(&str, &[Part], bool); 3] = [
    (UNIQUE, &[("number", None)], true),
    ("by_name", &[("name", None), ("number", None)], false),
    ("by_note", &[("note", Some(8))], false),
];

/// What a table holds, and which indexes and later columns it has.
#[derive(Clone, PartialEq, Default)]
pub(crate) struct TableModel {
    indexes: BTreeSet<&'static str>,
    /// Numbers, whose names begin with `n`, and texts.
    later: Vec<String>,
    /// By encoded primary key.
    rows: Rows,
}

impl TableModel {
    /// Whether a row other than `except` keeps `row` from being there.
    fn conflicts(&self, row: &Row, except: Option<&[u8]>) -> bool {
        let is_unique = self.indexes.contains(UNIQUE);
        self.rows
            .iter()
            .filter(|(key, _)| Some(key.as_slice()) != except)
            .any(|(_, other)| {
                other[column::ID] == row[column::ID]
                    || is_unique
                        && !row[column::NUMBER].is_null()
                        && other[column::NUMBER] == row[column::NUMBER]
            })
    }

    /// A column comes, or one that was there before the statement goes. Rows that are there need not be written.
    fn change_column(&mut self, random: &mut Random, before: &TableModel) -> Alteration {
        let count = self.later.len();
        let position = random.below(count.max(1) as u64) as usize;
        let was_there = (self.later.get(position)).is_some_and(|name| before.later.contains(name));
        if was_there && (count >= MAX_LATER_COLUMNS || random.below(3) == 0) {
            for row in self.rows.values_mut() {
                row.remove(column::FIRST_LATER + position);
            }
            return Alteration::DropColumn(self.later.remove(position));
        }
        let name = format!("{}{}", ["n", "t"][random.below(2) as usize], random.next());
        let (ty, default) = match name.starts_with('n') {
            true => ("int", Value::Int(LATER_NUMBER)),
            false => ("text", Value::Null),
        };
        let mut column = column_of(&name, ty, true);
        if !default.is_null() {
            column.default = Some(DefaultValue::Value(default.clone()));
        }
        for row in self.rows.values_mut() {
            row.push(default.clone());
        }
        self.later.push(name);
        Alteration::AddColumn {
            column,
            place: ColumnPlace::Last,
        }
    }

    fn has_duplicate_numbers(&self) -> bool {
        let mut seen = BTreeSet::new();
        let numbers = self.rows.values().map(|row| row[column::NUMBER].as_i128());
        numbers.flatten().any(|number| !seen.insert(number))
    }
}

/// Tables as a DDL statement or a load leaves them; none: it drops the table.
type Definitions = Vec<(String, Option<TableModel>)>;

fn apply(model: &mut Model, definitions: &Definitions) {
    for (name, table) in definitions {
        match table {
            Some(table) => model.insert(name.clone(), table.clone()),
            None => model.remove(name),
        };
    }
}

/// A changed row's table, key, and contents before.
type Change = (String, Vec<u8>, Option<Row>);

fn take_back(changes: &[Change], model: &mut Model) {
    for (table, key, before) in changes.iter().rev() {
        let rows = &mut model.entry(table.clone()).or_default().rows;
        match before {
            Some(row) => rows.insert(key.clone(), row.clone()),
            None => rows.remove(key),
        };
    }
}

/// One connection: its transaction, the tables that it holds, and what it has changed in the model.
#[derive(Default)]
struct Connection {
    // Dropped before the guards, as a transaction ends before its tables are given back.
    transaction: Option<Transaction>,
    guards: BTreeMap<String, RowWriteGuard>,
    journal: Vec<Change>,
    /// Marks in transaction and journal.
    savepoints: Vec<(usize, usize)>,
}

impl Connection {
    fn undo(&mut self, model: &mut Model, mark: usize) {
        take_back(&self.journal[mark..], model);
        self.journal.truncate(mark);
    }

    /// The transaction has ended.
    fn end(&mut self) {
        self.savepoints.clear();
        self.guards.clear();
    }
}

/// The database, what is in it, and what may be in it.
#[derive(Default)]
pub(crate) struct Tables {
    connections: [Connection; CONNECTIONS],
    catalog: Option<Arc<Catalog>>,
    /// What was acknowledged, with the changes of live transactions.
    model: Model,
    /// The connection whose commit is under way.
    committing: Option<usize>,
    /// The DDL or load that is under way: tables as they will be when it has happened.
    pending: Option<Definitions>,
}

impl Workload for Tables {
    fn start(&mut self, storage: Arc<Storage>) -> Result<(), TableError> {
        let catalog = Catalog::open(storage)?;
        if !catalog.database_exists(DATABASE) {
            catalog.create_database(DATABASE)?;
        }
        self.catalog = Some(catalog);
        Ok(())
    }

    fn step(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        if self.model.is_empty() {
            return self.create_table(machine);
        }
        match machine.random.below(120) {
            0 | 1 => self.create_table(machine),
            2 => self.drop_tables(machine),
            3 => self.rename_tables(machine),
            4..=6 => self.load(machine),
            7..=9 => self.alter_table(machine),
            10 => self.maintain(machine, Storage::checkpoint),
            11 => self.maintain(machine, Storage::drop_cached_pages),
            12..=14 => self.maintain(machine, Storage::collect_versions_step),
            _ => {
                let connection = machine.random.below(CONNECTIONS as u64) as usize;
                self.converse(machine, connection)
            }
        }
    }

    fn stop(&mut self) {
        for connection in &mut self.connections {
            connection.transaction = None;
            connection.end();
        }
        self.catalog = None;
    }

    fn close(&mut self) {
        for connection in &mut self.connections {
            connection.transaction = None;
            connection.undo(&mut self.model, 0);
            connection.end();
        }
        let closed = self
            .catalog
            .take()
            .map(|catalog| catalog.storage().clone().close());
        assert!(matches!(closed, Some(Ok(()))), "{closed:?}");
    }

    fn verify(&mut self) {
        let found = tables_in(self.catalog());
        let committing = self.committing.take();
        let pending = self.pending.take();
        for (number, connection) in self.connections.iter_mut().enumerate() {
            if committing != Some(number) {
                connection.undo(&mut self.model, 0);
            }
        }
        if let Some(committing) = committing {
            let connection = &mut self.connections[committing];
            if found == self.model {
                connection.journal.clear();
            } else {
                connection.undo(&mut self.model, 0);
            }
        }
        // No transaction holds the table that was being changed, so one has nothing to do with the other.
        if let Some(definitions) = pending {
            let mut changed = self.model.clone();
            apply(&mut changed, &definitions);
            if found == changed {
                self.model = changed;
            }
        }
        assert!(found == self.model, "{}", difference(&self.model, &found));
        check_sound(self.catalog());
    }
}

impl Tables {
    pub(crate) fn catalog(&self) -> &Arc<Catalog> {
        self.catalog.as_ref().expect("it was started")
    }

    /// What is committed: without the changes of live transactions.
    pub(crate) fn committed(&self) -> Model {
        let mut model = self.model.clone();
        for connection in &self.connections {
            take_back(&connection.journal, &mut model);
        }
        model
    }

    fn any_table(&self, random: &mut Random) -> Option<String> {
        let number = random.below(self.model.len().max(1) as u64) as usize;
        self.model.keys().nth(number).cloned()
    }

    /// A name that no table has.
    fn new_name(&self, random: &mut Random) -> String {
        loop {
            let name = format!("t{}", random.below(1_000));
            if !self.model.contains_key(&name) {
                return name;
            }
        }
    }

    fn is_held(&self, name: &str) -> bool {
        let mut connections = self.connections.iter();
        connections.any(|connection| connection.guards.contains_key(name))
    }

    /// What background threads do. What fails is done again later.
    fn maintain(
        &mut self,
        machine: &mut Machine,
        step: impl FnOnce(&Storage) -> Result<(), StorageError>,
    ) -> Result<(), Stop> {
        match step(self.catalog().storage()).map_err(|error| machine.stop(error)) {
            Err(Stop::Dead) if machine.goes_on() => Ok(()),
            done => done,
        }
    }

    /// Runs DDL or a load on `table`, of which `after` is the outcome; `fails`: a unique index has duplicates.
    fn define(
        &mut self,
        machine: &mut Machine,
        table: &str,
        after: Definitions,
        fails: bool,
        run: impl FnOnce(&Arc<Catalog>) -> Result<(), TableError>,
    ) -> Result<(), Stop> {
        let is_held = self.is_held(table) || after.iter().any(|(changed, _)| self.is_held(changed));
        self.pending = Some(after);
        let done = run(&self.catalog().clone());
        let outcome = match done {
            Ok(()) => {
                assert!(!fails, "duplicate numbers in a unique index of {table}");
                apply(&mut self.model, self.pending.as_ref().expect("set above"));
                machine.summary.definitions += 1;
                Ok(())
            }
            Err(TableError::DuplicateKey { .. }) if fails => Ok(()),
            Err(TableError::LockWaitTimeout) if is_held => Ok(()),
            Err(error) => Err(machine.stop(error)),
        };
        if outcome != Err(Stop::Dead) {
            self.pending = None;
        }
        outcome
    }

    fn create_table(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        if self.model.len() >= MAX_TABLES {
            return Ok(());
        }
        let name = self.new_name(&mut machine.random);
        let mut table = TableModel::default();
        for (index, _, _) in INDEXES {
            if machine.random.below(2) == 0 {
                table.indexes.insert(index);
            }
        }
        let request = create_request(&name, &table.indexes);
        if !self.model.is_empty() && machine.random.below(3) == 0 {
            return self.fill(machine, &name, table, Some(request));
        }
        let after = vec![(name.clone(), Some(table))];
        self.define(machine, &name, after, false, |catalog| {
            catalog.create_table(request).map(drop)
        })?;
        if machine.random.below(2) == 0 {
            self.load_into(machine, &name)?;
        }
        Ok(())
    }

    /// Drops one or two tables in one statement.
    fn drop_tables(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let Some(name) = self.any_table(&mut machine.random) else {
            return Ok(());
        };
        let mut names = BTreeSet::from([name]);
        if machine.random.below(3) == 0 {
            names.extend(self.any_table(&mut machine.random));
        }
        let after = names.iter().map(|name| (name.clone(), None)).collect();
        let named = |name: &String| (DATABASE.to_string(), name.clone());
        let dropped: Vec<_> = names.iter().map(named).collect();
        self.define(machine, "some", after, false, |catalog| {
            catalog.drop_tables(&dropped, true, NO_WAIT)
        })
    }

    /// Gives a table a new name, or lets two change places.
    fn rename_tables(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let Some(from) = self.any_table(&mut machine.random) else {
            return Ok(());
        };
        let Some(other) = self.any_table(&mut machine.random) else {
            return Ok(());
        };
        let to = self.new_name(&mut machine.random);
        let table = |name: &String| self.model.get(name).cloned();
        let (renames, after) = match from == other {
            true => (
                vec![(&from, &to)],
                vec![(from.clone(), None), (to.clone(), table(&from))],
            ),
            false => (
                vec![(&from, &to), (&other, &from), (&to, &other)],
                vec![(from.clone(), table(&other)), (other.clone(), table(&from))],
            ),
        };
        let named = |name: &String| (DATABASE.to_string(), name.clone());
        let renames = renames.into_iter();
        let renames: Vec<_> = renames.map(|(old, new)| (named(old), named(new))).collect();
        self.define(machine, &from, after, false, |catalog| {
            catalog.rename_tables(&renames, NO_WAIT)
        })
    }

    /// Makes, drops and replaces indexes, adds and drops columns, and may copy the rows and rename the table, in one
    /// statement.
    fn alter_table(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let Some(from) = self.any_table(&mut machine.random) else {
            return Ok(());
        };
        let mut table = self.model[&from].clone();
        let mut changes = Vec::new();
        let mut fails = false;
        for (number, (index, _, is_unique)) in INDEXES.into_iter().enumerate() {
            let choice = machine.random.below(4);
            if choice > 1 {
                continue;
            }
            let was_there = table.indexes.remove(index);
            if was_there {
                changes.push(Alteration::DropIndex(index.to_string()));
            }
            if !was_there || choice == 1 {
                changes.push(Alteration::AddIndex(index_spec(number)));
                table.indexes.insert(index);
                fails |= is_unique && table.has_duplicate_numbers();
            }
        }
        if machine.random.below(3) == 0 {
            // Mostly alone: what builds an index writes the rows as well.
            if machine.random.below(4) > 0 {
                changes.clear();
                table = self.model[&from].clone();
                fails = false;
            }
            let times = 1 + machine.random.below(2);
            let before = &self.model[&from];
            for _ in 0..times {
                changes.push(table.change_column(&mut machine.random, before));
            }
            if machine.random.below(4) > 0 {
                changes.push(Alteration::Instantly(InitialValues {
                    now_micros: 0,
                    time_zone: TimeZone::UTC,
                    zero_date: true,
                }));
            }
        }
        if machine.random.below(4) == 0 {
            changes.push(Alteration::Rebuild);
        }
        let mut after = Vec::new();
        let mut name = from.clone();
        if machine.random.below(4) == 0 {
            name = self.new_name(&mut machine.random);
            changes.push(Alteration::RenameTo {
                database: DATABASE.to_string(),
                table: name.clone(),
            });
            after.push((from.clone(), None));
        }
        after.push((name, Some(table)));
        let beside_writers = machine.random.below(2) == 0;
        self.define(machine, &from, after, fails, |catalog| {
            let table = (DATABASE, from.as_str());
            let options = AlterOptions {
                memory_bytes: SORT_BYTES,
                beside_writers,
                ..AlterOptions::default()
            };
            let altered = catalog.alter_table(table, &changes, &options, &NoProgress, NO_WAIT);
            altered.map(drop)
        })
    }

    /// Loads an empty table, if there is one.
    fn load(&mut self, machine: &mut Machine) -> Result<(), Stop> {
        let empty = self.model.iter().find(|(_, table)| table.rows.is_empty());
        match empty.map(|(name, _)| name.clone()) {
            Some(name) => self.load_into(machine, &name),
            None => Ok(()),
        }
    }

    fn load_into(&mut self, machine: &mut Machine, name: &str) -> Result<(), Stop> {
        self.fill(machine, name, self.model[name].clone(), None)
    }

    /// Loads a table, which a `request` makes together with its rows.
    fn fill(
        &mut self,
        machine: &mut Machine,
        name: &str,
        mut table: TableModel,
        request: Option<CreateTable>,
    ) -> Result<(), Stop> {
        let random = &mut machine.random;
        let count = (random.below(2) * 1_500 + random.below(200)) as i64;
        let mut rows: Vec<Row> = (0..count)
            .map(|id| any_row(random, Value::Int(id * 2), &table.later))
            .collect();
        // Rows out of order are sorted first.
        if count > 1 && random.below(2) == 0 {
            rows.swap(0, random.below(count as u64) as usize);
        }
        let is_given_up = random.below(6) == 0;
        // All tables have the same primary key.
        let mut names = self.model.keys();
        let other = names
            .next()
            .map(|name| self.catalog().table(DATABASE, name));
        let Some(Ok(other)) = other else {
            panic!("there is no table");
        };
        for row in &rows {
            table
                .rows
                .insert(other.encode_primary_key(row), row.clone());
        }
        let fails = table.indexes.contains(UNIQUE) && table.has_duplicate_numbers();
        let after = match is_given_up {
            true => Vec::new(),
            false => vec![(name.to_string(), Some(table))],
        };
        self.define(machine, name, after, fails && !is_given_up, |catalog| {
            let options = BulkLoadOptions {
                memory_bytes: SORT_BYTES,
                threads: 1,
            };
            let progress = Arc::new(NoProgress);
            let mut load = match request {
                Some(request) => {
                    BulkLoad::of_new_table(catalog, request, TimeZone::UTC, options, progress)?
                }
                None => {
                    let guard = catalog.open_for_write(DATABASE, name, NO_WAIT)?;
                    BulkLoad::new(catalog, guard, options, progress)?
                }
            };
            for row in &rows {
                load.append(row)?;
            }
            if is_given_up {
                return Ok(());
            }
            load.finish(NO_WAIT).map(drop)
        })
    }

    /// The next thing that a client sends.
    fn converse(&mut self, machine: &mut Machine, number: usize) -> Result<(), Stop> {
        let storage = self.catalog().storage().clone();
        let connection = &mut self.connections[number];
        let transaction = connection.transaction.get_or_insert_with(|| {
            let mut transaction = storage.begin_transaction();
            transaction.set_lock_wait(LockWait::No);
            transaction
        });
        match machine.random.below(16) {
            0 | 1 => self.commit(machine, number),
            2 => self.roll_back(machine, number),
            3 => {
                let marks = (transaction.savepoint(), connection.journal.len());
                connection.savepoints.push(marks);
                Ok(())
            }
            4 => {
                let count = connection.savepoints.len() as u64;
                if count > 0 {
                    let kept = machine.random.below(count) as usize;
                    let marks = connection.savepoints[kept];
                    connection.savepoints.truncate(kept + 1);
                    self.roll_back_to(machine, number, marks)?;
                }
                Ok(())
            }
            _ => self.statement(machine, number),
        }
    }

    fn commit(&mut self, machine: &mut Machine, number: usize) -> Result<(), Stop> {
        let connection = &mut self.connections[number];
        let Some(transaction) = connection.transaction.take() else {
            return Ok(());
        };
        self.committing = Some(number);
        let committed = transaction.commit();
        committed.map_err(|error| machine.must_be_dead(error))?;
        self.committing = None;
        connection.journal.clear();
        connection.end();
        machine.summary.commits += 1;
        Ok(())
    }

    fn roll_back(&mut self, machine: &mut Machine, number: usize) -> Result<(), Stop> {
        let connection = &mut self.connections[number];
        let Some(transaction) = connection.transaction.take() else {
            return Ok(());
        };
        let rolled_back = transaction.rollback();
        rolled_back.map_err(|error| machine.must_be_dead(error))?;
        connection.undo(&mut self.model, 0);
        connection.end();
        machine.summary.rollbacks += 1;
        Ok(())
    }

    fn roll_back_to(
        &mut self,
        machine: &mut Machine,
        number: usize,
        (mark, journal_mark): (usize, usize),
    ) -> Result<(), Stop> {
        let connection = &mut self.connections[number];
        if let Some(transaction) = &mut connection.transaction {
            let rolled_back = transaction.rollback_to(mark);
            rolled_back.map_err(|error| machine.must_be_dead(error))?;
            connection.undo(&mut self.model, journal_mark);
        }
        Ok(())
    }

    /// Changes some rows of a table, all or none.
    fn statement(&mut self, machine: &mut Machine, number: usize) -> Result<(), Stop> {
        let Some(name) = self.any_table(&mut machine.random) else {
            return Ok(());
        };
        let rows = match machine.random.below(12) {
            0 => machine.random.below(150),
            _ => 1 + machine.random.below(4),
        };
        let catalog = self.catalog().clone();
        let connection = &mut self.connections[number];
        let Some(transaction) = &mut connection.transaction else {
            return Ok(());
        };
        let marks = (transaction.savepoint(), connection.journal.len());
        let held = connection.guards.remove(&name);
        let opened = held.map_or_else(|| catalog.open_for_row_writes(DATABASE, &name, NO_WAIT), Ok);
        let guard = opened.map_err(|error| machine.stop(error))?;
        let mut changes = RowChanges {
            name: &name,
            table: &guard,
            transaction,
            model: self.model.entry(name.clone()).or_default(),
            journal: &mut connection.journal,
        };
        let result = (0..rows).try_for_each(|_| changes.change(&mut machine.random));
        connection.guards.insert(name, guard);
        let stop = match result {
            Ok(()) => return Ok(()),
            // The statement has met a row that is there already, or one that another connection has changed.
            Err(
                TableError::DuplicateKey { .. }
                | TableError::Storage(StorageError::LockNotAvailable),
            ) => Ok(()),
            Err(error) => Err(machine.stop(error)),
        };
        if stop != Err(Stop::Dead) {
            self.roll_back_to(machine, number, marks)?;
        }
        stop
    }
}

/// All is there that is in the model, nothing else is, and everything is sound.
pub(crate) fn check_is(catalog: &Arc<Catalog>, model: &Model, what: &str) {
    let found = tables_in(catalog);
    assert!(found == *model, "{what}: {}", difference(model, &found));
    check_sound(catalog);
}

fn check_sound(catalog: &Arc<Catalog>) {
    let report = sheaf_table::check::check(catalog, SORT_BYTES, &NoProgress)
        .expect("what was recovered can be read");
    assert_eq!(report.found, 0, "{:?}", report.findings);
}

/// All tables, as the catalog and their rows say.
fn tables_in(catalog: &Arc<Catalog>) -> Model {
    let tables = catalog.tables(DATABASE);
    let tables = tables.expect("the database is there").into_iter();
    tables
        .map(|table| {
            let indexes = table.definition.secondary.iter().map(|index| {
                let known = INDEXES.iter().find(|(name, _, _)| *name == index.name);
                known.expect("an index that was asked for").0
            });
            let columns = table.definition.columns.iter();
            let later = columns.skip(column::FIRST_LATER);
            let found = TableModel {
                indexes: indexes.collect(),
                later: later.map(|column| column.name.clone()).collect(),
                rows: rows_of(&table),
            };
            (table.definition.name.clone(), found)
        })
        .collect()
}

/// The changes that a statement makes in a table and in its model.
struct RowChanges<'c> {
    name: &'c str,
    table: &'c Table,
    transaction: &'c mut Transaction,
    model: &'c mut TableModel,
    journal: &'c mut Vec<Change>,
}

impl RowChanges<'_> {
    fn change(&mut self, random: &mut Random) -> Result<(), TableError> {
        let id = Value::Int(random.below(IDS) as i64);
        match random.below(5) {
            0 | 1 => {
                let row = any_row(random, id, &self.model.later);
                self.insert(&row)
            }
            kind => {
                let row = any_row(random, id, &self.model.later);
                let mut key = self.table.encode_primary_key(&row);
                if let Some((next, _)) = self.model.rows.range(key.clone()..).next() {
                    key = next.clone();
                }
                self.change_row(random, &key, kind == 4)
            }
        }
    }

    fn insert(&mut self, row: &Row) -> Result<(), TableError> {
        let inserted = self.table.insert(self.transaction, row);
        self.expect_conflict(inserted.as_ref().err(), row, None);
        inserted?;
        self.note(self.table.encode_primary_key(row), Some(row.clone()));
        Ok(())
    }

    fn change_row(
        &mut self,
        random: &mut Random,
        key: &[u8],
        is_delete: bool,
    ) -> Result<(), TableError> {
        let old = self
            .table
            .lock_row(self.transaction, key, LockMode::Exclusive, LockWait::No)?;
        assert!(
            old.as_ref() == self.model.rows.get(key),
            "a locked row is not what was written there"
        );
        let Some(old) = old else {
            return Ok(());
        };
        if is_delete {
            assert!(self.table.delete(self.transaction, key)?);
            self.note(key.to_vec(), None);
            return Ok(());
        }
        let new = changed_row(random, &old, &self.model.later);
        let replaced = self.table.replace(self.transaction, key, &old, &new);
        self.expect_conflict(replaced.as_ref().err(), &new, Some(key));
        replaced?;
        let new_key = self.table.encode_primary_key(&new);
        if new_key != key {
            self.note(key.to_vec(), None);
        }
        self.note(new_key, Some(new));
        Ok(())
    }

    /// A row is refused as a duplicate only if there is one, and goes in only if there is none.
    fn expect_conflict(&self, error: Option<&TableError>, row: &Row, except: Option<&[u8]>) {
        let expected = match error {
            None => false,
            Some(TableError::DuplicateKey { .. }) => true,
            Some(_) => return,
        };
        assert_eq!(self.model.conflicts(row, except), expected, "{row:?}");
    }

    /// Changes a row of the model.
    fn note(&mut self, key: Vec<u8>, row: Option<Row>) {
        let before = match row {
            Some(row) => self.model.rows.insert(key.clone(), row),
            None => self.model.rows.remove(&key),
        };
        self.journal.push((self.name.to_string(), key, before));
    }
}

fn column_of(name: &str, ty: &str, nullable: bool) -> Column {
    Column::new(name, ColumnType::parse(ty).expect("a type"), nullable)
}

fn create_request(name: &str, indexes: &BTreeSet<&'static str>) -> CreateTable {
    let columns = vec![
        column_of("id", "int", false),
        column_of("number", "int", true),
        column_of("name", "varchar(80)", true),
        column_of("note", "text", true),
    ];
    let mut request = CreateTable::new(DATABASE, name, columns);
    request.primary_key = Some(vec![IndexPartSpec::column("id")]);
    request.indexes = (0..INDEXES.len())
        .filter(|&number| indexes.contains(INDEXES[number].0))
        .map(index_spec)
        .collect();
    request
}

fn index_spec(number: usize) -> IndexSpec {
    let (name, parts, unique) = INDEXES[number];
    let part = |&(column, prefix_length): &Part| IndexPartSpec {
        prefix_length,
        ..IndexPartSpec::column(column)
    };
    IndexSpec {
        name: Some(name.into()),
        parts: parts.iter().map(part).collect(),
        unique,
        comment: String::new(),
        invisible: false,
    }
}

fn rows_of(table: &Table) -> Rows {
    let mut rows = Rows::new();
    let mut cursor = table
        .clustered
        .scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
    while let Some(leaf) = cursor.next_leaf().expect("a sound tree can be read") {
        for entry in 0..leaf.len() {
            let mut key = Vec::new();
            leaf.key_into(entry, &mut key);
            let row = table
                .view(leaf.value(entry))
                .and_then(|row| table.decode_row(&row));
            rows.insert(key, row.expect("a row of this table"));
        }
    }
    rows
}

/// The first thing in which the models differ.
fn difference(expected: &Model, found: &Model) -> String {
    for (name, table) in expected {
        let Some(other) = found.get(name) else {
            return format!("table {name} is gone");
        };
        if table.later != other.later {
            return format!(
                "table {name} has the columns {:?} instead of {:?}",
                other.later, table.later
            );
        }
        if table.indexes != other.indexes {
            return format!(
                "table {name} has the indexes {:?} instead of {:?}",
                other.indexes, table.indexes
            );
        }
        let keys: BTreeSet<_> = table.rows.keys().chain(other.rows.keys()).collect();
        for key in keys {
            let rows = (table.rows.get(key), other.rows.get(key));
            if rows.0 != rows.1 {
                return format!(
                    "table {name}: {:?} expected, found {:?}",
                    rows.0.map(short),
                    rows.1.map(short)
                );
            }
        }
    }
    format!("tables {:?} should not be there", found.keys())
}

/// A row without its long values.
fn short(row: &Row) -> &[Value] {
    &row[..column::FIRST_LATER - 1]
}
