//! The tables that one statement changes, and what foreign keys make of the changes.
//!
//! A statement opens for writing the tables it names, those they refer to, and those that refer to them as far as
//! actions reach ([`Catalog::related_tables`]). A [`ChangeSet`] holds them, and every change of a row goes through it:
//!
//! ```text
//!   insert into child   ->  the row,  then: is the parent there?                     no: error 1452
//!   update of child     ->  the row,  then the same, if its columns changed
//!   delete from parent  ->  the row,  then its children:  RESTRICT  is there one?     yes: error 1451
//!   update of parent                                      CASCADE   delete or update them, and go on below
//!                                                         SET NULL  update them
//! ```
//!
//! The row goes first, so that a row may refer to itself. Everything is checked row by row, at once, as InnoDB does. A
//! change that fails undoes what it did; what was done before stays.
//!
//! **Beside other transactions.** Each side changes its own row and then looks at the other side's, and waits for the
//! end of transactions that have made uncertain what it sees. So of two that meet, one sees the other's change. The
//! lock of the *reference*, the parent's key, keeps both from seeing each other's change and waiting for each other.
//! Children share it, the parent has it alone, each from before its change until after its look. No lock stays behind,
//! and a parent's other columns may change meanwhile.
//!
//! ```text
//!   child    lock (p) shared   insert the row   is p there?            unlock
//!   parent   lock (p) alone    delete p         is there a child?      unlock     comes before, or after: finds the
//!   other
//! ```
//!
//! What makes a change fail (the parent that is missing, the child that is there) stays as it is if the transaction
//! keeps such reasons ([`Transaction::keep_reasons`]).
//!
//! A key with a NULL refers to nothing (MATCH SIMPLE). An update that comes back to a table it is cascading through
//! acts as RESTRICT, and cascades end after [`MAX_CASCADE_DEPTH`] tables, both as in InnoDB.

use std::collections::BTreeMap;
use std::sync::Arc;

use sheaf_storage::sync::Mutex;
use sheaf_storage::sync::atomic::{AtomicU64, Ordering};
use sheaf_storage::{LockMode, ReadView, Transaction};
use sheaf_types::{Value, assignment::Mode, temporal::TimeZone};

use crate::catalog::{Catalog, QualifiedName, RowWriteGuard, WriteGuard};
use crate::codec::row_codec::RowView;
use crate::definition::convert::to_column;
use crate::definition::foreign_key::{is_comparable, leading_index, referenced_positions};
use crate::definition::schema::{ForeignKey, ReferentialAction};
use crate::error::{Result, TableError};
use crate::lock::table_lock::SessionLockMode;
use crate::table::auto_increment::{AutoIncrementSeries, Reserved};
use crate::table::reference_lookup::{Children, Lookup};
use crate::table::{InsertOutcome, Table};

/// The most tables that one change goes through.
pub const MAX_CASCADE_DEPTH: usize = 15;

/// How often the children of a row are gone through, because others were changing some of them.
const MAX_CASCADE_PASSES: usize = 1000;

/// A table of the set, as it was opened.
pub enum ChangeGuard {
    /// Beside other transactions, which lock the rows that they change.
    Beside(RowWriteGuard),
    Alone(WriteGuard),
}

impl From<RowWriteGuard> for ChangeGuard {
    fn from(guard: RowWriteGuard) -> ChangeGuard {
        ChangeGuard::Beside(guard)
    }
}

impl From<WriteGuard> for ChangeGuard {
    fn from(guard: WriteGuard) -> ChangeGuard {
        ChangeGuard::Alone(guard)
    }
}

impl ChangeGuard {
    /// The same, where the table is used under another [time zone](Table::in_time_zone). `table` is of this version.
    pub fn used_as(self, table: &Arc<Table>) -> ChangeGuard {
        match self {
            ChangeGuard::Beside(guard) => ChangeGuard::Beside(guard.used_as(table)),
            ChangeGuard::Alone(guard) => ChangeGuard::Alone(guard.used_as(table)),
        }
    }
}

impl std::ops::Deref for ChangeGuard {
    type Target = Arc<Table>;

    fn deref(&self) -> &Arc<Table> {
        match self {
            ChangeGuard::Beside(guard) => guard,
            ChangeGuard::Alone(guard) => guard,
        }
    }
}

/// A foreign key whose child is in the set.
struct Link {
    child: usize,
    /// Position among the child's foreign keys.
    foreign_key: usize,
    /// `None`: the parent is missing, or is not one that the key can refer to.
    parent: Option<Parent>,
}

struct Parent {
    table: usize,
    /// Positions of the referenced columns.
    columns: Vec<usize>,
}

/// See the module's comment.
pub struct ChangeSet {
    tables: Vec<ChangeGuard>,
    links: Vec<Link>,
    /// What AUTO_INCREMENT gives out.
    series: AutoIncrementSeries,
    /// The table that rows are inserted into, and the values that are left of those that it has given out for them.
    reserved: Mutex<(usize, Reserved)>,
    /// The value of the next row that is given one, 0: none was chosen. It is taken once.
    chosen: Option<Arc<AtomicU64>>,
    /// Whether the statement shall end, where one row may have any number of children.
    shall_end: Option<ShallEnd>,
}

/// Whether a statement shall end.
type ShallEnd = Box<dyn Fn() -> bool + Send + Sync>;

impl Catalog {
    /// The tables that must be opened to change rows of `targets`: these, those that they refer to, and those that
    /// refer to them, as far as actions reach. Sorted by name, the order in which they are to be opened. `zone`: the
    /// time zone of the targets, in which the others are seen as well.
    pub fn related_tables(&self, targets: &[Arc<Table>], zone: TimeZone) -> Vec<Arc<Table>> {
        let (changed, mut related) = self.reach(targets, zone);
        related.extend(changed);
        // A temporary table may have the name of another one.
        related.sort_by_key(|table| (name_of(table), table.definition.id));
        related.dedup_by(|a, b| Arc::ptr_eq(a, b));
        related
    }

    /// The locks that a session needs to change rows of `targets`: WRITE of those whose rows may change, READ of those
    /// that are looked at.
    pub fn locks_to_change(
        &self,
        targets: &[Arc<Table>],
    ) -> BTreeMap<QualifiedName, SessionLockMode> {
        let (changed, related) = self.reach(targets, TimeZone::UTC);
        let related = related.iter().map(|table| (table, SessionLockMode::Read));
        let changed = changed.iter().map(|table| (table, SessionLockMode::Write));
        // The later ones count.
        let locks = related.chain(changed);
        locks.map(|(table, mode)| (name_of(table), mode)).collect()
    }

    /// The tables whose rows may change with those of `targets`, these among them, and the ones that foreign keys
    /// connect with these.
    fn reach(&self, targets: &[Arc<Table>], zone: TimeZone) -> (Vec<Arc<Table>>, Vec<Arc<Table>>) {
        let mut related: Vec<Arc<Table>> = Vec::new();
        let mut changed: Vec<Arc<Table>> = targets.to_vec();
        let mut next = 0;
        while let Some(table) = changed.get(next).cloned() {
            next += 1;
            for foreign_key in &table.definition.foreign_keys {
                let parent = self.table(
                    &foreign_key.referenced_database,
                    &foreign_key.referenced_table,
                );
                related.extend(parent.map(|parent| parent.in_time_zone(zone)));
            }
            for (child, foreign_key) in self.referencing(&table) {
                let child = child.in_time_zone(zone);
                let acts = !foreign_key.on_delete.restricts() || !foreign_key.on_update.restricts();
                let known = changed.iter().any(|other| Arc::ptr_eq(other, &child));
                if acts && !known {
                    changed.push(Arc::clone(&child));
                }
                related.push(child);
            }
        }
        (changed, related)
    }
}

fn name_of(table: &Arc<Table>) -> QualifiedName {
    let definition = &table.definition;
    (definition.database.clone(), definition.name.clone())
}

impl ChangeSet {
    /// A set of opened tables. Without `check` foreign keys are not looked at (`foreign_key_checks = 0`).
    pub fn new(tables: Vec<ChangeGuard>, check: bool) -> ChangeSet {
        let mut links = Vec::new();
        if check {
            for (child, table) in tables.iter().enumerate() {
                for foreign_key in 0..table.definition.foreign_keys.len() {
                    links.push(Link {
                        child,
                        foreign_key,
                        parent: find_parent(&tables, child, foreign_key),
                    });
                }
            }
        }
        ChangeSet {
            tables,
            links,
            series: AutoIncrementSeries::default(),
            reserved: Mutex::default(),
            chosen: None,
            shall_end: None,
        }
    }

    /// Whether foreign keys are looked at.
    pub fn has_links(&self) -> bool {
        !self.links.is_empty()
    }

    /// A change ends with `Interrupted` when this is true, between two of a row's children.
    pub fn end_when(&mut self, shall_end: impl Fn() -> bool + Send + Sync + 'static) {
        self.shall_end = Some(Box::new(shall_end));
    }

    /// Chooses what AUTO_INCREMENT gives out; otherwise all values.
    pub fn give_out(&mut self, series: AutoIncrementSeries) {
        self.series = series;
    }

    /// The value that AUTO_INCREMENT gives to the next row (`insert_id`); 0 if it is as always. It becomes 0.
    pub fn choose(&mut self, value: Arc<AtomicU64>) {
        self.chosen = Some(value);
    }

    /// A statement begins that inserts so many rows into a table.
    pub fn expect_rows(&self, table: usize, rows: u64) {
        *self.reserved.lock() = (table, Reserved::of_rows(rows));
    }

    /// The next row is the one that was a duplicate. It gets the value that was given to it.
    pub fn insert_same_row_next(&self) {
        self.reserved.lock().1.is_same_row = true;
    }

    /// The row that has just been a duplicate, with the value that was chosen for it (`insert_id`), if that is all that
    /// makes it one.
    ///
    /// # Errors
    /// Whatever the storage reports.
    pub fn with_chosen_value(&self, table: usize, row: &[Value]) -> Result<Option<Vec<Value>>> {
        let mut reserved = self.reserved.lock();
        match reserved.0 == table {
            true => self.tables[table].with_chosen_auto_increment(row, &mut reserved.1),
            false => Ok(None),
        }
    }

    /// Position of a table in the set.
    pub fn position(&self, table: &Arc<Table>) -> Option<usize> {
        let tables = &mut self.tables.iter();
        tables.position(|guard| Arc::ptr_eq(guard, table))
    }

    pub fn table(&self, position: usize) -> &Arc<Table> {
        &self.tables[position]
    }

    /// The tables in the order in which they were given.
    pub fn tables(&self) -> &[ChangeGuard] {
        &self.tables
    }

    /// Whether all of them are temporary tables.
    pub fn are_temporary(&self) -> bool {
        let mut tables = self.tables.iter();
        tables.all(|table| table.definition.is_temporary())
    }

    /// The guards, back from the set.
    pub fn into_tables(self) -> Vec<ChangeGuard> {
        self.tables
    }

    /// [`Table::insert`], and the parents are there.
    ///
    /// # Errors
    /// As there, and `NoParentRow`.
    pub fn insert(
        &self,
        transaction: &mut Transaction,
        table: usize,
        row: &[Value],
    ) -> Result<InsertOutcome> {
        let needed = self.needed_parents(table, None, row);
        if needed.is_empty() {
            return self.insert_of_series(transaction, table, row);
        }
        let savepoint = transaction.savepoint();
        self.or_undo(transaction, savepoint, |transaction| {
            let locked = lock_references(transaction, lookups_of(&needed), LockMode::Shared)?;
            let outcome = self
                .insert_of_series(transaction, table, row)
                .and_then(|outcome| {
                    self.check_parents(transaction, table, &needed)?;
                    Ok(outcome)
                });
            unlock_references(transaction, locked);
            outcome
        })
    }

    fn insert_of_series(
        &self,
        transaction: &mut Transaction,
        table: usize,
        row: &[Value],
    ) -> Result<InsertOutcome> {
        let target = &self.tables[table];
        let Some(column) = target.definition.auto_increment_column() else {
            let nothing = &mut Reserved::default();
            return target.insert_of_series(transaction, row, self.series, nothing);
        };
        let mut reserved = self.reserved.lock();
        if reserved.0 != table {
            *reserved = (table, Reserved::default());
        }
        if let Some(chosen) = &self.chosen
            && row[column].is_null()
        {
            let chosen = chosen.swap(0, Ordering::Relaxed);
            let newly = Some(chosen).filter(|chosen| *chosen > 0);
            reserved.1.chosen = newly.or(reserved.1.chosen);
        }
        target.insert_of_series(transaction, row, self.series, &mut reserved.1)
    }

    /// [`Table::replace`], with what it means for parents and children.
    ///
    /// # Errors
    /// As there, `NoParentRow` and `HasChildRow`.
    pub fn replace(
        &self,
        transaction: &mut Transaction,
        table: usize,
        primary_key: &[u8],
        old: &[Value],
        row: &[Value],
    ) -> Result<()> {
        self.replace_beside(transaction, table, (primary_key, &[]), old, row)
    }

    /// As [`replace`](Self::replace), where the long values of columns stay as they are that neither row has
    /// ([`RowToChange::untouched`](crate::RowToChange::untouched)).
    ///
    /// # Errors
    /// As there.
    pub fn replace_beside(
        &self,
        transaction: &mut Transaction,
        table: usize,
        at: (&[u8], &[usize]),
        old: &[Value],
        row: &[Value],
    ) -> Result<()> {
        let savepoint = transaction.savepoint();
        self.or_undo(transaction, savepoint, |transaction| {
            self.replace_below(transaction, table, at, old, row, &mut vec![table])
        })
    }

    /// [`Table::amend`], where `columns`, those that `changes` gives, mean nothing to parents or children. False also
    /// where they do.
    ///
    /// # Errors
    /// As there.
    pub fn amend(
        &self,
        transaction: &mut Transaction,
        table: usize,
        (view, primary_key): (&ReadView, &[u8]),
        columns: impl Iterator<Item = usize> + Clone,
        changes: impl FnOnce(&RowView<'_>) -> Option<Vec<(usize, Value)>>,
    ) -> Result<bool> {
        let has_one = |of_key: &[usize]| columns.clone().any(|column| of_key.contains(&column));
        let is_concerned = |link: &Link| {
            let parent = link.parent.as_ref();
            link.child == table && has_one(&self.foreign_key(link).columns)
                || parent.is_some_and(|parent| parent.table == table && has_one(&parent.columns))
        };
        if self.links.iter().any(is_concerned) {
            return Ok(false);
        }
        self.tables[table].amend(transaction, view, primary_key, changes)
    }

    /// [`Table::delete`], with what it means for children. False: there is no such row.
    ///
    /// # Errors
    /// As there, and `HasChildRow`.
    pub fn delete(
        &self,
        transaction: &mut Transaction,
        table: usize,
        primary_key: &[u8],
    ) -> Result<bool> {
        let savepoint = transaction.savepoint();
        self.or_undo(transaction, savepoint, |transaction| {
            self.delete_below(transaction, table, primary_key, 1)
        })
    }

    fn or_undo<T>(
        &self,
        transaction: &mut Transaction,
        savepoint: usize,
        change: impl FnOnce(&mut Transaction) -> Result<T>,
    ) -> Result<T> {
        let outcome = change(transaction);
        if outcome.is_err() {
            transaction.rollback_to(savepoint)?;
        }
        outcome
    }

    fn foreign_key(&self, link: &Link) -> &ForeignKey {
        &self.tables[link.child].definition.foreign_keys[link.foreign_key]
    }

    /// The parents that a row must have: a new row, or one that was `old`.
    fn needed_parents(
        &self,
        table: usize,
        old: Option<&[Value]>,
        row: &[Value],
    ) -> Vec<Needed<'_>> {
        let mut needed = Vec::new();
        for link in self.links.iter().filter(|link| link.child == table) {
            let columns = &self.foreign_key(link).columns;
            if columns.iter().any(|column| row[*column].is_null())
                || old.is_some_and(|old| columns.iter().all(|column| old[*column] == row[*column]))
            {
                continue;
            }
            let lookup = link.parent.as_ref().and_then(|parent| {
                let values = columns.iter().map(|column| &row[*column]);
                Lookup::new(&self.tables[parent.table], &parent.columns, values)
            });
            needed.push(Needed { link, lookup });
        }
        needed
    }

    /// Checks that the parents of a row are there, which is in its table already. Their references are locked.
    fn check_parents(
        &self,
        transaction: &mut Transaction,
        table: usize,
        needed: &[Needed<'_>],
    ) -> Result<()> {
        for Needed { link, lookup } in needed {
            let is_there = match lookup {
                Some(lookup) => {
                    lookup.finds_parent(transaction)?
                        || (lookup.keep_absent(transaction)? && lookup.finds_parent(transaction)?)
                }
                None => false,
            };
            if !is_there {
                let foreign_key = self.foreign_key(link);
                return Err(TableError::NoParentRow {
                    constraint: foreign_key.described(&self.tables[table].definition),
                });
            }
        }
        Ok(())
    }

    /// What refers to a row of the table: as far as the foreign keys' columns change, where it becomes `row`.
    fn references_to(&self, table: usize, old: &[Value], row: Option<&[Value]>) -> Vec<Lookup<'_>> {
        let changes = |parent: &Parent| {
            let mut columns = parent.columns.iter();
            row.is_none_or(|row| columns.any(|column| old[*column] != row[*column]))
        };
        let parents = self.links_to(table).filter(|(_, parent)| changes(parent));
        let lookups = parents.filter_map(|(_, parent)| {
            let values = parent.columns.iter().map(|column| &old[*column]);
            match values.clone().any(Value::is_null) {
                true => None,
                false => Lookup::new(&self.tables[table], &parent.columns, values),
            }
        });
        lookups.collect()
    }

    fn delete_below(
        &self,
        transaction: &mut Transaction,
        table: usize,
        primary_key: &[u8],
        depth: usize,
    ) -> Result<bool> {
        let guard = &self.tables[table];
        if !self.is_parent(table) {
            return guard.delete(transaction, primary_key);
        }
        let wait = transaction.lock_wait();
        let Some(old) = guard.lock_row(transaction, primary_key, LockMode::Exclusive, wait)? else {
            return Ok(false);
        };
        let references = self.references_to(table, &old, None);
        let locked = lock_references(transaction, references.iter(), LockMode::Exclusive)?;
        let outcome = guard.delete(transaction, primary_key).and_then(|_| {
            for (link, parent) in self.links_to(table) {
                let foreign_key = self.foreign_key(link);
                let restricts = foreign_key.on_delete.restricts() || depth == MAX_CASCADE_DEPTH;
                self.for_each_child(
                    transaction,
                    (link, parent),
                    &old,
                    (restricts, false),
                    |transaction, key| match foreign_key.on_delete {
                        ReferentialAction::SetNull => {
                            self.set_columns(transaction, link, key, None, &mut vec![link.child])
                        }
                        _ => self
                            .delete_below(transaction, link.child, key, depth + 1)
                            .map(drop),
                    },
                )?;
            }
            Ok(true)
        });
        unlock_references(transaction, locked);
        outcome
    }

    /// `path`: the tables that the change has come through, this one last.
    fn replace_below(
        &self,
        transaction: &mut Transaction,
        table: usize,
        (primary_key, untouched): (&[u8], &[usize]),
        old: &[Value],
        row: &[Value],
        path: &mut Vec<usize>,
    ) -> Result<()> {
        let needed = self.needed_parents(table, Some(old), row);
        let references = self.references_to(table, old, Some(row));
        let mut locked = lock_references(transaction, lookups_of(&needed), LockMode::Shared)?;
        let outcome = lock_references(transaction, references.iter(), LockMode::Exclusive)
            .map(|exclusive| locked.extend(exclusive))
            .and_then(|()| {
                self.tables[table].replace_beside(transaction, primary_key, old, row, untouched)
            })
            .and_then(|()| self.check_parents(transaction, table, &needed))
            .and_then(|()| self.replace_children(transaction, table, old, row, path));
        unlock_references(transaction, locked);
        outcome
    }

    fn replace_children(
        &self,
        transaction: &mut Transaction,
        table: usize,
        old: &[Value],
        row: &[Value],
        path: &mut Vec<usize>,
    ) -> Result<()> {
        for (link, parent) in self.links_to(table) {
            if parent
                .columns
                .iter()
                .all(|column| old[*column] == row[*column])
            {
                continue;
            }
            let foreign_key = self.foreign_key(link);
            // 'b' becomes 'B': children find their parent as before, and are changed all the same.
            let keeps_key = self.keeps_key(parent, old, row);
            let restricts = foreign_key.on_update.restricts()
                || path.contains(&link.child)
                || path.len() == MAX_CASCADE_DEPTH;
            let new: Vec<&Value> = parent.columns.iter().map(|column| &row[*column]).collect();
            let values = match foreign_key.on_update {
                ReferentialAction::SetNull => None,
                _ => Some(new.as_slice()),
            };
            path.push(link.child);
            let outcome = self.for_each_child(
                transaction,
                (link, parent),
                old,
                (restricts, keeps_key),
                |transaction, key| self.set_columns(transaction, link, key, values, path),
            );
            path.pop();
            outcome?;
        }
        Ok(())
    }

    /// Whether both versions of a row have the same key for its children.
    fn keeps_key(&self, parent: &Parent, old: &[Value], row: &[Value]) -> bool {
        let table = &self.tables[parent.table];
        let lookup = |row: &[Value]| {
            let values: Vec<Value> = parent
                .columns
                .iter()
                .map(|column| row[*column].clone())
                .collect();
            Lookup::new(table, &parent.columns, values.iter()).map(|lookup| lookup.prefix)
        };
        lookup(old) == lookup(row)
    }

    /// Whether foreign keys refer to the table.
    pub fn is_parent(&self, table: usize) -> bool {
        self.links_to(table).next().is_some()
    }

    fn links_to(&self, table: usize) -> impl Iterator<Item = (&Link, &Parent)> {
        self.links.iter().filter_map(move |link| {
            let parent = link.parent.as_ref()?;
            (parent.table == table).then_some((link, parent))
        })
    }

    /// Does something about each child of a row of the parent that was `old`, until there is none left. The reference
    /// is locked, so no child is added; transactions that are changing one are waited for. `keeps_key`: children are
    /// found by the new values, too, and each is changed once.
    ///
    /// # Errors
    /// `HasChildRow` if there is one and the key restricts, `Interrupted`.
    fn for_each_child(
        &self,
        transaction: &mut Transaction,
        (link, parent): (&Link, &Parent),
        old: &[Value],
        (restricts, keeps_key): (bool, bool),
        mut change: impl FnMut(&mut Transaction, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let foreign_key = self.foreign_key(link);
        let child = &self.tables[link.child];
        let values = parent.columns.iter().map(|column| &old[*column]);
        if values.clone().any(Value::is_null) {
            return Ok(());
        }
        // Another row of the parent may have the same values, if its key is not unique.
        let own = Lookup::new(&self.tables[parent.table], &parent.columns, values.clone());
        if let Some(lookup) = own
            && !keeps_key
            && lookup.settled(transaction)?.is_some()
        {
            return Ok(());
        }
        let Some(lookup) = Lookup::new(child, &foreign_key.columns, values) else {
            return Ok(());
        };
        for _ in 0..MAX_CASCADE_PASSES {
            let Some(found) = lookup.settled(transaction)? else {
                return Ok(());
            };
            if restricts {
                match transaction.keep_found(lookup.tree, &found)? {
                    true => continue,
                    false => break,
                }
            }
            let mut children = Children::new(&lookup);
            while let Some(keys) = children.next()? {
                for key in keys {
                    if self.shall_end.as_ref().is_some_and(|shall_end| shall_end()) {
                        return Err(TableError::Interrupted);
                    }
                    let is_new = child.lock_to_change(transaction, &key)?;
                    if let Some(row) = child.read_row(&key)?
                        && lookup.is_of(child, &foreign_key.columns, &row)
                    {
                        change(transaction, &key)?;
                    }
                    if is_new {
                        // What was changed is its own, and the rest is none of its business.
                        transaction.unlock_row(&child.clustered, &key);
                    }
                }
            }
            if keeps_key {
                return Ok(());
            }
        }
        Err(TableError::HasChildRow {
            constraint: foreign_key.described(&child.definition),
        })
    }

    /// Sets the foreign key's columns of a child: to the parent's new values, or to NULL.
    ///
    /// # Errors
    /// `HasChildRow` if they do not hold these values.
    fn set_columns(
        &self,
        transaction: &mut Transaction,
        link: &Link,
        primary_key: &[u8],
        values: Option<&[&Value]>,
        path: &mut Vec<usize>,
    ) -> Result<()> {
        let table = &self.tables[link.child];
        let Some(old) = table.read_row(primary_key)? else {
            return Ok(());
        };
        let mut row = old.clone();
        let foreign_key = self.foreign_key(link);
        let constraint = || foreign_key.described(&table.definition);
        for (at, column) in foreign_key.columns.iter().enumerate() {
            let definition = &table.definition.columns[*column];
            // What the parent has is a value.
            let mode = Mode {
                zero_date: true,
                time_zone: definition.time_zone,
                ..Mode::STRICT
            };
            row[*column] = match values {
                Some(values) => match to_column(definition, values[at], mode) {
                    Ok((value, _)) => value,
                    // The child's column is too short, or of fewer characters.
                    Err(_) => {
                        return Err(TableError::HasChildRow {
                            constraint: constraint(),
                        });
                    }
                },
                None => Value::Null,
            };
        }
        let replaced = self.replace_below(
            transaction,
            link.child,
            (primary_key, &[]),
            &old,
            &row,
            path,
        );
        match replaced {
            // What the child's column makes of the value is not the parent's.
            Err(TableError::NoParentRow { constraint: of }) if of == constraint() => {
                Err(TableError::HasChildRow { constraint: of })
            }
            replaced => replaced,
        }
    }
}

/// The parent of a foreign key among the opened tables.
fn find_parent(tables: &[ChangeGuard], child: usize, foreign_key: usize) -> Option<Parent> {
    let definition = &tables[child].definition;
    let foreign_key = &definition.foreign_keys[foreign_key];
    let table = tables.iter().position(|table| {
        let table = &table.definition;
        !table.is_temporary() && foreign_key.refers_to(&table.database, &table.name)
    })?;
    let parent = &tables[table].definition;
    let columns = referenced_positions(foreign_key, parent)?;
    let mut pairs = foreign_key.columns.iter().zip(&columns);
    let comparable = pairs.all(|(column, referenced)| {
        is_comparable(
            &definition.columns[*column].ty,
            &parent.columns[*referenced].ty,
        )
    });
    (comparable && leading_index(parent, &columns).is_some()).then_some(Parent { table, columns })
}

/// A parent that a row must have; without a lookup it cannot be there.
struct Needed<'a> {
    link: &'a Link,
    lookup: Option<Lookup<'a>>,
}

fn lookups_of<'n, 'a>(needed: &'n [Needed<'a>]) -> impl Iterator<Item = &'n Lookup<'a>> {
    needed.iter().filter_map(|needed| needed.lookup.as_ref())
}

/// Locks references; returns those whose lock is new. After an error none is locked.
fn lock_references<'l, 'a: 'l>(
    transaction: &mut Transaction,
    lookups: impl Iterator<Item = &'l Lookup<'a>>,
    mode: LockMode,
) -> Result<Vec<&'l Lookup<'a>>> {
    let mut locked = Vec::new();
    for lookup in lookups {
        match transaction.lock_reference(lookup.tree, &lookup.prefix, mode) {
            Ok(true) => locked.push(lookup),
            Ok(false) => {}
            Err(error) => {
                unlock_references(transaction, locked);
                return Err(error.into());
            }
        }
    }
    Ok(locked)
}

fn unlock_references(transaction: &mut Transaction, locked: Vec<&Lookup<'_>>) {
    for lookup in locked {
        transaction.unlock_reference(lookup.tree, &lookup.prefix);
    }
}
