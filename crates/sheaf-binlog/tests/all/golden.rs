//! Files that MySQL 9.7 wrote, byte by byte.
//!
//! `golden/script.sql` makes them, on a server with `--log-bin --binlog-row-metadata=FULL --gtid-mode=ON
//! --enforce-gtid-consistency`. Statements, rows and types are ours; of the file's own we take what no one can know:
//! times, and numbers of tables and threads. So what is compared is all the rest, the checksums included.
//!
//! `rows.binlog` is the file that the script fills, `closed.binlog` the next one, after a shutdown.

use std::fs;
use std::path::PathBuf;

use sheaf_binlog::event::rows::{RowsEvent, TableMap};
use sheaf_binlog::event::{
    self, Event, EventHeader, EventType, GtidLog, Heartbeat, Query, Rotate, Stop, Xid,
};
use sheaf_binlog::file::{BinlogFile, CLOSED_FLAGS, FileStart, MAGIC, Transaction};
use sheaf_binlog::recovery::recover;
use sheaf_binlog::table::LoggedTable;

use crate::cases::DATABASE;
use crate::reader::{Found, events};
use crate::script::{Change, Part, RowsStatement, Step, steps};

pub(crate) fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// The events of a part of a statement.
fn push_part(
    transaction: &mut Transaction,
    header: &EventHeader,
    (id, table): (u64, &LoggedTable),
    part: &Part,
    is_last: bool,
) {
    let flagged = |event| (part.flagged)(RowsEvent::with_foreign_keys_logged(event));
    let mut push = |event: &RowsEvent<'_>| transaction.push(header, event);
    let last = match &part.change {
        Change::Insert(rows, columns) => {
            let mut event = flagged(RowsEvent::insert(id, table, columns.clone()));
            for row in rows {
                event.push_insert(row).unwrap().iter().for_each(&mut push);
            }
            event
        }
        Change::Update(rows, [before, after]) => {
            let event = RowsEvent::update(id, table, before.clone(), after.clone());
            let mut event = flagged(event);
            for [before, after] in rows {
                let full = event.push_update(before, after).unwrap();
                full.iter().for_each(&mut push);
            }
            event
        }
        Change::Delete(rows, columns) => {
            let mut event = flagged(RowsEvent::delete(id, table, columns.clone()));
            for row in rows {
                event.push_delete(row).unwrap().iter().for_each(&mut push);
            }
            event
        }
    };
    push(&match is_last {
        true => last.ending_statement(),
        false => last,
    });
}

/// The file that we make of the same statements.
fn ours(golden: &[u8], steps: Vec<Step>) -> Vec<u8> {
    let events = events(golden);
    let mut file: Option<BinlogFile<Vec<u8>>> = None;
    let mut open: Option<(EventHeader, GtidLog, Transaction)> = None;
    let mut statements = steps
        .into_iter()
        .filter(|step| !matches!(step, Step::Setting(_)));
    for (at, event) in events.iter().enumerate() {
        let header = event.header;
        let ends_transaction = matches!(
            event.event_type,
            EventType::GtidLog | EventType::Rotate | EventType::Stop
        );
        if let Some((header, gtid, transaction)) = open.take_if(|_| ends_transaction) {
            let file = file.as_mut().unwrap();
            file.append(&header, gtid, transaction).unwrap();
        }
        let mut push = |event: &dyn Event| match &mut open {
            Some((_, _, transaction)) => transaction.push(&header, event),
            None => file.as_mut().unwrap().write(&header, event).unwrap(),
        };
        match event.event_type {
            // Made with PREVIOUS_GTIDS.
            EventType::FormatDescription => {}
            EventType::PreviousGtids => {
                let (version, started) = events[at - 1].description();
                let begin = MAGIC.len() + events[at - 1].bytes.len() + event.bytes.len();
                let previous = recover(&golden[..begin]).unwrap().unwrap().gtids;
                let start = FileStart::new(&version, header.server_id, header.time, previous);
                let start = match started {
                    0 => start,
                    _ => start.of_started_server(),
                };
                file = Some(BinlogFile::create(Vec::new(), &start).unwrap());
            }
            EventType::GtidLog => open = Some((header, event.gtid_log(), Transaction::new())),
            EventType::Query => match event.query() {
                (context, "BEGIN") => push(&Query::begin(DATABASE).with_context(context)),
                (context, text) => {
                    let Some(Step::Ddl(sql)) = statements.next() else {
                        panic!("no DDL, but {text}");
                    };
                    let query = Query::new(DATABASE, &sql, context);
                    push(&match sql.starts_with("CREATE DATABASE") {
                        true => query.without_use(),
                        false => query,
                    });
                }
            },
            // Made with the first one of the statement.
            EventType::TableMap if events[at - 1].event_type == EventType::TableMap => {}
            EventType::TableMap => {
                let maps = events[at..].iter();
                let maps = maps.take_while(|event| event.event_type == EventType::TableMap);
                let (ids, names): (Vec<_>, Vec<_>) = maps.map(Found::table).unzip();
                let Some(Step::Rows(statement)) = statements.next() else {
                    panic!("no rows, but of {names:?}");
                };
                let RowsStatement {
                    sql, tables, parts, ..
                } = &statement;
                assert_eq!(names.len(), tables.len(), "{sql}: {names:?}");
                assert!(sql.contains(names[0]), "{sql}: {names:?}");
                let (_, _, transaction) = open.as_mut().unwrap();
                for (id, table) in ids.iter().zip(tables) {
                    let map = TableMap::new(*id, table);
                    transaction.push(
                        &header,
                        &match statement.has_foreign_keys {
                            true => map.of_foreign_keys(),
                            false => map,
                        },
                    );
                }
                for (part, left) in parts.iter().zip((0..parts.len()).rev()) {
                    let table = (ids[part.table], &tables[part.table]);
                    push_part(transaction, &header, table, part, left == 0);
                }
            }
            // Made with TABLE_MAP.
            EventType::WriteRows | EventType::UpdateRows | EventType::DeleteRows => {}
            EventType::Xid => push(&Xid(event.body().number(8))),
            EventType::Rotate => {
                let mut body = event.body();
                body.skip(8);
                push(&Rotate::to(body.rest()));
            }
            EventType::Stop => push(&Stop),
            EventType::Heartbeat => panic!("a heartbeat in a file"),
        }
    }
    assert!(statements.next().is_none(), "MySQL's file has fewer");
    let mut bytes = file.unwrap().into_inner();
    let (place, closed) = CLOSED_FLAGS;
    let place = place as usize;
    bytes[place..place + closed.len()].copy_from_slice(&closed);
    bytes
}

fn compare(name: &str, steps: Vec<Step>) {
    let golden = fs::read(folder().join(name)).unwrap();
    let ours = ours(&golden, steps);
    let pairs: Vec<_> = events(&golden)
        .into_iter()
        .zip(events(&ours))
        .enumerate()
        .collect();
    let differing = || {
        let pairs = pairs.iter();
        pairs.filter(|(_, (golden, ours))| golden.bytes != ours.bytes)
    };
    // GTID_LOG has the length of the events behind it, so these say more.
    let of_rows = differing().find(|(_, (golden, _))| golden.event_type != EventType::GtidLog);
    if let Some((at, (golden, ours))) = of_rows.or_else(|| differing().next()) {
        let (event_type, golden, ours) = (golden.event_type, golden.bytes, ours.bytes);
        let same = golden
            .iter()
            .zip(ours)
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
            "{name}: event {at}, {event_type:?}, differs at byte {place}\n MySQL {}\n ours  {}",
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
    compare("rows.binlog", steps());
}

#[test]
fn a_file_after_others_is_mysqls_byte_by_byte() {
    compare("closed.binlog", Vec::new());
}

/// What MySQL 9.7 sent a follower that asked for the end of a file and then waited.
#[test]
fn events_for_followers_are_mysqls_byte_by_byte() {
    let header = EventHeader::new(0, 77);
    let made = |event: &dyn Event, end: u64| {
        let mut bytes = Vec::new();
        event::push(&mut bytes, &header, event);
        event::seal_one(&mut bytes, end);
        let digits = bytes.iter().map(|byte| format!("{byte:02x}"));
        digits.collect::<String>()
    };
    let (name, end) = ("binlog.000002", 198);
    assert_eq!(
        made(&Rotate::artificial(name, end), 0),
        "00000000044d0000002c000000000000002000c60000000000000062696e6c6f672e303030303032b6b71273"
    );
    assert_eq!(
        made(&Heartbeat::new(name), end),
        "000000001b4d00000024000000c6000000000062696e6c6f672e3030303030327af46598"
    );
}
