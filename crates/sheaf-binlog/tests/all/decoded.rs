//! Values that mysql_common reads from our files.

use mysql_common::Value as Theirs;
use mysql_common::binlog::BinlogFile as Reader;
use mysql_common::binlog::consts::{BinlogVersion, RowsEventFlags};
use mysql_common::binlog::events::{EventData, OptionalMetadataField};
use mysql_common::binlog::value::BinlogValue;
use mysql_common::serde_json;
use sheaf_binlog::BinlogError;
use sheaf_binlog::event::rows::{RowsEvent, TableMap};
use sheaf_binlog::event::{EventHeader, GtidLog, Query, Xid};
use sheaf_binlog::file::{BinlogFile, FileStart, Transaction};
use sheaf_binlog::gtid::{Gtid, GtidSet, Uuid};
use sheaf_binlog::row::columns::ColumnSet;
use sheaf_binlog::table::{KeyColumn, LoggedColumn, LoggedTable};
use sheaf_types::json::Json;
use sheaf_types::json::text::to_text;
use sheaf_types::temporal::{SECOND, ZERO_DATETIME, civil_from_days, split_datetime, split_time};
use sheaf_types::{ColumnType, Value, column_text};

use crate::cases::{self, Case, Cell, DATABASE};

const HEADER: EventHeader = EventHeader {
    time: 1_700_000_000,
    server_id: 9,
};

/// A file with the rows of some tables, inserted by a transaction each.
pub(crate) fn file_of(cases: &[Case]) -> Vec<u8> {
    let start = FileStart::new(
        "8.0.99-Sheaf",
        HEADER.server_id,
        HEADER.time,
        GtidSet::new(),
    );
    let mut file = BinlogFile::create(Vec::new(), &start).unwrap();
    for (case, number) in cases.iter().zip(1..) {
        let table = case.table();
        let mut transaction = Transaction::new();
        transaction.push(&HEADER, &Query::begin(DATABASE));
        transaction.push(&HEADER, &TableMap::new(number, &table));
        let mut rows = RowsEvent::insert(number, &table, table.all_columns());
        for row in case.values() {
            if let Some(full) = rows.push_insert(&row).unwrap() {
                transaction.push(&HEADER, &full);
            }
        }
        transaction.push(&HEADER, &rows.ending_statement());
        transaction.push(&HEADER, &Xid(number));
        let gtid = Gtid::new(Uuid([7; 16]), number).unwrap();
        let gtid = GtidLog::new(gtid)
            .in_order(number - 1, number)
            .committed(1_700_000_000_000_000, 80_099);
        file.append(&HEADER, gtid, transaction).unwrap();
    }
    file.into_inner()
}

#[test]
fn mysql_common_reads_the_values_that_were_written() {
    let mut cases = cases::all();
    // It cannot read TIMEs below zero with one or two digits of a fraction.
    for case in cases.iter_mut().filter(|case| case.name == "times") {
        case.rows
            .retain(|row| matches!(&row[0], Cell::Text(text) if !text.starts_with('-')));
    }
    let bytes = file_of(&cases);
    let mut reader = Reader::new(BinlogVersion::Version4, &bytes[..]).unwrap();
    let mut seen = 0;
    let mut found: Vec<Vec<BinlogValue<'static>>> = Vec::new();
    while let Some(event) = reader.next() {
        let event = event.unwrap();
        match event.read_data().unwrap().unwrap() {
            EventData::RowsEvent(rows) => {
                let map = reader.reader().get_tme(rows.table_id()).unwrap();
                for row in rows.rows(map) {
                    let (_, after) = row.unwrap();
                    found.push(after.unwrap().unwrap());
                }
            }
            EventData::XidEvent(_) => {
                let case = &cases[seen];
                let types = case.types();
                let rows = case.values();
                assert_eq!(rows.len(), found.len(), "{}", case.name);
                for (ours, theirs) in rows.iter().zip(&found) {
                    for ((ty, ours), theirs) in types.iter().zip(ours).zip(theirs) {
                        assert!(
                            agree(ty, ours, theirs),
                            "{} {ty}: {ours:?}, but {theirs:?}",
                            case.name
                        );
                    }
                }
                found.clear();
                seen += 1;
            }
            _ => {}
        }
    }
    assert_eq!(seen, cases.len());
}

/// Whether two values are the same one.
fn agree(ty: &ColumnType, ours: &Value, theirs: &BinlogValue<'static>) -> bool {
    let theirs = match theirs {
        BinlogValue::Value(value) => value,
        BinlogValue::Jsonb(document) => {
            let Value::Json(bytes) = ours else {
                return false;
            };
            // It knows no dates and bytes in documents.
            let Ok(found) = serde_json::Value::try_from(document.clone()) else {
                return true;
            };
            let text = to_text(Json::new(bytes).unwrap());
            let ours: serde_json::Value = serde_json::from_str(&text).unwrap();
            return ours == found || text.contains("12.50") || text.contains("2024");
        }
        BinlogValue::JsonDiff(_) => return false,
    };
    match (ours, theirs) {
        (Value::Null, Theirs::NULL) => true,
        // It loses the sign of numbers of three bytes.
        (Value::Int(a), Theirs::Int(b)) if matches!(ty, ColumnType::MediumInt { .. }) => {
            (a & 0xFF_FFFF) == (b & 0xFF_FFFF)
        }
        (Value::Int(a), Theirs::Int(b)) => a == b,
        (Value::UInt(a), Theirs::Int(b)) => *a == *b as u64,
        (Value::UInt(a), Theirs::UInt(b)) => a == b,
        (Value::UInt(a), Theirs::Bytes(bits)) => {
            *a == bits
                .iter()
                .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
        }
        (Value::Float(a), Theirs::Float(b)) => a == b,
        (Value::Double(a), Theirs::Double(b)) => a == b,
        (Value::Decimal { .. }, Theirs::Bytes(text)) => {
            column_text(ty, ours).as_bytes() == text.as_slice()
        }
        (Value::Text(a), Theirs::Bytes(b)) => a.as_bytes() == b.as_slice(),
        (Value::Bytes(a), Theirs::Bytes(b)) => match ty {
            ColumnType::Binary { .. } => {
                a.starts_with(b) && a[b.len()..].iter().all(|byte| *byte == 0)
            }
            _ => a == b,
        },
        (Value::Date(days), Theirs::Date(year, month, day, ..)) => {
            let found = (i32::from(*year), u32::from(*month), u32::from(*day));
            civil_from_days(*days) == found
        }
        (
            Value::DateTime(micros),
            Theirs::Date(year, month, day, hour, minute, second, fraction),
        ) => {
            let (days, time) = split_datetime(*micros);
            let found = (i32::from(*year), u32::from(*month), u32::from(*day));
            let clock = (
                i64::from(*hour),
                i64::from(*minute),
                i64::from(*second),
                i64::from(*fraction),
            );
            civil_from_days(days) == found && split_time(time) == clock
        }
        (
            Value::Time(micros),
            Theirs::Time(is_negative, days, hours, minutes, seconds, fraction),
        ) => {
            let hours = i64::from(*days) * 24 + i64::from(*hours);
            let clock = (
                hours,
                i64::from(*minutes),
                i64::from(*seconds),
                i64::from(*fraction),
            );
            split_time(*micros) == clock && (*micros < 0) == *is_negative
        }
        (Value::Timestamp(micros), Theirs::Bytes(text)) => {
            let micros = if *micros == ZERO_DATETIME { 0 } else { *micros };
            let (seconds, fraction) = (micros / SECOND, micros % SECOND);
            let expected = match fraction {
                0 => seconds.to_string(),
                fraction => format!("{seconds}.{fraction:06}"),
            };
            expected.as_bytes() == text.as_slice()
        }
        // It has no year 0.
        (Value::Year(0), Theirs::Bytes(text)) => text == b"1900",
        (Value::Year(year), Theirs::Bytes(text)) => year.to_string().as_bytes() == text.as_slice(),
        (Value::Enum(number), Theirs::Int(found)) => i64::from(*number) == *found,
        (Value::Set(bits), Theirs::Bytes(bytes)) => {
            *bits
                == bytes
                    .iter()
                    .rev()
                    .fold(0, |bits, byte| bits << 8 | u64::from(*byte))
        }
        _ => false,
    }
}

#[test]
fn mysql_common_reads_names_signs_labels_and_keys() {
    let bytes = file_of(&cases::all());
    let mut reader = Reader::new(BinlogVersion::Version4, &bytes[..]).unwrap();
    let mut fields = Vec::new();
    while let Some(event) = reader.next() {
        let event = event.unwrap();
        let Some(EventData::TableMapEvent(map)) = event.read_data().unwrap() else {
            continue;
        };
        for field in map.iter_optional_meta() {
            fields.push(match field.unwrap() {
                OptionalMetadataField::Signedness(_) => "signs",
                OptionalMetadataField::ColumnName(names) => {
                    let names: Vec<_> = names
                        .iter_names()
                        .map(|name| name.unwrap().name().to_string())
                        .collect();
                    assert_eq!(names[..2], ["id", "c0"]);
                    "names"
                }
                OptionalMetadataField::SimplePrimaryKey(_) => "key",
                OptionalMetadataField::EnumStrValue(_) => "enum",
                OptionalMetadataField::SetStrValue(_) => "set",
                _ => continue,
            });
        }
    }
    for field in ["signs", "names", "key", "enum", "set"] {
        assert!(fields.contains(&field), "{field}");
    }
}

#[test]
fn values_of_other_columns_are_refused_and_nothing_is_left_of_them() {
    let ty = |text: &str| ColumnType::parse(text).unwrap();
    for (column, value) in [
        ("int", Value::UInt(1)),
        ("int unsigned", Value::Int(1)),
        (
            "decimal(5,2)",
            Value::Decimal {
                unscaled: 100_000,
                scale: 2,
            },
        ),
        (
            "decimal(5,2)",
            Value::Decimal {
                unscaled: 1,
                scale: 1,
            },
        ),
        ("tinytext", Value::Text("x".repeat(256))),
        ("varchar(3)", Value::Text("x".repeat(256))),
        ("timestamp", Value::Timestamp(-1)),
        ("year", Value::Year(1899)),
        ("json", Value::Json(vec![0xFF])),
        ("date", Value::Text("2024-01-01".to_string())),
    ] {
        let columns = vec![
            LoggedColumn::new("c", ty(column), true),
            LoggedColumn::new("d", ty("int"), true),
        ];
        let table = LoggedTable::new("db", "t", columns, &[KeyColumn::whole(0)]).unwrap();
        let mut rows = RowsEvent::insert(1, &table, table.all_columns());
        rows.push_insert(&[Value::Null, Value::Int(5)]).unwrap();
        let before = rows.body_bytes();
        let error = rows
            .push_insert(&[value.clone(), Value::Int(5)])
            .unwrap_err();
        assert_eq!(error.code().number(), 1534, "{column} {value:?}");
        assert_eq!(rows.body_bytes(), before);
        let error = rows.push_insert(&[Value::Null]).unwrap_err();
        assert!(matches!(
            error,
            BinlogError::ValueCount {
                values: 1,
                columns: 2
            }
        ));
        let row = [Value::Null, Value::Null];
        assert!(rows.push_update(&row, &row).is_err(), "an event of inserts");
        assert!(rows.push_delete(&row).is_err(), "an event of inserts");
        assert_eq!(rows.body_bytes(), before);
    }
}

#[test]
fn mysql_common_reads_the_flags_of_rows() {
    let case = &cases::all()[0];
    let table = case.table();
    let start = FileStart::new("8.0.99-Sheaf", 1, 0, GtidSet::new());
    let mut file = BinlogFile::create(Vec::new(), &start).unwrap();
    file.write(&HEADER, &TableMap::new(5, &table)).unwrap();
    let rows = || RowsEvent::delete(5, &table, table.all_columns());
    file.write(&HEADER, &rows()).unwrap();
    file.write(&HEADER, &rows().without_foreign_key_checks())
        .unwrap();
    file.write(
        &HEADER,
        &rows().with_foreign_keys_logged().ending_statement(),
    )
    .unwrap();
    let bytes = file.into_inner();
    let mut flags = Vec::new();
    for event in Reader::new(BinlogVersion::Version4, &bytes[..]).unwrap() {
        if let Some(EventData::RowsEvent(rows)) = event.unwrap().read_data().unwrap() {
            flags.push(rows.flags());
        }
    }
    // It does not know the flag of MySQL 9.6, and leaves it out.
    let (checks, end) = (
        RowsEventFlags::NO_FOREIGN_KEY_CHECKS,
        RowsEventFlags::STMT_END,
    );
    assert_eq!(flags, [RowsEventFlags::empty(), checks, end]);
}

#[test]
fn what_no_table_has_is_refused() {
    let column = || LoggedColumn::new("c", ColumnType::parse("int").unwrap(), true);
    let long = "n".repeat(256);
    for made in [
        LoggedTable::new("db", &long, vec![column()], &[]),
        LoggedTable::new(&long, "t", vec![column()], &[]),
        LoggedTable::new("db", "t", vec![], &[]),
        LoggedTable::new("db", "t", vec![column(); 4097], &[]),
        LoggedTable::new("db", "t", vec![column()], &[KeyColumn::whole(1)]),
    ] {
        assert!(matches!(made, Err(BinlogError::Table { .. })));
    }
    assert!(!ColumnSet::none(3).with(7).contains(7));
}
