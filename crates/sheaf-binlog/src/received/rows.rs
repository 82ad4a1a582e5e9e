//! Images of rows, each value for a column of the replica.

use sheaf_types::{ColumnType, Value};

use super::SourceTable;
use super::cursor::Cursor;
use super::value::{Target, read_value};
use crate::error::{BinlogError, Result};

/// Bytes of a table's number.
const TABLE_BYTES: usize = 6;
/// Followers check no foreign keys.
const NO_FOREIGN_KEY_CHECKS: u16 = 1 << 1;

/// What happened to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowsChange {
    Insert,
    Update,
    Delete,
}

/// What an event of rows is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RowsKind {
    pub change: RowsChange,
    /// Version 2 has room for more behind its flags.
    has_extra: bool,
}

impl RowsKind {
    pub(super) fn insert(has_extra: bool) -> RowsKind {
        let change = RowsChange::Insert;
        RowsKind { change, has_extra }
    }

    pub(super) fn update(has_extra: bool) -> RowsKind {
        let change = RowsChange::Update;
        RowsKind { change, has_extra }
    }

    pub(super) fn delete(has_extra: bool) -> RowsKind {
        let change = RowsChange::Delete;
        RowsKind { change, has_extra }
    }
}

/// A row: the value of each column that the image has.
pub type Image = Vec<Option<Value>>;

/// Reads the rows of an event one by one.
pub struct RowsReader<'e> {
    kind: RowsKind,
    table: &'e SourceTable,
    targets: Vec<Target<'e>>,
    before: Option<Vec<bool>>,
    after: Option<Vec<bool>>,
    images: Cursor<'e>,
}

/// Whether foreign keys are to be looked at, by the body of an event of rows.
pub fn checks_foreign_keys(body: &[u8]) -> bool {
    let mut cursor = Cursor(body);
    let flags = cursor.take(TABLE_BYTES).and_then(|_| cursor.u16());
    flags.is_none_or(|flags| flags & NO_FOREIGN_KEY_CHECKS == 0)
}

/// The number of the table in the body of an event of rows.
pub fn table_of_rows(body: &[u8]) -> Option<u64> {
    Cursor(body).little(TABLE_BYTES)
}

impl<'e> RowsReader<'e> {
    /// Begins to read an event of rows of a table, for columns of the replica in the same order. `None` in `columns`:
    /// what the source has there is not looked at.
    ///
    /// # Errors
    /// The event does not hold; a column of the source has a type whose values the replica's column does not take.
    pub fn new(
        kind: RowsKind,
        body: &'e [u8],
        table: &'e SourceTable,
        columns: &[&'e ColumnType],
    ) -> Result<RowsReader<'e>> {
        let malformed = || table.malformed("its columns");
        if columns.len() != table.columns.len() {
            return Err(table.malformed("how many columns it has"));
        }
        let mut cursor = Cursor(body);
        cursor.take(TABLE_BYTES).ok_or_else(malformed)?;
        cursor.u16().ok_or_else(malformed)?;
        if kind.has_extra {
            // The length counts itself.
            let length = usize::from(cursor.u16().ok_or_else(malformed)?);
            let extra = length.checked_sub(2).ok_or_else(malformed)?;
            cursor.take(extra).ok_or_else(malformed)?;
        }
        let width = cursor.packed().ok_or_else(malformed)?;
        if width != table.columns.len() as u64 {
            return Err(malformed());
        }
        let mut set = || cursor.bits(table.columns.len()).ok_or_else(malformed);
        let (before, after) = match kind.change {
            RowsChange::Insert => (None, Some(set()?)),
            RowsChange::Update => (Some(set()?), Some(set()?)),
            RowsChange::Delete => (Some(set()?), None),
        };
        let mut targets = Vec::with_capacity(columns.len());
        for (at, (source, column)) in table.columns.iter().zip(columns).enumerate() {
            let target = Target::new(source, column);
            targets.push(target.ok_or_else(|| BinlogError::Conversion {
                column: at,
                table: format!("{}.{}", table.database, table.name),
                from: source.type_name(),
                to: column.to_string(),
            })?);
        }
        Ok(RowsReader {
            kind,
            table,
            targets,
            before,
            after,
            images: cursor,
        })
    }

    pub fn change(&self) -> RowsChange {
        self.kind.change
    }

    /// The next row before and after the change, as far as the change has one. `None`: there is no other.
    ///
    /// # Errors
    /// The bytes do not hold, or a value is none of its column.
    pub fn next_row(&mut self) -> Result<Option<(Option<Image>, Option<Image>)>> {
        if self.images.is_empty() {
            return Ok(None);
        }
        let (images, table, targets) = (&mut self.images, self.table, &self.targets);
        let mut read = |columns: &Vec<bool>| read_image(images, table, targets, columns);
        let before = self.before.as_ref().map(&mut read).transpose()?;
        let after = self.after.as_ref().map(&mut read).transpose()?;
        Ok(Some((before, after)))
    }
}

fn read_image(
    images: &mut Cursor<'_>,
    table: &SourceTable,
    targets: &[Target<'_>],
    columns: &[bool],
) -> Result<Image> {
    let count = columns.iter().filter(|is_in| **is_in).count();
    let nulls = images.bits(count);
    let mut nulls = nulls
        .ok_or_else(|| table.malformed("its NULLs"))?
        .into_iter();
    let mut image = Vec::with_capacity(columns.len());
    for (at, is_in) in columns.iter().enumerate() {
        if !is_in {
            image.push(None);
            continue;
        }
        if nulls.next() == Some(true) {
            image.push(Some(Value::Null));
            continue;
        }
        let value = read_value(images, &table.columns[at], &targets[at]);
        image.push(Some(value.ok_or_else(|| {
            table.malformed(&format!("a value of column {at}"))
        })?));
    }
    Ok(image)
}

impl SourceTable {
    fn malformed(&self, what: &str) -> BinlogError {
        BinlogError::Malformed {
            what: format!(
                "{what} in a rows event of table '{}.{}'",
                self.database, self.name
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::rows::{RowsEvent, TableMap};
    use crate::event::{EventHeader, alone};
    use crate::received::{Received, SourceEvent};
    use crate::table::{KeyColumn, LoggedColumn, LoggedTable};
    use sheaf_types::json::text;
    use sheaf_types::temporal::{ZERO_DATE, ZERO_DATETIME};

    fn columns() -> Vec<(&'static str, Value)> {
        let json = |written: &str| Value::Json(text::read(written).unwrap().into_bytes());
        vec![
            ("tinyint", Value::Int(-128)),
            ("tinyint unsigned", Value::UInt(255)),
            ("smallint", Value::Int(-32768)),
            ("mediumint", Value::Int(-8_388_608)),
            ("mediumint unsigned", Value::UInt(16_777_215)),
            ("int", Value::Int(7)),
            ("bigint unsigned", Value::UInt(u64::MAX)),
            (
                "decimal(20,7)",
                Value::Decimal {
                    unscaled: -12_345_678_901_231_234_567,
                    scale: 7,
                },
            ),
            ("float", Value::Float(-1.5)),
            ("double", Value::Double(1e300)),
            ("bit(17)", Value::UInt(0x1_5555)),
            ("date", Value::Date(19_000)),
            ("date", Value::Date(ZERO_DATE)),
            ("time(3)", Value::Time(-3_723_004_000)),
            ("datetime(6)", Value::DateTime(1_700_000_000_123_456)),
            ("datetime", Value::DateTime(ZERO_DATETIME)),
            ("timestamp(2)", Value::Timestamp(1_700_000_000_990_000)),
            ("timestamp", Value::Timestamp(ZERO_DATETIME)),
            ("year", Value::Year(2155)),
            ("year", Value::Year(0)),
            ("char(10)", Value::Text("ümlaut".into())),
            ("char(200)", Value::Text("long".into())),
            ("varchar(10)", Value::Text("short".into())),
            ("varchar(1000)", Value::Text("y".repeat(700))),
            ("binary(5)", Value::Bytes(b"ab\0\0\0".to_vec())),
            ("varbinary(20)", Value::Bytes(vec![0, 255])),
            ("tinytext", Value::Text("tiny".into())),
            ("longtext", Value::Text("long".repeat(30_000))),
            ("blob", Value::Bytes(vec![0; 300])),
            ("enum('a','b')", Value::Enum(2)),
            ("set('x','y','z')", Value::Set(5)),
            (
                "json",
                json("{\"a\": [1, -70000, 1.5, null], \"b\": \"c\"}"),
            ),
            ("int", Value::Null),
        ]
    }

    /// The bytes of a TABLE_MAP of columns of these types.
    fn described(types: &[ColumnType]) -> (LoggedTable, Vec<u8>) {
        let columns = types.iter().enumerate();
        let columns = columns.map(|(at, ty)| LoggedColumn::new(format!("c{at}"), ty.clone(), true));
        let key = [KeyColumn::whole(0)];
        let table = LoggedTable::new("shop", "t", columns.collect(), &key).unwrap();
        let map = alone(&EventHeader::new(1, 2), &TableMap::new(7, &table), 0);
        (table, map)
    }

    fn table_of(map: &[u8]) -> SourceTable {
        match SourceEvent::new(map, true).unwrap().read() {
            Some(Received::TableMap(body)) => SourceTable::read(body).unwrap(),
            other => panic!("no table: {other:?}"),
        }
    }

    #[test]
    fn rows_of_all_types_read_as_they_were_written() {
        let types = columns().into_iter();
        let types: Vec<ColumnType> = types
            .map(|(ty, _)| ColumnType::parse(ty).unwrap())
            .collect();
        let row: Vec<Value> = columns().into_iter().map(|(_, value)| value).collect();
        let (logged, map) = described(&types);
        let mut update = RowsEvent::update(7, &logged, logged.all_columns(), logged.all_columns());
        update.push_update(&row, &row).unwrap();
        let update = update.without_foreign_key_checks();
        let update = alone(&EventHeader::new(1, 2), &update, 0);

        let source = table_of(&map);
        assert_eq!(source.id, 7);
        assert_eq!(
            (source.database.as_str(), source.name.as_str()),
            ("shop", "t")
        );
        let event = SourceEvent::new(&update, true).unwrap();
        let Some(Received::Rows(kind, body)) = event.read() else {
            panic!("no rows");
        };
        assert_eq!(table_of_rows(body), Some(7));
        assert!(!checks_foreign_keys(body));
        let targets: Vec<&ColumnType> = types.iter().collect();
        let mut reader = RowsReader::new(kind, body, &source, &targets).unwrap();
        let whole: Image = row.into_iter().map(Some).collect();
        let read = reader.next_row().unwrap();
        assert_eq!(read, Some((Some(whole.clone()), Some(whole))));
        assert_eq!(reader.next_row().unwrap(), None);
        // A piece of the event is an error somewhere, and never a row.
        for end in 0..body.len().min(400) {
            if let Ok(mut reader) = RowsReader::new(kind, &body[..end], &source, &targets) {
                assert!(!matches!(reader.next_row(), Ok(Some(_))));
            }
        }
    }

    #[test]
    fn columns_of_other_types_are_refused_and_longer_ones_are_not() {
        let is_taken = |from: &str, to: &str| {
            let (_, map) = described(&[ColumnType::parse(from).unwrap()]);
            let to = ColumnType::parse(to).unwrap();
            Target::new(&table_of(&map).columns[0], &to).is_some()
        };
        for (from, to) in [
            ("int", "bigint"),
            ("int", "int unsigned"),
            ("varchar(20)", "varchar(10)"),
            ("varchar(20)", "varbinary(80)"),
            ("blob", "text"),
            ("datetime(6)", "datetime"),
            ("decimal(10,2)", "decimal(10,3)"),
            ("text", "date"),
        ] {
            assert!(!is_taken(from, to), "{from} to {to}");
        }
        for (from, to) in [
            ("varchar(20)", "varchar(300)"),
            ("varchar(20)", "text"),
            ("tinytext", "longtext"),
            ("longtext", "json"),
            ("datetime", "datetime(6)"),
        ] {
            assert!(is_taken(from, to), "{from} to {to}");
        }
    }
}
