//! Connections that change rows of a table `t` in turn, with a model of what they do: inserts, updates of all columns,
//! deletes, savepoints, rollbacks. None of them waits.
//!
//! As a [`Progress`] they go on while something else is done to the table.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use sheaf_storage::{LockMode, LockWait, Random, Storage, StorageError, Transaction};
use sheaf_table::{
    Catalog, CreateTable, IndexSpec, NoProgress, Progress, RowWriteGuard, Table, TableError, check,
};
use sheaf_types::Value;

use crate::fixture::{NO_WAIT, column, index, parts, rows, text};

pub type Row = Vec<Value>;
pub type Rows = BTreeMap<Vec<u8>, Row>;

/// Primary keys are below this.
const IDS: u64 = 400;
const CONNECTIONS: usize = 4;
/// After so many signs that somebody waits they all end, until they are told to work.
const PATIENCE: u64 = 3;

/// `t (id INT PRIMARY KEY, number INT, name VARCHAR(80), note TEXT, KEY old (name))`
pub fn table() -> CreateTable {
    let columns = vec![
        column("id", "int", false),
        column("number", "int", true),
        column("name", "varchar(80)", true),
        column("note", "text", true),
    ];
    let mut request = CreateTable::new("d", "t", columns);
    request.primary_key = Some(parts(&["id"]));
    request.indexes = vec![index("old", &["name"], false)];
    request
}

/// Indexes that the table may get.
pub fn new_indexes() -> Vec<IndexSpec> {
    vec![
        index("by_number", &["number"], true),
        index("by_name", &["name", "number"], false),
        index("by_note", &["note(8)"], false),
    ]
}

#[derive(Default)]
struct Connection {
    // Dropped before the guard.
    transaction: Option<Transaction>,
    guard: Option<RowWriteGuard>,
    /// Keys, and the rows before.
    journal: Vec<(Vec<u8>, Option<Row>)>,
    /// Marks in transaction and journal.
    savepoints: Vec<(usize, usize)>,
}

struct State {
    catalog: Arc<Catalog>,
    random: Random,
    connections: [Connection; CONNECTIONS],
    /// With the changes of open transactions.
    rows: Rows,
    /// The rows as they will be if the commit is durable that has failed.
    in_doubt: Option<Rows>,
    /// Numbers of new rows are below this.
    numbers: u64,
    /// Some committed state had a number twice.
    had_duplicates: bool,
    /// Nothing works any more.
    is_dead: bool,
    /// Steps at each sign of progress.
    steps: u64,
    is_cancelled: bool,
    /// How often they were asked since they were last told to work.
    asked: u64,
    phases: Vec<String>,
}

/// See the [module](self).
pub struct Writers(Mutex<State>);

impl Writers {
    /// `numbers`: how many different numbers there are in the column that may become unique.
    pub fn new(catalog: &Arc<Catalog>, seed: u64, numbers: u64) -> Writers {
        let table = catalog.table("d", "t").unwrap();
        Writers(Mutex::new(State {
            catalog: Arc::clone(catalog),
            random: Random::new(seed),
            connections: Default::default(),
            rows: rows(&table),
            in_doubt: None,
            numbers,
            had_duplicates: false,
            is_dead: false,
            steps: 6,
            is_cancelled: false,
            asked: 0,
            phases: Vec::new(),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub fn work(&self, steps: u64) {
        let mut state = self.state();
        state.asked = 0;
        (0..steps).for_each(|_| state.step());
    }

    /// Ends all transactions, one way or the other.
    pub fn end_all(&self) {
        let mut state = self.state();
        (0..CONNECTIONS).for_each(|number| state.end(number));
    }

    pub fn cancel(&self) {
        self.state().is_cancelled = true;
    }

    pub fn had_duplicates(&self) -> bool {
        self.state().had_duplicates
    }

    pub fn is_dead(&self) -> bool {
        self.state().is_dead
    }

    pub fn phases(&self) -> Vec<String> {
        self.state().phases.clone()
    }

    /// The process has died: what may be there of rows.
    pub fn crashed(&self) -> Vec<Rows> {
        let mut state = self.state();
        let in_doubt = state.in_doubt.take();
        for connection in &mut state.connections {
            connection.transaction = None;
            connection.guard = None;
        }
        let mut rows = state.rows.clone();
        for connection in &state.connections {
            take_back(&mut rows, &connection.journal);
        }
        [Some(rows), in_doubt].into_iter().flatten().collect()
    }

    /// The rows are those of the model, every index has their entries, and there is no tree that no table has.
    pub fn verify(&self) {
        let state = self.state();
        let expected = [state.rows.clone()];
        verify(&state.catalog, &expected);
    }
}

/// The rows are those of one of the models, every index has their entries, and there is no tree that no table has.
pub fn verify(catalog: &Catalog, models: &[Rows]) {
    let table = catalog.table("d", "t").unwrap();
    let found = rows(&table);
    assert!(models.contains(&found), "the rows are others");
    let report = check::check(catalog, 1 << 20, &NoProgress).unwrap();
    assert_eq!(report.found, 0, "{:?}", report.findings);
    let definition = &table.definition;
    let trees = 2 + definition.secondary.len() + usize::from(definition.overflow.is_some());
    let found = catalog.storage().tree_ids().unwrap();
    assert_eq!(found.len(), trees, "{found:?}");
}

impl Progress for Writers {
    fn begin(&self, name: &str, _total: Option<u64>) {
        let mut state = self.state();
        state.phases.push(name.to_string());
        // It has waited for those of before.
        state.asked = 0;
        (0..state.steps).for_each(|_| state.step());
    }

    fn advance(&self, _units: u64) {
        let mut state = self.state();
        (0..state.steps).for_each(|_| state.step());
    }

    /// Asked between, and while the build waits. So from time to time a transaction ends, and after a while all do.
    fn is_cancelled(&self) -> bool {
        let mut state = self.state();
        state.asked += 1;
        if state.asked > PATIENCE {
            (0..CONNECTIONS).for_each(|number| state.end(number));
        }
        let number = state.random.below(2 * CONNECTIONS as u64) as usize;
        if number < CONNECTIONS {
            state.end(number);
        }
        state.step();
        state.is_cancelled || state.is_dead
    }
}

fn take_back(rows: &mut Rows, journal: &[(Vec<u8>, Option<Row>)]) {
    for (key, before) in journal.iter().rev() {
        match before {
            Some(row) => rows.insert(key.clone(), row.clone()),
            None => rows.remove(key),
        };
    }
}

fn has_duplicates(rows: &Rows) -> bool {
    let numbers = rows.values().filter_map(|row| row[1].as_i128());
    let mut numbers: Vec<i128> = numbers.collect();
    let count = numbers.len();
    numbers.sort_unstable();
    numbers.dedup();
    numbers.len() != count
}

impl State {
    fn step(&mut self) {
        if self.is_dead || self.asked > PATIENCE {
            return;
        }
        let number = self.random.below(CONNECTIONS as u64) as usize;
        match self.random.below(24) {
            0 | 1 => self.end(number),
            2 => {
                let connection = &mut self.connections[number];
                if let Some(transaction) = &connection.transaction {
                    let marks = (transaction.savepoint(), connection.journal.len());
                    connection.savepoints.push(marks);
                }
            }
            3 => {
                let savepoints = &mut self.connections[number].savepoints;
                if let Some(marks) = savepoints.pop() {
                    self.roll_back_to(number, marks);
                }
            }
            4 => self.maintain(Storage::collect_versions_step),
            _ => self.change(number),
        }
    }

    fn maintain(&mut self, work: impl Fn(&Storage) -> Result<(), StorageError>) {
        self.is_dead |= work(self.catalog.storage()).is_err();
    }

    /// The committed rows, those of open transactions left out.
    fn committed(&self) -> Rows {
        let mut rows = self.rows.clone();
        for connection in &self.connections {
            take_back(&mut rows, &connection.journal);
        }
        rows
    }

    fn end(&mut self, number: usize) {
        let Some(transaction) = self.connections[number].transaction.take() else {
            return;
        };
        if self.is_dead {
            return;
        }
        let journal = std::mem::take(&mut self.connections[number].journal);
        self.connections[number].savepoints.clear();
        if self.random.below(3) == 0 {
            take_back(&mut self.rows, &journal);
            self.is_dead |= transaction.rollback().is_err();
        } else {
            let after = self.committed();
            let is_done = transaction.commit().is_ok();
            self.had_duplicates |= has_duplicates(&after);
            if !is_done {
                self.is_dead = true;
                self.in_doubt = Some(after);
                take_back(&mut self.rows, &journal);
            }
        }
        self.connections[number].guard = None;
    }

    fn roll_back_to(&mut self, number: usize, (mark, journal_mark): (usize, usize)) {
        let connection = &mut self.connections[number];
        let Some(transaction) = &mut connection.transaction else {
            return;
        };
        self.is_dead |= transaction.rollback_to(mark).is_err();
        take_back(&mut self.rows, &connection.journal[journal_mark..]);
        connection.journal.truncate(journal_mark);
    }

    /// A statement, which is done as a whole or not at all.
    fn change(&mut self, number: usize) {
        let guard = match self.connections[number].guard.take() {
            Some(guard) => guard,
            None => match self.catalog.open_for_row_writes("d", "t", NO_WAIT) {
                Ok(guard) => guard,
                // The definition is about to change.
                Err(TableError::LockWaitTimeout) => return,
                Err(error) => panic!("{error}"),
            },
        };
        let transaction = self.connections[number].transaction.take();
        let mut transaction = transaction.unwrap_or_else(|| {
            let mut transaction = self.catalog.storage().begin_transaction();
            transaction.set_lock_wait(LockWait::No);
            transaction
        });
        let marks = (
            transaction.savepoint(),
            self.connections[number].journal.len(),
        );
        let mut result = Ok(());
        for _ in 0..1 + self.random.below(3) {
            result = result.and_then(|()| self.change_row(&guard, &mut transaction, number));
        }
        self.connections[number].transaction = Some(transaction);
        self.connections[number].guard = Some(guard);
        match result {
            Ok(()) => {}
            Err(
                TableError::DuplicateKey { .. }
                | TableError::Storage(StorageError::LockNotAvailable),
            ) => self.roll_back_to(number, marks),
            Err(_) => self.is_dead = true,
        }
    }

    fn change_row(
        &mut self,
        table: &Table,
        transaction: &mut Transaction,
        number: usize,
    ) -> Result<(), TableError> {
        let id = Value::Int(self.random.below(IDS) as i64);
        let new = self.any_row(id);
        let kind = self.random.below(8);
        if kind < 2 {
            table.insert(transaction, &new)?;
            self.note(number, table.encode_primary_key(&new), Some(new));
            return Ok(());
        }
        let wanted = table.encode_primary_key(&new);
        let known = self.rows.range(wanted..).next();
        let Some((key, _)) = known.map(|(key, row)| (key.clone(), row.clone())) else {
            return Ok(());
        };
        if kind == 7 {
            // In one visit of the row, if no other has locked it.
            let view = transaction.view_to_lock()?;
            let note = new[3].clone();
            if table.is_in_row_only(3)
                && table.amend(transaction, &view, &key, |_| {
                    matches!(&note, Value::Text(text) if text.len() < 300)
                        .then(|| vec![(3, note.clone())])
                })?
            {
                let mut row = self.rows[&key].clone();
                row[3] = note;
                self.note(number, key, Some(row));
            }
            return Ok(());
        }
        let old = table.lock_row(transaction, &key, LockMode::Exclusive, LockWait::No)?;
        assert!(old.as_ref() == self.rows.get(&key), "a row is another one");
        let Some(old) = old else {
            return Ok(());
        };
        if kind == 2 {
            assert!(table.delete(transaction, &key)?);
            self.note(number, key, None);
            return Ok(());
        }
        let mut row = old.clone();
        for (position, value) in new.iter().enumerate() {
            let chance = if position == 0 { 4 } else { 2 };
            if self.random.below(chance) == 0 {
                row[position] = value.clone();
            }
        }
        table.replace(transaction, &key, &old, &row)?;
        let new_key = table.encode_primary_key(&row);
        if new_key != key {
            self.note(number, key, None);
        }
        self.note(number, new_key, Some(row));
        Ok(())
    }

    fn note(&mut self, number: usize, key: Vec<u8>, row: Option<Row>) {
        let before = match row {
            Some(row) => self.rows.insert(key.clone(), row),
            None => self.rows.remove(&key),
        };
        self.connections[number].journal.push((key, before));
    }

    fn any_row(&mut self, id: Value) -> Row {
        let random = &mut self.random;
        let number = match random.below(4) {
            0 => Value::Null,
            _ => Value::Int(random.below(self.numbers) as i64),
        };
        let name = match random.below(6) {
            0 => Value::Null,
            _ => text(&format!(
                "{}{}",
                random.below(60),
                "x".repeat(random.below(40) as usize)
            )),
        };
        let letter = ((b'a' + random.below(26) as u8) as char).to_string();
        let note = match random.below(20) {
            0..=9 => Value::Null,
            10..=18 => text(&letter.repeat(random.below(300) as usize)),
            _ => text(&letter.repeat(random.below(9_000) as usize)),
        };
        vec![id, number, name, note]
    }
}
