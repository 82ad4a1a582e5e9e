//! Files that MySQL 9.7 wrote, byte by byte.
//!
//! `golden/script.sql` makes them, on a server with `--log-bin --binlog-row-metadata=FULL --gtid-mode=ON
//! --enforce-gtid-consistency`. Statements, rows and types are ours; of the file's own we take what no one can know:
//! times, and numbers of tables and threads. So what is compared is all the rest, the checksums included.
//!
//! `SHEAF_WRITE_DOCS=1` writes the script anew. `rows.binlog` is the file that it fills, `closed.binlog` the next one,
//! after a shutdown.

use std::fs;
use std::path::PathBuf;

use mysql_common::binlog::consts::{BinlogVersion, EventType, StatusVarKey};
use mysql_common::binlog::events::{self as judge, EventData, StatusVarVal};
use mysql_common::binlog::{BinlogFile as Reader, EventStreamReader};
use sheaf_binlog::event::rows::{RowsEvent, TableMap};
use sheaf_binlog::event::{Event, EventHeader, GtidLog, Query, QueryContext, Rotate, Stop, Xid};
use sheaf_binlog::file::{BinlogFile, CLOSED_FLAGS, FileStart, Transaction};
use sheaf_binlog::gtid::{Gtid, GtidSet, Interval, Tag, Uuid};
use sheaf_binlog::row::columns::{ColumnSet, RowImage};
use sheaf_binlog::table::{KeyColumn, LoggedColumn, LoggedTable};
use sheaf_types::{ColumnType, Value};

use crate::cases::{self, Cell, DATABASE};

/// What a statement did to rows.
enum Change {
    Insert(Vec<Vec<Value>>, ColumnSet),
    Update(Vec<[Vec<Value>; 2]>, [ColumnSet; 2]),
    Delete(Vec<Vec<Value>>, ColumnSet),
}

/// A statement of the script.
enum Step {
    /// Not logged.
    Setting(String),
    Ddl(String),
    Rows {
        sql: String,
        table: LoggedTable,
        change: Change,
    },
}

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn steps() -> Vec<Step> {
    let mut steps = vec![
        Step::Setting("RESET BINARY LOGS AND GTIDS".to_string()),
        Step::Setting("SET NAMES utf8mb4".to_string()),
        Step::Setting("SET sql_mode = ''".to_string()),
        Step::Setting("SET time_zone = '+00:00'".to_string()),
        Step::Ddl(format!("CREATE DATABASE {DATABASE}")),
        Step::Setting(format!("USE {DATABASE}")),
    ];
    for case in cases::all() {
        let (table, rows) = (case.table(), case.values());
        let all = table.all_columns();
        steps.push(Step::Ddl(case.create_sql()));
        steps.push(Step::Rows {
            sql: case.insert_sql(),
            table: table.clone(),
            change: Change::Insert(rows.clone(), all.clone()),
        });
        if case.is_emptied {
            steps.push(Step::Rows {
                sql: case.delete_sql(),
                table,
                change: Change::Delete(rows, all),
            });
        }
    }
    steps.extend(steps_of_images());
    steps.extend(steps_of_keys());
    steps.push(Step::Setting("FLUSH BINARY LOGS".to_string()));
    steps
}

/// FULL, MINIMAL and NOBLOB, with a primary key and without.
fn steps_of_images() -> Vec<Step> {
    let types = ["int", "int", "varchar(10)", "text", "json", "int"];
    let types = types.map(|ty| ColumnType::parse(ty).unwrap());
    let names = ["id", "a", "v", "t", "j", "z"];
    let columns = || {
        let columns = names.iter().zip(types.clone());
        columns
            .map(|(name, ty)| LoggedColumn::new(*name, ty, *name != "id"))
            .collect::<Vec<_>>()
    };
    let row = |cells: [&str; 6]| -> Vec<Value> {
        let values = cells.iter().zip(&types).map(|(cell, ty)| match *cell {
            "NULL" => Value::Null,
            text => Cell::Text(text.to_string()).value(ty),
        });
        values.collect()
    };
    let columns_sql = "id int NOT NULL, a int, v varchar(10), t text, j json, z int";
    let mut steps = Vec::new();
    for (name, key, key_sql) in [
        ("keyed", &[KeyColumn::whole(0)][..], ", PRIMARY KEY (id)"),
        ("keyless", &[][..], ""),
    ] {
        let table = LoggedTable::new(DATABASE, name, columns(), key).unwrap();
        steps.push(Step::Ddl(format!(
            "CREATE TABLE {name} ({columns_sql}{key_sql})"
        )));
        for (image_sql, image) in [
            ("FULL", RowImage::Full),
            ("MINIMAL", RowImage::Minimal),
            ("NOBLOB", RowImage::NoBlob),
        ] {
            steps.push(Step::Setting(format!(
                "SET binlog_row_image = '{image_sql}'"
            )));
            let rows = |sql: String, change| Step::Rows {
                sql,
                table: table.clone(),
                change,
            };
            let assigned = [0, 1, 3]
                .into_iter()
                .fold(ColumnSet::none(6), ColumnSet::with);
            let first = row(["1", "5", "NULL", "text", "NULL", "NULL"]);
            steps.push(rows(
                format!("INSERT INTO {name} (id, a, t) VALUES (1, 5, 'text')"),
                Change::Insert(vec![first.clone()], table.columns_after(image, &assigned)),
            ));
            let second = row(["1", "6", "new", "text", "NULL", "NULL"]);
            let assigned = [1, 2].into_iter().fold(ColumnSet::none(6), ColumnSet::with);
            steps.push(rows(
                format!("UPDATE {name} SET a = 6, v = 'new'"),
                Change::Update(
                    vec![[first, second.clone()]],
                    [
                        table.columns_before(image),
                        table.columns_after(image, &assigned),
                    ],
                ),
            ));
            let third = row(["1", "6", "new", "text", "[1]", "NULL"]);
            let assigned = ColumnSet::none(6).with(4);
            steps.push(rows(
                format!("UPDATE {name} SET j = '[1]'"),
                Change::Update(
                    vec![[second, third.clone()]],
                    [
                        table.columns_before(image),
                        table.columns_after(image, &assigned),
                    ],
                ),
            ));
            steps.push(rows(
                format!("DELETE FROM {name}"),
                Change::Delete(vec![third], table.columns_before(image)),
            ));
        }
        steps.push(Step::Setting("SET binlog_row_image = 'FULL'".to_string()));
    }
    steps
}

/// Primary keys of several columns and of prefixes, and an invisible column.
fn steps_of_keys() -> Vec<Step> {
    let ty = |text: &str| ColumnType::parse(text).unwrap();
    let text = |text: &str| Value::Text(text.to_string());
    let columns = vec![
        LoggedColumn::new("a", ty("varchar(20)"), false),
        LoggedColumn::new("b", ty("int"), true).invisible(),
        LoggedColumn::new("c", ty("varbinary(20)"), false),
        LoggedColumn::new("d", ty("int unsigned"), false),
    ];
    let prefixes = [
        KeyColumn::whole(3),
        KeyColumn::prefix(0, 5),
        KeyColumn::prefix(2, 7),
    ];
    let prefixed = LoggedTable::new(DATABASE, "prefixed", columns.clone(), &prefixes).unwrap();
    let whole = [KeyColumn::whole(2), KeyColumn::whole(0)];
    let several = LoggedTable::new(DATABASE, "several", columns, &whole).unwrap();
    let row = vec![
        text("a"),
        Value::Null,
        Value::Bytes(b"c".to_vec()),
        Value::UInt(4),
    ];
    let columns_sql = "a varchar(20) NOT NULL, b int INVISIBLE, c varbinary(20) NOT NULL, d int unsigned NOT NULL";
    let mut steps = Vec::new();
    for (name, key, table) in [
        ("prefixed", "d, a(5), c(7)", prefixed),
        ("several", "c, a", several),
    ] {
        steps.push(Step::Ddl(format!(
            "CREATE TABLE {name} ({columns_sql}, PRIMARY KEY ({key}))"
        )));
        let all = table.all_columns();
        steps.push(Step::Rows {
            sql: format!("INSERT INTO {name} VALUES ('a', 'c', 4)"),
            change: Change::Insert(vec![row.clone()], all),
            table,
        });
    }
    steps
}

#[test]
fn the_script_is_that_of_the_tables() {
    let mut script = String::new();
    for step in steps() {
        script += match &step {
            Step::Setting(sql) | Step::Ddl(sql) | Step::Rows { sql, .. } => sql,
        };
        script += ";\n";
    }
    let path = folder().join("script.sql");
    if std::env::var_os("SHEAF_WRITE_DOCS").is_some() {
        fs::write(&path, &script).unwrap();
    }
    assert_eq!(fs::read_to_string(path).unwrap(), script);
}

/// The events of a statement about rows.
fn push_rows(
    transaction: &mut Transaction,
    header: &EventHeader,
    id: u64,
    table: &LoggedTable,
    change: &Change,
) {
    transaction.push(header, &TableMap::new(id, table));
    let mut push = |event: &RowsEvent<'_>| transaction.push(header, event);
    let last = match change {
        Change::Insert(rows, columns) => {
            let mut event =
                RowsEvent::insert(id, table, columns.clone()).with_foreign_keys_logged();
            for row in rows {
                event.push_insert(row).unwrap().iter().for_each(&mut push);
            }
            event
        }
        Change::Update(rows, [before, after]) => {
            let mut event = RowsEvent::update(id, table, before.clone(), after.clone())
                .with_foreign_keys_logged();
            for [before, after] in rows {
                event
                    .push_update(before, after)
                    .unwrap()
                    .iter()
                    .for_each(&mut push);
            }
            event
        }
        Change::Delete(rows, columns) => {
            let mut event =
                RowsEvent::delete(id, table, columns.clone()).with_foreign_keys_logged();
            for row in rows {
                event.push_delete(row).unwrap().iter().for_each(&mut push);
            }
            event
        }
    };
    push(&last.ending_statement());
}

/// What the session of a statement was, as the file says it.
fn context(query: &judge::QueryEvent<'_>) -> QueryContext {
    let mut context = QueryContext {
        thread_id: query.thread_id(),
        seconds_taken: query.execution_time(),
        ..QueryContext::default()
    };
    for key in [
        StatusVarKey::SqlMode,
        StatusVarKey::Charset,
        StatusVarKey::TimeZone,
        StatusVarKey::TableMapForUpdate,
        StatusVarKey::ExplicitDefaultsForTimestamp,
        StatusVarKey::DdlLoggedWithXid,
        StatusVarKey::DefaultCollationForUtf8mb4,
        StatusVarKey::SqlRequirePrimaryKey,
        StatusVarKey::DefaultTableEncryption,
    ] {
        let Some(found) = query.status_vars().get_status_var(key) else {
            continue;
        };
        match found.get_value().unwrap() {
            StatusVarVal::SqlMode(mode) => context.sql_mode = mode.0,
            StatusVarVal::Charset {
                charset_client,
                collation_connection,
                collation_server,
            } => {
                context.client = charset_client;
                context.connection = collation_connection;
                context.server = collation_server;
            }
            StatusVarVal::TimeZone(zone) => context.time_zone = Some(zone.as_str().to_string()),
            StatusVarVal::TableMapForUpdate(tables) => context.updated_tables = tables,
            StatusVarVal::ExplicitDefaultsForTimestamp(value) => {
                context.explicit_defaults_for_timestamp = Some(value);
            }
            StatusVarVal::DdlLoggedWithXid(xid) => {
                context.ddl_xid = Some(xid);
                context.updated_databases = vec![DATABASE.to_string()];
            }
            StatusVarVal::DefaultCollationForUtf8mb4(id) => {
                context.default_collation_for_utf8mb4 = id
            }
            StatusVarVal::SqlRequirePrimaryKey(value) => {
                context.require_primary_key = Some(value != 0)
            }
            StatusVarVal::DefaultTableEncryption(value) => {
                context.default_table_encryption = Some(value != 0);
            }
            other => panic!("{other:?}"),
        }
    }
    context
}

fn gtid_log(event: &judge::GtidEvent) -> GtidLog {
    let gtid = Gtid::new(Uuid(event.sid()), event.gno()).unwrap();
    let version = event.immediate_server_version();
    let log = GtidLog::new(gtid)
        .in_order(event.last_committed(), event.sequence_number())
        .committed(event.immediate_commit_timestamp(), version)
        .originally_committed(
            event.original_commit_timestamp(),
            event.original_server_version(),
        );
    match event.flags_raw() {
        0 => log,
        _ => log.with_statements(),
    }
}

fn previous(event: &judge::PreviousGtidsEvent<'_>) -> GtidSet {
    let mut set = GtidSet::new();
    for series in event.sids() {
        for interval in series.intervals() {
            let (first, last) = (interval.start(), interval.end() - 1);
            set.add_interval(
                Uuid(series.uuid()),
                Tag::default(),
                Interval { first, last },
            );
        }
    }
    set
}

/// The file that we make of the same statements.
fn ours(golden: &[u8]) -> Vec<u8> {
    let mut file: Option<BinlogFile<Vec<u8>>> = None;
    let mut open: Option<(EventHeader, GtidLog, Transaction)> = None;
    let mut described = None;
    let mut statements = steps()
        .into_iter()
        .filter(|step| !matches!(step, Step::Setting(_)));
    for event in Reader::new(BinlogVersion::Version4, golden).unwrap() {
        let event = event.unwrap();
        let header = EventHeader::new(event.header().timestamp(), event.header().server_id());
        let ends_transaction = matches!(
            event.header().event_type().unwrap(),
            EventType::GTID_EVENT | EventType::ROTATE_EVENT | EventType::STOP_EVENT
        );
        if let Some((header, gtid, transaction)) = open.take_if(|_| ends_transaction) {
            file.as_mut()
                .unwrap()
                .append(&header, gtid, transaction)
                .unwrap();
        }
        let mut push = |event: &dyn Event| match &mut open {
            Some((_, _, transaction)) => transaction.push(&header, event),
            None => file.as_mut().unwrap().write(&header, event).unwrap(),
        };
        match event.read_data().unwrap().unwrap() {
            EventData::FormatDescriptionEvent(event) => {
                described = Some((event.server_version().to_string(), event.create_timestamp()));
            }
            EventData::PreviousGtidsEvent(event) => {
                let (version, started) = described.take().unwrap();
                let mut start =
                    FileStart::new(&version, header.server_id, header.time, previous(&event));
                if started != 0 {
                    start = start.of_started_server();
                }
                file = Some(BinlogFile::create(Vec::new(), &start).unwrap());
            }
            EventData::GtidEvent(event) => {
                open = Some((header, gtid_log(&event), Transaction::new()));
            }
            EventData::QueryEvent(event) if event.query() == "BEGIN" => {
                push(&Query::begin(DATABASE).with_context(context(&event)));
            }
            EventData::QueryEvent(event) => {
                let Some(Step::Ddl(sql)) = statements.next() else {
                    panic!("no DDL, but {}", event.query());
                };
                let query = Query::new(DATABASE, &sql, context(&event));
                push(&match sql.starts_with("CREATE DATABASE") {
                    true => query.without_use(),
                    false => query,
                });
            }
            EventData::TableMapEvent(event) => {
                let Some(Step::Rows { table, change, sql }) = statements.next() else {
                    panic!("no rows, but of {}", event.table_name());
                };
                assert!(sql.contains(&*event.table_name()), "{sql}");
                let (_, _, transaction) = open.as_mut().unwrap();
                push_rows(transaction, &header, event.table_id(), &table, &change);
            }
            // Made with TABLE_MAP.
            EventData::RowsEvent(_) => {}
            EventData::XidEvent(event) => push(&Xid(event.xid)),
            EventData::RotateEvent(event) => push(&Rotate::to(event.name())),
            EventData::StopEvent => push(&Stop),
            other => panic!("{other:?}"),
        }
    }
    let mut bytes = file.unwrap().into_inner();
    let (place, closed) = CLOSED_FLAGS;
    let place = place as usize;
    bytes[place..place + closed.len()].copy_from_slice(&closed);
    bytes
}

/// Where events begin.
fn events(file: &[u8]) -> Vec<&[u8]> {
    let mut rest = &file[4..];
    let mut events = Vec::new();
    while rest.len() > 13 {
        let length = u32::from_le_bytes(rest[9..13].try_into().unwrap()) as usize;
        let (event, behind) = rest.split_at(length);
        events.push(event);
        rest = behind;
    }
    events
}

fn compare(name: &str) {
    let golden = fs::read(folder().join(name)).unwrap();
    let ours = ours(&golden);
    let pairs: Vec<_> = events(&golden)
        .into_iter()
        .zip(events(&ours))
        .enumerate()
        .collect();
    let differing = || pairs.iter().filter(|(_, (golden, ours))| golden != ours);
    // GTID_LOG has the length of the events behind it, so these say more.
    let of_rows = differing().find(|(_, (golden, _))| golden[4] != EventType::GTID_EVENT as u8);
    if let Some((at, (golden, ours))) = of_rows.or_else(|| differing().next()) {
        let same = golden
            .iter()
            .zip(*ours)
            .skip(19)
            .take_while(|(golden, ours)| golden == ours);
        let place = 19 + same.count();
        let shown = |bytes: &[u8]| {
            let end = bytes.len().min(place + 40);
            format!(
                "{:02x?} of {} bytes",
                &bytes[place.saturating_sub(40).min(end)..end],
                bytes.len()
            )
        };
        panic!(
            "{name}: event {at} of type {} differs at byte {place}\n MySQL {}\n ours  {}",
            golden[4],
            shown(golden),
            shown(ours)
        );
    }
    assert!(
        golden == ours,
        "{name}: {} bytes, ours {}",
        golden.len(),
        ours.len()
    );
}

#[test]
fn a_file_of_all_types_is_mysqls_byte_by_byte() {
    compare("rows.binlog");
}

#[test]
fn a_file_after_others_is_mysqls_byte_by_byte() {
    compare("closed.binlog");
}

/// Reading a stream needs no file.
#[test]
fn events_for_followers_are_read_by_mysql_common() {
    let golden = fs::read(folder().join("closed.binlog")).unwrap();
    let description = events(&golden)[0];
    let header = EventHeader::new(0, 7);
    let mut stream = EventStreamReader::new(BinlogVersion::Version4);
    stream.read(description).unwrap();
    let mut read = |event: &dyn Event| {
        let mut bytes = Vec::new();
        sheaf_binlog::event::push(&mut bytes, &header, event);
        sheaf_binlog::event::seal_one(&mut bytes, 0);
        let event = stream.read(&bytes[..]).unwrap().unwrap();
        event.read_data().unwrap().map(EventData::into_owned)
    };
    let Some(EventData::RotateEvent(rotate)) = read(&Rotate::artificial("binlog.000007", 157))
    else {
        panic!("another event");
    };
    assert_eq!((&*rotate.name(), rotate.position()), ("binlog.000007", 157));
    let beat = read(&sheaf_binlog::event::Heartbeat::new("binlog.000007"));
    assert!(matches!(beat, Some(EventData::HeartbeatEvent)), "{beat:?}");
    let tagged: GtidSet = "00000000-0000-0000-0000-0000000000aa:1-3:7:tag:5,\
                           00000000-0000-0000-0000-0000000000ab:9"
        .parse()
        .unwrap();
    let Some(EventData::PreviousGtidsEvent(found)) =
        read(&sheaf_binlog::event::PreviousGtids(&tagged))
    else {
        panic!("another event");
    };
    let series: Vec<_> = found
        .sids()
        .iter()
        .map(|series| {
            (
                series.uuid()[15],
                series.tag().map(|tag| tag.as_str().to_string()),
                series.intervals().len(),
            )
        })
        .collect();
    let tag = Some("tag".to_string());
    assert_eq!(series, [(0xAA, None, 2), (0xAA, tag, 1), (0xAB, None, 1)]);
}
