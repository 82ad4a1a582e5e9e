//! Tables of every type with their rows: as values for us, and as SQL for MySQL.

use std::fmt::Write as _;

use sheaf_binlog::event::rows::{RowsEvent, TableMap};
use sheaf_binlog::event::{EventHeader, GtidLog, Query, Xid};
use sheaf_binlog::file::{BinlogFile, FileStart, Transaction};
use sheaf_binlog::gtid::{Gtid, GtidSet, Uuid};
use sheaf_binlog::table::{KeyColumn, LoggedColumn, LoggedTable};
use sheaf_types::assignment::{Mode, assign};
use sheaf_types::json::Builder;
use sheaf_types::json::text::read;
use sheaf_types::{ColumnType, Value};

/// The database of all tables.
pub(crate) const DATABASE: &str = "golden";

/// A value in a row.
#[derive(Clone)]
pub(crate) enum Cell {
    Null,
    /// A string literal.
    Text(String),
    /// A literal of bytes.
    Bytes(Vec<u8>),
    /// An expression whose value is this one.
    Expression(String, Value),
}

impl Cell {
    fn sql(&self) -> String {
        match self {
            Cell::Null => "NULL".to_string(),
            Cell::Text(text) => format!("'{}'", text.replace('\\', r"\\").replace('\'', "''")),
            Cell::Bytes(bytes) => {
                bytes.iter().fold("x'".to_string(), |mut out, byte| {
                    write!(out, "{byte:02x}").unwrap();
                    out
                }) + "'"
            }
            Cell::Expression(sql, _) => sql.clone(),
        }
    }

    /// The value as the column has it.
    pub(crate) fn value(&self, ty: &ColumnType) -> Value {
        let mode = Mode {
            zero_date: true,
            ..Mode::STRICT
        };
        let given = match self {
            Cell::Null => return Value::Null,
            Cell::Text(text) => Value::Text(text.clone()),
            Cell::Bytes(bytes) => Value::Bytes(bytes.clone()),
            Cell::Expression(_, value) => return value.clone(),
        };
        let assigned = assign(ty, &given, mode);
        assigned
            .unwrap_or_else(|problem| panic!("{}: {problem:?}", self.sql()))
            .0
    }
}

fn text(text: &str) -> Cell {
    match text {
        "NULL" => Cell::Null,
        text => match text.strip_prefix("x:") {
            Some(digits) => {
                let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
                Cell::Bytes((0..digits.len()).step_by(2).map(byte).collect())
            }
            None => Cell::Text(text.to_string()),
        },
    }
}

/// A table with `id` as the primary key in front of its columns, and its rows.
pub(crate) struct Case {
    pub(crate) name: &'static str,
    /// Name and type, as MySQL reads it. All may be NULL.
    pub(crate) columns: Vec<(String, String)>,
    pub(crate) rows: Vec<Vec<Cell>>,
    /// The rows are deleted again.
    pub(crate) is_emptied: bool,
}

impl Case {
    fn new(name: &'static str, types: &[&str], rows: &[&[&str]]) -> Case {
        let columns = types.iter().enumerate();
        Case {
            name,
            columns: columns
                .map(|(at, ty)| (format!("c{at}"), (*ty).to_string()))
                .collect(),
            rows: rows
                .iter()
                .map(|row| row.iter().map(|cell| text(cell)).collect())
                .collect(),
            is_emptied: true,
        }
    }

    /// One column, a row for each value.
    fn column(name: &'static str, ty: &str, cells: Vec<Cell>) -> Case {
        Case {
            rows: cells.into_iter().map(|cell| vec![cell]).collect(),
            ..Case::new(name, &[ty], &[])
        }
    }

    pub(crate) fn types(&self) -> Vec<ColumnType> {
        let parse = |(_, ty): &(String, String)| ColumnType::parse(ty).unwrap();
        let id = ColumnType::parse("int").unwrap();
        std::iter::once(id)
            .chain(self.columns.iter().map(parse))
            .collect()
    }

    pub(crate) fn table(&self) -> LoggedTable {
        let names = ["id"]
            .into_iter()
            .chain(self.columns.iter().map(|(name, _)| name.as_str()));
        let columns = names.zip(self.types());
        let columns = columns.map(|(name, ty)| LoggedColumn::new(name, ty, name != "id"));
        let key = [KeyColumn::whole(0)];
        LoggedTable::new(DATABASE, self.name, columns.collect(), &key).unwrap()
    }

    /// The rows with the columns' values; the first one is `id` 1.
    pub(crate) fn values(&self) -> Vec<Vec<Value>> {
        let types = self.types();
        let rows = self.rows.iter().zip(1i64..);
        rows.map(|(row, id)| {
            let cells = row.iter().zip(&types[1..]).map(|(cell, ty)| cell.value(ty));
            std::iter::once(Value::Int(id)).chain(cells).collect()
        })
        .collect()
    }

    pub(crate) fn create_sql(&self) -> String {
        let columns: Vec<String> = self
            .columns
            .iter()
            .map(|(name, ty)| format!(", {name} {ty} NULL"))
            .collect();
        format!(
            "CREATE TABLE {} (id int NOT NULL PRIMARY KEY{})",
            self.name,
            columns.concat()
        )
    }

    pub(crate) fn insert_sql(&self) -> String {
        let rows = self.rows.iter().enumerate().map(|(at, row)| {
            let cells: Vec<String> = row.iter().map(|cell| format!(", {}", cell.sql())).collect();
            format!("({}{})", at + 1, cells.concat())
        });
        let rows: Vec<String> = rows.collect();
        format!("INSERT INTO {} VALUES {}", self.name, rows.join(", "))
    }

    pub(crate) fn delete_sql(&self) -> String {
        format!("DELETE FROM {}", self.name)
    }
}

/// The document that `write` builds, as SQL computes it.
fn document(sql: &str, write: impl FnOnce(&mut Builder)) -> Cell {
    let mut builder = Builder::new();
    write(&mut builder);
    Cell::Expression(
        sql.to_string(),
        Value::Json(builder.finish().unwrap().into_bytes()),
    )
}

fn documents() -> Vec<Cell> {
    let mut cells: Vec<Cell> = [
        "null", "true", "false", "0", "-1", "32767", "-32768", "32768", "-32769", "2147483647", "-2147483648",
        "2147483648", "-9223372036854775808", "18446744073709551615", "1.5", "-0.25", "1e300", "\"\"", "\"a\"",
        "\"häß😀\"", "[]", "{}", "[null, true, false, 1, -1, 70000, \"x\", 1.5, [], {}]",
        r#"{"b": 1, "aa": [1, 2, {"x": null}], "a": "text", "": 0, "ä": -5, "c": {"d": {"e": [[[]]]}}}"#,
    ]
    .iter()
    .map(|document| Cell::Text((*document).to_string()))
    .collect();
    // Lengths of texts in one and two groups of bits.
    for length in [127, 128, 300, 17_000] {
        cells.push(Cell::Text(format!("\"{}\"", "t".repeat(length))));
    }
    cells.push(document(
        "JSON_ARRAY(CAST(1 AS UNSIGNED), CAST(70000 AS UNSIGNED), CAST(5000000000 AS UNSIGNED))",
        |to| {
            to.begin_array().unwrap();
            for number in [1, 70_000, 5_000_000_000] {
                to.uint(number).unwrap();
            }
            to.end().unwrap();
        },
    ));
    cells.push(document(
        "JSON_ARRAY(12.50, -0.5, 0.00, 123456789012345.678)",
        |to| {
            to.begin_array().unwrap();
            for (unscaled, scale) in [(1250, 2), (-5, 1), (0, 2), (123_456_789_012_345_678, 3)] {
                to.decimal(unscaled, scale).unwrap();
            }
            to.end().unwrap();
        },
    ));
    let of_type = |ty: &str, text: &str| {
        let text = Cell::Text(text.to_string());
        text.value(&ColumnType::parse(ty).unwrap())
    };
    let date = of_type("date", "2024-02-29");
    let time = of_type("time(6)", "-12:34:56.789");
    let datetime = of_type("datetime(6)", "1999-12-31 23:59:59.999999");
    cells.push(document(
        "JSON_ARRAY(DATE'2024-02-29', TIME'-12:34:56.789', TIMESTAMP'1999-12-31 23:59:59.999999', x'00ff')",
        |to| {
            let (Value::Date(date), Value::Time(time), Value::DateTime(datetime)) = (date, time, datetime) else {
                panic!("other values");
            };
            to.begin_array().unwrap();
            to.date(date).unwrap();
            to.time(time).unwrap();
            to.datetime(datetime).unwrap();
            to.opaque(15, &[0, 0xFF]).unwrap();
            to.end().unwrap();
        },
    ));
    cells
}

/// Documents whose containers are large.
fn large_documents() -> Vec<Cell> {
    [
        (
            r#"{"a": [-1, 1, -70000, 70000, 5000000000, null], "b": ""#,
            "l",
            66_000,
            r#"", "c": {"small": true}}"#,
        ),
        (r#"[[-2, ""#, "m", 65_530, r#""], [true]]"#),
    ]
    .map(|(begin, repeated, times, end)| {
        let text = format!("{begin}{}{end}", repeated.repeat(times));
        let sql = format!("CONCAT('{begin}', REPEAT('{repeated}', {times}), '{end}')");
        Cell::Expression(sql, Value::Json(read(&text).unwrap().into_bytes()))
    })
    .to_vec()
}

pub(crate) fn all() -> Vec<Case> {
    let integers = Case::new(
        "integers",
        &[
            "tinyint",
            "tinyint unsigned",
            "smallint",
            "smallint unsigned",
            "mediumint",
            "mediumint unsigned",
            "int",
            "int unsigned",
            "bigint",
            "bigint unsigned",
            "bool",
        ],
        &[
            &["0", "0", "0", "0", "0", "0", "0", "0", "0", "0", "0"],
            &[
                "127",
                "255",
                "32767",
                "65535",
                "8388607",
                "16777215",
                "2147483647",
                "4294967295",
                "9223372036854775807",
                "18446744073709551615",
                "1",
            ],
            &[
                "-128",
                "1",
                "-32768",
                "1",
                "-8388608",
                "1",
                "-2147483648",
                "1",
                "-9223372036854775808",
                "1",
                "-1",
            ],
            &[
                "NULL", "200", "NULL", "300", "NULL", "70000", "NULL", "5", "NULL", "7", "NULL",
            ],
        ],
    );
    let decimals = Case::new(
        "decimals",
        &[
            "decimal(1,0)",
            "decimal(10,2)",
            "decimal(9,9)",
            "decimal(18,9) unsigned",
            "decimal(38,30)",
            "decimal(38,0)",
            "decimal(14,4)",
            "decimal(20,1)",
            "decimal(30,11)",
        ],
        &[
            &[
                "9",
                "12345678.90",
                "0.123456789",
                "123456789.987654321",
                "12345678.123456789012345678901234567890",
                "12345678901234567890123456789012345678",
                "1234567890.1234",
                "1234567890123456789.5",
                "-0.00000000001",
            ],
            &[
                "-9",
                "-0.01",
                "-0.999999999",
                "0",
                "-99999999.999999999999999999999999999999",
                "-99999999999999999999999999999999999999",
                "-1.5",
                "-0.1",
                "9999999999999999999.99999999999",
            ],
            &["0", "0", "0", "1", "0", "0", "0", "0", "0"],
            &[
                "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL",
            ],
        ],
    );
    let floats = Case::new(
        "floats",
        &["float", "double", "float(7,2)", "double(10,3) unsigned"],
        &[
            &["1.5", "-2.25e100", "12345.67", "1.125"],
            &["-3.4e38", "5e-324", "-0.01", "0"],
            &["0", "0.1", "NULL", "1"],
        ],
    );
    let bits = Case::new(
        "bits",
        &[
            "bit(1)", "bit(7)", "bit(8)", "bit(9)", "bit(16)", "bit(63)", "bit(64)",
        ],
        &[
            &[
                "x:01",
                "x:7f",
                "x:ff",
                "x:01ff",
                "x:8001",
                "x:7fffffffffffffff",
                "x:ffffffffffffffff",
            ],
            &["x:00", "x:01", "x:02", "x:0003", "x:0004", "x:05", "x:06"],
            &["NULL", "x:01", "NULL", "x:0003", "NULL", "x:05", "NULL"],
        ],
    );
    let dates = Case::new(
        "dates",
        &["date", "year", "datetime", "timestamp"],
        &[
            &[
                "1970-01-01",
                "1970",
                "1970-01-01 00:00:00",
                "1970-01-01 00:00:01",
            ],
            &[
                "0000-00-00",
                "0",
                "0000-00-00 00:00:00",
                "0000-00-00 00:00:00",
            ],
            &[
                "9999-12-31",
                "2155",
                "9999-12-31 23:59:59",
                "2038-01-19 03:14:07",
            ],
            &[
                "1000-01-01",
                "1901",
                "1000-01-01 00:00:00",
                "2024-02-29 12:34:56",
            ],
            &["NULL", "NULL", "NULL", "NULL"],
        ],
    );
    let fractions: Vec<Case> = ["datetime", "timestamp", "time"]
        .into_iter()
        .map(|ty| {
            let types: Vec<String> = (0..=6).map(|digits| format!("{ty}({digits})")).collect();
            let types: Vec<&str> = types.iter().map(String::as_str).collect();
            let rows: &[&str] = match ty {
                "time" => &[
                    "12:34:56.",
                    "-12:34:56.",
                    "838:59:58.",
                    "-838:59:58.",
                    "-00:00:00.",
                    "00:00:01.",
                ],
                "datetime" => &[
                    "2024-02-29 12:34:56.",
                    "1000-01-01 00:00:00.",
                    "9999-12-31 23:59:59.",
                ],
                _ => &[
                    "2024-02-29 12:34:56.",
                    "1970-01-01 00:00:01.",
                    "2038-01-19 03:14:06.",
                ],
            };
            let mut case = Case::new(
                match ty {
                    "time" => "times",
                    "datetime" => "datetimes",
                    _ => "timestamps",
                },
                &types,
                &[],
            );
            // As many digits as the column has, so that nothing is rounded.
            let cells = |start: &str| {
                let cell = |digits: usize| match digits {
                    0 => start.trim_end_matches('.').to_string(),
                    digits => format!("{start}{}", &"987601"[..digits]),
                };
                (0..=6).map(|digits| Cell::Text(cell(digits))).collect()
            };
            case.rows = rows.iter().map(|start| cells(start)).collect();
            case
        })
        .collect();
    let long = |length: usize| Cell::Text("v".repeat(length));
    let mut strings = Case::new(
        "strings",
        &[
            "char(0)",
            "char(10)",
            "char(63)",
            "char(64)",
            "char(255)",
            "varchar(0)",
            "varchar(63)",
            "varchar(64)",
            "varchar(1000)",
        ],
        &[
            &["", "abc", "häß", "😀 ", "x", "", "y", "z", "häß😀  "],
            &["", "", "", "", "", "", "", "", ""],
            &[
                "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL",
            ],
        ],
    );
    let short = |text: &str| Cell::Text(text.to_string());
    strings.rows.push(vec![
        short(""),
        long(10),
        long(63),
        long(64),
        Cell::Text("ä".repeat(255)),
        short(""),
        Cell::Text("😀".repeat(63)),
        Cell::Text("😀".repeat(64)),
        long(1000),
    ]);
    let mut binary = Case::new(
        "binaries",
        &[
            "binary(0)",
            "binary(4)",
            "binary(255)",
            "varbinary(0)",
            "varbinary(255)",
            "varbinary(256)",
        ],
        &[
            &["", "x:01020000", "x:00", "", "x:0000", "x:ff20"],
            &["", "x:00000000", "x:2020", "", "", ""],
            &["NULL", "NULL", "NULL", "NULL", "NULL", "NULL"],
        ],
    );
    binary.rows.push(vec![
        short(""),
        Cell::Bytes(vec![1, 0, 0x20, 0]),
        Cell::Bytes(vec![0xFF; 255]),
        short(""),
        Cell::Bytes(vec![0; 255]),
        Cell::Bytes(vec![7; 256]),
    ]);
    let collations = Case::new(
        "collations",
        &[
            "varchar(5) collate utf8mb4_bin",
            "char(5) collate utf8mb4_general_ci",
            "text collate utf8mb4_bin",
            "varbinary(5)",
            "enum('a') collate utf8mb4_bin",
            "set('b') collate utf8mb4_0900_as_cs",
            "varchar(5)",
        ],
        &[&["a", "b", "c", "x:00", "a", "b", "d"]],
    );
    let collations_mostly_one = Case::new(
        "collations_one",
        &[
            "varchar(5)",
            "char(5)",
            "text",
            "varchar(5) collate utf8mb4_bin",
            "varchar(7)",
            "blob",
        ],
        &[&["a", "b", "c", "d", "e", "f"]],
    );
    let mut texts = Case::new(
        "texts",
        &[
            "tinytext",
            "text",
            "mediumtext",
            "longtext",
            "tinyblob",
            "blob",
            "mediumblob",
            "longblob",
        ],
        &[
            &["", "", "", "", "", "", "", ""],
            &["a", "häß😀", "c ", "d", "x:00", "x:0000", "x:ff", "x:20"],
            &[
                "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL",
            ],
        ],
    );
    texts.rows.push(vec![
        long(255),
        long(300),
        long(3000),
        long(300),
        Cell::Bytes(vec![0; 255]),
        long(256),
        long(300),
        long(300),
    ]);
    let many: Vec<String> = (0..300).map(|label| format!("'l{label}'")).collect();
    let labels = Case::new(
        "labels",
        &[
            "enum('x','it''s','ä')",
            &format!("enum({})", many.join(",")),
            "set('p','q','r')",
            &format!("set({})", many[..8].join(",")),
            &format!("set({})", many[..9].join(",")),
            &format!("set({})", many[..17].join(",")),
            &format!("set({})", many[..25].join(",")),
            &format!("set({})", many[..33].join(",")),
            &format!("set({})", many[..64].join(",")),
            &format!("enum({})", many[..255].join(",")),
        ],
        &[
            &[
                "x", "l0", "p,r", "l7", "l8,l0", "l16", "l24,l1", "l32,l0", "l63,l0", "l254",
            ],
            &["it's", "l299", "", "", "", "", "", "", "", "l0"],
            &[
                "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL", "NULL",
            ],
        ],
    );
    // As many columns as the bits of two bytes and one more.
    let many_types = ["tinyint"; 17];
    let nulls = Case::new("nulls", &many_types, &[&["NULL"; 17], &["1"; 17]]);
    let mut wide_rows = Case::new("wide_rows", &["varchar(4000)", "varchar(4000)"], &[]);
    for length in [10, 3000, 3999, 100, 4000, 20, 30] {
        wide_rows.rows.push(vec![long(length), long(length)]);
    }
    wide_rows.is_emptied = false;
    let json = Case::column("documents", "json", documents());
    let mut large = Case::column("large_documents", "json", large_documents());
    large.is_emptied = false;

    let mut all = vec![
        integers,
        decimals,
        floats,
        bits,
        dates,
        strings,
        binary,
        collations,
        collations_mostly_one,
        texts,
        labels,
        nulls,
        wide_rows,
        json,
        large,
    ];
    all.extend(fractions);
    all
}

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
