//! Values and tables that the log cannot have.

use sheaf_binlog::BinlogError;
use sheaf_binlog::event::rows::RowsEvent;
use sheaf_binlog::row::columns::ColumnSet;
use sheaf_binlog::table::{KeyColumn, LoggedColumn, LoggedTable};
use sheaf_types::{ColumnType, Value};

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
