//! Rows of the source are found in the replica's tables and changed, below SQL.
//!
//! | the table has | a row is found by |
//! |---|---|
//! | a primary key | the key |
//! | a unique index whose columns are not NULL in the row | the index, if the whole row is the same |
//! | neither | a scan for a row that is the same; one scan for all rows of an event |
//!
//! Rows that are the same in all columns cannot be told apart, so any of them will do.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use sheaf_binlog::received::rows::RowsChange;
use sheaf_binlog::received::{Image, RowsKind, RowsReader, SourceTable};
use sheaf_storage::{Direction, KeyRange, LockMode, LockWait, ReadAhead, Transaction};
use sheaf_table::{ChangeSet, Table, ValueRef};
use sheaf_types::error::codes;
use sheaf_types::{Value, assignment::Mode};

use crate::change::find::change_query::position_of;
use crate::change::rules::generated_columns::GeneratedColumns;
use crate::error::{Result, SqlError};
use crate::query::run::MAX_REPLANS;
use crate::session::Session;
use crate::session::warnings::Warnings;

/// A row that was found: its encoded primary key, and its values.
type Found = (Vec<u8>, Vec<Value>);

/// One rows event and the table that it changes.
struct Changing<'s> {
    table: &'s Arc<Table>,
    tables: &'s ChangeSet,
    position: usize,
    generated: Option<GeneratedColumns>,
    wait: LockWait,
}

impl Session {
    /// Makes the changes of a rows event in the open transaction.
    ///
    /// # Errors
    /// 1146, 1535 and 1677 for a table that is another one here; 1032 for a row that is not there; those of changes.
    pub(super) fn apply_rows(
        &mut self,
        kind: RowsKind,
        body: &[u8],
        source: &SourceTable,
    ) -> Result<()> {
        let (table, tables) = self.open_replicated(source)?;
        let definition = &table.definition;
        let columns = definition.columns.iter();
        let columns = columns
            .filter(|column| !column.hidden)
            .map(|column| &column.ty);
        let columns: Vec<_> = columns.collect();
        let prepared = if columns.len() == source.columns.len() {
            position_of(&tables, &table).and_then(|position| {
                let reader = RowsReader::new(kind, body, source, &columns)
                    .map_err(|error| SqlError::new(error.code(), error.to_string()))?;
                let generated = self.generated_columns(&table, Mode::LENIENT)?;
                Ok((position, reader, generated))
            })
        } else {
            Err(SqlError::new(
                codes::BINLOG_ROW_WRONG_TABLE_DEF,
                format!(
                    "Table definition on source and replica does not match: table '{}.{}' has {} columns on the source \
                     and {} on the replica",
                    source.database,
                    source.name,
                    source.columns.len(),
                    columns.len()
                ),
            ))
        };
        let begun = prepared.and_then(|prepared| Ok((prepared, self.begin_changes(&tables)?)));
        let ((position, reader, generated), mut statement) = match begun {
            Ok(begun) => begun,
            Err(error) => {
                self.transactions.keep_tables(tables);
                return Err(error);
            }
        };
        let changing = Changing {
            table: &table,
            tables: &tables,
            position,
            generated,
            wait: self.variables.row_lock_wait(None),
        };
        let mut warnings = Warnings::default();
        let cancel = self.handle.cancel_flag().clone();
        let is_told_to_stop = || cancel.check().map_err(SqlError::from);
        let changed = changing.apply(reader, statement.changes(), &is_told_to_stop, &mut warnings);
        let ended = self.end_changes(statement, changed);
        self.transactions.keep_tables(tables);
        ended
    }

    /// The table of the replica, opened with those that foreign keys connect it to.
    fn open_replicated(&mut self, source: &SourceTable) -> Result<(Arc<Table>, ChangeSet)> {
        for _ in 0..MAX_REPLANS {
            let (database, name) = (source.database.as_str(), source.name.as_str());
            let table = match self.transactions.made_table(database, name) {
                Some(table) => Arc::clone(table),
                None => {
                    let names = self.table_names();
                    names.of_all_sessions().table(database, name)?
                }
            };
            if let Some(tables) = self.lock_tables(std::slice::from_ref(&table))? {
                return Ok((table, tables));
            }
        }
        Err(SqlError::definition_changed())
    }
}

impl Changing<'_> {
    fn apply(
        &self,
        mut reader: RowsReader<'_>,
        transaction: &mut Transaction,
        is_told_to_stop: &dyn Fn() -> Result<()>,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let unreadable =
            |error: sheaf_binlog::BinlogError| SqlError::new(error.code(), error.to_string());
        let scans = reader.change() != RowsChange::Insert && !self.has_key();
        let mut waiting = Vec::new();
        while let Some((before, after)) = reader.next_row().map_err(unreadable)? {
            is_told_to_stop()?;
            match (before, after) {
                (None, Some(after)) => self.insert(transaction, after, warnings)?,
                (Some(before), after) if scans => waiting.push((before, after)),
                (Some(before), after) => {
                    let found = self.find(transaction, &before)?;
                    self.change(transaction, found, after, warnings)?;
                }
                (None, None) => {}
            }
        }
        if waiting.is_empty() {
            return Ok(());
        }
        let before: Vec<&Image> = waiting.iter().map(|(before, _)| before).collect();
        let mut found = self.find_by_scan(&before, is_told_to_stop)?;
        for (at, (before, after)) in waiting.into_iter().enumerate() {
            is_told_to_stop()?;
            let row = match found[at].take() {
                Some(key) => self.lock_same(transaction, key, &before)?,
                None => None,
            };
            // An earlier row of the event may have become what this one was.
            let row = match row {
                Some(row) => Some(row),
                None => match self
                    .find_by_scan(&[&before], is_told_to_stop)?
                    .pop()
                    .flatten()
                {
                    Some(key) => self.lock_same(transaction, key, &before)?,
                    None => None,
                },
            };
            self.change(transaction, row, after, warnings)?;
        }
        Ok(())
    }

    /// Whether rows are found by a key.
    fn has_key(&self) -> bool {
        let definition = &self.table.definition;
        !definition.has_hidden_row_id() || definition.secondary.iter().any(|index| index.unique)
    }

    fn insert(
        &self,
        transaction: &mut Transaction,
        image: Image,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let columns = &self.table.definition.columns;
        let mut given = image.into_iter();
        let mut is_given = Vec::with_capacity(columns.len());
        let mut row = Vec::with_capacity(columns.len());
        for column in columns {
            let value = given.next().flatten();
            is_given.push(value.is_some());
            row.push(match value {
                Some(value) => value,
                None => sheaf_table::convert::default_in_row(column, 0).unwrap_or_default(),
            });
        }
        if let Some(generated) = &self.generated
            && is_given.contains(&false)
        {
            let mut computed = row.clone();
            generated.fill(&mut computed, 1, warnings)?;
            take_computed(&mut row, computed, &is_given, columns);
        }
        self.check_nulls(&row)?;
        self.tables.insert(transaction, self.position, &row)?;
        Ok(())
    }

    /// Error 1048: the replica's column cannot be NULL, and the source's can.
    fn check_nulls(&self, row: &[Value]) -> Result<()> {
        let mut columns = self.table.definition.columns.iter().zip(row);
        let wrong = columns.find(|(column, value)| {
            !column.hidden && !column.nullable && matches!(value, Value::Null)
        });
        match wrong {
            None => Ok(()),
            Some((column, _)) => Err(SqlError::new(
                codes::BAD_NULL_ERROR,
                format!("Column '{}' cannot be null", column.name),
            )),
        }
    }

    /// Changes or deletes a row that was found.
    fn change(
        &self,
        transaction: &mut Transaction,
        found: Option<Found>,
        after: Option<Image>,
        warnings: &mut Warnings,
    ) -> Result<()> {
        let definition = &self.table.definition;
        let missing = || {
            SqlError::new(
                codes::KEY_NOT_FOUND,
                format!("Can't find record in '{}'", definition.name),
            )
        };
        let (key, old) = found.ok_or_else(missing)?;
        let Some(after) = after else {
            return match self.tables.delete(transaction, self.position, &key)? {
                true => Ok(()),
                false => Err(missing()),
            };
        };
        let mut row = old.clone();
        let mut is_given = vec![false; row.len()];
        for (at, value) in after.into_iter().enumerate() {
            if let Some(value) = value {
                row[at] = value;
                is_given[at] = true;
            }
        }
        if let Some(generated) = &self.generated
            && is_given.contains(&false)
        {
            let mut computed = row.clone();
            generated.fill_changed(&old, &mut computed, 1, warnings)?;
            take_computed(&mut row, computed, &is_given, &definition.columns);
        }
        if row != old {
            self.check_nulls(&row)?;
            self.tables
                .replace(transaction, self.position, &key, &old, &row)?;
        }
        Ok(())
    }

    /// Finds a row by a key, and locks it.
    fn find(&self, transaction: &mut Transaction, before: &Image) -> Result<Option<Found>> {
        let definition = &self.table.definition;
        let row = |position: usize| before.get(position).cloned().flatten();
        let values: Vec<Value> = (0..definition.columns.len())
            .map(|position| row(position).unwrap_or_default())
            .collect();
        if !definition.has_hidden_row_id() {
            let mut parts = definition.primary.parts.iter();
            // A row with NULL there is not in this table.
            let is_known =
                |value: &Option<Value>| value.as_ref().is_some_and(|value| *value != Value::Null);
            if parts.all(|part| before.get(part.column).is_some_and(is_known)) {
                let key = self.table.encode_primary_key(&values);
                let old = self.lock(transaction, &key)?;
                return Ok(old.map(|old| (key, old)));
            }
        } else if let Some(key) = self.table.conflicting_row(&values)?
            && let Some(found) = self.lock_same(transaction, key, before)?
        {
            return Ok(Some(found));
        }
        match self.find_by_scan(&[before], &|| Ok(()))?.pop().flatten() {
            Some(key) => self.lock_same(transaction, key, before),
            None => Ok(None),
        }
    }

    fn lock(&self, transaction: &mut Transaction, key: &[u8]) -> Result<Option<Vec<Value>>> {
        let mode = LockMode::Exclusive;
        Ok(self.table.lock_row(transaction, key, mode, self.wait)?)
    }

    /// Locks a row, if it still is the same as the image.
    fn lock_same(
        &self,
        transaction: &mut Transaction,
        key: Vec<u8>,
        before: &Image,
    ) -> Result<Option<Found>> {
        let old = self.lock(transaction, &key)?;
        let same = old.filter(|old| is_same(old, before));
        Ok(same.map(|old| (key, old)))
    }

    /// The keys of rows that are the same as images, each of another row. All images have the same columns.
    fn find_by_scan(
        &self,
        images: &[&Image],
        is_told_to_stop: &dyn Fn() -> Result<()>,
    ) -> Result<Vec<Option<Vec<u8>>>> {
        let mut found = vec![None; images.len()];
        let mut left = images.len();
        let mut wanted: HashMap<u64, Vec<usize>> = HashMap::new();
        for (at, image) in images.iter().enumerate() {
            let hash = hash_of(image.iter().flatten());
            wanted.entry(hash).or_default().push(at);
        }
        let first = images.first().map_or(&[][..], |image| image.as_slice());
        let has = |column: usize| first.get(column).is_some_and(Option::is_some);
        let tree = &self.table.clustered;
        let mut cursor = tree.scan(KeyRange::all(), Direction::Forward, ReadAhead::Off);
        let mut key = Vec::new();
        while left > 0
            && let Some(leaf) = cursor.next_leaf()?
        {
            is_told_to_stop()?;
            for entry in 0..leaf.len() {
                let row = self.table.view(leaf.value(entry))?;
                let values = self.table.decode_row(&row)?;
                let compared = values.iter().enumerate().filter(|(at, _)| has(*at));
                let hash = hash_of(compared.map(|(_, value)| value));
                let Some(candidates) = wanted.get_mut(&hash) else {
                    continue;
                };
                let place = candidates
                    .iter()
                    .position(|at| is_same(&values, images[*at]));
                if let Some(place) = place {
                    leaf.key_into(entry, &mut key);
                    found[candidates.swap_remove(place)] = Some(key.clone());
                    left -= 1;
                }
            }
        }
        Ok(found)
    }
}

/// A number that rows have in common that are the same.
fn hash_of<'v>(values: impl Iterator<Item = &'v Value>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for value in values {
        std::mem::discriminant(value).hash(&mut hasher);
        match ValueRef::from(value) {
            ValueRef::Null => {}
            ValueRef::Int(number) => number.hash(&mut hasher),
            ValueRef::UInt(number) => number.hash(&mut hasher),
            ValueRef::Decimal(unscaled) => unscaled.hash(&mut hasher),
            ValueRef::WideDecimal(unscaled) => unscaled.bytes().hash(&mut hasher),
            // Zero below zero is zero.
            ValueRef::Float(number) => (number + 0.0).to_bits().hash(&mut hasher),
            ValueRef::Double(number) => (number + 0.0).to_bits().hash(&mut hasher),
            ValueRef::Bytes(bytes) => bytes.hash(&mut hasher),
        }
        value.as_decimal().map(|(_, scale)| scale).hash(&mut hasher);
    }
    hasher.finish()
}

/// Whether a row has all the values that an image has.
fn is_same(row: &[Value], image: &Image) -> bool {
    let mut both = row.iter().zip(image);
    both.all(|(value, wanted)| wanted.as_ref().is_none_or(|wanted| wanted == value))
}

/// Generated columns that the source did not send have what was computed.
fn take_computed(
    row: &mut [Value],
    computed: Vec<Value>,
    is_given: &[bool],
    columns: &[sheaf_table::Column],
) {
    for (at, value) in computed.into_iter().enumerate() {
        if !is_given[at] && columns[at].generated.is_some() {
            row[at] = value;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_the_same_have_the_same_number() {
        let row = [
            Value::Int(1),
            Value::Double(0.0),
            Value::Text("a".into()),
            Value::Null,
        ];
        let image: Image = vec![
            Some(Value::Int(1)),
            Some(Value::Double(-0.0)),
            None,
            Some(Value::Null),
        ];
        assert!(is_same(&row, &image));
        let compared = [0, 1, 3].map(|at| &row[at]);
        assert_eq!(
            hash_of(compared.into_iter()),
            hash_of(image.iter().flatten())
        );
        let other = [&Value::UInt(1), &row[1], &row[3]];
        assert_ne!(hash_of(other.into_iter()), hash_of(image.iter().flatten()));
    }
}
