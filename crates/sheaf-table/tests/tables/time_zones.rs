//! TIMESTAMP columns as sessions of several time zones see them.

use std::sync::Arc;

use sheaf_table::schema::DefaultValue;
use sheaf_table::{CreateTable, Table};
use sheaf_types::Value;
use sheaf_types::temporal::{DAY, SECOND, TimeZone};

use crate::fixture::{column, index, parts, scratch};

const HOUR: i64 = 3600 * SECOND;

/// `t (at TIMESTAMP DEFAULT '1970-01-02 00:00:00' PRIMARY KEY, then TIMESTAMP NULL, KEY (then))`
fn timestamps() -> CreateTable {
    let mut at = column("at", "timestamp", false);
    at.default = Some(DefaultValue::Value(Value::Timestamp(DAY)));
    let then = column("then", "timestamp", true);
    let mut request = CreateTable::new("d", "t", vec![at, then]);
    request.primary_key = Some(parts(&["at"]));
    request.indexes = vec![index("by_then", &["then"], false)];
    request
}

fn row_of(table: &Table, key: &[u8]) -> Vec<Value> {
    table.read_row(key).unwrap().unwrap()
}

#[test]
fn values_are_wall_clocks_and_bytes_are_utc() {
    let (_directory, catalog) = scratch();
    let table = catalog.create_table(timestamps()).unwrap();
    let zone = TimeZone::of_offset(2 * 3600);
    let seen = table.in_time_zone(zone);
    let local = [Value::Timestamp(DAY + 2 * HOUR), Value::Timestamp(DAY)];
    let utc = [Value::Timestamp(DAY), Value::Timestamp(DAY - 2 * HOUR)];

    let mut transaction = catalog.storage().begin_transaction();
    seen.insert(&mut transaction, &local).unwrap();
    transaction.commit().unwrap();

    let key = seen.encode_primary_key(&local);
    assert_eq!(key, table.encode_primary_key(&utc), "keys are UTC");
    assert_eq!(row_of(&seen, &key), local);
    assert_eq!(row_of(&table, &key), utc);
    let entries = [&seen, &table].map(|table| {
        let (layout, mut entry) = (&table.secondary_layouts[0], Vec::new());
        let value = row_of(table, &key)[1].clone();
        layout.encode_part(0, (&value).into(), &mut entry);
        let read = layout.decode_value(&table.definition, 0, &entry, &[]);
        assert_eq!(read.unwrap(), value);
        entry
    });
    assert_eq!(entries[0], entries[1]);
}

#[test]
fn sessions_of_one_time_zone_share_a_table() {
    let (_directory, catalog) = scratch();
    let table = catalog.create_table(timestamps()).unwrap();
    let zone = TimeZone::of_offset(-3600);
    let seen = table.in_time_zone(zone);
    assert!(Arc::ptr_eq(&seen, &table.in_time_zone(zone)));
    assert!(Arc::ptr_eq(&table, &table.in_time_zone(TimeZone::UTC)));
    assert!(seen.is_version_of(&table) && seen.is_current());
    assert_eq!(seen.definition.time_zone(), Some(zone));

    // A default is one of the definition, and a wall clock as well.
    let default = |table: &Table| table.definition.columns[0].default.clone();
    let shown = DefaultValue::Value(Value::Timestamp(DAY - HOUR));
    assert_eq!(default(&seen), Some(shown));
    assert_eq!(
        default(&table),
        Some(DefaultValue::Value(Value::Timestamp(DAY)))
    );

    let plain = CreateTable::new("d", "p", vec![column("c", "datetime", true)]);
    let plain = catalog.create_table(plain).unwrap();
    assert!(Arc::ptr_eq(&plain, &plain.in_time_zone(zone)));
}
