//! Events in words, as SHOW BINLOG EVENTS prints them.

use std::io::Read;

use sheaf_types::text::quoting::quoted_name;

use crate::event::{EventType, GtidLog, flags};
use crate::gtid::GtidSet;
use crate::reader::EventReader;

/// Bytes of a QUERY in front of its status variables.
const QUERY_HEAD_BYTES: usize = 13;
/// Bytes of a table's number.
const TABLE_BYTES: usize = 6;
/// The last rows event of its statement.
const STATEMENT_END: u16 = 1;
/// Bytes of a version in FORMAT_DESCRIPTION, and of the format in front of it.
const VERSION: std::ops::Range<usize> = 2..52;

/// The name of a type of events.
pub fn name_of(event: EventType) -> &'static str {
    match event {
        EventType::Query => "Query",
        EventType::Stop => "Stop",
        EventType::Rotate => "Rotate",
        EventType::FormatDescription => "Format_desc",
        EventType::Xid => "Xid",
        EventType::TableMap => "Table_map",
        EventType::Heartbeat => "Heartbeat",
        EventType::WriteRows => "Write_rows",
        EventType::UpdateRows => "Update_rows",
        EventType::DeleteRows => "Delete_rows",
        EventType::GtidLog => "Gtid",
        EventType::PreviousGtids => "Previous_gtids",
    }
}

/// What the event says that was read last; empty where it cannot be read.
pub fn info_of<F: Read>(event: EventType, reader: &EventReader<F>) -> String {
    info(event, reader).unwrap_or_default()
}

fn info<F: Read>(event: EventType, reader: &EventReader<F>) -> Option<String> {
    let body = reader.body();
    Some(match event {
        EventType::Stop | EventType::Heartbeat => String::new(),
        EventType::Query => {
            let (database, text) = query(body)?;
            match reader.flags() & flags::SUPPRESS_USE != 0 || database.is_empty() {
                true => text,
                false => format!("use {}; {text}", quoted_name(&database)),
            }
        }
        EventType::Rotate => {
            let (position, file) = body.split_first_chunk::<8>()?;
            let position = u64::from_le_bytes(*position);
            format!("{};pos={position}", String::from_utf8_lossy(file))
        }
        EventType::FormatDescription => {
            let version = body.get(VERSION)?;
            let end = version.iter().position(|byte| *byte == 0);
            let version = &version[..end.unwrap_or(version.len())];
            let version = String::from_utf8_lossy(version);
            format!("Server ver: {version}, Binlog ver: 4")
        }
        EventType::Xid => {
            let xid = u64::from_le_bytes(*body.first_chunk()?);
            format!("COMMIT /* xid={xid} */")
        }
        EventType::TableMap => {
            let (id, rest) = table(body)?;
            let (database, rest) = name(rest.get(2..)?)?;
            let (table, _) = name(rest)?;
            format!("table_id: {id} ({database}.{table})")
        }
        EventType::WriteRows | EventType::UpdateRows | EventType::DeleteRows => {
            let (id, rest) = table(body)?;
            let is_last = u16::from_le_bytes(*rest.first_chunk()?) & STATEMENT_END != 0;
            let end = if is_last { " flags: STMT_END_F" } else { "" };
            format!("table_id: {id}{end}")
        }
        EventType::GtidLog => {
            let (gtid, _) = GtidLog::read(body)?;
            format!("SET @@SESSION.GTID_NEXT= '{gtid}'")
        }
        EventType::PreviousGtids => GtidSet::read(body)?.to_string(),
    })
}

/// The database and the text of a QUERY.
fn query(body: &[u8]) -> Option<(String, String)> {
    let database = usize::from(*body.get(8)?);
    let status = u16::from_le_bytes(*body.get(11..)?.first_chunk()?);
    let rest = body.get(QUERY_HEAD_BYTES + usize::from(status)..)?;
    let (database, rest) = rest.split_at_checked(database)?;
    let text = rest.get(1..)?;
    let text_of = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Some((text_of(database), text_of(text)))
}

/// The number of a table, and what follows it.
fn table(body: &[u8]) -> Option<(u64, &[u8])> {
    let (id, rest) = body.split_at_checked(TABLE_BYTES)?;
    let number = id.iter().rev();
    Some((
        number.fold(0, |number, byte| number << 8 | u64::from(*byte)),
        rest,
    ))
}

/// A name behind its length, with a zero behind it.
fn name(bytes: &[u8]) -> Option<(String, &[u8])> {
    let (length, rest) = bytes.split_first()?;
    let (name, rest) = rest.split_at_checked(usize::from(*length))?;
    Some((String::from_utf8_lossy(name).into_owned(), rest.get(1..)?))
}
